#!/usr/bin/env python3
"""Reads .ptz files by docs/format.md and the pages it refers to, independently of this project's code.

usage: ptz_decoder.py FILE         writes the raw bytes to standard output
       ptz_decoder.py --test PACK  checks round trips of the program PACK with each codec
"""
import os
import random
import subprocess
import sys
import tempfile

MASK_64 = (1 << 64) - 1
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


class Damaged(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Damaged(what)


def rotated(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK_64


def xxh64(data):
    """XXH64 with seed 0, by its specification (Y. Collet, xxHash 0.1.1)."""
    p1, p2, p3, p4, p5 = PRIMES

    def mixed(accumulator, lane):
        return rotated((accumulator + lane * p2) & MASK_64, 31) * p1 & MASK_64

    word = lambda at, size: int.from_bytes(data[at : at + size], "little")
    at = 0
    if len(data) >= 32:
        lanes = [(p1 + p2) & MASK_64, p2, 0, -p1 & MASK_64]
        while at + 32 <= len(data):
            lanes = [mixed(lane, word(at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        result = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK_64
        for lane in lanes:
            result = ((result ^ mixed(0, lane)) * p1 + p4) & MASK_64
    else:
        result = p5
    result = (result + len(data)) & MASK_64
    while at + 8 <= len(data):
        result = (rotated(result ^ mixed(0, word(at, 8)), 27) * p1 + p4) & MASK_64
        at += 8
    if at + 4 <= len(data):
        result = (rotated(result ^ word(at, 4) * p1 & MASK_64, 23) * p2 + p3) & MASK_64
        at += 4
    for byte in data[at:]:
        result = rotated(result ^ byte * p5 & MASK_64, 11) * p1 & MASK_64
    result = (result ^ result >> 33) * p2 & MASK_64
    result = (result ^ result >> 29) * p3 & MASK_64
    return result ^ result >> 32


class Reader:
    """Reads bytes and little-endian integers from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        require(self.at + count <= len(self.data), "truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size):
        return int.from_bytes(self.bytes(size), "little")

    def ends(self):
        return self.at == len(self.data)


# --- entropy.md ---


def frequencies(reader):
    mask = reader.bytes(32)
    return [(symbol, reader.number(2)) for symbol in range(256) if mask[symbol // 8] >> symbol % 8 & 1]


def rans_warp(stream):
    reader = Reader(stream)
    raw_size, scale, chunk_bits = reader.number(4), reader.number(1), reader.number(1)
    if raw_size == 0:
        return b""
    slots = [(symbol, f, i) for symbol, f in frequencies(reader) for i in range(f)]
    require(len(slots) == 1 << scale, "the frequencies have another sum")
    chunk_size = 1 << chunk_bits
    sizes = [min(chunk_size, raw_size - begin) for begin in range(0, raw_size, chunk_size)]
    word_counts = [reader.number(4) for _ in sizes]
    raw = bytearray()
    for size, word_count in zip(sizes, word_counts):
        states = [reader.number(4) for _ in range(32)]
        words = Reader(reader.bytes(2 * word_count))
        for i in range(size):
            state = states[i % 32]
            symbol, f, place = slots[state & (1 << scale) - 1]
            raw.append(symbol)
            state = f * (state >> scale) + place
            states[i % 32] = state << 16 | words.number(2) if state < 1 << 16 else state
        require(words.ends() and all(state == 1 << 16 for state in states), "a chunk does not end where it began")
    require(reader.ends(), "bytes behind the chunks")
    return bytes(raw)


def rans_chunked(stream):
    reader = Reader(stream)
    scale = reader.number(1)
    counts = [reader.number(2) for _ in range(256)]
    slots = [(symbol, f, i) for symbol, f in enumerate(counts) for i in range(f)]
    sizes = [reader.number(2) for _ in range(reader.number(2))]
    require(len(slots) == (1 << scale if sizes else 0), "the frequencies have another sum")
    raw = bytearray()
    for size in sizes:
        lane_count = reader.number(1)
        require(1 <= lane_count <= 32, "no such number of lanes")
        states = [reader.number(4) for _ in range(lane_count)]
        word_counts = [reader.number(4) for _ in range(lane_count)]
        words = [Reader(reader.bytes(2 * count)) for count in word_counts]
        for i in range(size):
            state = states[i % lane_count]
            symbol, f, place = slots[state & (1 << scale) - 1]
            raw.append(symbol)
            state = f * (state >> scale) + place
            states[i % lane_count] = state << 16 | words[i % lane_count].number(2) if state < 1 << 16 else state
        require(all(lane.ends() for lane in words) and all(state == 1 << 16 for state in states),
                "a chunk does not end where it began")
    require(reader.ends(), "bytes behind the chunks")
    return bytes(raw)


class Bits:
    """The bits of a lane, from the highest bit of the first byte on."""

    def __init__(self, data):
        self.value, self.left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count):
        require(count <= self.left, "a lane ends too early")
        self.left -= count
        return self.value >> self.left & (1 << count) - 1

    def check_end(self):
        require(self.left < 8 and self.take(self.left) == 0, "a lane goes on")


def interleaved(lanes, raw_size):
    return bytes(lanes[i % 32][i // 32] for i in range(raw_size))


def lane_sizes(raw_size):
    return [(raw_size - lane + 31) // 32 for lane in range(32)]


def lanes_of(reader):
    sizes = [reader.number(2) for _ in range(32)]
    lanes = [Bits(reader.bytes(size)) for size in sizes]
    require(reader.ends(), "bytes behind the lanes")
    return lanes


def huffman(stream):
    reader = Reader(stream)
    raw_size = reader.number(4)
    if raw_size == 0:
        return b""
    table = reader.bytes(128)
    lengths = [table[symbol // 2] >> symbol % 2 * 4 & 15 for symbol in range(256)]
    codes, code = {}, 0
    for length in range(1, 16):
        code <<= 1
        for symbol in range(256):
            if lengths[symbol] == length:
                codes[length, code] = symbol
                code += 1
    decoded = []
    for bits, count in zip(lanes_of(reader), lane_sizes(raw_size)):
        symbols = []
        for _ in range(count):
            length, code = 1, bits.take(1)
            while (length, code) not in codes:
                require(length < 15, "no code")
                length, code = length + 1, code << 1 | bits.take(1)
            symbols.append(codes[length, code])
        bits.check_end()
        decoded.append(symbols)
    return interleaved(decoded, raw_size)


def fse(stream):
    reader = Reader(stream)
    raw_size = reader.number(4)
    if raw_size == 0:
        return b""
    accuracy = reader.number(1)
    size = 1 << accuracy
    owners, place = [None] * size, 0
    counts = dict(frequencies(reader))
    require(sum(counts.values()) == size, "the frequencies have another sum")
    for symbol, f in counts.items():
        for _ in range(f):
            owners[place] = symbol
            place = (place + size // 2 + size // 8 + 3) % size
    entries, seen = [], dict(counts)
    for symbol in owners:
        x = seen[symbol]
        seen[symbol] += 1
        bits = accuracy - (x.bit_length() - 1)
        entries.append((symbol, bits, (x << bits) - size))
    decoded = []
    for bits, count in zip(lanes_of(reader), lane_sizes(raw_size)):
        symbols, state = [], bits.take(accuracy)
        for _ in range(count):
            symbol, more, base = entries[state]
            symbols.append(symbol)
            state = base + bits.take(more)
        require(state == 0, "a lane does not end where it began")
        bits.check_end()
        decoded.append(symbols)
    return interleaved(decoded, raw_size)


def coded_stream(reader, size, decode):
    word = reader.number(4)
    stored = reader.bytes(word & (1 << 31) - 1)
    raw = stored if word >> 31 else decode(stored)
    require(len(raw) == size, "a stream has another size")
    return raw


# --- lz77.md ---


def lz_block(coded, decode):
    reader = Reader(coded)
    raw_size, literal_count, match_count, word_count = (reader.number(4) for _ in range(4))
    sizes = (4 * word_count, literal_count, match_count, match_count, match_count)
    flags, literals, lengths, low, high = (coded_stream(reader, size, decode) for size in sizes)
    require(reader.ends(), "bytes behind the streams")
    words, literal, match = Reader(flags), 0, 0
    raw = bytearray()
    while len(raw) < raw_size:
        end = min(raw_size, len(raw) + 4096)
        bits, left = 0, 0
        while len(raw) < end:
            if left == 0:
                bits, left = words.number(4), 32
            if bits & 1:
                require(match < match_count, "no match left")
                length, offset = lengths[match] + 4, low[match] | high[match] << 8
                match += 1
                require(0 < offset <= len(raw) and len(raw) + length <= end, "a match that cannot be")
                for _ in range(length):
                    raw.append(raw[-offset])
            else:
                require(literal < literal_count, "no literal left")
                raw.append(literals[literal])
                literal += 1
            bits, left = bits >> 1, left - 1
    require(words.ends() and literal == literal_count and match == match_count, "tokens are left")
    return bytes(raw)


# --- bwt.md ---


def zero_runs(coded):
    raw, digits, at = bytearray(), 0, 0
    while at < len(coded):
        byte = coded[at]
        at += 1
        if byte < 2:
            require(digits < 20, "a run is too long")
            raw += bytes((byte + 1) << digits)
            digits += 1
            continue
        digits = 0
        if byte == 255:
            require(at < len(coded) and coded[at] < 2, "no byte")
            raw.append(254 + coded[at])
            at += 1
        else:
            raw.append(byte - 1)
    return bytes(raw)


def moved_from_front(places):
    order, raw = list(range(256)), bytearray()
    for place in places:
        raw.append(order[place])
        order.insert(0, order.pop(place))
    return bytes(raw)


def bbw_block(coded):
    reader = Reader(coded)
    raw_size = reader.number(4)
    rows = [reader.number(4) for _ in range(0, raw_size, 4096)]
    run_size = reader.number(4)
    runs = b"".join(
        coded_stream(reader, min(32768, run_size - begin), rans_warp) for begin in range(0, run_size, 32768)
    )
    require(reader.ends(), "bytes behind the streams")
    column = moved_from_front(zero_runs(runs))
    require(len(column) == raw_size, "the column has another size")

    # The rows whose suffixes begin with a byte correspond, in order, to the rows that the byte precedes; row 0 has
    # none.
    without = rows[0]
    row_of = [row for row in range(raw_size + 1) if row != without]
    by_byte = sorted(range(raw_size), key=lambda i: column[i])
    step = {row_of[i]: (column[i], 1 + rank) for rank, i in enumerate(by_byte)}
    raw, row = bytearray(), 0
    while row != without:
        require(len(raw) < raw_size, "the rows go in a circle")
        byte, row = step[row]
        raw.append(byte)
        if (raw_size - len(raw)) % 4096 == 0:
            require(rows[(raw_size - len(raw)) // 4096] == row, "a segment begins in another row")
    require(len(raw) == raw_size, "the walk ends too early")
    return bytes(reversed(raw))


# --- format.md ---


def typed_plane(coded, count):
    if len(coded) == count:
        return coded
    if len(coded) == 16:
        return coded[:1] * count
    reader = Reader(coded)
    word_counts = [reader.number(4) for _ in range(4)]
    slots = [(symbol, f, i) for symbol, f in frequencies(reader) for i in range(f)]
    require(len(slots) == 4096, "the frequencies have another sum")
    plane = bytearray()
    for number, word_count in enumerate(word_counts):
        size = min(8192, max(0, count - 8192 * number))
        if size == 0:
            require(word_count == 0, "words of no elements")
            continue
        reader.bytes(-reader.at % 16)
        states = [reader.number(4) for _ in range(32)]
        words = [reader.number(2) for _ in range(word_count)]
        part = bytearray(size)
        for row in reversed(range(size // 32)):
            lanes = []
            for lane in range(32):
                symbol, f, place = slots[states[lane] % 4096]
                part[row // 4 * 128 + lane * 4 + row % 4] = symbol
                states[lane] = f * (states[lane] >> 12) + place
                if states[lane] < 1 << 15:
                    lanes.append(lane)
            require(len(lanes) <= len(words), "a part has too few words")
            for lane in reversed(lanes):
                states[lane] = states[lane] << 16 | words.pop()
        require(not words and states == [1 << 15] * 32, "a part does not end where it began")
        plane += part
    reader.bytes(-reader.at % 16)
    require(reader.ends(), "bytes behind the parts")
    return bytes(plane)


def element_of(planes, i, has_sign_behind):
    value = sum(plane[i] << 8 * number for number, plane in enumerate(planes))
    if not has_sign_behind:
        return value
    shift = 8 * len(planes) - 9
    top = value >> shift
    return (top >> 1 | (top & 1) << 8) << shift | value & (1 << shift) - 1


# Of each layout: bytes an element, coded planes, whether the sign is behind the exponent.
LAYOUTS = {
    1: (1, 1, False),
    2: (2, 1, False),
    3: (2, 1, True),
    4: (4, 1, True),
    5: (2, 2, False),
    6: (4, 4, False),
    7: (8, 8, False),
}


def typed_array(coded, layout):
    reader = Reader(coded)
    require(reader.bytes(4) == b"pra\x01" and reader.number(4) == layout, "no array with this layout")
    raw_size = reader.number(8)
    element, coded_planes, has_sign_behind = LAYOUTS[layout]
    units = raw_size // (128 * element)
    members = [min(32768, 128 * units - begin) for begin in range(0, 128 * units, 32768)]
    ends = [16 * reader.number(4) for _ in range(coded_planes * len(members))]
    reader.bytes(-reader.at % 16)
    copied = Reader(reader.bytes(128 * units * (element - coded_planes)))
    tail = reader.bytes(raw_size - 128 * units * element)
    reader.bytes(-reader.at % 16)
    raw, begin = bytearray(), 0
    for number, count in enumerate(members):
        planes = [copied.bytes(count) for _ in range(element - coded_planes)]
        for end in ends[number * coded_planes : (number + 1) * coded_planes]:
            require(end >= begin, "the ends go back")
            planes.append(typed_plane(reader.bytes(end - begin), count))
            begin = end
        for i in range(count):
            raw += element_of(planes, i, has_sign_behind).to_bytes(element, "little")
    require(reader.ends(), "bytes behind the planes")
    return bytes(raw) + tail


CODECS = {
    1: lambda coded: lz_block(coded, rans_warp),
    2: lambda coded: lz_block(coded, fse),
    3: lambda coded: lz_block(coded, huffman),
    4: bbw_block,
}


def block_decoder(codec, options):
    """Of the two bytes of a header."""
    if codec == 5:
        require(options in LAYOUTS, "options that the codec does not have")
        return lambda coded: typed_array(coded, options)
    require(codec in CODECS, "unknown codec")
    if options == 0:
        return CODECS[codec]
    require(codec == 1 and options >> 4 == 1 and options >> 2 & 3 < 3, "options that the codec does not have")
    return lambda coded: lz_block(coded, rans_chunked)


def decode(data):
    reader = Reader(data)
    header = reader.bytes(8)
    require(header[:4] == b"PTZ\x1a" and header[4] == 1 and 12 <= header[6] <= 20, "no .ptz file")
    decode_block = block_decoder(header[5], header[7])
    require(reader.number(8) == xxh64(header), "the header's checksum is wrong")
    table, result = b"", []
    while True:
        block_header = reader.bytes(16)
        if block_header == bytes(16):
            break
        table += block_header
        fields = Reader(block_header)
        raw_size, word, checksum = fields.number(4), fields.number(4), fields.number(8)
        stored = reader.bytes(word & (1 << 31) - 1)
        raw = stored if word >> 31 else decode_block(stored)
        require(len(raw) == raw_size and xxh64(raw) == checksum, "a block's size or checksum is wrong")
        require(raw_size <= 1 << header[6], "a block is too large")
        result.append(raw)
    require(reader.bytes(len(table)) == table, "the block table is another")
    require(reader.number(8) == len(result) and reader.number(8) == sum(map(len, result)), "the totals are wrong")
    require(reader.number(8) == xxh64(table), "the table's checksum is wrong")
    require(reader.number(4) == 0 and reader.bytes(4) == b"PTZE" and reader.ends(), "no end")
    require(all(len(raw) == 1 << header[6] for raw in result[:-1]), "a block is short")
    return b"".join(result)


# --- the test ---


def inputs():
    numbers = random.Random(1)
    words = [bytes(numbers.choices(b"etaoin shrdlu", k=numbers.randint(2, 9))) for _ in range(300)]
    text = b" ".join(numbers.choices(words, k=9000))
    return {
        "empty": b"",
        "one": b"7",
        "few": b"abracadabra" * 4,
        "long-runs": bytes(70000) + b"\xff\xfe" * 300 + b"x" * 9000,
        "text": text,
        "binary": b"".join((i * i % 65521).to_bytes(4, "little") for i in range(9000)),
        "noise-in-text": text[:20000] + numbers.randbytes(5000) + text[20000:30000],
        "several-blocks": (text[:40000] + bytes(range(256)) * 20) * 7,
    }


def ptz_codecs(pack):
    lines = subprocess.run([pack, "--list-codecs"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split()[0] for line in lines if line.split()[1] == ".ptz"]


def test(pack):
    with tempfile.TemporaryDirectory() as folder:
        for name, raw in inputs().items():
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(raw)
            forms = ["lzr:lanes=4,chunk=1K", "lzr:lanes=32,chunk=16K"] if name == "text" else []
            forms += [f"rans:dtype={dtype}" for dtype in ("bfloat16", "float16", "float32")]
            forms += [f"rans:stride={stride}" for stride in (2, 4, 8)]
            for codec in ptz_codecs(pack) + forms:
                packed = subprocess.run([pack, "--codec", codec, "-c", path], check=True, capture_output=True).stdout
                if decode(packed) != raw:
                    sys.exit(f"{name}, {codec}: other bytes come back")
                if name == "text" and ":" not in codec.removeprefix("lzr:"):
                    require(len(packed) < len(raw) / 2, f"{codec} stores what it should code")
                    check_damage(packed, codec)


def check_damage(packed, codec):
    """The decoder detects damage: it rejects changed files."""
    for at in (5, 9, 20, 38, len(packed) // 2, len(packed) - 40, len(packed) - 2):
        changed = bytearray(packed)
        changed[at] ^= 0x11
        try:
            decode(bytes(changed))
        except (Damaged, IndexError, KeyError):
            continue
        sys.exit(f"{codec}: a change of byte {at} was not noticed")


if len(sys.argv) == 3 and sys.argv[1] == "--test":
    test(sys.argv[2])
elif len(sys.argv) == 2:
    with open(sys.argv[1], "rb") as packed_file:
        sys.stdout.buffer.write(decode(packed_file.read()))
else:
    sys.exit(__doc__)
