"""ptxkit.open and ptxkit.lz4.frame.open."""

import contextlib
import copy
import io
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time

import lz4.frame
import ptxkit
import pytest
from conftest import noise
from test_codec import in_child

LINES = b"".join(b"line %d of a file\n" % i for i in range(300_000))  # more than a block of 4 MiB


def stream_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ptxkit")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert not stream_threads()


@pytest.mark.parametrize("name", ["lz4", "lzr", "bbw"])
@pytest.mark.parametrize("data", [b"", b"x", LINES], ids=["empty", "byte", "lines"])
def test_round_trip(tmp_path, name, data):
    path = tmp_path / ("a.lz4" if name == "lz4" else "a.ptz")
    with ptxkit.open(path, "wb", codec=ptxkit.Codec(name)) as file:
        for at in range(0, len(data), 100_000):
            assert file.write(data[at : at + 100_000]) == min(100_000, len(data) - at)
        assert file.tell() == len(data) and file.writable() and not file.readable() and not file.seekable()
    with ptxkit.open(path) as file:
        assert file.read() == data and file.read() == b"" and file.tell() == len(data)
    with ptxkit.open(str(path), "r") as file:
        assert b"".join(iter(lambda: file.read(77_777), b"")) == data
    if name == "lz4":
        assert lz4.frame.open(path).read() == data


def test_python_lz4_reads_and_is_read(tmp_path):
    path = tmp_path / "a"
    with lz4.frame.open(path, "wb") as file:
        file.write(LINES)
    with lz4.frame.open(path, "ab") as file:
        file.write(b"more\n")
    assert ptxkit.open(path).read() == LINES + b"more\n"
    for arguments in (
        {},
        {"block_linked": False, "compression_level": 3},
        {"content_checksum": True, "source_size": len(LINES)},
        {"block_checksum": True, "block_size": 7},
        {"return_bytearray": True},
    ):
        with ptxkit.lz4.frame.open(path, "wb", **arguments) as file:
            file.write(LINES)
        assert lz4.frame.open(path).read() == LINES
    info = ptxkit.lz4.frame.get_frame_info(path.read_bytes())
    assert info["block_linked"] and info["block_size"] == 65536


def test_appending_flushing_text_and_lines(tmp_path):
    path = tmp_path / "a.lz4"
    for mode in ("x", "ab", "a"):
        with ptxkit.open(path, mode) as file:
            file.write(b"one\n")
    assert ptxkit.open(path).readlines() == list(ptxkit.open(path)) == [b"one\n"] * 3
    with pytest.raises(FileExistsError):
        ptxkit.open(path, "xb")
    with ptxkit.lz4.frame.open(path, "wb") as file:
        file.write(b"one\n")
        file.flush()
        assert lz4.frame.open(path).read() == b"one\n"  # flush() ends the frame, as python-lz4's
        file.flush()
        file.write(b"two\n")
    assert lz4.frame.open(path).read() == b"one\ntwo\n"
    with ptxkit.open(path, "wt", encoding="utf-8", newline="\n") as file:
        file.write("äöü\nzwei\n")
    with ptxkit.open(path, "rt", encoding="utf-8") as file:
        assert list(file) == ["äöü\n", "zwei\n"]
    with ptxkit.lz4.frame.open(path, "rt", encoding="utf-8") as file:
        assert file.read() == "äöü\nzwei\n"


def test_seeking(tmp_path):
    path = tmp_path / "a.lz4"
    with ptxkit.open(path, "wb") as file:
        file.write(LINES)
    with ptxkit.open(path) as file, io.BytesIO(LINES) as expected:
        for offset, whence in (
            (1000, 0),
            (5, 1),
            (-3, 1),
            (-10, 2),
            (0, 0),
            (5_000_000, 0),
            (10, 0),
            (10**9, 0),
            (4_999_999, 0),
        ):
            expected_place = min(expected.seek(offset, whence), len(LINES))
            assert file.seek(offset, whence) == expected_place
            expected.seek(expected_place)
            assert file.read(20) == expected.read(20) and file.tell() == expected.tell()
        assert file.peek(1)[:1] == LINES[file.tell() : file.tell() + 1]
        with pytest.raises(ValueError):
            file.seek(-1)


def test_file_objects():
    below = io.BytesIO()
    with ptxkit.open(below, "wb", codec="lz4") as file:
        file.write(memoryview(LINES))
    assert not below.closed
    below.seek(0)
    assert ptxkit.open(below).read() == LINES

    class Stream:  # what cannot seek
        def read(self, size):
            return source.read(min(size, 1000))

    source = io.BytesIO(below.getvalue())
    with ptxkit.open(Stream()) as file:
        assert not file.seekable() and file.read(100) == LINES[:100]
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0)


def test_closing_half_way(tmp_path):
    path = tmp_path / "a.lz4"
    with ptxkit.open(path, "wb") as file:
        file.write(noise(60_000_000))
    file = ptxkit.open(path)
    assert len(file.read(10)) == 10 and stream_threads()
    file.close()
    assert not stream_threads()
    file.close()
    for call in (file.read, lambda: next(file), file.readable, file.tell, lambda: file.seek(0)):
        with pytest.raises(ValueError, match="closed file"):
            call()
    file = ptxkit.open(path)
    file.read(10)
    del file  # so does the destructor
    assert not stream_threads()


def test_an_exception_in_with_leaves_a_whole_frame(tmp_path):
    with contextlib.suppress(KeyError), ptxkit.open(tmp_path / "a.lz4", "wb") as file:
        file.write(b"begun")
        raise KeyError
    assert lz4.frame.open(tmp_path / "a.lz4").read() == b"begun"


class Failing(io.RawIOBase):
    def __init__(self, inner, after):
        self.inner, self.after = inner, after

    def writable(self):
        return True

    def readable(self):
        return True

    def count(self, size):
        self.after -= size
        if self.after < 0:
            raise OSError(28, "No space left on device")

    def write(self, data):
        self.count(len(data))
        return len(data)

    def readinto(self, into):
        self.count(len(into))
        return self.inner.readinto(into)


def test_errors_below_come_through():
    file = ptxkit.open(Failing(None, 1_000_000), "wb", codec="lz4")
    with pytest.raises(OSError, match="No space left"):
        for _ in range(100):
            file.write(noise(1_000_000))
    with pytest.raises(OSError, match="No space left"):
        file.close()
    assert file.closed and not stream_threads()
    below = io.BytesIO(lz4.frame.compress(noise(40_000_000)))
    with ptxkit.open(Failing(below, 10_000_000)) as file, pytest.raises(OSError, match="No space left"):
        file.read()


class Short:
    """As the wrapper that tempfile puts around an unbuffered file."""

    def __init__(self, most):
        self.most, self.stored = most, b""

    def write(self, data):
        self.stored += data[: self.most]
        return min(self.most, len(data))


def test_short_writes_of_any_object():
    below = Short(1000)
    with ptxkit.open(below, "wb", codec="lz4") as file:
        file.write(noise(100_000))
    assert lz4.frame.decompress(below.stored) == noise(100_000)
    with pytest.raises(OSError, match="returned 0 for"), ptxkit.open(Short(0), "wb", codec="lz4") as file:
        file.write(b"lost")


def test_files_that_do_not_block():
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    with open(readable, "rb", buffering=0) as source, open(writable, "wb", buffering=0) as sink:
        with pytest.raises(BlockingIOError, match="open it without O_NONBLOCK"), ptxkit.open(source) as file:
            file.read()
        file = ptxkit.open(sink, "wb", codec="lz4")
        with pytest.raises(BlockingIOError, match="open it without O_NONBLOCK"):
            file.write(noise(10_000_000))
            file.close()
    assert not stream_threads()


def test_damaged_files(tmp_path):
    frame = lz4.frame.compress(LINES, content_checksum=True)
    for damaged in (
        frame[:-1],
        frame[: len(frame) // 2],
        frame[:5000] + b"\xff\xff\xff" + frame[5003:],
        b"no frame at all",
    ):
        with ptxkit.open(io.BytesIO(damaged)) as file:
            for _ in range(2):  # a second read does not find a good end
                with pytest.raises(ptxkit.CorruptInputError):
                    file.read()
    with ptxkit.open(io.BytesIO(frame[:-1])) as file:
        assert file.read(1000) == LINES[:1000]  # what comes before the fault


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: ptxkit.open("a.bin", "wb"), ValueError, "codec is not given, and the name 'a.bin'"),
        (lambda: ptxkit.open("a.ptz", "wb"), ValueError, "codec is not given"),
        (lambda: ptxkit.open("a.lz4", "rb", codec="lz4"), ValueError, "codec is for writing"),
        (lambda: ptxkit.open("a.ptz", "ab", codec="lzr"), ValueError, "cannot be extended"),
        (lambda: ptxkit.open("a.lz4", "wb", codec=5), TypeError, "codec: expected a name or a ptxkit.Codec"),
        (
            lambda: ptxkit.open("a.lz4", "wb", codec=ptxkit.Codec("lz4", framing="raw")),
            ValueError,
            "files have framing 'frame'",
        ),
        (lambda: ptxkit.open("a.lz4", "rw"), ValueError, "Invalid mode"),
        (lambda: ptxkit.open("a.lz4", "rbt"), ValueError, "Invalid mode"),
        (lambda: ptxkit.open("a.lz4", "rb", encoding="utf-8"), ValueError, "'encoding' not supported in binary mode"),
        (lambda: ptxkit.open(5, "rb"), TypeError, "expected a path or a file object, found a int"),
        (lambda: ptxkit.open("/nowhere/a.lz4"), FileNotFoundError, "nowhere"),
    ],
)
def test_misuse(call, kind, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=text):
        call()
    assert not list(tmp_path.iterdir())


def test_wrong_direction_pickle_and_copy(tmp_path):
    with ptxkit.open(tmp_path / "a.lz4", "wb") as file:
        with pytest.raises(io.UnsupportedOperation, match="not open for reading"):
            file.read()
        for call in (lambda: pickle.dumps(file), lambda: copy.copy(file)):
            with pytest.raises(TypeError, match="cannot pickle"):
                call()
    assert isinstance(file, io.BufferedIOBase) and file.name == str(tmp_path / "a.lz4") and "closed" in repr(file)


def test_threads_share_a_file(tmp_path):
    path = tmp_path / "a.lz4"
    with ptxkit.open(path, "wb") as file:
        threads = [
            threading.Thread(target=lambda: [file.write(b"0123456789" * 10_000) for _ in range(100)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ptxkit.open(path).read() == b"0123456789" * 4_000_000


@pytest.mark.filterwarnings("ignore:This process")
def test_fork(tmp_path):
    path = pathlib.Path(tmp_path / "a.lz4")
    with ptxkit.open(path, "wb") as file:
        file.write(LINES)
        file.write(b"that waits in a buffer")

        def work():
            with pytest.raises(ptxkit.Error, match="before this process was forked"):
                file.write(b"child")
            file.close()
            return True

        assert in_child(work) == 0
        file.write(b"end")
    assert ptxkit.open(path).read() == LINES + b"that waits in a bufferend"


def test_the_end_of_a_process(tmp_path):
    """Files that are open at the end are closed, and threads hold nothing up."""
    program = (
        f"import ptxkit\nw = ptxkit.open({str(tmp_path / 'w.lz4')!r}, 'wb'); w.write(b'kept')\n"
        f"with ptxkit.open({str(tmp_path / 'r.lz4')!r}, 'wb') as f: f.write(bytes(range(256)) * 200000)\n"
        f"r = ptxkit.open({str(tmp_path / 'r.lz4')!r}); print(r.read(3))"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "b'\\x00\\x01\\x02'\n",
        "",
    ) and time.monotonic() - began < 30
    assert lz4.frame.open(tmp_path / "w.lz4").read() == b"kept"


@pytest.mark.parametrize("name", ["lz4", "lzr"])
def test_damage_says_where(tmp_path, name):
    path = tmp_path / "a"
    with ptxkit.open(path, "wb", codec=ptxkit.Codec(name, chunk_bytes=65536)) as file:
        file.write(LINES)
    whole = bytearray(path.read_bytes())
    at = len(whole) // 2
    whole[at : at + 40] = b"\xff" * 40
    path.write_bytes(whole)
    with pytest.raises(ptxkit.CorruptInputError) as raised, ptxkit.open(path) as file:
        file.read()
    assert 20 <= raised.value.block <= len(LINES) // 65536 // 2 + 20
    if name == "lz4":
        assert at - 65536 <= raised.value.byte <= at + 65536
        with pytest.raises(ptxkit.CorruptInputError) as again:
            ptxkit.lz4.frame.decompress(bytes(whole))
        assert (again.value.block, again.value.byte) == (raised.value.block, raised.value.byte)
        frame = bytearray(ptxkit.lz4.frame.compress(LINES, block_linked=False))  # its header says how large it is
        frame[at : at + 400] = b"\xff" * 400
        with pytest.raises(ptxkit.CorruptInputError) as again:
            ptxkit.lz4.frame.decompress(frame)
        assert again.value.block is not None and at - 65536 <= again.value.byte <= at + 65536
    path.write_bytes(whole[:50])
    with pytest.raises(ptxkit.CorruptInputError) as raised, ptxkit.open(path) as file:
        file.read()
    assert raised.value.block == 0 or raised.value.byte is not None
    assert pickle.loads(pickle.dumps(raised.value)).byte == raised.value.byte


def test_a_seek_that_fails_leaves_no_bytes_from_before(tmp_path):
    path = tmp_path / "file.gz"
    with ptxkit.open(path, "wb", codec="gzip") as file:
        file.write(LINES)
    whole = bytearray(path.read_bytes())
    at = len(whole) // 2
    whole[at : at + 40] = b"\xff" * 40
    path.write_bytes(whole)
    for offset, whence in ((0, io.SEEK_END), (len(LINES) - 1, io.SEEK_SET), (len(LINES) - 2, io.SEEK_CUR)):
        with ptxkit.open(path) as file:
            assert file.read(1) == LINES[:1]
            with pytest.raises(ptxkit.CorruptInputError):
                file.seek(offset, whence)
            with pytest.raises(ptxkit.CorruptInputError):
                file.read(100)
            file.seek(5)
            assert file.tell() == 5 and file.read(100) == LINES[5:105]
