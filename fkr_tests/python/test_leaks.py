"""Memory: 20,000 calls of each kind, or $PTXKIT_LEAK_CALLS, leave neither objects nor bytes behind."""

import gc
import os
import pathlib
import sys

import ptxkit
import pytest
from conftest import noise
from ptxkit import debug
from test_debug import FILL

PAGE = noise(2048) + bytes(2048)
RAW, NUMCODECS = ptxkit.Codec("lz4", framing="raw"), ptxkit.Codec("lz4", framing="numcodecs")
FRAME = ptxkit.Codec("lz4")
PACKED = {codec: codec.encode(PAGE) for codec in (RAW, NUMCODECS, FRAME)}
ROOM = bytearray(8192)
STREAM = ptxkit.lz4.frame.compress(PAGE, content_checksum=True, store_size=False)
CALLS = int(os.environ.get("PTXKIT_LEAK_CALLS", "20_000"))


def refused(call):
    try:
        call()
    except (ptxkit.Error, TypeError):
        return
    raise AssertionError("no error")


def incremental():
    context = ptxkit.lz4.frame.create_compression_context()
    ptxkit.lz4.frame.compress_begin(context)
    ptxkit.lz4.frame.compress_chunk(context, PAGE)


KINDS = {  # how many calls, and the call
    "encode": (CALLS, lambda: FRAME.encode(PAGE)),
    "decode": (CALLS, lambda: FRAME.decode(PACKED[FRAME])),
    "encode a list": (CALLS // 10, lambda: RAW.encode([PAGE] * 10)),
    "decode a list": (CALLS // 10, lambda: NUMCODECS.decode([PACKED[NUMCODECS]] * 10)),
    "encode into": (CALLS, lambda: RAW.encode(memoryview(PAGE), out=ROOM)),
    "decode into": (CALLS, lambda: RAW.decode(memoryview(PACKED[RAW]), out=ROOM)),
    "damage": (CALLS, lambda: refused(lambda: FRAME.decode(PAGE))),
    "wrong arguments": (CALLS, lambda: refused(lambda: FRAME.encode("text"))),
    "lz4.block": (CALLS, lambda: ptxkit.lz4.block.decompress(ptxkit.lz4.block.compress(PAGE))),
    "lz4.frame": (CALLS, lambda: ptxkit.lz4.frame.decompress(ptxkit.lz4.frame.compress(PAGE))),
    "incremental": (CALLS, incremental),
    "codecs": (CALLS, lambda: ptxkit.Codec("lz4", framing="raw", level=2)),
    "streams": (CALLS // 20, lambda: ptxkit.lz4.frame.decompress(STREAM)),
    "launches": (CALLS // 100, lambda: debug.run(FILL, "fill", 1, 32, [bytearray(128), 7])),
    "analyses": (CALLS // 1000, lambda: debug.analyze(FILL, select=["F051"])),
}


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def measure(count, call):
    """How many objects and bytes more there are after so many calls than after a tenth of them."""
    for _ in range(count // 10):
        call()
    gc.collect()
    blocks, objects, before = sys.getallocatedblocks(), len(gc.get_objects()), resident_bytes()
    for _ in range(count):
        call()
    gc.collect()
    return sys.getallocatedblocks() - blocks, len(gc.get_objects()) - objects, resident_bytes() - before


@pytest.mark.parametrize("kind", KINDS)
def test_calls(kind):
    count, call = KINDS[kind]
    blocks, objects, grown = measure(count, call)
    print(f"{kind}: {count} calls, {blocks} blocks, {objects} objects, {grown} bytes")
    assert objects < 50 and blocks < min(1000, count // 5 + 100)
    assert grown < 4 << 20


def test_files(tmp_path):
    def call():
        with ptxkit.open(tmp_path / "a.lz4", "wb") as file:
            file.write(PAGE)
        with ptxkit.open(tmp_path / "a.lz4") as file:
            assert file.read(10) == PAGE[:10]

    blocks, objects, grown = measure(max(20, CALLS // 100), call)
    assert objects < 50 and blocks < 1000 and grown < 8 << 20
    assert len(os.listdir("/proc/self/fd")) < 100


def test_the_measure_sees_a_leak():
    kept = []
    blocks, objects, _ = measure(10_000, lambda: kept.append([FRAME.encode(b"x")]))
    assert blocks > 10_000 and objects > 9_000
