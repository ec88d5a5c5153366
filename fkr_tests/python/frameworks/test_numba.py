"""Numba's CUDA kernels on the emulator and under the analyzer, without a GPU."""

import inspect
import math

import numpy as np
import ptxkit.numba
import pytest
from numba import cuda, float32, int32
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32
from ptxkit import emulator

pytest_plugins = ["pytester"]
TILE = 8


@pytest.fixture(params=[80, 90])
def use(request):
    with ptxkit.numba.use_emulator(sm=request.param) as use:
        yield use


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def line_of(text, dispatcher):
    lines, first = inspect.getsourcelines(dispatcher.py_func)
    (found,) = (first + i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(dispatcher.py_func)}:{found}: "


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def axpy_without_guard(a, x, y):
    i = cuda.grid(1)
    y[i] += a * x[i]


@cuda.jit
def reduce_sum(x, out):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def reduce_sum_without_barrier(x, out):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    step = 64
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def matmul(a, b, c):
    sa = cuda.shared.array((TILE, TILE), float32)
    sb = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for k in range((a.shape[1] + TILE - 1) // TILE):
        sa[tx, ty] = a[x, ty + k * TILE] if x < a.shape[0] and ty + k * TILE < a.shape[1] else 0
        sb[tx, ty] = b[tx + k * TILE, y] if y < b.shape[1] and tx + k * TILE < b.shape[0] else 0
        cuda.syncthreads()
        for j in range(TILE):
            total += sa[tx, j] * sb[j, ty]
        cuda.syncthreads()
    if x < c.shape[0] and y < c.shape[1]:
        c[x, y] = total


@cuda.jit
def histogram(x, counts):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def laplace(x, out):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j]


@cuda.jit(device=True)
def escape(real, imag, most):
    c, z = complex(real, imag), 0.0j
    for i in range(most):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return i
    return most


@cuda.jit
def mandelbrot(low, high, out, most):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        real = low.real + x * (high.real - low.real) / out.shape[1]
        out[y, x] = escape(real, low.imag + y * (high.imag - low.imag) / out.shape[0], most)


@cuda.jit
def warp_sums(x, out):
    value = x[cuda.grid(1)]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    if cuda.laneid == 0:
        out[cuda.grid(1) // 32] = value


@cuda.jit
def reverse(x):
    part = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    x[t] = part[cuda.blockDim.x - 1 - t]


@cuda.jit
def polynomials(x, out):
    powers = cuda.local.array(4, float32)
    i = cuda.grid(1)
    if i < x.size:
        for k in range(4):
            powers[k] = math.exp(math.log(x[i]) * k)
        out[i] = powers[0] + powers[1] + powers[2] + powers[3]


@cuda.jit
def copy_any(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j]


@cuda.jit
def move(points, step, pair):
    i = cuda.grid(1)
    if i < points.size:
        points[i].x += step[0] * pair[0][i]
        points[i].y += step[1] * pair[1][i]


@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    out[i] = xoroshiro128p_uniform_float32(states, i)


@cuda.jit
def speak(n):
    if cuda.grid(1) == 0:
        print("n is", n)


@cuda.jit
def barrier_for_half(x):
    if cuda.threadIdx.x < 16:
        cuda.syncthreads()
    x[cuda.threadIdx.x] = 1


@cuda.jit
def wait_for_all(x):
    cuda.cg.this_grid().sync()
    x[cuda.grid(1)] = 1


class Extension:
    def prepare_args(self, ty, val, stream, retr):
        return ty, val


# ---- Right answers --------------------------------------------------------------------------------------------------


def test_host_and_device_arrays(use, rng):
    x, y = rng.random(1000, "f4"), rng.random(1000, "f4")
    expected = y + np.float32(2.5) * x
    axpy[8, 128](2.5, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    device = cuda.to_device(x)
    axpy[8, 128](1.0, device, device)
    cuda.synchronize()
    np.testing.assert_allclose(device.copy_to_host(), 2 * x, rtol=1e-6)
    axpy.forall(1000)(np.float32(-1), device, device)
    assert (device.copy_to_host() == 0).all() and use.warp_instructions > 0


def test_reduction(use, rng):
    x, out = rng.random(1000, "f4"), np.zeros(1, "f4")
    reduce_sum[8, 128](x, out)
    np.testing.assert_allclose(out[0], x.sum(), rtol=1e-5)


def test_tiled_matmul(use, rng):
    a, b, c = rng.random((20, 30), "f4"), rng.random((30, 17), "f4"), np.empty((20, 17), "f4")
    matmul[(3, 3), (TILE, TILE)](a, b, cuda.Out(c))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_histogram(use, rng):
    x, counts = rng.integers(0, 10, 5000), np.zeros(10, "i4")
    histogram[4, 64](x, counts)
    assert (counts == np.bincount(x)).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_stencil(use, rng, dtype):
    x = (rng.random((33, 20)) * 100).astype(dtype)
    out = np.zeros_like(x)
    laplace[(3, 2), (16, 16)](x, out)
    expected = np.zeros_like(x)
    expected[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    np.testing.assert_allclose(out, expected, atol=1e-3)


def test_complex_numbers_and_device_functions(use):
    out = np.zeros((24, 32), "u1")
    mandelbrot[(4, 3), (8, 8)](complex(-2, -1), complex(1, 1), out, 20)
    expected = np.zeros_like(out)
    for y in range(24):
        for x in range(32):
            expected[y, x] = escape.py_func(-2 + x * 3 / 32, -1 + y * 2 / 24, 20)
    assert (out == expected).all()


def test_warps_and_shared_memory_of_the_launch(use, rng):
    x, out = rng.integers(0, 100, 128), np.zeros(4, "i8")
    warp_sums[2, 64](x, out)
    assert (out == x.reshape(4, 32).sum(1)).all()
    words = np.arange(50, dtype="i4")
    reverse[1, 50, 0, 200](words)
    assert (words == np.arange(50)[::-1]).all()


def test_local_arrays_and_libdevice(use, rng):
    x = rng.random(64, "f4") + np.float32(0.5)
    out = np.zeros(64, "f4")
    polynomials[2, 32](x, out)
    np.testing.assert_allclose(out, 1 + x + x**2 + x**3, rtol=1e-5)


@pytest.mark.parametrize("view", [np.s_[:, :], np.s_[::2, 1::3]])
@pytest.mark.parametrize("order", ["C", "F"])
def test_orders_and_strides(use, rng, view, order):
    x = np.asarray(rng.random((12, 15)), order=order)
    out = np.zeros_like(x)[view]
    copy_any[(2, 2), (8, 8)](x[view], out)
    assert (out == x[view]).all()
    device = cuda.to_device(x)
    assert device.strides == x.strides and device._numba_type_.layout == order
    into = cuda.device_array(x[view].shape, order=order)
    copy_any[(2, 2), (8, 8)](device[view], into)
    assert (into.copy_to_host() == x[view]).all() and (device[3, 4], device.size, device.ndim) == (x[3, 4], 180, 2)


def test_records_and_tuples(use):
    points = np.zeros(5, np.dtype([("x", "f4"), ("y", "f8")], align=True))
    ones = np.ones(5, "f4")
    move[1, 32](points, (2.0, 3), (ones, 2 * ones))
    assert (points["x"] == 2).all() and (points["y"] == 6).all()


def test_random_numbers(use):
    states, out = create_xoroshiro128p_states(64, seed=1), np.zeros(64, "f4")
    draw[2, 32](states, out)
    assert ((0 <= out) & (out < 1)).all() and len(set(out)) > 60


def test_print_events_and_streams(use, capsys):
    begin, end, stream = cuda.event(), cuda.event(), cuda.stream()
    begin.record(stream)
    speak[1, 32, stream](7)
    end.record()
    assert capsys.readouterr().out == "n is 7\n" and begin.elapsed_time(end) > 0
    assert cuda.is_available() and cuda.get_current_device().WARP_SIZE == 32


# ---- Faults ---------------------------------------------------------------------------------------------------------


def test_a_fault_names_line_argument_and_index(use):
    with pytest.raises(emulator.LaunchFaults) as raised:
        axpy_without_guard[4, 32](2.0, np.ones((100,), "f4"), cuda.to_device(np.ones(128, "f4")))
    text = str(raised.value)
    assert "axpy_without_guard[[4, 1, 1], [32, 1, 1]]: 1 fault" in text and "out_of_bounds [F054]" in text
    assert line_of("y[i] += a * x[i]", axpy_without_guard) in text
    assert "program [3, 0, 0], thread [4, 0, 0]" in text and "argument 'x', element 100 of float32 [100]" in text


def test_a_barrier_that_was_forgotten(use):
    with pytest.raises(emulator.LaunchFaults, match=r"shared_race \[F036\]"):
        reduce_sum_without_barrier[1, 128](np.ones(128, "f4"), np.zeros(1, "f4"))


def test_a_barrier_for_some_threads(use):
    with pytest.raises(emulator.LaunchFaults, match="barrier_"):
        barrier_for_half[1, 32](np.zeros(32))


def test_what_was_never_written(use):
    with pytest.raises(emulator.LaunchFaults, match="undefined_output"):
        axpy[1, 32](1.0, cuda.device_array(32, "f4"), np.zeros(32, "f4"))
    with pytest.raises(emulator.LaunchFaults, match="undefined_output"):
        axpy[1, 32](1.0, np.zeros(32, "f4"), cuda.Out(np.zeros(32, "f4")))


def test_faults_may_go_to_a_function():
    found = []
    with ptxkit.numba.use_emulator(on_fault=found.append):
        axpy_without_guard[1, 32](1.0, np.zeros(31, "f4"), np.zeros(32, "f4"))
    assert [fault.kind for fault in found[0].result.faults] == ["out_of_bounds"]


def test_misuse(use):
    with pytest.raises(ValueError, match="on_fault is 'warn'"):
        ptxkit.numba.use_emulator(on_fault="warn")
    with pytest.raises(ptxkit.UnsupportedError, match="debug=True"):
        cuda.jit(axpy.py_func, debug=True, opt=False)[1, 1](1.0, np.ones(1), np.ones(1))
    with pytest.raises(ptxkit.UnsupportedError, match="link="):
        cuda.jit(axpy.py_func, link=["a.cu"])[1, 1](1.0, np.ones(1), np.ones(1))
    with pytest.raises(ptxkit.UnsupportedError, match="extension"):
        cuda.jit(axpy.py_func, extensions=[Extension()])[1, 1](1.0, np.ones(1), np.ones(1))
    with pytest.raises(ptxkit.UnsupportedError, match="strides"):
        cuda.device_array(4, "f4", strides=(8,))
    with pytest.raises(emulator.LaunchFaults, match="cudaCGGetIntrinsicHandle"):
        wait_for_all[2, 32](np.zeros(64))


def test_the_simulator_is_left_alone(pytester, monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    pytester.makepyfile("""
import numpy as np
import pytest
import ptxkit.numba
from numba import cuda

@cuda.jit
def fill(x):
    x[cuda.grid(1)] = 1

def test_simulated():
    x = np.zeros(4)
    fill[1, 4](x)
    assert (x == 1).all()
    with pytest.raises(ValueError, match="NUMBA_ENABLE_CUDASIM is set"):
        ptxkit.numba.use_emulator()
""")
    done = pytester.runpytest_subprocess("-p", "ptxkit.pytest_plugin", "-p", "no:cacheprovider", "--ptx-debug=high")
    done.assert_outcomes(passed=1)
    assert "0 kernels in 0 launches analyzed" in str(done.stdout)


def test_the_device_is_given_back():
    before = cuda.to_device, cuda.is_available
    with ptxkit.numba.use_emulator(), ptxkit.numba.use_emulator(sm=80):
        assert cuda.to_device is not before[0]
    assert (cuda.to_device, cuda.is_available) == before and not cuda.is_available()


# ---- The analyzer ---------------------------------------------------------------------------------------------------


def test_install_analyzes_each_launch_once(use):
    told = []
    with ptxkit.numba.install(told.append) as watch:
        x = np.ones(64, "f4")
        for factor in (2.0, 2.0, 3.0):
            axpy[2, 32](factor, x, x)
        outcomes = watch.outcomes()
    assert len(outcomes) == 2 and not told and not watch.findings()
    facts = outcomes[0].launch.file(outcomes[0].kernel.entry, outcomes[0].kernel.parameters)
    (entry,) = facts["entries"].values()
    assert entry["grid"] == [2, 1, 1] and entry["block"] == [32, 1, 1]
    assert {"align": 256, "bytes": 256}.items() <= entry["parameters"][1].items()
    assert outcomes[0].kernel.where.startswith(__file__) and "factor" not in str(outcomes[0].launch)
    assert "a: 2.0, x: float32 [64], y: float32 [64]" in str(outcomes[0].launch)


def test_findings_name_the_line():
    with ptxkit.numba.use_emulator(on_fault="ignore"), ptxkit.numba.install() as watch:
        barrier_for_half[1, 32](np.zeros(32))
        found = [each for each in watch.findings() if each.finding.severity in ("high", "critical")]
    assert found and line_of("cuda.syncthreads()", barrier_for_half)[:-2] in str(found[0])


# ---- The pytest plug-in ---------------------------------------------------------------------------------------------

TESTS = """
import numpy as np
from numba import cuda

@cuda.jit
def fill(x, n):
    if n > 3:
        if cuda.threadIdx.x < 16:
            cuda.syncthreads()
    x[cuda.grid(1)] = n

def test_good():
    fill[1, 16](np.zeros(16), 3)

def test_beyond_the_end():
    fill[1, 32](np.zeros(31), 3)
"""


def test_the_plug_in_with_numba(pytester):
    path = pytester.makepyfile(test_fill=TESTS)
    done = pytester.runpytest_subprocess(
        "-p", "ptxkit.pytest_plugin", "-p", "no:cacheprovider", "--ptx-debug=critical", "--ptx-debug-emulator=90"
    )
    done.assert_outcomes(passed=1, failed=1)
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if "x[cuda.grid" in text)
    done.stdout.re_match_lines(
        [
            rf"E .*at {path}:{line}: x\[cuda.grid\(1\)\] = n",
            r"E .*argument 'x', element 31 of float64 \[31\]",
            r"1 kernel in 2 launches analyzed; .*",
        ]
    )
