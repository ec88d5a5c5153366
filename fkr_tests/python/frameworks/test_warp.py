"""Warp's kernels on the emulator and under the analyzer, without a GPU."""

import inspect

import numpy as np
import ptxkit.warp
import pytest
import warp as wp
from ptxkit import emulator

wp.config.quiet = True


@pytest.fixture(params=[80, 90])
def use(request):
    with ptxkit.warp.use_emulator(sm=request.param) as use:
        yield use


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def array(values, dtype=None):
    return wp.array(values, device="cpu", **({} if dtype is None else {"dtype": dtype}))


def line_of(text, kernel):
    lines, first = inspect.getsourcelines(kernel.func)
    (found,) = (first + i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(kernel.func)}:{found}: "


@wp.kernel
def axpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + a * x[i]


@wp.kernel
def lengths(x: wp.array2d(dtype=wp.vec3), out: wp.array2d(dtype=float), n: int):
    i, j = wp.tid()
    out[i, j] = wp.length(x[i, j]) * float(n)


@wp.kernel
def histogram(x: wp.array(dtype=int), counts: wp.array(dtype=int)):
    wp.atomic_add(counts, x[wp.tid()], 1)


@wp.kernel
def histogram_without_atomics(x: wp.array(dtype=int), counts: wp.array(dtype=int)):
    bin = x[wp.tid()]
    counts[bin] = counts[bin] + 1


@wp.func
def smooth(x: float):
    return 1.0 / (1.0 + wp.exp(-x))


@wp.kernel
def rotate(q: wp.quat, m: wp.mat33, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = m * wp.quat_rotate(q, x[i]) * smooth(float(i))


@wp.kernel
def double(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] * wp.float64(2.0)


@wp.kernel
def speak(n: int):
    if wp.tid() == 0:
        print(n)


def test_arrays_and_views(use, rng):
    values = rng.random(1000, "f4")
    x, y = array(values), wp.zeros(1000, dtype=float, device="cpu")
    wp.launch(axpy, 1000, inputs=[2.5, x], outputs=[y])
    np.testing.assert_allclose(y.numpy(), np.float32(2.5) * values, rtol=1e-6)
    wp.launch(axpy, 500, inputs=[1.0, y[:500], y[500:]])
    expected = np.float32(2.5) * values
    np.testing.assert_allclose(y.numpy()[500:], expected[500:] + expected[:500], rtol=1e-6)
    wp.launch(axpy, 250, inputs=[1.0, x[::4], x[1::4]])
    np.testing.assert_allclose(x.numpy()[1::4], values[1::4] + values[::4], rtol=1e-6)
    assert use.warp_instructions > 0


def test_vectors_and_two_dimensions(use, rng):
    values = rng.random((5, 7, 3), "f4")
    out = wp.zeros((5, 7), dtype=float, device="cpu")
    wp.launch(lengths, (5, 7), inputs=[array(values, wp.vec3), out, 3])
    np.testing.assert_allclose(out.numpy(), 3 * np.linalg.norm(values, axis=-1), rtol=1e-5)


def test_atomics_matrices_and_functions(use, rng):
    bins = rng.integers(0, 10, 2000).astype("i4")
    counts = wp.zeros(10, dtype=int, device="cpu")
    wp.launch(histogram, 2000, inputs=[array(bins), counts])
    assert (counts.numpy() == np.bincount(bins)).all()
    values, matrix = rng.random((40, 3), "f4"), rng.random((3, 3), "f4")
    out = wp.zeros(40, dtype=wp.vec3, device="cpu")
    turn = wp.quat(0.0, 0.0, float(np.sin(0.5)), float(np.cos(0.5)))  # by 1 radian about z
    wp.launch(rotate, 40, inputs=[turn, wp.mat33(matrix), array(values, wp.vec3), out])
    turned = values @ np.array([[np.cos(1), -np.sin(1), 0], [np.sin(1), np.cos(1), 0], [0, 0, 1]], "f4").T
    np.testing.assert_allclose(out.numpy(), turned @ matrix.T / (1 + np.exp(-np.arange(40)))[:, None], rtol=1e-4)


def test_float64_printing_and_empty_launches(use, capfd):
    x = array(np.arange(10.0), wp.float64)
    wp.launch(double, 10, inputs=[x])
    wp.launch(double, 0, inputs=[x])
    assert (x.numpy() == 2 * np.arange(10)).all()
    wp.launch(speak, 64, inputs=[7])
    assert capfd.readouterr().out.endswith("7\n")


def test_a_fault_names_lines_argument_and_index(use):
    with pytest.raises(emulator.LaunchFaults) as raised:
        wp.launch(axpy, 1001, inputs=[1.0, array(np.ones(1000, "f4")), array(np.ones(1001, "f4"))])
    text = str(raised.value)
    assert "axpy, dim 1001: 1 fault" in text and "out_of_bounds [F054]" in text
    assert "called from " + line_of("y[i] = y[i]", axpy) in text
    assert "argument 'x', element 1000 of float32 [1000]" in text


def test_a_race(use):
    with pytest.raises(emulator.LaunchFaults, match="race"):
        wp.launch(histogram_without_atomics, 512, inputs=[array(np.zeros(512, "i4")), array(np.zeros(4, "i4"))])


def test_misuse_and_the_end(use):
    x = array(np.ones(4, "f4"))
    with pytest.raises(ptxkit.UnsupportedError, match="block_dim other than 256"):
        wp.launch(axpy, 4, inputs=[1.0, x, x], block_dim=64)
    with pytest.raises(ptxkit.UnsupportedError, match="adjoint"):
        wp.launch(axpy, 4, inputs=[1.0, x, x], adjoint=True)
    with pytest.raises(ValueError, match="has 3 arguments, found 2"):
        wp.launch(axpy, 4, inputs=[1.0, x])
    with pytest.raises(ValueError, match="used already"):
        ptxkit.warp.use_emulator()
    with pytest.raises(ValueError, match="on_fault"):
        ptxkit.warp.use_emulator(on_fault="warn")
    use.close()
    assert wp.launch.__module__.startswith("warp")


def test_install_analyzes_each_launch_once(use):
    told = []
    with ptxkit.warp.install(told.append) as watch:
        x = array(np.ones(64, "f4"))
        for factor in (1.0, 1.0, 2.0):
            wp.launch(axpy, 64, inputs=[factor, x, x])
        outcomes = watch.outcomes()
    assert len(outcomes) == 2 and not told and not watch.findings()
    assert all(outcome.report.exit_code == 0 and not outcome.error for outcome in outcomes)
    assert "grid [1], block [256], 0 bytes shared; a: 1.0, x: float32 [64]" in str(outcomes[0].launch)
