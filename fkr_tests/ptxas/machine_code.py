"""The machine code of a PTX text: the sections that ptxas writes into an ELF image for a GPU."""
import struct

import judges

PREFIXES = (".text.", ".nv.constant", ".nv.global", ".nv.shared", ".nv.local")


def has_bytes(name):
    """Whether the section has contents. Uninitialised memory has a size only; its offset in the file belongs to others."""
    return not (name == ".nv.global" or name.startswith((".nv.shared", ".nv.local")))


def sections(image):
    """{name: bytes} of a 64-bit little-endian ELF file; the size for uninitialised memory."""
    table_at, = struct.unpack_from("<Q", image, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", image, table_at + i * entry_size) for i in range(count)]
    names_at = headers[names_index][4]
    found = {}
    for name_at, _, _, _, at, size in headers:
        start = names_at + name_at
        name = image[start:image.index(b"\0", start)].decode()
        found[name] = image[at:at + size] if has_bytes(name) else size
    return found


def of(ptxas, path, target, image_path):
    """None if ptxas refuses the text."""
    if judges.assemble(ptxas, path, target, image_path).kind != "ok":
        return None
    found = sections(image_path.read_bytes())
    return {name: found[name] for name in found if name.startswith(PREFIXES)}
