"""Numba's CUDA kernels with planted faults, for planted.py. They are after the examples in numba-cuda's documentation."""

import importlib.util
import pathlib
import tempfile
import time

import numpy as np

HEAD = "import math\nfrom numba import cuda, float32, int32\n\n@cuda.jit\n"

# name: (kernel, grid, block, shared bytes, arguments, expected results by argument, plants as pairs of texts)
CASES = {}


def case(name, grid, block, plants, shared=0):
    def register(function):
        text, arguments, expected = function(np.random.default_rng(0))
        CASES[name] = HEAD + text.strip() + "\n", grid, block, shared, arguments, expected, plants
        return function

    return register


GUARD = ("guard dropped", "if i < x.size:", "if True:")
LATER = ("index one element on", "x[i]", "x[i + 1]")


@case("vector_add", 8, 32, [GUARD, LATER, ("store one element on", "out[i]", "out[i + 1]"), "unset", "short"])
def vector_add(rng):
    x, y = rng.random(250, "f4"), rng.random(250, "f4")
    text = """
def kernel(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + y[i]
"""
    return text, [x, y, np.zeros(250, "f4")], {2: x + y}


@case("grid_stride_saxpy", 2, 32, [("bound one too far", "x.size,", "x.size + 1,"), LATER, "unset", "short"])
def grid_stride(rng):
    x, y = rng.random(300, "f4"), rng.random(300, "f4")
    text = """
def kernel(a, x, y, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = a * x[i] + y[i]
"""
    return text, [np.float32(2), x, y, np.zeros(300, "f4")], {3: 2 * x + y}


SUM = """
def kernel(x, out):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()  # after the load
    step = 64
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()  # in the loop
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])
"""


@case(
    "reduce_sum",
    8,
    128,
    [
        ("barrier removed after load", "cuda.syncthreads()  # after the load", "pass"),
        ("barrier removed in loop", "cuda.syncthreads()  # in the loop", "pass"),
        ("update without atomic", "cuda.atomic.add(out, 0, part[0])", "out[0] += part[0]"),
        ("guard dropped", "x[i] if i < x.size else float32(0)", "x[i]"),
        ("shared memory overrun", "step = 64", "step = 128"),
        ("shared memory not initialised", "part[t] = x[i] if i < x.size else float32(0)", "part[t // 2] = x[i // 2]"),
        "unset",
    ],
)
def reduce_sum(rng):
    x = rng.random(1000, "f4")
    return SUM, [x, np.zeros(1, "f4")], {1: np.array([x.sum()])}


@case(
    "matmul_shared",
    (3, 3),
    (8, 8),
    [
        ("barrier removed after load", "cuda.syncthreads()  # loaded", "pass"),
        ("barrier removed in loop", "cuda.syncthreads()  # used", "pass"),
        ("guard dropped", "if x < c.shape[0] and y < c.shape[1]:", "if True:"),
        ("guard of a load dropped", "if x < a.shape[0] and ty + k * 8 < a.shape[1]:", "if True:"),
        ("bound one too far", "range(8)", "range(9)"),
        "unset",
        "short",
    ],
)
def matmul_shared(rng):
    a, b = rng.random((20, 30), "f4"), rng.random((30, 17), "f4")
    text = """
def kernel(a, b, c):
    sa = cuda.shared.array((8, 8), float32)
    sb = cuda.shared.array((8, 8), float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = float32(0)
    for k in range((a.shape[1] + 7) // 8):
        sa[tx, ty] = 0
        sb[tx, ty] = 0
        if x < a.shape[0] and ty + k * 8 < a.shape[1]:
            sa[tx, ty] = a[x, ty + k * 8]
        if y < b.shape[1] and tx + k * 8 < b.shape[0]:
            sb[tx, ty] = b[tx + k * 8, y]
        cuda.syncthreads()  # loaded
        for j in range(8):
            total += sa[tx, j] * sb[j, ty]
        cuda.syncthreads()  # used
    if x < c.shape[0] and y < c.shape[1]:
        c[x, y] = total
"""
    return text, [a, b, np.zeros((20, 17), "f4")], {2: a @ b}


@case(
    "histogram",
    4,
    64,
    [
        ("update without atomic", "cuda.atomic.add(counts, x[i], 1)", "counts[x[i]] += 1"),
        ("bound one too far", "x.size,", "x.size + 1,"),
        ("index one element on", "counts, x[i],", "counts, x[i] + 1,"),
    ],
)
def histogram(rng):
    x = rng.integers(0, 10, 2000).astype("i4")
    text = """
def kernel(x, counts):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, x[i], 1)
"""
    return text, [x, np.zeros(10, "i4")], {1: np.bincount(x).astype("i4")}


@case(
    "laplace",
    (3, 2),
    (16, 16),
    [("guard dropped", "if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:", "if True:"), "unset"]
    + [("guard one too far", "x.shape[0] - 1 and", "x.shape[0] and")],
)
def laplace(rng):
    x = rng.random((33, 20))
    expected = np.zeros_like(x)
    expected[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    text = """
def kernel(x, out):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j]
"""
    return text, [x, np.zeros_like(x)], {1: expected}


@case(
    "warp_sums",
    2,
    64,
    [("lane mask too small", "0xFFFFFFFF", "0x0000FFFF"), LATER, ("guard dropped", "if cuda.laneid == 0:", "if True:")],
)
def warp_sums(rng):
    x = rng.integers(0, 100, 128)
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    value = x[i]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    if cuda.laneid == 0:
        out[i // 32] = value
"""
    return text, [x, np.zeros(4, "i8")], {1: x.reshape(4, 32).sum(1)}


@case(
    "reverse_block",
    1,
    50,
    [
        ("barrier removed after load", "cuda.syncthreads()", "pass"),
        ("shared memory overrun", "cuda.blockDim.x - 1 - t", "cuda.blockDim.x - t"),
        ("barrier in a branch", "    cuda.syncthreads()", "    if t < 40:\n        cuda.syncthreads()"),
    ],
    shared=200,
)
def reverse_block(rng):
    x = np.arange(50, dtype="i4")
    text = """
def kernel(x):
    part = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    x[t] = part[cuda.blockDim.x - 1 - t]
"""
    return text, [x], {0: x[::-1].copy()}


@case(
    "block_scan",
    1,
    64,
    [
        ("barrier removed after load", "cuda.syncthreads()  # read", "pass"),
        ("barrier removed in loop", "cuda.syncthreads()  # written", "pass"),
        ("guard dropped", "if t >= step:", "if True:"),
        "short",
    ],
)
def block_scan(rng):
    x = rng.integers(0, 100, 64).astype("i4")
    text = """
def kernel(x, out):
    part = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 64:
        value = part[t]
        if t >= step:
            value += part[t - step]
        cuda.syncthreads()  # read
        part[t] = value
        cuda.syncthreads()  # written
        step *= 2
    out[t] = part[t]
"""
    return text, [x, np.zeros(64, "i4")], {1: np.cumsum(x).astype("i4")}


@case(
    "transpose",
    (2, 3),
    (16, 16),
    [
        ("barrier removed after load", "cuda.syncthreads()", "pass"),
        ("guard dropped", "if x < a.shape[1] and y < a.shape[0]:  # in", "if True:"),
        ("guard of a store dropped", "if u < a.shape[0] and v < a.shape[1]:", "if True:"),
        "unset",
        "short",
    ],
)
def transpose(rng):
    a = rng.random((40, 25), "f4")
    text = """
def kernel(a, out):
    tile = cuda.shared.array((16, 17), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x = cuda.blockIdx.x * 16 + tx
    y = cuda.blockIdx.y * 16 + ty
    if x < a.shape[1] and y < a.shape[0]:  # in
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    u = cuda.blockIdx.y * 16 + tx
    v = cuda.blockIdx.x * 16 + ty
    if u < a.shape[0] and v < a.shape[1]:
        out[v, u] = tile[tx, ty]
"""
    return text, [a, np.zeros((25, 40), "f4")], {1: a.T.copy()}


@case(
    "local_polynomial",
    2,
    32,
    [
        ("local array overrun", "range(4)", "range(5)"),
        ("local array not initialised", "range(4)", "range(3)"),
        GUARD,
        LATER,
    ],
)
def local_polynomial(rng):
    x = rng.random(60, "f4") + np.float32(0.5)
    text = """
def kernel(x, out):
    powers = cuda.local.array(4, float32)
    i = cuda.grid(1)
    if i < x.size:
        for k in range(4):
            powers[k] = x[i] ** k
        out[i] = powers[0] + powers[1] + powers[2] + powers[3]
"""
    return text, [x, np.zeros(60, "f4")], {1: 1 + x + x**2 + x**3}


@case(
    "last_block_sum",
    4,
    64,
    [
        ("fence removed", "cuda.threadfence()", "pass"),
        ("update without atomic", "cuda.atomic.add(tickets, 0, 1)", "tickets[0]\n        tickets[0] += 1"),
        ("barrier removed after load", "cuda.syncthreads()  # part", "pass"),
    ],
)
def last_block_sum(rng):
    x = rng.integers(0, 100, 256).astype("i4")
    text = """
def kernel(x, sums, tickets, out):
    part = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()  # part
    if t == 0:
        total = 0
        for k in range(64):
            total += part[k]
        sums[cuda.blockIdx.x] = total
        cuda.threadfence()
        ticket = cuda.atomic.add(tickets, 0, 1)
        if ticket == cuda.gridDim.x - 1:
            cuda.threadfence()
            everything = 0
            for k in range(cuda.gridDim.x):
                everything += sums[k]
            out[0] = everything
"""
    return text, [x, np.zeros(4, "i4"), np.zeros(1, "i4"), np.zeros(1, "i4")], {3: np.array([x.sum()], "i4")}


HOST = {"unset": "input not initialised", "short": "result one element short"}


def all_cases(tool, packages):
    for name, (text, grid, block, shared, arguments, expected, plants) in CASES.items():
        texts = {None: text}
        for plant in plants:
            if isinstance(plant, tuple):
                assert plant[1] in text, (name, plant)
                texts[plant[0]] = text.replace(plant[1], plant[2], 1)
            else:
                texts[HOST[plant]] = text

        def run(plant, texts=texts, grid=grid, block=block, shared=shared, arguments=arguments, expected=expected):
            return run_case(tool, texts[plant], grid, block, shared, arguments, expected, plant)

        yield f"numba.{name}", [plant for plant in texts if plant], run


def run_case(tool, text, grid, block, shared, arguments, expected, plant):
    file = pathlib.Path(tempfile.mkdtemp()) / "kernels.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernels", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    first = next(i for i, value in enumerate(values) if isinstance(value, np.ndarray))
    result = next(iter(expected))
    if plant == HOST["short"]:
        held = values[result]
        values[result] = held.reshape(-1)[:-1] if held.ndim == 1 else np.ascontiguousarray(held[:-1])
    launch = on_the_emulator if tool == "numba emulator" else in_the_simulator
    answer = launch(module.kernel, grid, block, shared, values, first if plant == HOST["unset"] else None)
    if "outcome" not in answer:
        answer["outcome"] = "clean"
        for i, wanted in expected.items():
            is_planted = plant in HOST.values()
            if not is_planted and not np.allclose(values[i], wanted, rtol=1e-4, atol=1e-5):
                answer["outcome"] = "wrong"
    return answer


def on_the_emulator(kernel, grid, block, shared, values, unset):
    import ptxkit.numba
    from numba import cuda
    from ptxkit import emulator

    answer = {}
    with ptxkit.numba.use_emulator(), ptxkit.numba.install() as watch:
        arguments = list(values)
        if unset is not None:
            arguments[unset] = cuda.device_array(values[unset].shape, values[unset].dtype)
        try:
            kernel[grid, block, 0, shared](*arguments)
        except emulator.LaunchFaults as faults:
            answer = {"outcome": "fault", "why": str(faults)[:400]}
        began = time.perf_counter()
        found = [each for outcome in watch.outcomes() for each in outcome.problems("high", "likely")]
        answer["findings"] = [str(each)[:300] for each in found]
        answer["analysis_seconds"] = time.perf_counter() - began
    return answer


def in_the_simulator(kernel, grid, block, shared, values, unset):
    if unset is not None:
        values[unset] = np.zeros_like(values[unset])
    try:
        kernel[grid, block, 0, shared](*values)
    except Exception as reason:  # the simulator raises what the kernel's Python raised
        return {"outcome": "fault", "why": f"{type(reason).__name__}: {reason}"[:300]}
    return {}
