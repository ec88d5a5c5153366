"""Frames piece by piece, beside python-lz4: the same bytes come back, whichever of the two wrote them."""

import gc
import inspect
import io
import os
import random
import threading
import time

import lz4.frame
import ptxkit
import pytest
from conftest import noise

FRAME = ptxkit.lz4.frame
TEXT = b"".join(b"line %d of a text, value %d\n" % (i, i * i % 977) for i in range(40_000)) + noise(70_000)

SETTINGS = [
    {},
    {"block_size": 5},
    {"block_size": 7, "block_linked": False},
    {"block_linked": False, "compression_level": 3},
    {"compression_level": 2},
    {"block_checksum": True},
    {"block_checksum": True, "block_linked": False},
    {"content_checksum": True},
    {"content_checksum": True, "block_checksum": True, "auto_flush": True},
    {"auto_flush": True, "return_bytearray": True},
]


def pieces(data, sizes):
    at, result = 0, []
    while at < len(data):
        size = next(sizes)
        result.append(data[at : at + size])
        at += size
    return result


def sizes_of(kind):
    draw = random.Random(kind)
    return iter(lambda: {"small": 7, "block": 65_536, "large": 300_000}.get(kind) or draw.choice([1, 5000, 70_000]), 0)


def write(module, data, kind, **settings):
    compressor = module.LZ4FrameCompressor(**settings)
    return b"".join([compressor.begin(), *map(compressor.compress, pieces(data, sizes_of(kind))), compressor.flush()])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_what_is_written_is_read(settings):
    for data in (b"", b"x", TEXT[:65_536], TEXT[:65_537], TEXT):
        for kind in ("block", "large", "mixed"):
            if settings.get("auto_flush") and kind == "mixed":
                data = data[:200_000]
            written = write(FRAME, data, kind, **settings)
            assert lz4.frame.decompress(written) == data
            assert FRAME.decompress(written) == data
            info = lz4.frame.get_frame_info(written)
            assert info == lz4.frame.get_frame_info(write(lz4.frame, data, kind, **settings))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("module", [lz4.frame, FRAME], ids=["python-lz4", "ptxkit"])
def test_what_is_read_piece_by_piece(module, settings):
    data = TEXT[:300_000]
    written = write(module, data, "large", **settings)
    for kind in ("block", "large", "mixed", "small"):
        reader = FRAME.LZ4FrameDecompressor()
        stored = written[:2000] if kind == "small" else written
        chunks = pieces(stored, sizes_of(kind))
        read = b"".join(map(reader.decompress, chunks))
        assert data.startswith(read) and reader.eof == (kind != "small") and reader.unused_data is None
        assert kind == "small" or read == data
    assert FRAME.LZ4FrameDecompressor(return_bytearray=True).decompress(written) == bytearray(data)


def test_headers_are_python_lz4s():
    for source_size in (0, 1, 77, 1 << 40):
        for settings in SETTINGS:
            settings = {name: value for name, value in settings.items() if name != "return_bytearray"}
            ours, theirs = FRAME.create_compression_context(), lz4.frame.create_compression_context()
            expected = lz4.frame.compress_begin(theirs, source_size=source_size, **settings)
            assert FRAME.compress_begin(ours, source_size=source_size, **settings) == expected


def test_blocks_appear_when_they_are_full():
    """The same number of bytes is kept back as by liblz4, and a flush hands it out."""
    for settings in ({}, {"block_size": 6}, {"auto_flush": True}):
        ours, theirs = FRAME.create_compression_context(), lz4.frame.create_compression_context()
        readers = [FRAME.LZ4FrameDecompressor() for _ in range(2)]  # python-lz4's holds bytes back
        for module, context, reader in ((FRAME, ours, readers[0]), (lz4.frame, theirs, readers[1])):
            reader.decompress(module.compress_begin(context, **settings))
        for size in (10, 65_525, 1, 1, 200_000, 0):
            counts = [
                len(reader.decompress(module.compress_chunk(context, TEXT[:size])))
                for module, context, reader in ((FRAME, ours, readers[0]), (lz4.frame, theirs, readers[1]))
            ]
            assert counts[0] == counts[1]
        rests = [
            len(reader.decompress(module.compress_flush(context, end_frame=False)))
            for module, context, reader in ((FRAME, ours, readers[0]), (lz4.frame, theirs, readers[1]))
        ]
        assert rests[0] == rests[1]
        for module, context, reader in ((FRAME, ours, readers[0]), (lz4.frame, theirs, readers[1])):
            assert reader.decompress(module.compress_flush(context)) == b"" and reader.eof


def test_source_size():
    compressor = FRAME.LZ4FrameCompressor()
    written = compressor.begin(source_size=5) + compressor.compress(b"abcde") + compressor.flush()
    assert lz4.frame.get_frame_info(written)["content_size"] == 5 and lz4.frame.decompress(written) == b"abcde"
    compressor.begin(source_size=5)
    compressor.compress(b"abc")
    with pytest.raises(RuntimeError, match="ERROR_frameSize_wrong"):
        compressor.flush()
    assert not compressor.started()


@pytest.mark.parametrize("most", [1000, 65_536, 100_000])
def test_max_length(most):
    written = lz4.frame.compress(TEXT, content_checksum=True) + b"rest"
    ours, theirs = FRAME.LZ4FrameDecompressor(), lz4.frame.LZ4FrameDecompressor()
    data = written
    while not ours.eof:
        read = ours.decompress(data, max_length=most)
        assert read == theirs.decompress(data, max_length=most)
        assert (ours.eof, ours.unused_data) == (theirs.eof, theirs.unused_data)
        assert ours.eof or ours.needs_input == theirs.needs_input is False
        assert len(ours._context.output) <= 65_536  # no more than a block is decoded ahead
        data = b""
    assert ours.unused_data == b"rest"


def test_a_reader_of_the_standard_library():
    try:
        from compression._common._streams import DecompressReader
    except ImportError:
        from _compression import DecompressReader
    stored = (
        FRAME.compress(TEXT) + lz4.frame.compress(b"second") + b"\x53\x2a\x4d\x18\3\0\0\0abc" + FRAME.compress(b"3")
    )
    with io.BufferedReader(DecompressReader(io.BytesIO(stored), FRAME.LZ4FrameDecompressor)) as file:
        assert file.read() == TEXT + b"second3"
        file.seek(50)
        assert file.read(100) == TEXT[50:150]


def test_used_again():
    compressor, reader = FRAME.LZ4FrameCompressor(), FRAME.LZ4FrameDecompressor()
    for _ in range(2):
        assert not compressor.has_context()
        written = compressor.begin() + compressor.compress(b"abc") + compressor.flush()
        assert reader.decompress(written + b"more") == b"abc" and reader.eof and reader.unused_data == b"more"
    assert reader.decompress(b"") == b"" and not reader.eof
    with FRAME.LZ4FrameCompressor() as compressor:
        compressor.begin()
        compressor.reset()
        compressor.begin()
        assert compressor.has_context() and compressor.started()
    with FRAME.LZ4FrameDecompressor() as reader:
        with pytest.raises(ptxkit.CorruptInputError):
            reader.decompress(b"no frame, surely")
        with pytest.raises(ptxkit.CorruptInputError):
            reader.decompress(written)
        reader.reset()
        assert reader.decompress(written) == b"abc"


def test_signatures():
    for name in ("LZ4FrameCompressor", "LZ4FrameDecompressor"):
        ours, theirs = getattr(FRAME, name), getattr(lz4.frame, name)
        public = {each for each in dir(theirs) if not each.startswith("_")}
        assert public <= set(dir(ours)) | set(vars(ours()))
        for method in ["__init__", *(each for each in public if callable(getattr(theirs, each)))]:
            parameters = [
                [(p.name, p.default) for p in inspect.signature(getattr(each, method)).parameters.values()]
                for each in (ours, theirs)
            ]
            assert parameters[0] == parameters[1], method


def error_of(call):
    with pytest.raises(Exception) as raised:
        call()
    return raised.value


FRAME_BYTES = lz4.frame.compress(TEXT[:1000], content_checksum=True)
BAD_BYTES = FRAME_BYTES[:-1] + b"x"


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.compress_begin(None),
        lambda m: m.compress_begin(m.create_compression_context(), source_size="x"),
        lambda m: m.compress_chunk(m.create_compression_context(), b"abc"),
        lambda m: m.compress_chunk(m.create_decompression_context(), b"abc"),
        lambda m: m.compress_chunk(begun(m), "abc"),
        lambda m: m.compress_flush(7),
        lambda m: m.LZ4FrameCompressor().compress(b"abc"),
        lambda m: m.LZ4FrameCompressor().flush(),
        lambda m: [compressor.begin() for compressor in [m.LZ4FrameCompressor()] * 2],
        lambda m: m.decompress_chunk(None, b""),
        lambda m: m.decompress_chunk(m.create_decompression_context(), "abc"),
        lambda m: m.decompress_chunk(m.create_decompression_context(), b"0123456789"),
        lambda m: m.decompress_chunk(m.create_decompression_context(), BAD_BYTES),
        lambda m: m.decompress_chunk(m.create_decompression_context(), FRAME_BYTES[:6] + b"x" + FRAME_BYTES[7:]),
        lambda m: m.LZ4FrameDecompressor().decompress(FRAME_BYTES[:20] + bytes(3000)),
        lambda m: m.reset_decompression_context(3),
    ],
)
def test_errors_are_of_python_lz4s_kinds(call):
    ours, theirs = error_of(lambda: call(FRAME)), error_of(lambda: call(lz4.frame))
    assert isinstance(ours, type(theirs)), (ours, theirs)
    code = [word for word in str(theirs).split() if word.startswith("ERROR_") and "decompressionFailed" not in word]
    assert not code or code[0] in str(ours) or "corrupt block" in str(ours) or "damaged" in str(ours)


def begun(module):
    context = module.create_compression_context()
    module.compress_begin(context)
    return context


def test_refusals():
    for settings in ({"compression_level": 3}, {"compression_level": -1}, {"compression_level": 12}):
        with pytest.raises(ptxkit.UnsupportedError):
            FRAME.LZ4FrameCompressor(**settings).begin()
    with pytest.raises(ValueError, match="block_size is 3"):
        FRAME.LZ4FrameCompressor(block_size=3).begin()
    with_dictionary = b"\x04\x22\x4d\x18\x61\x40\x07\0\0\0"
    with_dictionary += bytes((ptxkit.lz4._format.header_checksum(with_dictionary[4:]),))
    with pytest.raises(ptxkit.UnsupportedError, match="dictionary"):
        FRAME.LZ4FrameDecompressor().decompress(with_dictionary)
    with pytest.raises(ptxkit.InvalidValueError, match="expected compress_begin"):  # python-lz4 writes a stray end mark
        FRAME.compress_flush(FRAME.create_compression_context())


@pytest.mark.parametrize("settings", [{}, {"block_checksum": True}, {"block_linked": False}], ids=str)
def test_damage_says_where(settings):
    written = bytearray(lz4.frame.compress(TEXT[:500_000], store_size=False, **settings))
    begins, at = [], 7
    while at < len(written) - 4:
        begins.append(at)
        at += 4 + (int.from_bytes(written[at : at + 4], "little") & 0x7FFFFFFF) + 4 * ("block_checksum" in settings)
    written[begins[5] + 4 : begins[5] + 404] = b"\xff" * 400
    for kind in ("large", "mixed"):
        reader, read = FRAME.LZ4FrameDecompressor(), b""
        with pytest.raises(ptxkit.CorruptInputError) as raised:
            for piece in pieces(bytes(written), sizes_of(kind)):
                read += reader.decompress(piece)
        assert raised.value.block in (5, 6) and raised.value.byte in begins[5:7]
        assert (raised.value.block, raised.value.byte) == (5, begins[5]) or "block_checksum" not in settings
        assert TEXT.startswith(read)


def test_damage_of_any_kind():
    """No mutated frame does anything but raise a RuntimeError, or give back bytes."""
    draw = random.Random(5)
    for settings in SETTINGS[:9]:
        good = write(lz4.frame, TEXT[:150_000], "large", **settings)
        for _ in range(40):
            bad = bytearray(good)
            for _ in range(draw.choice([1, 1, 5])):
                bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
            reader = FRAME.LZ4FrameDecompressor()
            try:
                read = reader.decompress(bytes(bad))
            except RuntimeError:
                continue
            if reader.eof:
                assert len(read) <= 255 * len(bad)


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ptxkit")]


def test_checksums_leave_no_thread():
    for _ in range(3):
        compressor = FRAME.LZ4FrameCompressor(content_checksum=True)
        compressor.begin()
        compressor.compress(TEXT)
        reader = FRAME.LZ4FrameDecompressor()
        reader.decompress(FRAME_BYTES[:-3])
        assert threads()
    del compressor, reader
    gc.collect()
    deadline = time.monotonic() + 5
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not threads()


def test_a_forked_child_is_told():
    compressor = FRAME.LZ4FrameCompressor(content_checksum=True)
    compressor.begin()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            compressor.compress(b"x")
            said = b"nothing"
        except ptxkit.InvalidValueError as error:
            said = str(error).encode()
        os.write(writing, said)
        os._exit(0)
    os.waitpid(child, 0)
    assert b"before this process was forked" in os.read(reading, 1000)


def test_left_open_at_the_end_of_the_process(python):
    program = """
import ptxkit
compressor = ptxkit.lz4.frame.LZ4FrameCompressor(content_checksum=True)
compressor.begin()
compressor.compress(b"x" * 1_000_000)
"""
    assert python(program) == ""
