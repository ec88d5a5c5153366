"""ptxkit.Codec on host buffers."""

import array
import concurrent.futures
import copy
import mmap
import os
import pickle
import threading

import numpy as np
import ptxkit
import pytest
from conftest import array_of, noise

FRAMINGS = ["raw", "frame", "numcodecs", "hdf5", "stored"]
INFOS = {info.name: info for info in ptxkit.codecs()}
CODECS = list(INFOS)
TEXT = b"the quick brown fox " * 500


@pytest.mark.parametrize("framing", FRAMINGS)
def test_round_trips(framing, dtype, size):
    values = array_of(dtype, size)
    codec = ptxkit.Codec("lz4", framing=framing)
    stored = codec.encode(values)
    assert codec.decode(stored, sizes=values.nbytes) == values.tobytes()
    if framing != "stored":
        assert codec.decode(stored) == values.tobytes()
    back = np.empty_like(values)
    codec.decode(stored, out=back)
    assert (back == values).all()


@pytest.mark.parametrize("name", CODECS)
def test_every_codec_and_level(name):
    info = INFOS[name]
    # Of the 131,072 fast levels of Zstandard, the first, the last and some.
    levels = {info.levels[0], *(level for level in info.levels if level > -20)}
    for level in levels:
        codec = ptxkit.Codec(name, level=level, framing="frame" if "frame" in info.framings else "raw")
        for data in (b"", b"x", TEXT, noise(300_000)):
            assert codec.decode(codec.encode(data), None if info.has_streams else len(data)) == data


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_list_is_a_batch(framing):
    codec = ptxkit.Codec("lz4", framing=framing)
    items = [TEXT[: 4096 - i] for i in range(500)] + [
        b"",
        noise(5_000_000),
        np.arange(1000),
        memoryview(TEXT),
        bytearray(TEXT),
    ]
    raw = [bytes(item) for item in items]
    stored = codec.encode(items)
    assert stored == [codec.encode(item) for item in items]
    assert codec.decode(stored, sizes=list(map(len, raw))) == raw
    assert codec.encode([]) == [] and codec.decode([], sizes=[]) == []
    assert codec.decode(tuple(stored[:2]), sizes=(4096, 4095)) == raw[:2]


def test_kinds_of_buffers(tmp_path):
    (tmp_path / "data").write_bytes(TEXT)
    codec = ptxkit.Codec("lz4")
    read_only = np.frombuffer(TEXT, "u1")
    with open(tmp_path / "data", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for data in (
            TEXT,
            bytearray(TEXT),
            memoryview(TEXT),
            mapped,
            array.array("B", TEXT),
            read_only,
            read_only.reshape(100, 100),
        ):
            assert codec.decode(codec.encode(data)) == TEXT
    fortran = np.asfortranarray(np.arange(600).reshape(20, 30))
    assert codec.decode(codec.encode(fortran)) == fortran.tobytes("A")
    back = np.empty_like(fortran)
    codec.decode(codec.encode(fortran), out=back)
    assert (back == fortran).all()


def test_out():
    codec = ptxkit.Codec("lz4")
    room = bytearray(1000)
    used = codec.encode(b"a" * 900, out=room)
    assert isinstance(used, memoryview) and used.obj is room and len(used) < 100 and codec.decode(used) == b"a" * 900
    rooms = [bytearray(100), np.zeros(100, "u1")]
    parts = codec.encode([b"one", b"two"], out=rooms)
    assert codec.decode(parts) == [b"one", b"two"]
    assert [bytes(part) for part in codec.decode(parts, out=[bytearray(3), bytearray(9)])] == [b"one", b"two"]
    large = ptxkit.Codec("lz4", chunk_bytes=1 << 20)
    assert large.decode(bytes(large.encode(TEXT, out=bytearray(20_000)))) == TEXT


def test_chunk_bytes_are_the_blocks_of_frames():
    data = TEXT * 30
    for size in (2**16, 2**18, 2**20, 2**22):
        frame = ptxkit.Codec("lz4", chunk_bytes=size).encode(data)
        assert (
            ptxkit.lz4.frame.get_frame_info(frame)["block_size"] == size and ptxkit.Codec("lz4").decode(frame) == data
        )
    sizes = {len(ptxkit.Codec("lzr", chunk_bytes=size).encode(data)) for size in (2**12, 2**20)}
    assert len(sizes) == 2


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: ptxkit.Codec("zip"), ValueError, "there is no codec 'zip', expected lz4, lzr"),
        (lambda: ptxkit.Codec(5), TypeError, "name: expected a string"),
        (lambda: ptxkit.Codec("lz4", level=9), ValueError, "lz4 has no level 9, expected 1 to 2"),
        (lambda: ptxkit.Codec("lz4", level=1.5), TypeError, "level: expected a whole number"),
        (lambda: ptxkit.Codec("zstd", level=2**32 + 1), ValueError, "level: 4294967297 is not in -2147483648 to"),
        (lambda: ptxkit.Codec("lz4\0x"), ValueError, "there is no codec"),
        (lambda: ptxkit.Codec("lz4", framing="zip"), ValueError, "there is no framing 'zip', expected raw, frame"),
        (lambda: ptxkit.Codec("lzr", framing="raw"), NotImplementedError, "lzr has no framing 0"),
        (lambda: ptxkit.Codec("lz4", policy="fast"), ValueError, "there is no policy 'fast', expected automatic, cpu"),
        (lambda: ptxkit.Codec("lz4", threads=-1), ValueError, "threads is -1"),
        (lambda: ptxkit.Codec("lz4", chunk_bytes=1000), ValueError, "chunk_bytes is 1000, lz4 takes 65536, "),
        (
            lambda: ptxkit.Codec("lz4", chunk_bytes=65536, framing="raw"),
            ValueError,
            "chunk_bytes is of framing 'frame'",
        ),
        (lambda: ptxkit.Codec("lz4", framing="stored").decode(b"\0"), ValueError, "expected sizes or out"),
        (lambda: ptxkit.Codec().decode([b"", b""], sizes=[1]), ValueError, "2 items and 1 sizes"),
        (lambda: ptxkit.Codec().decode(b"", sizes=-1), ValueError, "-1 is negative"),
        (lambda: ptxkit.Codec().decode(b"", sizes=2**63), ValueError, "sizes: 9223372036854775808 is not in"),
        (lambda: ptxkit.Codec().decode(b"", sizes=2**64 + 300), ValueError, "sizes: 18446744073709551916 is not in"),
        (lambda: ptxkit.Codec().decode(b"", sizes=2**63 - 1), ValueError, "sizes: 9223372036854775807 is not in"),
        (lambda: ptxkit.Codec().decode(b"", sizes=1, out=bytearray(1)), ValueError, "sizes and out"),
        (lambda: ptxkit.Codec().encode([b""], out=[]), ValueError, "1 items and 0 buffers"),
        (lambda: ptxkit.Codec().encode([b""], out=bytearray(9)), TypeError, "out: expected a list of 1 buffers"),
        (lambda: ptxkit.Codec().encode(b"", out=b"123"), ValueError, "out, a bytes, is read-only"),
        (lambda: ptxkit.Codec(chunk_bytes=65536).encode(b"", out=b"123"), ValueError, "read-only"),
        (
            lambda: ptxkit.Codec(chunk_bytes=65536).encode(b"", out=bytearray(3)),
            ValueError,
            "out has 3 bytes, expected at least",
        ),
        (lambda: ptxkit.Codec().encode("text"), TypeError, "a bytes-like object is required, not 'str'"),
        (lambda: ptxkit.Codec().encode([b"", 7]), TypeError, "item 1: a bytes-like object is required, not 'int'"),
        (lambda: ptxkit.Codec().encode(np.arange(20)[::2]), ValueError, "item, a ndarray, is not contiguous"),
    ],
)
def test_misuse(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_small_outputs_are_named():
    codec = ptxkit.Codec("lz4", framing="raw")
    with pytest.raises(ptxkit.InvalidValueError) as raised:
        codec.encode([TEXT, b"x"], out=[bytearray(10), bytearray(10)])
    assert raised.value.status == 15 and raised.value.statuses == (15, 0)
    with pytest.raises(ptxkit.Error) as raised:
        codec.decode(codec.encode(TEXT), sizes=100)
    assert raised.value.status == 15


class OnDevice:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "<i4", "data": (4096, False), "version": 3}


class DlpackOnDevice:
    def __init__(self, kind):
        self.kind = kind

    def __dlpack__(self, **_):
        raise AssertionError("nothing is exported")

    def __dlpack_device__(self):
        return self.kind, 0


@pytest.mark.parametrize("value", [OnDevice(), DlpackOnDevice(2), DlpackOnDevice(13)])
def test_device_arrays_beside_host_memory_are_refused(value):
    mixed = [lambda data: ptxkit.Codec().encode([b"x", data]), lambda data: ptxkit.Codec().encode(b"x", out=data)]
    for call in (*mixed, ptxkit.lz4.block.compress, ptxkit.lz4.frame.decompress):
        with pytest.raises(NotImplementedError, match="in device memory: expected host memory"):
            call(value)
    with pytest.raises(TypeError, match="pass its NumPy view"):
        ptxkit.Codec().encode(DlpackOnDevice(1))


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", CODECS)
def test_damage(name, framing):
    if framing not in INFOS[name].framings:
        return
    codec = ptxkit.Codec(name, framing=framing)
    stored = codec.encode(TEXT)
    sizes = len(TEXT) if framing == "stored" or not INFOS[name].has_streams else None
    outcomes = set()
    for at in range(len(stored)):
        for damaged in (stored[:at], stored[:at] + bytes([stored[at] ^ 0x55]) + stored[at + 1 :]):
            try:
                codec.decode(damaged, sizes)
                outcomes.add("decoded")  # a raw block has no checksum
            except (ptxkit.CorruptInputError, ptxkit.InvalidValueError, ptxkit.UnsupportedError) as error:
                outcomes.add(error.status)
    assert outcomes & {12, 13} and outcomes <= {"decoded", 11, 12, 13, 15}
    with pytest.raises(ptxkit.Error) as raised:
        codec.decode([stored, stored[:5], stored], [len(TEXT)] * 3)
    assert [status != 0 for status in raised.value.statuses] == [False, True, False]
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (type(copied), str(copied), copied.statuses) == (
        type(raised.value),
        str(raised.value),
        raised.value.statuses,
    )


@pytest.mark.parametrize(
    "framing, data",
    [
        ("numcodecs", b"\xff\xff\xff\x7f\0"),
        ("frame", b"\x04\x22\x4d\x18\x68\x40" + b"\xff" * 7 + b"\0\0\0\0\0\0"),
        ("hdf5", b"\0\0\x0f\xff\xff\xff\xff\xff\0\x01\0\0\0\0\0\1\0"),
    ],
)
def test_claimed_sizes_are_not_believed(framing, data):
    with pytest.raises(ptxkit.CorruptInputError):
        ptxkit.Codec("lz4", framing=framing).decode(data)


def test_frames_without_a_content_size():
    frame = ptxkit.lz4.frame.compress(TEXT, store_size=False)
    assert ptxkit.Codec().decode(frame) == TEXT and ptxkit.Codec().decode([frame, frame]) == [TEXT, TEXT]


def test_pickle_and_copy():
    codec = ptxkit.Codec("lz4", level=2, framing="raw", threads=1, policy="cpu")
    for other in (
        pickle.loads(pickle.dumps(codec)),
        copy.copy(codec),
        copy.deepcopy(codec),
        eval(repr(codec), {"Codec": ptxkit.Codec}),
    ):
        assert other == codec and hash(other) == hash(codec) and other.encode(TEXT) == codec.encode(TEXT)
    assert codec != ptxkit.Codec("lz4") and codec.describe().startswith("cpu, 1 thread")


def test_threads_share_a_codec():
    codec = ptxkit.Codec("lz4", framing="numcodecs")
    wrong = []

    def work(number):
        for i in range(50):
            data = bytes([number]) * (1000 * i) + TEXT[: number * 7]
            if codec.decode(codec.encode([data, data])) != [data, data]:
                wrong.append(number)
            try:
                codec.decode(b"\1\2\3")
            except ptxkit.CorruptInputError:
                pass
            else:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def in_child(work):
    """The exit status of a child process made by fork()."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process")
def test_fork():
    codec = ptxkit.Codec("lz4", threads=3)
    assert codec.encode(TEXT) and ptxkit.lz4.block.compress(TEXT)  # the parent's threads run

    def work():
        assert len(os.listdir("/proc/self/task")) == 1 and codec.encode(TEXT)
        assert len(os.listdir("/proc/self/task")) >= 3  # threads of its own
        own = ptxkit.lz4.block.decompress(ptxkit.lz4.block.compress(TEXT)) == TEXT
        return (
            own
            and codec.decode(codec.encode([TEXT] * 100)) == [TEXT] * 100
            and not in_child(lambda: codec.encode(TEXT) != b"")
        )

    assert in_child(work) == 0
    assert codec.decode(codec.encode(TEXT)) == TEXT


def test_processes_get_codecs():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        codec = ptxkit.Codec("lzr")
        assert list(pool.map(codec.decode, pool.map(codec.encode, [TEXT, b"", TEXT]))) == [TEXT, b"", TEXT]
