"""ptxkit.Codec("rans"): typed rANS of arrays in host and device memory."""

import pickle
import types

import numpy as np
import ptxkit
import pytest
from ptxkit import device
from test_device import DRIVERS, gpu  # noqa: F401

NAMES = "bfloat16 float16 float32 float8_e4m3fn float8_e5m2 int8 uint8 uint16 int32 float64".split()
RANDOM = np.random.default_rng(5)
# Weights, as float32 and cut to bfloat16; every pattern of 16 bits, so NaNs and denormals; odd sizes; nothing.
WEIGHTS = RANDOM.normal(0, 0.02, 70_001).astype("f4")
BF16 = (WEIGHTS.view("u4") >> 16).astype("u2")
PATTERNS = np.arange(65_536, dtype="u2").tobytes()
ITEMS = [WEIGHTS.tobytes(), BF16.tobytes(), PATTERNS, WEIGHTS.tobytes()[:9_999], b"", b"x"]


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_comes_back(name):
    codec = ptxkit.Codec("rans", dtype=name)
    packed = codec.encode(ITEMS)
    assert codec.decode(packed) == ITEMS == ptxkit.Codec("rans").decode(packed)  # an item says its elements
    assert packed[0] == codec.encode(ITEMS[0])
    room = bytearray(len(ITEMS[1]) + 3)
    assert codec.decode(packed[1], out=room) == ITEMS[1]
    rooms = [bytearray(len(item) + 9) for item in packed]
    assert codec.encode(ITEMS, out=rooms) == packed


def layout_of(packed):
    return packed[4]


def test_dtypes_of_arrays_and_of_packages():
    for dtype in ("float32", np.float32, np.dtype("f4"), types.SimpleNamespace(name="float32")):
        assert ptxkit.Codec("rans", dtype=dtype).encode(ITEMS[0]) == ptxkit.Codec("rans").encode(WEIGHTS)

    class Torch:  # a dtype that has a text alone, as PyTorch's
        def __str__(self):
            return "torch.bfloat16"

    assert layout_of(ptxkit.Codec("rans", dtype=Torch()).encode(BF16)) == 3
    assert layout_of(ptxkit.Codec("rans").encode(WEIGHTS)) == 4
    assert layout_of(ptxkit.Codec("rans").encode(WEIGHTS.astype("f2"))) == 2
    assert layout_of(ptxkit.Codec("rans").encode(WEIGHTS.astype("i8"))) == 7
    assert layout_of(ptxkit.Codec("rans").encode(ITEMS[0])) == 1
    assert layout_of(ptxkit.Codec("rans").encode(np.array(["2020"], "M8[s]"))) == 1  # not known
    assert len(ITEMS[1]) / len(ptxkit.Codec("rans", dtype="bfloat16").encode(BF16)) > 1.4


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: ptxkit.Codec("rans", dtype="float3"), ValueError, "there is no dtype 'float3', expected bfloat16, "),
        (lambda: ptxkit.Codec("lz4", dtype="int8"), ValueError, "dtype is of codec 'rans', found codec 'lz4'"),
        (lambda: ptxkit.Codec("rans", framing="hdf5"), NotImplementedError, "rans has no framing 3"),
        (lambda: ptxkit.Codec("rans").encode([WEIGHTS, BF16]), ValueError, "several dtypes: expected one a batch"),
        (
            lambda: ptxkit.Codec("rans").decode(b"pra\1\1\0\0\0" + b"\xff" * 8),
            ptxkit.CorruptInputError,
            "none of typed rANS",
        ),
    ],
)
def test_misuse(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_copies():
    codec = ptxkit.Codec("rans", dtype=np.dtype("f4"))
    assert repr(codec) == "Codec('rans', framing='raw', dtype='float32')"
    again = pickle.loads(pickle.dumps(codec))
    assert again == codec and again != ptxkit.Codec("rans") and again.encode(ITEMS[0]) == codec.encode(WEIGHTS)


class Typed:
    """A device array that knows its dtype, as those of PyTorch and CuPy."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def test_arrays_in_device_memory(gpu):  # noqa: F811
    codec, host = ptxkit.Codec("rans", dtype="bfloat16"), ptxkit.Codec("rans", dtype="bfloat16")
    there = [device.from_host(item) for item in ITEMS]
    packed = codec.encode(there)
    assert [item.to_host() for item in packed] == host.encode(ITEMS)
    assert [item.to_host() for item in codec.decode(packed)] == ITEMS  # sizes from the headers
    assert [item.to_host() for item in codec.decode(packed, list(map(len, ITEMS)))] == ITEMS
    known = ptxkit.Codec("rans").encode(Typed(there[0], np.dtype("f4")))
    assert known.to_host() == ptxkit.Codec("rans", dtype="float32").encode(ITEMS[0])
    batch = device.Compression(there[1], item_bytes=65_536, codec="rans", dtype="bfloat16")
    back = device.Decompression(batch)
    batch.run()
    back.run()
    assert b"".join(item.to_host() for item in back.results()) == ITEMS[1]
    with pytest.raises(ptxkit.CorruptInputError, match="item 0 of 16 bytes claims to hold"):
        codec.decode(device.from_host(b"pra\1\1\0\0\0" + b"\xff" * 8))


def test_files_are_containers_with_the_dtype(tmp_path):
    codec = ptxkit.Codec("rans", framing="frame", dtype="bfloat16")
    packed = codec.encode(BF16.tobytes() * 40)
    assert packed[:4] == b"PTZ\x1a" and packed[5] == 5 and packed[7] == 3
    assert codec.decode(packed) == BF16.tobytes() * 40
    path = tmp_path / "weights.ptz"
    with ptxkit.open(path, "wb", codec=codec) as file:
        file.write(BF16.tobytes() * 40)
    assert path.read_bytes() == packed
    with ptxkit.open(path) as file:
        assert file.read() == BF16.tobytes() * 40
    small = ptxkit.Codec("rans", framing="frame", dtype="bfloat16", chunk_bytes=4096).encode(BF16.tobytes())
    assert small[6] == 12 and small[7] == 3 and codec.decode(small) == BF16.tobytes()
    with ptxkit.open(path, "wb", codec="rans") as file:
        file.write(ITEMS[2])
    assert path.read_bytes()[7] == 1
    with pytest.raises(ptxkit.InvalidValueError, match="files have framing 'frame'"):
        ptxkit.open(path, "wb", codec=ptxkit.Codec("rans"))
