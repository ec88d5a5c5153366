"""Arrays in device memory: on a driver whose GPU is the emulator, and on a GPU where there is one."""

import ctypes
import gc
import os
import types

import numpy as np
import pytest
import ptxkit
from conftest import noise
from ptxkit import _c, _device_arrays, _driver, device


def has_gpu():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


EMULATED = os.environ.get("PTXKIT_EMULATED_DRIVER", "")
DRIVERS = [
    pytest.param(EMULATED, id="emulated", marks=pytest.mark.skipif(not EMULATED, reason="no $PTXKIT_EMULATED_DRIVER")),
    pytest.param("", id="gpu", marks=pytest.mark.skipif(not has_gpu(), reason="there is no GPU")),
]


@pytest.fixture(params=DRIVERS)
def gpu(request, monkeypatch):
    """The driver that is used."""
    monkeypatch.setenv(_driver.VARIABLE, request.param)
    return request.param


def text(size):
    return (b"a line of text, number %d\n" * (size // 20 + 1))[:size] if size else b""


SIZES = [0, 1, 16, 4095, 4096, 5000, 65_536, 70_000]


@pytest.mark.parametrize("framing", ["raw", "numcodecs", "frame", "hdf5"])
@pytest.mark.parametrize("stream", [None, 0, 1, 2])
def test_items_come_back(gpu, framing, stream):
    raws = [text(size) for size in SIZES] + [noise(3000)]
    codec = ptxkit.Codec("lz4", framing=framing, stream=stream)
    packed = codec.encode([device.from_host(raw) for raw in raws])
    assert ptxkit.Codec("lz4", framing=framing).decode([p.to_host() for p in packed], list(map(len, raws))) == raws
    back = codec.decode(packed, list(map(len, raws)))
    assert [b.to_host() for b in back] == raws
    assert [b.to_host() for b in codec.decode(packed)] == raws  # the device finds the sizes
    assert codec.decode(packed[3]).to_host() == raws[3]


@pytest.mark.parametrize("framing", ["frame", "hdf5"])
def test_frames_of_the_host(gpu, framing):
    raws = [text(size) for size in [*SIZES, 300_000]] + [noise(3000)]
    codec = ptxkit.Codec("lz4", framing=framing)
    packed = [device.from_host(bytes(item)) for item in codec.encode(raws)]
    assert [b.to_host() for b in codec.decode(packed, list(map(len, raws)))] == raws
    assert [b.to_host() for b in codec.decode(packed)] == raws
    with pytest.raises(ptxkit.CorruptInputError, match="item 0 of 1: PTXKIT_CANNOT_DECOMPRESS"):
        codec.decode(device.from_host(packed[3].to_host()[:-5]), 4095)


def test_frames_of_others(gpu):
    codec, raw = ptxkit.Codec("lz4"), text(100_000)
    linked = ptxkit.lz4.frame.compress(raw, block_linked=True, content_checksum=True, store_size=False)
    assert codec.decode(device.from_host(linked), len(raw)).to_host() == raw
    with pytest.raises(ptxkit.UnsupportedError, match="item 0 of 1: PTXKIT_UNSUPPORTED"):
        codec.decode(device.from_host(linked))
    with pytest.raises(ptxkit.CorruptInputError, match="item 0 of 1: PTXKIT_BAD_CHECKSUM"):
        codec.decode(device.from_host(linked[:-1] + bytes([linked[-1] ^ 1])), len(raw))


def test_one_array_in_items(gpu):
    raw = text(50_000) + noise(6000)
    batch = device.Compression(device.from_host(raw), item_bytes=4096)
    assert len(batch) == 14 and batch.device == 0
    back = device.Decompression(batch).run  # made before the sizes are known
    batch.run()
    assert b"".join(item.to_host() for item in back().results()) == raw
    packed = [item.to_host() for item in batch.results()]
    assert np.frombuffer(batch.sizes.to_host(), "<u8").tolist() == list(map(len, packed))
    assert batch.statuses.to_host() == bytes(4 * 14)
    host = ptxkit.Codec("lz4", framing="raw")
    assert host.decode(packed, [4096] * 13 + [len(raw) - 13 * 4096]) == [
        raw[i : i + 4096] for i in range(0, len(raw), 4096)
    ]


def test_a_batch_runs_again_on_new_content(gpu):
    there = device.from_host(text(8192))
    batch = device.Compression(there, item_bytes=4096).run()
    first = [item.to_host() for item in batch.results()]
    with _driver.device(0) as one:
        one.upload(there.address, noise(8192), 8192, 0)
        one.wait(0)
    assert [len(item) for item in batch.run().results()] == [4096 + 4096 // 255 + 2] * 2 != list(map(len, first))


def test_outputs_of_the_caller(gpu):
    raw = text(10_000)
    there = device.from_host(raw)
    bound = device.Compression(there).bound
    room, back = device.from_host(bytes(bound)), device.from_host(bytes(10_000))
    codec = ptxkit.Codec("lz4", framing="raw")
    packed = codec.encode(there, out=room)
    assert packed.address == room.address and 0 < packed.nbytes < 10_000
    assert codec.decode(packed, out=back).address == back.address and back.to_host() == raw
    with pytest.raises(ValueError, match=r"output 0 has 9 bytes, expected at least"):
        codec.encode(there, out=device.from_host(bytes(9)))
    with pytest.raises(ptxkit.InvalidValueError, match="item 0 of 1: PTXKIT_OUTPUT_TOO_SMALL"):
        codec.decode(packed, out=device.from_host(bytes(9999)))


def test_foreign_arrays(gpu):
    """Anything with __cuda_array_interface__, with __dlpack__ alone, and DeviceArray's own of both."""
    raw = text(6000)
    there = device.from_host(raw)
    interface = types.SimpleNamespace(
        __cuda_array_interface__={
            "shape": (2, 3, 500),
            "strides": (2, 4, 12),  # the first dimension is the fastest
            "typestr": "<i2",
            "data": (there.address, True),
            "version": 3,
        }
    )

    class Dlpack:
        def __dlpack_device__(self):
            return there.__dlpack_device__()

        def __dlpack__(self, stream=None):
            assert stream == 1
            return there.__dlpack__(stream=stream)

    codec = ptxkit.Codec("lz4", framing="raw")
    expected = codec.encode(there).to_host()
    assert codec.encode(interface).to_host() == expected
    assert codec.encode(Dlpack()).to_host() == expected
    for change, message in [
        ({"strides": (3000, 1000, 4)}, "not contiguous"),
        ({"strides": None, "shape": (-3, -1000)}, "is no array's"),
        ({"mask": np.zeros(3)}, "masked"),
    ]:
        interface.__cuda_array_interface__.update(change)
        with pytest.raises(ptxkit.InvalidValueError, match=message):
            codec.encode(interface)


def test_dlpack_capsules_end(gpu):
    there = device.from_host(b"x" * 100)
    before = len(_device_arrays._exported)
    capsule = there.__dlpack__()
    assert len(_device_arrays._exported) == before + 1 and "dltensor" in repr(capsule)
    del capsule
    gc.collect()
    assert len(_device_arrays._exported) == before
    taken = there.__dlpack__(stream=-1)  # as a consumer does it
    pointer = _device_arrays._capsule_pointer(taken, b"dltensor")
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes, used = [ctypes.py_object, ctypes.c_char_p], b"used_dltensor"
    assert rename(taken, used) == 0
    del taken
    assert len(_device_arrays._exported) == before + 1
    managed = _device_arrays._DlManagedTensor.from_address(pointer)
    assert managed.tensor.shape[0] == 100 and managed.tensor.data == there.address
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(pointer)
    assert len(_device_arrays._exported) == before
    with pytest.raises(BufferError, match="not copied"):
        there.__dlpack__(copy=True)


def test_damage(gpu):
    codec = ptxkit.Codec("lz4", framing="numcodecs")
    good = codec.encode(device.from_host(text(5000)))
    bad = device.from_host(good.to_host()[:-7])
    with pytest.raises(ptxkit.CorruptInputError, match="item 1 of 3: PTXKIT_CANNOT_DECOMPRESS") as caught:
        codec.decode([good, bad, good])
    assert caught.value.statuses == (0, 12, 0)
    with pytest.raises(ptxkit.CorruptInputError, match="item 0 of 1: PTXKIT_CANNOT_DECOMPRESS"):
        codec.decode(device.from_host(b"abc"))
    with pytest.raises(ptxkit.CorruptInputError, match="claims to hold 4294967295"):
        codec.decode(device.from_host(b"\xff\xff\xff\xffabc"))
    with pytest.raises(ptxkit.CorruptInputError, match="item 1 of 2: PTXKIT_CANNOT_DECOMPRESS"):
        ptxkit.Codec("lz4", framing="raw").decode([device.from_host(b"\x10a"), device.from_host(b"\x20a")])


def test_levels_of_standard_formats(gpu):
    raw = text(20_000)
    packed = [ptxkit.Codec("zstd", level=level).encode(device.from_host(raw)).to_host() for level in (0, 1, 2)]
    assert packed[0] == packed[2] and len(packed[2]) < len(packed[1])
    assert all(ptxkit.zstd.decompress(each) == raw for each in packed)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda there: ptxkit.Codec("lz4", framing="stored").encode(there), "no framing 4"),
        (lambda there: ptxkit.Codec("lzr").encode(there), "lzr has no batches in device memory"),
        (lambda there: ptxkit.Codec("lz4", framing="raw", level=2).encode(there), "have level 1 alone"),
        (lambda there: ptxkit.Codec("zstd", level=3).encode(there), "levels 1 and 2 in device memory, found 3"),
        (lambda there: ptxkit.Codec("lz4", chunk_bytes=65536).encode(there), "have no chunk_bytes"),
        (lambda there: ptxkit.Codec("lz4", framing="raw").encode([there, b"x"]), "item 1: expected an array in device"),
        (lambda there: ptxkit.Codec("lz4", framing="raw").encode([b"x", there]), "item 1 is a DeviceArray in device"),
        (lambda there: ptxkit.Codec("lz4", framing="raw").encode(there, out=bytearray(99)), "output 0: expected"),
        (lambda there: ptxkit.Codec("lz4", framing="raw", stream="x").encode(there), "stream: expected a CUDA stream"),
        (lambda there: ptxkit.Codec("lz4", framing="raw", stream=-1).encode(there), "stream is -1"),
        (lambda there: device.Compression(there).results(), "no results before run"),
        (lambda there: device.Compression(there, item_bytes=100), "item_bytes is 100: expected a multiple of 16"),
        (lambda there: device.Compression([there], item_bytes=16), "found a list"),
        (lambda there: device.Compression(there, framing="none"), "there is no framing 'none'"),
        (lambda there: device.Compression(there, outputs=[]), "1 items and 0 outputs"),
        (lambda there: device.Decompression([there, there], sizes=[1]), "2 items and 1 sizes"),
        (lambda there: device.Decompression(there, sizes=-1), "sizes: -1 is not in 0"),
        (lambda there: device.Decompression(there, sizes=1, outputs=[there]), "expected one of them"),
        (lambda there: device.from_host(b"x", device=99), "there is no device 99"),
        (lambda there: device.from_host(3), "bytes-like"),
    ],
)
def test_refusals(gpu, call, message):
    with pytest.raises((ptxkit.Error, TypeError), match=message):
        call(device.from_host(b"x" * 100))


def test_a_misaligned_item(gpu):
    there = device.from_host(bytes(100))
    moved = _device_arrays.DeviceArray(there, 0, there.address + 8, 90, "|u1", 0)
    with pytest.raises(ptxkit.InvalidValueError, match="item 0 begins at 0x[0-9a-f]+8: expected a multiple of 16"):
        ptxkit.Codec("lz4", framing="raw").encode(moved)


def test_no_driver(monkeypatch):
    monkeypatch.setenv(_driver.VARIABLE, "/nowhere/libcuda.so")
    with pytest.raises(ptxkit.DeviceError, match="cannot open the CUDA driver: /nowhere/libcuda.so"):
        device.from_host(b"x")
    monkeypatch.setenv(_driver.VARIABLE, os.environ["PTXKIT_LIBRARY"])
    with pytest.raises(ptxkit.DeviceError, match="lacks cuInit"):
        device.from_host(b"x")


def test_a_forked_child_is_told(gpu):
    there = device.from_host(b"x" * 50)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ptxkit.Codec("lz4", framing="raw").encode(there)
            said = b"nothing"
        except ptxkit.DeviceError as error:
            said = str(error).encode()
        os.write(writing, said)
        os._exit(0)
    os.waitpid(child, 0)
    assert b"before this process was forked" in os.read(reading, 1000)


def test_memory_is_freed_on_the_stream_that_ran_last(gpu):
    batch = device.Compression(device.from_host(text(5000)))
    batch.run(2)
    assert {region.stream for region in batch._regions} == {2} and len(batch._regions) == 2
    assert batch.results()[0]._owner.stream == 2


def test_memory_is_given_back(gpu):
    """A thousand batches in memory for a few of them."""
    if not gpu:
        pytest.skip("the GPU's pool keeps memory")
    codec, there = ptxkit.Codec("lz4", framing="raw"), device.from_host(text(5000))
    for _ in range(30):
        codec.encode(there)
    gc.collect()
    held = sum(isinstance(value, _device_arrays.Region) for value in gc.get_objects())
    assert held <= 2
    assert _c.lib()
