"""Triton's kernels on the emulator and under the analyzer, without a GPU and without PyTorch."""

import ctypes
import inspect
import pathlib

import numpy as np
import ptxkit.triton
import pytest
import triton
import triton.language as tl
import tutorials
from ptxkit import emulator
from triton.tools.tensor_descriptor import TensorDescriptor

pytest_plugins = ["pytester"]
HERE = pathlib.Path(__file__)


@pytest.fixture(params=[80, 90, 100])
def sm(request):
    with ptxkit.triton.use_emulator(sm=request.param) as use:
        yield request.param, use


@pytest.fixture
def use():
    with ptxkit.triton.use_emulator() as use:
        yield use


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def line_of(text, function):
    """The place of the only line of a kernel that has the text."""
    lines, first = inspect.getsourcelines(function.fn)
    (found,) = (first + i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(function.fn)}:{found}: "


def add(x, y, out, n, block=1024):
    tutorials.add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)


# ---- Right answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 1000, 3000])
def test_vector_add(sm, rng, n):
    x, y = rng.random(n, "f4"), rng.random(n, "f4")
    out = emulator.empty(n)
    add(emulator.array(x), emulator.array(y), out, n)
    assert (out.numpy() == x + y).all()


def test_softmax(sm, rng):
    values = rng.standard_normal((37, 781)).astype("f4")
    x, out = emulator.array(values), emulator.empty(values.shape)
    tutorials.softmax_kernel[(8,)](out, x, x.stride(0), out.stride(0), *x.shape, BLOCK=1024, num_stages=2)
    powers = np.exp(values - values.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_matmul_with_autotuning(sm, rng, dtype):
    m, n, k = 96, 80, 112
    a = emulator.array(rng.standard_normal((m, k)), dtype)
    b = emulator.array(rng.standard_normal((k, n)), dtype)
    c = emulator.empty((m, n), "float16")
    tutorials.matmul_kernel[lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    )
    np.testing.assert_allclose(c.numpy(), a.numpy().astype("f4") @ b.numpy().astype("f4"), atol=2e-2, rtol=2e-3)
    times = tutorials.matmul_kernel.configs_timings
    assert len(times) in (0, 2)  # counted in warp instructions; 0: out of the autotuner's cache


def test_matmul_of_transposed_views(use, rng):
    values = rng.standard_normal((64, 64)).astype("f2")
    a, c = emulator.array(values), emulator.empty((64, 64), "f2")
    b = a.T
    tutorials.matmul_kernel.fn[(4,)](
        a, b, c, 64, 64, 64, *a.stride(), *b.stride(), *c.stride(), BM=32, BN=32, BK=32, GM=1
    )
    exact = values.astype("f4") @ values.T.astype("f4")
    np.testing.assert_allclose(c.numpy(), exact, atol=2e-2, rtol=2e-3)


def test_layer_norm(sm, rng):
    m, n = 21, 1151
    values, weight, bias = rng.normal(-2.3, 0.5, (m, n)).astype("f2"), rng.random(n, "f4"), rng.random(n, "f4")
    out, mean, rstd = emulator.empty((m, n), "f2"), emulator.empty(m), emulator.empty(m)
    tutorials.layer_norm_fwd[(m,)](
        emulator.array(values), out, emulator.array(weight), emulator.array(bias), mean, rstd, n, n, 1e-5, BLOCK=512
    )
    exact = values.astype("f8")
    deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    expected = (exact - exact.mean(1, keepdims=True)) / deviation * weight + bias
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-2)
    np.testing.assert_allclose(mean.numpy(), exact.mean(1), rtol=1e-5)
    np.testing.assert_allclose(rstd.numpy(), 1 / deviation[:, 0], rtol=1e-4)


def test_dropout(sm, rng):
    values = rng.standard_normal(5000).astype("f4")
    once, again, other = (emulator.empty(5000) for _ in range(3))
    for out, seed in ((once, 123), (again, 123), (other, 512)):
        tutorials.dropout[(5,)](emulator.array(values), out, 5000, 0.5, seed, BLOCK=1024)
    kept = once.numpy() != 0
    assert abs(kept.mean() - 0.5) < 0.03 and (once.numpy()[kept] == 2 * values[kept]).all()
    assert (once.numpy() == again.numpy()).all() and (once.numpy() != other.numpy()).any()


@pytest.mark.parametrize("causal", [False, True])
def test_attention(sm, rng, causal):
    heads, n, d = 2, 128, 64
    q, k, v = (rng.standard_normal((heads, n, d)).astype("f2") for _ in range(3))
    out = emulator.empty(q.shape, "f2")
    tutorials.attention[(n // 64, heads)](
        *map(emulator.array, (q, k, v)), out, 0.125, n * d, d, 1, n, BM=64, BN=32, D=d, CAUSAL=causal
    )
    scores = np.einsum("hnd,hmd->hnm", q.astype("f4"), k.astype("f4")) * 0.125
    if causal:
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), powers / powers.sum(-1, keepdims=True) @ v.astype("f4"), atol=5e-3)


@triton.jit
def copy_rows(table, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * n + offs, tl.load(row + offs, mask=offs < n), mask=offs < n)


def test_a_table_of_pointers(use, rng):
    rows = [emulator.array(rng.random(100, "f4")) for _ in range(3)]
    table, out = emulator.array(np.array([row.data_ptr() for row in rows], "i8")), emulator.empty((3, 100))
    copy_rows[(3,)](table, out, 100, BLOCK=128)
    assert all((out[i].numpy() == row.numpy()).all() for i, row in enumerate(rows))


def test_in_place_and_views(use, rng):
    values = rng.random(256, "f4")
    x = emulator.array(values)
    add(x, x, x, 256, block=128)
    assert (x.numpy() == 2 * values).all()
    add(x[:128], x[128:], x[128:], 128, block=128)
    assert (x.numpy()[128:] == 2 * (values[:128] + values[128:])).all()


@triton.jit
def scale_pair(pair, factors, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(pair[0] + offs) * factors[0] + tl.load(pair[1] + offs) * factors[1])


def test_tuples_and_scalars(use, rng):
    x, y, out = emulator.array(rng.random(64, "f4")), emulator.array(rng.random(64, "f4")), emulator.empty(64)
    scale_pair[(1,)]((x, y), (2.0, -3), out, BLOCK=64)
    np.testing.assert_allclose(out.numpy(), 2 * x.numpy() - 3 * y.numpy(), rtol=1e-6)


@triton.jit
def twice(x_desc, out_desc, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    out_desc.store([start, 0], x_desc.load([start, 0]) * 2)


@triton.jit
def twice_described(x_ptr, out_ptr, rows, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [rows, COLUMNS], [COLUMNS, 1], [BLOCK, COLUMNS])
    out_desc = tl.make_tensor_descriptor(out_ptr, [rows, COLUMNS], [COLUMNS, 1], [BLOCK, COLUMNS])
    start = tl.program_id(0) * BLOCK
    out_desc.store([start, 0], x_desc.load([start, 0]) * 2)


def test_tensor_descriptors(sm, rng):
    x, out = emulator.array(rng.random((40, 32), "f4")), emulator.empty((40, 32))
    twice_described[(3,)](x, out, 40, BLOCK=16, COLUMNS=32)
    assert (out.numpy() == 2 * x.numpy()).all()
    descriptors = [TensorDescriptor.from_tensor(each, [16, 32]) for each in (x, emulator.empty((40, 32)))]
    if sm[0] == 80:
        twice[(3,)](*descriptors, BLOCK=16)
        assert (descriptors[1].base.numpy() == 2 * x.numpy()).all()
    else:
        with pytest.raises(ptxkit.UnsupportedError, match="made by the host, for TMA"):
            twice[(3,)](*descriptors, BLOCK=16)


@triton.jit
def printing(x_ptr):
    tl.device_print("x", tl.load(x_ptr))


def test_what_a_kernel_prints(use, capfd):
    printing[(1,)](emulator.array([7], "i4"), num_warps=1)
    assert "x: 7" in capfd.readouterr().out


def test_an_empty_grid_runs_nothing(use):
    out = emulator.zeros(4)
    tutorials.add_kernel[(0,)](out, out, out, 4, BLOCK=128)
    assert use.warp_instructions == 0


def test_do_bench_counts_instructions(use):
    out = emulator.zeros(128)
    times = [triton.testing.do_bench(lambda: add(out, out, out, 128, block=128), warmup=1, rep=1) for _ in range(2)]
    assert times[0] == times[1] > 0


class HostTensor:
    """What the driver asks of a tensor of PyTorch in host memory."""

    device, dtype = "cpu", "torch.float32"

    def __init__(self, values, offset=0):
        self.values, self.offset = values, offset
        self.shape = values[offset:].shape

    def data_ptr(self):
        return self.values.ctypes.data + 4 * self.offset

    def storage_offset(self):
        return self.offset

    def stride(self):
        return (1,)

    def element_size(self):
        return 4

    def untyped_storage(self):
        values = self.values

        class Storage:
            data_ptr = staticmethod(lambda: values.ctypes.data)
            nbytes = staticmethod(lambda: values.nbytes)

        return Storage()


def test_tensors_in_host_memory(use, rng):
    values = np.zeros(300, "f4")
    values[:100], values[100:200] = rng.random((2, 100), "f4")
    add(*(HostTensor(values, at) for at in (0, 100, 200)), 100, block=128)
    assert (values[200:] == values[:100] + values[100:200]).all()
    with pytest.raises(emulator.LaunchFaults, match=r"argument 'out_ptr', element 100 of torch.float32 \[100\]"):
        add(*(HostTensor(values, at) for at in (0, 100, 200)), 400, block=512)


# ---- Faults ---------------------------------------------------------------------------------------------------------


def test_a_fault_names_line_argument_and_index(use, rng):
    x = emulator.array(rng.random((10, 100), "f4"))
    with pytest.raises(emulator.LaunchFaults) as raised:
        add(x, emulator.ones(1001), emulator.empty(1001), 1001)
    text = str(raised.value)
    assert "out_of_bounds [F054]: 4-byte load" in text
    assert line_of("tl.load(x_ptr", tutorials.add_kernel) + "x = tl.load(x_ptr + offs, mask=mask)" in text
    assert "argument 'x_ptr', index [10, 0] of float32 [10, 100]" in text
    assert "add_kernel[1, 1, 1] of 4 warps: 1 fault" in text


@triton.jit
def histogram_without_atomics(x_ptr, counts_ptr, BLOCK: tl.constexpr):
    bins = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(counts_ptr + bins, tl.load(counts_ptr + bins) + 1)


def test_a_race_between_programs(use):
    with pytest.raises(emulator.LaunchFaults, match="grid_race|warp_race") as raised:
        histogram_without_atomics[(4,)](emulator.zeros(512, "i4"), emulator.zeros(8, "i4"), BLOCK=128)
    assert line_of("tl.store(counts_ptr", histogram_without_atomics) in str(raised.value)


def test_what_was_never_written(use):
    with pytest.raises(emulator.LaunchFaults, match="undefined_output"):
        add(emulator.empty(100), emulator.ones(100), emulator.empty(100), 100)


def test_faults_may_go_to_a_function():
    found = []
    with ptxkit.triton.use_emulator(on_fault=found.append, checks=["bounds"]):
        add(emulator.ones(100), emulator.ones(100), emulator.empty(100), 101)
        add(emulator.empty(100), emulator.ones(100), emulator.empty(100), 100)  # not checked
    assert [fault.kind for fault in found[0].result.faults] == ["out_of_bounds"] and len(found) == 1


def test_misuse(use, monkeypatch):
    with pytest.raises(TypeError, match="argument 'x_ptr' is a .*: the emulator takes ptxkit.emulator.array"):

        class Foreign:
            dtype, shape = "float32", (4,)

            def data_ptr(self):
                return 4096

        add(Foreign(), emulator.ones(4), emulator.ones(4), 4)
    with pytest.raises(ValueError, match="on_fault is 'warn'"):
        ptxkit.triton.use_emulator(on_fault="warn")
    monkeypatch.setattr(triton.knobs.runtime, "interpret", True)
    with pytest.raises(ValueError, match="TRITON_INTERPRET is set"):
        ptxkit.triton.use_emulator()


def test_the_driver_is_given_back():
    from triton.backends import backends
    from triton.runtime.driver import driver

    before = backends["nvidia"], driver._active
    with ptxkit.triton.use_emulator():
        assert backends["nvidia"] is not before[0]
    assert (backends["nvidia"], driver._active) == before


# ---- The analyzer ---------------------------------------------------------------------------------------------------


@triton.jit
def barrier_in_a_branch(out_ptr):
    tl.inline_asm_elementwise(
        "{ .reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 16; @%p bar.sync 0; mov.b32 $0, 0; }",
        "=r",
        [],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
    tl.store(out_ptr, 1)


def test_install_analyzes_each_launch_once(use, rng):
    heard, told = [], []
    before = triton.knobs.compilation.listener
    triton.knobs.compilation.listener = lambda **compiled: heard.append(compiled["cache_hit"])
    try:
        with ptxkit.triton.install(told.append) as watch:
            x = emulator.array(rng.random(640, "f4"))
            for n in (640, 640, 639):
                add(x, x, emulator.empty(640), n, block=128)
            first, second = watch.outcomes()
        assert len(heard) >= 1  # the listener that was there
        assert triton.knobs.compilation.listener is not None
    finally:
        triton.knobs.compilation.listener = before
    facts = first.launch.file(first.kernel.entry, first.kernel.parameters)["entries"]["add_kernel"]
    assert facts["grid"] == [5, 1, 1] and facts["block"] == [128]
    assert facts["parameters"][0] == {"name": "add_kernel_param_0", "align": 256, "bytes": 2560}
    assert facts["parameters"][3] == {"name": "add_kernel_param_3", "value": 640}
    assert second.launch.parameters[3].facts == (("value", 639),)
    assert first.report.exit_code == 0 and not first.error and not watch.findings() and not told
    assert first.kernel.where.startswith(str(HERE.with_name("tutorials.py")))


def test_findings_name_the_line():
    told = []
    with ptxkit.triton.use_emulator(on_fault="ignore"), ptxkit.triton.install(told.append) as watch:
        barrier_in_a_branch[(1,)](emulator.empty(1, "i4"))
        (problem,) = [each for each in watch.findings() if each.finding.severity == "high"]
    assert problem.finding.rule == "F041" and line_of("tl.inline_asm", barrier_in_a_branch)[:-2] in str(problem)
    assert "out_ptr: int32 [1]" in str(problem) and told


def test_a_kernel_that_is_not_launched_is_analyzed_too(use):
    with ptxkit.triton.install() as watch:
        tutorials.add_kernel.warmup(*[emulator.ones(8)] * 3, 8, BLOCK=64, grid=(1,))
        (outcome,) = watch.outcomes()
    assert outcome.launch is None and outcome.report.findings == [] and ctypes.sizeof(ctypes.c_void_p) == 8


# ---- The pytest plug-in ---------------------------------------------------------------------------------------------

TESTS = """
import numpy as np
import triton
import triton.language as tl
from ptxkit import emulator

@triton.jit
def guarded(out_ptr, n, BAD: tl.constexpr):
    if BAD:
        tl.inline_asm_elementwise(
            "{ .reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 16; @%p bar.sync 0; mov.b32 $0, 0; }",
            "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out_ptr + tl.arange(0, 32), n, mask=tl.arange(0, 32) < n)

def test_good():
    guarded[(1,)](emulator.empty(32, "i4"), 30, False)

def test_found_by_the_analyzer():
    try:
        guarded[(1,)](emulator.empty(32, "i4"), 30, True)
    except emulator.LaunchFaults:
        pass

def test_found_by_the_emulator():
    guarded[(1,)](emulator.empty(29, "i4"), 30, False)
"""


def test_the_plug_in_with_triton(pytester, monkeypatch):
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    path = pytester.makepyfile(test_guarded=TESTS)
    done = pytester.runpytest_subprocess(
        "-p", "ptxkit.pytest_plugin", "-p", "no:cacheprovider", "--ptx-debug=high", "--ptx-debug-emulator=90"
    )
    done.assert_outcomes(passed=1, failed=2)
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if "tl.inline_asm" in text)
    done.stdout.re_match_lines(
        [
            r"Triton kernel 'guarded': high: thread \(0, 0, 0\) waits .*F041 PredicatedBarrier, proved\]",
            rf"  at {path}:{line}",
            r"  launch: grid \[1, 1, 1\], block \[128\], 0 bytes shared; out_ptr: int32 \[32\], n: 30",
            r"E .*argument 'out_ptr', element 29 of int32 \[29\]",
            r"\d kernels in 3 launches analyzed; .* 1 test failed by findings.*",
        ]
    )
