"""What the package does on the interpreter that runs this, which needs no other package. test_pythons.py runs it."""

import concurrent.futures
import doctest
import importlib
import os
import pathlib
import pickle
import sys
import tempfile
import threading

import ptxkit
from ptxkit import debug
from ptxkit.lz4 import block, frame

TEXT = b"".join(b"line %d of a text\n" % i for i in range(20_000))
FILL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
    .reg .b32 %v, %i; .reg .b64 %b, %o;
    ld.param.u64 %b, [out];
    ld.param.u32 %v, [value];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %b, %b, %o;
    st.global.u32 [%b], %v;
    ret;
}
"""
INSIDE = "import ptxkit; assert ptxkit.Codec('lz4').decode(ptxkit.Codec('lz4').encode(b'abc' * 999)) == b'abc' * 999"


def codecs():
    for name, framing in [("lz4", "frame"), ("lz4", "raw"), ("lz4", "numcodecs"), ("lz4", "hdf5"), ("lzr", "frame")]:
        codec = ptxkit.Codec(name, framing=framing)
        pages = [TEXT[i : i + 4096] for i in range(0, len(TEXT), 4096)]
        packed = codec.encode(pages)
        assert codec.decode(packed, sizes=list(map(len, pages))) == pages
        assert pickle.loads(pickle.dumps(codec)).decode(packed[3], sizes=4096) == pages[3]
        room = bytearray(codec.decode(packed[3], sizes=4096))
        assert codec.decode(memoryview(packed[3]), out=room) == pages[3]
    assert block.decompress(block.compress(TEXT)) == frame.decompress(frame.compress(TEXT)) == TEXT
    compressor, reader = frame.LZ4FrameCompressor(content_checksum=True), frame.LZ4FrameDecompressor()
    whole = compressor.begin() + compressor.compress(TEXT) + compressor.flush()
    assert b"".join(reader.decompress(whole[i : i + 999]) for i in range(0, len(whole), 999)) == TEXT and reader.eof


def errors():
    for call, kind in [
        (lambda: ptxkit.Codec("lz4").decode(b"damaged bytes"), ptxkit.CorruptInputError),
        (lambda: ptxkit.Codec("none"), ValueError),
        (lambda: ptxkit.Codec("lz4").encode("text"), TypeError),
        (lambda: ptxkit.Codec("lz4").encode(memoryview(TEXT)[::2]), ValueError),
    ]:
        try:
            call()
        except kind as error:
            assert str(error)
        else:
            raise AssertionError("no error")


def files():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "a.lz4")
        with ptxkit.open(path, "wb") as file:
            file.write(TEXT)
        with ptxkit.open(path, "rt") as file:
            assert file.readline() == "line 0 of a text\n"
        with ptxkit.open(path) as file:
            file.seek(1000)
            assert file.read() == TEXT[1000:]


def kernels():
    assert debug.analyze(FILL, select=["F051"]).exit_code == 0
    memory = bytearray(32 * 4)
    assert debug.run(FILL, "fill", grid=1, block=32, args=[memory, 7]) and memory == b"\7\0\0\0" * 32


def threads():
    """Objects that all threads share; without a GIL they run at the same time."""
    codec, streams = ptxkit.Codec("lz4"), ptxkit.Codec("lzr", chunk_bytes=65536)
    barrier = threading.Barrier(8)

    def work(number):
        barrier.wait()
        for i in range(30):
            data = TEXT[: 1000 * (number + 1) + i]
            assert codec.decode(codec.encode(data)) == data and streams.decode(streams.encode(data)) == data
            fresh = ptxkit.Codec("lz4", framing="raw", threads=1 + i % 2)
            assert fresh.decode(fresh.encode([data, data]), [len(data)] * 2) == [data, data]
            assert frame.decompress(frame.compress(data, content_checksum=True)) == data
            try:
                codec.decode(data)
            except ptxkit.CorruptInputError as error:
                assert "ptxkit_" in str(error)
        return number

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == list(range(8))


def interpreters():
    """In an interpreter beside the main one: with its own GIL where Python has that."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if sys.version_info[:2] == (3, 12):  # has no ctypes where the GIL is not shared
            problem = run_in(module, module.create())
            assert "ImportError" in problem and "module _ctypes does not support" in problem, problem
        for _ in range(2):
            problem = run_in(
                module, module.create(isolated=False) if sys.version_info[:2] == (3, 12) else module.create()
            )
            assert not problem, problem
        return
    raise AssertionError("this Python has no interpreters to be tried")


def run_in(module, interpreter):
    """What INSIDE raised there, as text; empty if nothing."""
    try:
        problem = module.run_string(interpreter, INSIDE)
        return "" if problem is None else str(getattr(problem, "formatted", problem))
    except Exception as error:  # RunFailedError, until Python 3.12
        return str(error)
    finally:
        module.destroy(interpreter)


def forks():
    child = os.fork()
    if child == 0:
        try:
            codecs()
            files()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def docstrings():
    folder = pathlib.Path(ptxkit.__file__).parent
    tried = 0
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        if ">>>" in path.read_text(encoding="utf-8"):
            result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
            assert result.failed == 0, name
            tried += result.attempted
    assert tried


if __name__ == "__main__":
    for each in (codecs, errors, files, kernels, threads, forks, docstrings, interpreters):
        if len(sys.argv) < 2 or each.__name__ in sys.argv[1:]:
            each()
            print(each.__name__)
    if hasattr(sys, "_is_gil_enabled"):
        print("with a GIL" if sys._is_gil_enabled() else "without a GIL")
