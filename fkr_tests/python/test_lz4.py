"""ptxkit.lz4 beside python-lz4: the same signatures, each reads what the other writes, the same kinds of errors."""

import inspect
import re

import lz4.block
import lz4.frame
import numpy as np
import ptxkit
import pytest
from conftest import array_of, noise

BLOCK, FRAME = ptxkit.lz4.block, ptxkit.lz4.frame
TEXT = b"the quick brown fox " * 500


def test_blocks_both_ways(dtype, size):
    data = array_of(dtype, size).tobytes()
    for arguments in (
        {},
        {"mode": "high_compression"},
        {"mode": "fast"},
        {"mode": "high_compression", "compression": 3},
    ):
        assert lz4.block.decompress(BLOCK.compress(data, **arguments)) == data
        bare = BLOCK.compress(data, store_size=False, **arguments)
        assert lz4.block.decompress(bare, uncompressed_size=len(data)) == data
    assert BLOCK.decompress(lz4.block.compress(data)) == data
    assert BLOCK.decompress(lz4.block.compress(data, store_size=False), uncompressed_size=len(data) + 5) == data


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"compression_level": 2},
        {"block_linked": False},
        {"block_linked": False, "compression_level": 3},
        {"block_size": 5},
        {"block_size": 7},
        {"content_checksum": True},
        {"block_checksum": True},
        {"store_size": False},
        {"content_checksum": True, "block_checksum": True, "block_linked": False, "store_size": False, "block_size": 6},
    ],
)
def test_frames_both_ways(arguments, size):
    data = array_of("<i4", size).tobytes()
    ours, theirs = FRAME.compress(data, **arguments), lz4.frame.compress(data, **arguments)
    assert lz4.frame.decompress(ours) == data and FRAME.decompress(theirs) == data and FRAME.decompress(ours) == data
    info, expected = FRAME.get_frame_info(ours), lz4.frame.get_frame_info(theirs)
    assert info == lz4.frame.get_frame_info(ours)
    assert FRAME.get_frame_info(theirs) == expected
    if len(data) <= ptxkit.lz4._format.block_bytes(
        arguments.get("block_size", 0)
    ):  # liblz4 takes a smaller size of blocks for what fits one
        info, expected = (
            {**each, "block_size": 0, "block_size_id": 0, "block_linked": False} for each in (info, expected)
        )
    assert info == expected


def test_kinds_of_results():
    for module in (BLOCK, FRAME):
        stored = module.compress(TEXT, return_bytearray=True)
        assert type(stored) is bytearray and type(module.compress(TEXT)) is bytes
        assert (
            type(module.decompress(stored, return_bytearray=True)) is bytearray
            and type(module.decompress(stored)) is bytes
        )
    frame = FRAME.compress(TEXT)
    for data in (frame, frame + b"more", frame + frame, bytearray(frame), np.frombuffer(frame, "u1")):
        for as_bytearray in (False, True):
            expected = lz4.frame.decompress(bytes(data), as_bytearray, True)
            assert FRAME.decompress(data, as_bytearray, True) == expected
            assert type(FRAME.decompress(data, as_bytearray, True)[0]) is type(expected[0])
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    assert FRAME.decompress(skippable + frame, return_bytes_read=True) == (b"", 11)


def test_what_cannot_be_honoured_is_refused():
    for call in (
        lambda: BLOCK.compress(TEXT, mode="fast", acceleration=2),
        lambda: BLOCK.compress(TEXT, dict=b"x"),
        lambda: BLOCK.decompress(BLOCK.compress(TEXT), dict=b"x"),
        lambda: BLOCK.compress(TEXT, mode="high_compression", compression=9),
        lambda: FRAME.compress(TEXT, compression_level=4),
        lambda: FRAME.compress(TEXT, compression_level=-1),
        lambda: FRAME.compress(TEXT * 20, compression_level=3),
        lambda: FRAME.open("f", "wb", auto_flush=True),
    ):
        with pytest.raises(ptxkit.UnsupportedError):
            call()
    for call in (
        lambda: BLOCK.compress(TEXT, acceleration=3),
        lambda: BLOCK.compress(TEXT, compression=3),
        lambda: FRAME.compress(TEXT, block_size=3),
    ):
        with pytest.raises(ValueError):
            call()


def error_of(function, *arguments, **named):
    with pytest.raises(Exception) as raised:
        function(*arguments, **named)
    return raised.value


@pytest.mark.parametrize(
    "name, arguments, named",
    [
        ("compress", ["text"], {}),
        ("compress", [7], {}),
        ("compress", [TEXT], {"mode": "zz"}),
        ("decompress", [b""], {}),
        ("decompress", [b"abc"], {}),
        ("decompress", [b"\xff\xff\xff\xff1"], {}),
        ("decompress", [b"\5\0\0\0zz"], {}),
        ("decompress", [lz4.block.compress(TEXT)[:-3]], {}),
        ("decompress", ["text"], {}),
        ("decompress", [lz4.block.compress(TEXT, store_size=False)], {"uncompressed_size": 50}),
        ("decompress", [lz4.block.compress(TEXT)], {"uncompressed_size": len(TEXT)}),
        ("decompress", [b"\x05\0\0\0\0"], {}),
        ("decompress", [b"\x05\0\0\0\x30abc"], {}),
    ],
)
def test_errors_of_blocks_are_those_of_python_lz4(name, arguments, named):
    theirs, ours = error_of(getattr(lz4.block, name), *arguments, **named), error_of(
        getattr(BLOCK, name), *arguments, **named
    )
    if isinstance(theirs, lz4.block.LZ4BlockError):
        assert isinstance(ours, BLOCK.LZ4BlockError)
    else:
        assert isinstance(ours, type(theirs))
        assert not isinstance(theirs, ValueError) or str(theirs).split(": 0x")[0] in str(ours)


FRAMED = lz4.frame.compress(TEXT, content_checksum=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        FRAMED[:4],
        FRAMED[:10],
        FRAMED[:-1],
        FRAMED[:-6],
        b"abcdefghijklmnopqrst",
        FRAMED[:-1] + b"x",
        FRAMED[:8] + b"\1" + FRAMED[9:],
        FRAMED[:30] + b"\xff\xff\xff" + FRAMED[33:],
        "text",
        5,
    ],
)
def test_errors_of_frames_are_those_of_python_lz4(data):
    theirs, ours = error_of(lz4.frame.decompress, data), error_of(FRAME.decompress, data)
    assert isinstance(ours, type(theirs))
    if found := re.search(r"ERROR_frame\w+", str(theirs)):
        assert found[0] in str(ours)


def test_constants():
    for name in dir(FRAME):
        if re.match("BLOCKSIZE|COMPRESSIONLEVEL", name) and name != "COMPRESSIONLEVEL_MAX":
            assert getattr(FRAME, name) == getattr(lz4.frame, name)


@pytest.mark.parametrize("ours, theirs", [(FRAME.open, lz4.frame.open), (FRAME.LZ4FrameFile, lz4.frame.LZ4FrameFile)])
def test_signatures_of_python_functions(ours, theirs):
    def shape(function):
        return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]

    assert shape(ours) == shape(theirs)


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (BLOCK.compress, lz4.block.compress),
        (BLOCK.decompress, lz4.block.decompress),
        (FRAME.compress, lz4.frame.compress),
        (FRAME.decompress, lz4.frame.decompress),
        (FRAME.get_frame_info, lz4.frame.get_frame_info),
    ],
)
def test_signatures_of_c_functions(ours, theirs):
    """They have none to be inspected: an argument that is given twice, by place and by name, is named by the error."""
    signature = inspect.signature(ours).parameters
    *parameters, last = signature
    arguments = [b"x", *[each.default for each in signature.values()][1:]]
    for place, name in enumerate(parameters):
        with pytest.raises(TypeError, match=rf"given by name \('{name}'\) and position \({place + 1}\)"):
            theirs(*arguments[: place + 1], **{name: 0})
    if parameters:  # get_frame_info() takes its only argument by place
        with pytest.raises(TypeError, match=f"at most {len(parameters) + 1} "):
            theirs(*arguments, 0)
        try:
            theirs(b"x", **{last: arguments[-1]})
        except (RuntimeError, ValueError):  # the data, not the name
            pass


def test_random_blocks():
    for size in range(0, 3000, 97):
        data = noise(size)
        assert BLOCK.decompress(lz4.block.compress(data)) == data and lz4.block.decompress(BLOCK.compress(data)) == data
