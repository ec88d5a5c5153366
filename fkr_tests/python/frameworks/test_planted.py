"""planted.py counts rightly: a kernel as it is, with a fault that shows, and with one that the simulator cannot see."""

import planted
import planted_numba
import planted_triton
import pytest


@pytest.mark.parametrize(
    "kernel, plant, outcome",
    [
        ("numba.vector_add", None, "clean"),
        ("numba.vector_add", "guard dropped", "fault"),
        ("numba.vector_add", "input not initialised", "fault"),
        ("numba.vector_add", "result one element short", "fault"),
        ("numba.reduce_sum", "barrier removed after load", "fault"),
    ],
)
def test_numba_on_the_emulator(kernel, plant, outcome):
    cases = {name: run for name, _, run in planted_numba.all_cases("numba emulator", None)}
    assert cases[kernel](plant)["outcome"] == outcome


def test_plants_in_triton_kernels():
    text = (
        "@triton.jit\ndef k(p, q, n):\n    x = tl.load(p, mask=n > 0, other=0.0)\n"
        "    tl.atomic_add(q, x, mask=n > 1)\n    tl.store(q, x, mask=n > 2)\n"
    )
    changed = {plant: planted_triton.planted(text, "k", plant) for plant in planted_triton.PLANTS}
    assert "x = tl.load(p)" in changed["load without its mask"]
    assert "tl.store(q, x)" in changed["store without its mask"]
    assert "tl.load(p + 1, mask=n > 0" in changed["load one element on"]
    assert "tl.store(q + 1, x" in changed["store one element on"]
    assert "tl.store(q, tl.load(q, mask=n > 1) + x, mask=n > 1)" in changed["update without atomic"]
    assert planted_triton.planted("def k(p):\n    pass\n", "k", "load without its mask") is None


def test_the_table(capsys):
    def row(tool, plant, outcome):
        return {"tool": tool, "kernel": "k", "plant": plant, "outcome": outcome, "seconds": 1.0}

    planted.table(
        [row("emulator", None, "clean"), row("emulator", "a", "fault"), row("emulator", "b", "clean")]
        + [row("interpreter", None, "clean"), row("interpreter", "a", "wrong"), row("interpreter", "b", "clean")]
        + [row("triton-viz", None, "fault"), row("triton-viz", "a", "fault"), row("triton-viz", "b", "fault")]
    )
    said = capsys.readouterr().out
    assert "1 kernels, 2 plants, 1 with an effect" in said
    assert "emulator: {'reported': 1}; false: []" in said and "interpreter: {'wrong result': 1}" in said
    assert "triton-viz: {'unsupported': 1}" in said


def test_a_process_that_dies_is_a_crash():
    import os
    import signal

    assert planted.in_a_child(lambda: {"outcome": "clean"})["outcome"] == "clean"
    assert planted.in_a_child(lambda: os.kill(os.getpid(), signal.SIGKILL))["outcome"] == "crash"
    assert planted.in_a_child(lambda: 1 / 0)["why"].startswith("ZeroDivisionError")
