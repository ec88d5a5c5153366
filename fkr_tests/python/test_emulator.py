"""ptxkit.emulator: arrays in memory that stays between launches, and launches on them."""

import gc
import pickle

import numpy as np
import ptxkit
import pytest
from ptxkit import emulator
from test_debug import FILL


def test_launches_share_memory():
    values, out = emulator.array(np.arange(64, dtype="f4")), emulator.empty(64)
    module = emulator.default().load(FILL, "fill.ptx")
    assert emulator.launch(module, "scale", 1, 64, [values, out, 2.0])
    assert emulator.launch(module, "scale", 1, 64, [out, out, 2.0])  # twice the same memory
    assert (out.numpy() == np.arange(64) * 4).all()
    assert emulator.launch(FILL, "scale", 1, 32, [out[:32], out[32:], 0.5])  # views of one allocation
    assert (out.numpy()[32:] == np.arange(32) * 2).all()


@pytest.mark.parametrize(
    "dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?", "bfloat16", "torch.float32"]
)
def test_what_is_written_is_read(dtype):
    values = np.arange(24).reshape(4, 6) % 5
    made = emulator.array(values, dtype)
    assert made.numpy().shape == (4, 6) and (made.numpy().astype(bool) == values.astype(bool)).all()
    if dtype != "?":
        assert (np.asarray(made) == values).all()
    assert str(made.dtype) == (dtype if dtype == "bfloat16" else str(np.dtype(dtype.replace("torch.", ""))))
    assert made.element_size() * 24 == made.nbytes and made.data_ptr() % 256 == 0
    assert (emulator.zeros_like(made).numpy() == 0).all() and (emulator.ones(5, dtype).numpy() == 1).all()


def test_views_are_those_of_numpy():
    host = np.arange(60, dtype="i4").reshape(3, 4, 5)
    made = emulator.array(host)
    for view in (np.s_[1], np.s_[-1], np.s_[:, 2], np.s_[1:, ::2, 3], np.s_[0, 1, 2], np.s_[3:]):
        assert (made[view].numpy() == host[view]).all(), view
    assert (made.T.numpy() == host.T).all() and made.T.stride() == (1, 5, 20) and not made.T.is_contiguous()
    assert (made.reshape(12, -1).numpy() == host.reshape(12, -1)).all() and made.view(60).shape == (60,)
    made[:, 1, ::2] = 7
    host[:, 1, ::2] = 7
    made[2] = np.arange(20).reshape(4, 5)
    host[2] = np.arange(20).reshape(4, 5)
    assert (made.numpy() == host).all()
    assert made.numel() == 60 and len(made) == 3 and made.size(1) == 4 and made.stride(0) == 20 and made.dim() == 3
    for wrong, kind in ((lambda: made[0, 0, 0, 0], IndexError), (lambda: made[9], IndexError)):
        with pytest.raises(kind):
            wrong()
    for wrong in (lambda: made.T.reshape(60), lambda: made[::-1], lambda: made.copy_(np.zeros(7))):
        with pytest.raises(ValueError):
            wrong()


def test_bfloat16_is_rounded_to_even():
    values = np.array([1.0, 1.00390625, 1.01171875, -3.1415926, 3.39e38, np.inf, -np.inf, np.nan], "f4")
    expected = np.array([1.0, 1.0, 1.015625, -3.140625, 3.3895314e38, np.inf, -np.inf, np.nan], "f4")
    assert np.allclose(emulator.array(values, "bfloat16").numpy(), expected, rtol=1e-3, atol=0, equal_nan=True)
    assert (emulator.array(values[:6], "bfloat16").numpy() == expected[:6]).all()


def test_faults_name_argument_and_index():
    values, out = emulator.array(np.ones((8, 8), "f4")), emulator.empty((7, 9))
    with pytest.raises(emulator.LaunchFaults) as raised:
        emulator.launch(FILL, "scale", 1, 64, [values, out, 2.0])
    text = str(raised.value)
    assert "out_of_bounds [F054]" in text and "argument 'out', index [7, 0] of float32 [7, 9]" in text
    assert "thread [63, 0, 0]" in text and "PTX line 28: st.global.f32 [%b], %f;" in text
    assert raised.value.result.faults[0].thread == (63, 0, 0)
    assert isinstance(raised.value, (ptxkit.Error, AssertionError))
    assert str(pickle.loads(pickle.dumps(emulator.LaunchFaults("text")))) == "text"
    with pytest.raises(emulator.LaunchFaults, match=r"argument 'in', element 4 of float32 \[4\]"):
        emulator.launch(FILL, "scale", 1, 8, [emulator.ones(4), out, 2.0])


def test_what_no_launch_wrote_is_uninitialised():
    unset = emulator.empty(64)
    with pytest.raises(emulator.LaunchFaults, match="undefined_output"):
        emulator.launch(FILL, "scale", 1, 64, [unset, emulator.empty(64), 2.0])
    assert emulator.launch(FILL, "scale", 1, 64, [unset, emulator.empty(64), 2.0], checks=["bounds"])


def test_memory_is_freed_with_its_last_array():
    made = emulator.array(np.zeros(16, "f4"))
    view, address = made[4:], made.data_ptr()
    del made
    gc.collect()
    assert emulator.default().allocation_at(address) is view._memory
    del view
    gc.collect()
    assert emulator.default().allocation_at(address) is None
    with pytest.raises(emulator.LaunchFaults, match="use_after_free"):
        emulator.launch(FILL, "scale", 1, 1, [address, emulator.empty(1), 2.0])


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: emulator.launch(FILL, "full", 1, 1), ValueError, "there is no entry 'full', expected fill, scale"),
        (lambda: emulator.launch(FILL, "fill", 1, 1, [1]), ValueError, "'fill' has 2 parameters, found 1 arguments"),
        (
            lambda: emulator.launch(FILL, "fill", 1, 1, [np.zeros(4), 1]),
            ValueError,
            r"argument 0, parameter 'out': expected a number or an emulator.array\(\), found a ndarray",
        ),
        (lambda: emulator.launch(FILL, "fill", 1, 1, [0, 2**32]), ValueError, "does not fit 4 bytes"),
        (lambda: emulator.launch("no PTX", "fill", 1, 1), ValueError, "input.ptx"),
        (lambda: emulator.launch(FILL, "fill", 0, 1, [0, 1]), ValueError, "grid is 0"),
        (lambda: emulator.Emulator(sm=60).load(FILL), ValueError, "sm_70"),
        (lambda: emulator.empty(1 << 50), MemoryError, "exceeds the device's"),
    ],
)
def test_misuse(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_a_child_process_has_an_emulator_of_its_own(python):
    program = (
        "import os, numpy as np\nfrom ptxkit import emulator\nx = emulator.ones(4)\n"
        "if os.fork() == 0:\n    assert (emulator.ones(3).numpy() == 1).all(); os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]), x.numpy().sum())"
    )
    assert python(program) == "0 4.0\n"
