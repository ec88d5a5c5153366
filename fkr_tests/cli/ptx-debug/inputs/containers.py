"""Writes the containers of inputs.md into the current folder: fat binaries in the layout of nvcc, files that link them,
and damaged ones. Compressed payloads are assembled by hand: an LZ4 block and a Zstandard frame of stored bytes."""
import struct
import sys

text = open(sys.argv[1], "rb").read() + b"\0"


def entry(kind, sm, flags, payload, uncompressed=0):
    padded = payload + bytes(-len(payload) % 8)
    header = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 80, len(padded), len(payload), 64, 0, 8, sm, 0, 0, flags, 0,
                         uncompressed)
    return header.ljust(80, b"\0") + padded


def fatbin(*entries):
    content = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def lz4(data):
    rest = len(data) - 15
    return b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + data


def zstd(data):
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def elf(name, content):
    names = b"\0" + name + b"\0.shstrtab\0"
    header = b"\x7fELF\2\1\1".ljust(18, b"\0") + struct.pack("<HI8x8xQ", 62, 1, 64 + len(content) + len(names))
    header = header.ljust(58, b"\0") + struct.pack("<HHH", 64, 3, 2)
    table = bytes(64)
    table += struct.pack("<II8x8xQQ", 1, 1, 64, len(content)).ljust(64, b"\0")
    table += struct.pack("<II8x8xQQ", 2 + len(name), 1, 64 + len(content), len(names)).ljust(64, b"\0")
    return header + content + names + table


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


plain = entry(1, 75, 0x11, text)
both = fatbin(entry(2, 75, 0x11, b"machine code"), plain)
write("plain.fatbin", both)
write("packed.fatbin", fatbin(entry(1, 75, 0x2011, lz4(text), len(text)), entry(1, 80, 0x8011, zstd(text), len(text))))
write("app", elf(b".nv_fatbin", both.ljust(-(-len(both) // 64) * 64, b"\0") + fatbin(entry(1, 90, 0x100011, text))))
write("library.a", b"!<arch>\n" + b"k.o/".ljust(48) + str(len(elf(b"__nv_relfatbin", both))).ljust(10).encode() + b"`\n"
      + elf(b"__nv_relfatbin", both))
write("native.fatbin", fatbin(entry(2, 75, 0x11, b"machine code"), entry(2, 80, 0x11, b"machine code")))
write("empty.elf", elf(b".text", b"code"))
write("cut.fatbin", both[:-100])
write("torn.fatbin", fatbin(entry(1, 75, 0x2011, lz4(text)[:-20], len(text))))
