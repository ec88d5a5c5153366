"""ptxkit.debug: the analyzer and the emulator."""

import pathlib
import re

import numpy as np
import ptxkit
import pytest
from ptxkit import debug

FILL = """.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
    .reg .b32 %v, %i; .reg .b64 %b, %o;
    ld.param.u64 %b, [out];
    cvta.to.global.u64 %b, %b;
    ld.param.u32 %v, [value];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %b, %b, %o;
    st.global.u32 [%b], %v;
    ret;
}
.visible .entry scale(.param .u64 in, .param .u64 out, .param .f32 by)
{
    .reg .f32 %f, %g; .reg .b32 %i; .reg .b64 %a, %b, %o;
    ld.param.u64 %a, [in];
    ld.param.u64 %b, [out];
    ld.param.f32 %g, [by];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    add.u64 %b, %b, %o;
    ld.global.f32 %f, [%a];
    mul.f32 %f, %f, %g;
    st.global.f32 [%b], %f;
    ret;
}
"""
BAD = pathlib.Path(__file__).parent.parent.parent / "docs" / "examples" / "misaligned_cursor.ptx"


def test_analyze():
    report = debug.analyze(BAD)
    assert report.exit_code == 3 and report.error is None and report.score < 70
    worst = report.findings[0]
    assert (
        re.fullmatch(r"F\d{3}", worst.rule)
        and worst.line > 0
        and worst.raw["message"] == worst.message
        and worst.severity in str(worst)
    )
    assert {finding.severity for finding in report.findings} & {"critical", "high"}
    assert str(report).startswith(str(BAD)) or str(BAD) in str(report)
    sarif = report.to_sarif()
    assert sarif["version"] == "2.1.0" and len(sarif["runs"][0]["results"]) >= 1
    assert {result["ruleId"] for result in sarif["runs"][0]["results"]} >= {worst.rule}


def test_analyze_options():
    text = BAD.read_text()
    rule = debug.analyze(text).findings[0].rule
    assert rule not in {finding.rule for finding in debug.analyze(text, ignore=[rule]).findings}
    assert {finding.rule for finding in debug.analyze(text, select=[rule]).findings} <= {rule}
    assert debug.analyze(text, name="mine.ptx").raw["files"][0]["path"] == "mine.ptx"
    assert debug.analyze(text.encode(), fail_on="none").exit_code == 0
    assert debug.analyze(FILL).findings == debug.analyze(FILL, kernels=["fill", "scale"]).findings


def test_launch_files():
    """A rule that is undecided without the sizes is decided with them (docs/analyzer.md has the same example)."""

    def undecided(launch):
        (kernel,) = debug.analyze(BAD.with_name("fill.ptx"), launch, select=["F051", "F070", "F079"]).raw["files"][0][
            "kernels"
        ]
        return kernel["counts"]["undecided"]

    entry = {
        "block": [1],
        "grid": [64],
        "parameters": [{"name": "pitch", "value": 256}, {"name": "out", "bytes": 16384}],
    }
    assert undecided(None) == 3 and undecided({"entries": {"fill": entry}}) == 0
    with pytest.raises(ptxkit.InvalidValueError, match=r"'block' of 'fill': expected numbers from 1 on, found \[0\]"):
        undecided({"entries": {"fill": {"block": [0]}}})


def test_a_text_that_does_not_parse():
    report = debug.analyze("not ptx")
    assert (
        report.exit_code == 10
        and {finding.rule for finding in report.findings} == {"F002", "F007"}
        and "does not parse" in str(report)
    )


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: debug.analyze(FILL, select=["F999"]), ValueError, "F999"),
        (lambda: debug.analyze(FILL, select="F001"), TypeError, "select: expected a list of strings"),
        (lambda: debug.analyze(FILL, profile="x"), ValueError, "profile"),
        (lambda: debug.analyze(5), TypeError, "ptx: expected the text"),
        (lambda: debug.analyze(pathlib.Path("/nowhere.ptx")), FileNotFoundError, "nowhere"),
        (lambda: debug.run("not ptx", "fill", 1, 1), ValueError, "input.ptx"),
        (lambda: debug.run(FILL, "full", 1, 1), ValueError, "there is no entry 'full', expected fill, scale"),
        (lambda: debug.run(FILL, "fill", 1, 1, [1]), ValueError, "'fill' has 2 parameters, found 1 arguments"),
        (lambda: debug.run(FILL, "fill", 0, 1, [1, 2]), ValueError, "grid is 0, expected one to three"),
        (lambda: debug.run(FILL, "fill", 1, (1, 1, 1, 1), [1, 2]), ValueError, "block is"),
        (
            lambda: debug.run(FILL, "fill", 1, 1, [bytearray(4), 2**32]),
            ValueError,
            "argument 1, parameter 'value': 4294967296 does not fit 4",
        ),
        (
            lambda: debug.run(FILL, "fill", 1, 1, [bytearray(4), np.uint64(1)]),
            ValueError,
            "8 bytes, the parameter has 4",
        ),
        (lambda: debug.run(FILL, "fill", 1, 1, [b"1234", 1]), ValueError, "read-only"),
        (lambda: debug.run(FILL, "fill", 1, 1, [debug.u32(-1), 1]), ValueError, "-1 does not fit"),
        (lambda: debug.run(FILL, "fill", 1, 1, [bytearray(4), 1], checks="bonds"), ValueError, "checks"),
        (
            lambda: debug.run(FILL, "fill", 1, 1, [bytearray(4), 1], backend="x"),
            ValueError,
            "expected emulator or cuda",
        ),
        (
            lambda: debug.run(FILL, "fill", 1, 1, [bytearray(4), 1], device=1),
            ValueError,
            "'device' has no effect on backend emulator",
        ),
    ],
)
def test_misuse(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("value", [7, np.uint32(7), np.int32(7), debug.u32(7), debug.bytes_value(b"\7\0\0\0")])
def test_run_writes_arrays_in_place(value):
    out = np.zeros(32, "u4")
    result = debug.run(FILL, "fill", 1, 32, [out, value])
    assert result and not result.faults and (out == 7).all()
    assert result.statistics["blocks"] == 1 and result.output == "" and str(result) == "no faults"


@pytest.mark.parametrize("value", [2**32 - 1, -1, np.int32(-1), debug.s32(-1)])
def test_signs_are_those_of_the_value(value):
    out = np.zeros(32, "u4")
    assert debug.run(FILL, "fill", 1, 32, [out, value]) and (out == 2**32 - 1).all()


def test_run_reads_values():
    for by in (2.5, np.float32(2.5), debug.f32(2.5)):
        values, out = np.arange(64, dtype="f4"), bytearray(256)
        assert debug.run(FILL, "scale", (1,), (64, 1, 1), [debug.in_(values), debug.out(out), by])
        assert (np.frombuffer(out, "f4") == values * 2.5).all()
    read_only = np.arange(64, dtype="f4")
    read_only.flags.writeable = False
    assert debug.run(FILL, "scale", 1, 64, [debug.in_(read_only), out, 1.0])


def test_faults_are_objects():
    out = np.zeros(31, "u4")
    result = debug.run(FILL, "fill", 1, 32, [debug.out(out, name="mine"), 7], checks=["bounds"], name="fill.ptx")
    (fault,) = result.faults
    assert not result and fault.kind == "out_of_bounds"
    assert fault.line == 13 and fault.thread == (31, 0, 0) and fault.block == (0, 0, 0) and "st.global" in fault.ptx
    assert fault.raw["object"]["name"] == "mine" and "thread (31, 0, 0)" in str(fault)
    assert debug.run(FILL, "fill", 1, 32, [np.zeros(40, "u4"), 7], checks="none", seed=3, adversarial=True, threads=2)


def test_a_gpu_that_is_not_there():
    try:
        debug.run(FILL, "fill", 1, 32, [np.zeros(32, "u4"), 7], backend="cuda")
    except ptxkit.DeviceError as error:
        assert error.status in (103, 1000)


def test_a_source_that_was_moved(tmp_path):
    here = tmp_path / "kernels.py"
    here.touch()
    assert debug.existing_path("/gone/kernels.py", str(here)) == str(here)
    assert debug.existing_path("/gone/other.py", str(here)) == "/gone/other.py"
    assert debug.existing_path(str(here), "/elsewhere/kernels.py") == str(here)
