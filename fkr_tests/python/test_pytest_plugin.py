"""The pytest plug-in, with a compiler that hands over PTX as the hooks of real ones do."""

import json
import pathlib
import re

import pytest

pytest_plugins = ["pytester"]

HERE = pathlib.Path(__file__).parent
PACKAGE = HERE.parent.parent / "tools" / "python"
COMPILER = '''
"""compile(name) and launch(name, n): a kernel whose only fault is the width of its store, in line 7 of kernels.py."""
from ptxkit import _compiled

TEXT = """.version 8.0
.target sm_80
.address_size 64
.file 1 "%(folder)s/kernels.py"
.visible .entry %(name)s(.param .u64 %(name)s_param_0, .param .u32 %(name)s_param_1)
{
    .reg .b32 %%v; .reg .b64 %%a;
    ld.param.u64 %%a, [%(name)s_param_0];
    ld.param.u32 %%v, [%(name)s_param_1];
    cvta.to.global.u64 %%a, %%a;
    .loc 1 7 5
    st.global.u32 [%%a+%(offset)s], %%v;
    ret;
}
"""
kernels = {}

def compile(name, folder=".", text=None):
    if name not in kernels:
        made = text or TEXT % {"name": name, "folder": folder, "offset": 2 if "bad" in name else 4}
        kernels[name] = _compiled.Kernel("Test", name, made.encode(), "kernels.py:3", arguments=("out", "n"))
    _compiled.tell(kernels[name], None)

def launch(name, n=1):
    facts = (_compiled.Fact("out", "float32 [8]", (("align", 256), ("bytes", 32))),
             _compiled.Fact("n", repr(n), (("value", n),)))
    compile(name)
    _compiled.tell(kernels[name], _compiled.Launch((1, 1, 1), (32,), 0, facts))
'''


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{PACKAGE}:{pytester.path}")
    pytester.makepyfile(compiler=COMPILER)

    def run(source, *options):
        pytester.makepyfile(test_kernels="import pytest\nfrom compiler import compile, launch\n" + source)
        return pytester.runpytest_subprocess("-p", "ptxkit.pytest_plugin", "-p", "no:cacheprovider", *options)

    return run


ONE_BAD = """
def test_good(): launch("good")
def test_bad(): launch("bad")
def test_bad_again(): launch("bad")
"""


def test_a_finding_fails_the_test_that_compiled_it(run, pytester):
    done = run(ONE_BAD, "--ptx-debug")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.re_match_lines(
        [
            r"_+ test_bad _+",
            r"Test kernel 'bad': critical: .*F051 UnalignedMemoryAccess, likely\]",
            r"  at .*/?kernels.py:7",
            r"  PTX line 12: st.global.u32 \[%a\+2\], %v",
            r"  assumes: parameter 'bad_param_0' is 256-aligned: declared",
            r"  launch: grid \[1, 1, 1\], block \[32\], 0 bytes shared; out: float32 \[8\], n: 1",
            r"  bad_param_0 is the argument 'out'",
            r"  remedy: .*",
        ]
    )
    assert re.search(
        r"2 kernels in 2 launches analyzed; [12] findings?, 0 .* 1 test failed by findings", str(done.stdout)
    )


def test_without_the_option_nothing_is_analyzed(run):
    done = run(ONE_BAD)
    done.assert_outcomes(passed=3)
    assert "ptx-debug" not in str(done.stdout)


@pytest.mark.parametrize(
    "options, failed",
    [
        (["--ptx-debug=critical"], 1),
        (["--ptx-debug=high:proved"], 0),
        (["--ptx-debug=none"], 0),
        (["--ptx-debug", "--ptx-debug-ignore=F051,F081,F082,F021"], 0),
        (["--ptx-debug", "--ptx-debug-select=DivergentBarrier, F036"], 0),
        (["--ptx-debug", "--ptx-debug-select=F051"], 1),
    ],
)
def test_levels_and_rules(run, options, failed):
    run(ONE_BAD, *options).assert_outcomes(passed=3 - failed, failed=failed)


def test_the_marker(run):
    done = run(
        """
@pytest.mark.ptx_debug(ignore=["F051", "F081", "F082", "F021"])
def test_ignored(): launch("bad_one")
@pytest.mark.ptx_debug(level="none")
def test_none(): launch("bad_two")
@pytest.mark.ptx_debug(select=["F036"])
class TestClass:
    def test_selected(self): launch("bad_three")
    @pytest.mark.ptx_debug(select=["F051"])
    def test_both(self): launch("bad_four")
def test_strict(): launch("bad_two")
""",
        "--ptx-debug",
        "--strict-markers",
    )
    done.assert_outcomes(passed=3, failed=2)
    done.stdout.re_match_lines(["FAILED .*::test_both.*", "FAILED .*::test_strict.*"])
    wrong = run("@pytest.mark.ptx_debug('high')\ndef test(): pass", "--ptx-debug")
    assert wrong.ret != 0 and "expected level, select and ignore by name" in str(wrong.stdout) + str(wrong.stderr)


def test_launches_are_facts(run):
    """The rule is undecided without the launch, and refuted or proved by it."""
    fill = (HERE.parent.parent / "docs" / "examples" / "fill.ptx").read_text(encoding="utf-8")
    done = run(
        f"""
from compiler import _compiled, kernels
TEXT = {fill!r}
def launch_fill(pitch):
    compile("fill", text=TEXT)
    facts = {{"out": (("bytes", 16384), ("align", 256)), "pitch": (("value", pitch),)}}
    parameters = tuple(_compiled.Fact(name, "", facts.get(name, ())) for name in kernels["fill"].parameters)
    _compiled.tell(kernels["fill"], _compiled.Launch((64, 1, 1), (1,), 0, parameters))
def test_aligned(): launch_fill(256)
def test_misaligned(): launch_fill(3)
""",
        "--ptx-debug",
        "--ptx-debug-select=F051",
    )
    done.assert_outcomes(passed=1, failed=1)
    assert "test_misaligned" in str(done.stdout) and "2 launches" in str(done.stdout)


def test_a_launch_file_adds_facts(run, pytester):
    facts = {"entries": {"good": {"parameters": [{"name": "good_param_0", "align": 2}]}}}
    pytester.path.joinpath("facts.json").write_text(json.dumps(facts), encoding="utf-8")
    options = ["--ptx-debug=medium", "--ptx-debug-select=F051", "--ptx-debug-launch=facts.json"]
    run('def test(): compile("good")', *options).assert_outcomes(failed=1)
    run('def test(): compile("good")', *options[:2]).assert_outcomes(passed=1)


def test_a_kernel_that_is_not_launched_is_analyzed(run):
    done = run('def test(): compile("bad")', "--ptx-debug")
    done.assert_outcomes(failed=1)
    assert "1 kernel in 0 launches analyzed" in str(done.stdout)


def test_what_cannot_be_read_is_said(run, pytester):
    done = run('def test(): compile("odd", text=".version 8.0 frobnicate")', "--ptx-debug", "--junitxml=out.xml")
    done.assert_outcomes(passed=1)
    done.stdout.re_match_lines([r"not analyzed: Test kernel 'odd': line 1: .*, in test_kernels.py::test"])
    assert "ptx_debug_not_analyzed" in pytester.path.joinpath("out.xml").read_text(encoding="utf-8")


def test_a_compiler_without_hooks_is_said(run):
    old = "import sys, types\nold = sys.modules['triton'] = types.ModuleType('triton')\nold.__version__ = '3.3.1'\n"
    done = run(old + "def test(): pass", "--ptx-debug")
    done.assert_outcomes(passed=1)
    assert "not analyzed: every kernel of triton: Triton 3.3.1 has no hooks" in str(done.stdout)


def test_a_failing_test_shows_its_findings_too(run):
    done = run('def test():\n    launch("bad")\n    assert 1 == 2', "--ptx-debug")
    done.assert_outcomes(failed=1)
    assert "assert 1 == 2" in str(done.stdout) and "F051 UnalignedMemoryAccess" in str(done.stdout)


def test_fixtures_and_what_is_outside_of_tests(run):
    done = run(
        """
@pytest.fixture
def made(): launch("bad_in_setup"); yield
@pytest.fixture
def undone(): yield; launch("bad_in_teardown")
@pytest.fixture
def broken(): launch("bad_in_broken_setup"); raise OSError
def test_setup(made): pass
def test_teardown(undone): pass
def test_broken(broken): pass
""",
        "--ptx-debug",
    )
    done.assert_outcomes(passed=1, failed=1, errors=1)
    assert done.ret == 1
    done.stdout.re_match_lines(
        [
            "outside of tests:",
            "Test kernel 'bad_in_teardown': critical.*",
            "Test kernel 'bad_in_broken_setup': critical.*",
        ]
    )
    alone = run('@pytest.fixture\ndef undone(): yield; launch("bad")\ndef test(undone): pass', "--ptx-debug")
    alone.assert_outcomes(passed=1)
    assert alone.ret == 1


def test_baseline(run, pytester):
    done = run(ONE_BAD, "--ptx-debug", "--ptx-debug-write-baseline=known.json")
    done.assert_outcomes(passed=2, failed=1)
    known = json.loads(pytester.path.joinpath("known.json").read_text(encoding="utf-8"))
    assert known["schema"] == "ptxkit-baseline-1" and known["findings"][0]["kernel"] == "bad"
    again = run(ONE_BAD, "--ptx-debug", "--ptx-debug-baseline=known.json")
    again.assert_outcomes(passed=3)
    assert re.search(r"(\d) findings?, \1 of them in the baseline", str(again.stdout))


def test_sarif_is_at_the_line_of_python(run, pytester):
    source = ONE_BAD.replace('launch("bad")', f'compile("bad", {str(pytester.path)!r}); launch("bad")')
    run(source, "--ptx-debug", "--ptx-debug-sarif=out.sarif").assert_outcomes(passed=2, failed=1)
    sarif = json.loads(pytester.path.joinpath("out.sarif").read_text(encoding="utf-8"))
    (made,) = sarif["runs"]
    place = made["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kernels.py" and place["region"]["startLine"] == 7
    assert {each["ruleId"] for each in made["results"]} >= {"F051"}
    assert made["results"][0]["relatedLocations"][-1]["physicalLocation"]["artifactLocation"]["uri"] == "bad.ptx"


def test_xdist(run, pytester):
    tests = "\n".join(f'def test_{i}(): launch("{"bad" if i == 3 else "good"}_{i}")' for i in range(6))
    done = run(
        tests + '\ndef test_odd(): compile("odd", text="odd")\n',
        "--ptx-debug",
        "--ptx-debug-sarif=out.sarif",
        "-n",
        "2",
    )
    done.assert_outcomes(passed=6, failed=1)
    assert "7 kernels in 6 launches analyzed" in str(done.stdout) and "not analyzed: Test kernel 'odd'" in str(
        done.stdout
    )
    sarif = json.loads(pytester.path.joinpath("out.sarif").read_text(encoding="utf-8"))
    assert any(each["ruleId"] == "F051" for each in sarif["runs"][0]["results"])


def test_a_kernel_of_many_launches(run):
    done = run('def test():\n    for n in range(20): launch("good", n)', "--ptx-debug")
    done.assert_outcomes(passed=1)
    assert "12 further launches of kernels with 8 different launches not analyzed" in str(done.stdout)


@pytest.mark.parametrize(
    "options, text",
    [
        (["--ptx-debug=hihg"], "found 'hihg'"),
        (["--ptx-debug", "test_kernels.py"], "a path behind the option is taken as its level"),
        (["--ptx-debug", "--ptx-debug-select=F999"], "unknown rule 'F999'"),
        (["--ptx-debug", "--ptx-debug-launch=nowhere.json"], "nowhere.json"),
        (["--ptx-debug", "--ptx-debug-baseline=wrong.json"], "expected the schema ptxkit-baseline-1"),
        (["--ptx-debug-sarif=out.sarif"], "--ptx-debug-sarif needs --ptx-debug"),
    ],
)
def test_misuse(run, pytester, options, text):
    pytester.path.joinpath("wrong.json").write_text('{"schema": "x"}', encoding="utf-8")
    done = run("def test(): pass", *options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR and text in str(done.stderr) + str(done.stdout)
