"""Arrays of PyTorch, CuPy, JAX and Numba on a GPU: taken and given without a copy, on the caller's current stream."""

import ctypes

import numpy as np
import pytest
import ptxkit
from ptxkit import device


def has_gpu():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_gpu(), reason="there is no GPU")
CODEC = ptxkit.Codec("lz4", framing="numcodecs")
VALUES = (np.arange(300_000) // 7).astype("<i4")


def expect_stored(packed):
    """The bytes are those of the CPU's reproducible encoder, which decodes to the values; see test_device.py."""
    assert CODEC.decode(packed.to_host()) == VALUES.tobytes()


@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "float8_e4m3fn", "bool", "complex64"])
def test_torch(dtype):
    torch = pytest.importorskip("torch")
    there = torch.as_tensor(VALUES, device="cuda").to(getattr(torch, dtype))
    packed = CODEC.encode(there)
    back = torch.as_tensor(CODEC.decode(packed), device="cuda")
    assert back.dtype == torch.uint8 and torch.equal(back, there.view(torch.uint8).reshape(-1))
    assert torch.from_dlpack(packed).data_ptr() == packed.address == torch.as_tensor(packed, device="cuda").data_ptr()
    with pytest.raises(ptxkit.InvalidValueError, match="not contiguous"):
        CODEC.encode(there[::2])
    with pytest.raises(TypeError, match="item 1: expected an array in device memory"):
        CODEC.encode([there, there.cpu()])


def test_torch_parameter():
    torch = pytest.importorskip("torch")
    weights = torch.nn.Linear(64, 64, device="cuda").weight  # requires a gradient
    assert CODEC.decode(CODEC.encode(weights).to_host()) == weights.detach().cpu().numpy().tobytes()
    out = torch.empty_like(weights.data)
    assert CODEC.decode(CODEC.encode(weights), out=out).address == out.data_ptr() and torch.equal(out, weights.data)


def test_torch_streams_are_followed():
    """What a side stream has not computed yet is waited for; several streams at a time."""
    torch = pytest.importorskip("torch")
    streams = [torch.cuda.Stream() for _ in range(4)]
    results = []
    for i, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            there = torch.zeros(1 << 20, dtype=torch.int32, device="cuda")
            for _ in range(50):
                there += i
            results.append((there, CODEC.encode(there)))
    for i, (there, packed) in enumerate(results):
        assert CODEC.decode(packed.to_host()) == np.full(1 << 20, 50 * i, "<i4").tobytes()


def test_torch_graph():
    torch = pytest.importorskip("torch")
    there = torch.arange(1 << 20, device="cuda", dtype=torch.int32)
    back = torch.zeros_like(there)
    packed = device.Compression(there, item_bytes=65536)
    unpacked = device.Decompression(packed, outputs=list(back.view(-1, 16384)))
    packed.run(), unpacked.run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        packed.run()
        unpacked.run()
    for step in range(3):
        there.copy_(torch.arange(1 << 20, device="cuda", dtype=torch.int32) // (step + 2))
        back.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(back, there)
        assert unpacked.statuses.to_host() == bytes(4 * len(unpacked))


def test_cupy():
    cupy = pytest.importorskip("cupy")
    there = cupy.asarray(VALUES)
    packed = CODEC.encode(there)
    expect_stored(packed)
    assert cupy.asarray(packed).data.ptr == packed.address
    assert bool((cupy.asarray(CODEC.decode(packed)).view("<i4") == there).all())
    assert bool((cupy.from_dlpack(CODEC.decode(packed)).view("<i4") == there).all())
    with cupy.cuda.Stream(non_blocking=True) as stream:
        moved = there * 2
        other = CODEC.encode(moved)
        assert other.stream == stream.ptr
        assert bool((cupy.asarray(CODEC.decode(other)).view("<i4") == moved).all())
    CODEC.encode(cupy.asfortranarray(there.reshape(300, 1000)))
    with pytest.raises(ptxkit.InvalidValueError, match="not contiguous"):
        CODEC.encode(there.reshape(300, 1000)[:, ::2])


def test_jax():
    jax = pytest.importorskip("jax")
    there = jax.numpy.asarray(VALUES)
    if there.device.platform != "gpu":
        pytest.skip("this jax has no GPU")
    packed = CODEC.encode(there)
    expect_stored(packed)
    back = jax.dlpack.from_dlpack(CODEC.decode(packed))
    assert np.asarray(back).tobytes() == VALUES.tobytes()


def test_numba():
    cuda = pytest.importorskip("numba.cuda")
    there = cuda.to_device(VALUES)
    packed = CODEC.encode(there)
    expect_stored(packed)
    assert cuda.as_cuda_array(CODEC.decode(packed)).copy_to_host().tobytes() == VALUES.tobytes()


def test_bytes_do_not_depend_on_the_side():
    torch = pytest.importorskip("torch")
    raw = ptxkit.device.Compression(torch.as_tensor(VALUES, device="cuda"), item_bytes=4096).run()
    cpu = ptxkit.Codec("lz4", framing="raw")
    sizes = [4096] * (VALUES.nbytes // 4096) + [VALUES.nbytes % 4096]
    assert b"".join(cpu.decode([item.to_host() for item in raw.results()], sizes)) == VALUES.tobytes()


def test_two_devices():
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    for ordinal in (1, 0):
        there = torch.as_tensor(VALUES, device=f"cuda:{ordinal}")
        packed = CODEC.encode(there)
        assert packed.device == ordinal and CODEC.decode(packed.to_host()) == VALUES.tobytes()
    with pytest.raises(ptxkit.InvalidValueError, match=r"on devices \[0, 1\]"):
        CODEC.encode([torch.as_tensor(VALUES, device="cuda:0"), torch.as_tensor(VALUES, device="cuda:1")])
