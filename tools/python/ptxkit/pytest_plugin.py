"""pytest --ptx-debug: the kernels that tests compile are analyzed, and findings fail the test that compiled them.

docs/python-testing.md describes the options.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from typing import Any, Dict, Generator, Iterable, List, Optional, Sequence, Tuple

import pytest

LEVELS = ("critical", "high", "medium", "low", "info", "none")
# Modules of ptxkit, and what is imported with the compiler that they are for; Numba's simulator has no device_init.
COMPILERS = {"triton": "triton", "numba": "numba.cuda.device_init"}
BASELINE = "ptxkit-baseline-1"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ptx-debug", "kernels that the tests compile")
    add = group.addoption
    add(
        "--ptx-debug",
        metavar="LEVEL",
        nargs="?",
        const="high:likely",
        help="analyze each kernel that a test compiles, with the facts of its launches; findings of at least LEVEL "
        "fail the test: critical, high, medium, low or info, with :proved, :observed or :likely behind it (default high:likely)",
    )
    add("--ptx-debug-select", metavar="RULES", help="run only these rules: ids or names, separated by commas")
    add("--ptx-debug-ignore", metavar="RULES", help="leave these rules out")
    add("--ptx-debug-baseline", metavar="FILE", help="findings in FILE fail no test")
    add("--ptx-debug-write-baseline", metavar="FILE", help="write the findings to FILE")
    add("--ptx-debug-sarif", metavar="FILE", help="write a SARIF report to FILE")
    add("--ptx-debug-launch", metavar="FILE", help="a launch file, whose entries add to what the launches say")
    add(
        "--ptx-debug-emulator",
        metavar="SM",
        type=int,
        help="run the kernels of Triton and Numba on the emulator, compiled for sm_SM: no GPU is needed",
    )


def _level(text: str) -> Tuple[str, str]:
    severity, _, tier = text.partition(":")
    if severity not in LEVELS or tier not in ("", "possible", "likely", "observed", "proved"):
        raise pytest.UsageError(
            f"--ptx-debug: expected a level such as critical, high or medium:proved, found '{text}' "
            "(a path behind the option is taken as its level: write --ptx-debug=high)"
        )
    return severity, tier or "possible"


def _file(path: Optional[str], option: str) -> Any:
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as reason:
        raise pytest.UsageError(f"{option}: {reason}") from None
    if not isinstance(found, dict):
        raise pytest.UsageError(f"{option}: {path}: expected a JSON object")
    return found


def _rules(words: Optional[str]) -> List[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "ptx_debug(level=None, select=(), ignore=()): how the kernels of a test are analyzed; level 'none': not at all",
    )
    if config.getoption("--ptx-debug") is not None:
        config.pluginmanager.register(Plugin(config), "ptxkit-debug")
    else:
        others = ("select", "ignore", "baseline", "write-baseline", "sarif", "launch")
        for other in others:
            if config.getoption(f"--ptx-debug-{other}") is not None:
                raise pytest.UsageError(f"--ptx-debug-{other} needs --ptx-debug")
    if config.getoption("--ptx-debug-emulator") is not None:
        config.pluginmanager.register(OnEmulator(config.getoption("--ptx-debug-emulator")), "ptxkit-emulator")


def _present(known: Dict[str, Any]) -> List[Tuple[str, Any]]:
    """The modules of ptxkit for compilers that are imported and not known yet."""
    new = [name for name, compiler in COMPILERS.items() if compiler in sys.modules and name not in known]
    return [(name, importlib.import_module(f"ptxkit.{name}")) for name in new]


class OnEmulator:
    """Gives compilers the emulator as soon as they are there."""

    def __init__(self, sm: int) -> None:
        self._sm = sm
        self._uses: Dict[str, Any] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        for name, module in _present(self._uses):
            self._uses[name] = module.use_emulator(sm=self._sm)


class _Wanted:
    """How the kernels of one test are analyzed."""

    def __init__(self, level: str, select: Sequence[str], ignore: Sequence[str]) -> None:
        self.severity, self.tier = _level(level)
        self.options: Dict[str, Any] = {"falsify": self.severity not in ("critical", "high")}
        if select:
            self.options["select"] = tuple(select)
        if ignore:
            self.options["ignore"] = tuple(ignore)


class _Test:
    """What was compiled and submitted while a test ran."""

    def __init__(self, name: str, wanted: _Wanted) -> None:
        self.name, self.wanted = name, wanted
        self.futures: List[Any] = []
        self.compiled: Dict[str, Any] = {}  # not launched so far, by digest


class Plugin:
    def __init__(self, config: pytest.Config) -> None:
        from ptxkit import _compiled

        self._compiled = _compiled
        option = config.getoption
        self._config = config
        self._level = str(option("--ptx-debug"))
        self._select, self._ignore = _rules(option("--ptx-debug-select")), _rules(option("--ptx-debug-ignore"))
        baseline = _file(option("--ptx-debug-baseline"), "--ptx-debug-baseline")
        if baseline and baseline.get("schema") != BASELINE:
            raise pytest.UsageError(f"--ptx-debug-baseline: expected the schema {BASELINE}, as ptx-debug writes it")
        self._known = {each["fingerprint"] for each in baseline.get("findings", [])}
        self._analyses = _compiled.Analyses(_file(option("--ptx-debug-launch"), "--ptx-debug-launch"))
        self._check_rules()
        self._lock = threading.Lock()
        self._outside = _Test("outside of tests", _Wanted(self._level, self._select, self._ignore))
        self._current = self._outside
        self._hooked: Dict[str, Any] = {}
        self._is_worker = hasattr(config, "workerinput")
        self.record: Dict[str, Any] = {
            "kernels": [],
            "launches": 0,
            "skipped": 0,
            "known": 0,
            "unreadable": [],
            "failed": [],
            "findings": [],
            "sarif": [],
            "waited": 0.0,
        }
        self._sarif: Optional[Dict[str, Any]] = None
        _compiled.add_listener(self._heard)

    def _check_rules(self) -> None:
        from ptxkit import debug

        _level(self._level)
        try:
            debug.analyze("", select=self._select, ignore=self._ignore)
        except ValueError as reason:
            raise pytest.UsageError(f"--ptx-debug-select, --ptx-debug-ignore: {reason}") from None

    # ---- What is compiled ---------------------------------------------------------------------------------------

    def _hook(self) -> None:
        for name, module in _present(self._hooked):
            self._hooked[name] = module
            try:
                module.hook()
            except NotImplementedError as reason:  # a version without hooks
                self._hooked[name] = None
                self.record["unreadable"].append(f"every kernel of {name}: {reason}")

    def _heard(self, kernel: Any, launch: Any) -> None:
        with self._lock:
            test = self._current
        if test.wanted.severity == "none":
            return
        if launch is None:
            test.compiled.setdefault(kernel.digest, kernel)
            return
        test.compiled.pop(kernel.digest, None)
        future = self._analyses.submit(kernel, launch, test.wanted.options)
        if future is not None:
            test.futures.append(future)

    def pytest_collection_finish(self) -> None:
        self._hook()

    # ---- Tests --------------------------------------------------------------------------------------------------

    def _wanted(self, item: pytest.Item) -> _Wanted:
        level, select, ignore = self._level, list(self._select), list(self._ignore)
        for marker in reversed(list(item.iter_markers("ptx_debug"))):
            unknown = set(marker.kwargs) - {"level", "select", "ignore"}
            if marker.args or unknown:
                raise pytest.UsageError(f"ptx_debug: expected level, select and ignore by name, in {item.nodeid}")
            level = marker.kwargs.get("level", level)
            select.extend(marker.kwargs.get("select", ()))
            ignore.extend(marker.kwargs.get("ignore", ()))
        return _Wanted(level, select, ignore)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._hook()
        self._current = _Test(item.nodeid, self._wanted(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            result = yield
        except BaseException:
            text = self._finish(item)
            if text:
                item.add_report_section("call", "ptx-debug", text)
            raise
        text = self._finish(item)
        if text:
            pytest.fail(text, pytrace=False)
        return result

    def pytest_runtest_logfinish(self) -> None:
        """A test whose setup failed was not judged."""
        test, self._current = self._current, self._outside
        if test is not self._outside:
            self._outside.futures += test.futures
            self._outside.compiled.update(test.compiled)

    def _finish(self, item: pytest.Item) -> str:
        test, self._current = self._current, self._outside
        text, unreadable = self._judge(test)
        for each in unreadable:
            item.user_properties.append(("ptx_debug_not_analyzed", each))
        return text

    def _judge(self, test: _Test) -> Tuple[str, List[str]]:
        """Waits for a test's analyses. Returns what fails the test, and the kernels without a verdict."""
        while test.compiled:
            future = self._analyses.submit(test.compiled.popitem()[1], None, test.wanted.options)
            if future is not None:
                test.futures.append(future)
        began = time.perf_counter()
        outcomes = [future.result() for future in test.futures]
        self.record["waited"] += time.perf_counter() - began
        test.futures.clear()
        failures: List[str] = []
        unreadable: List[str] = []
        for outcome in outcomes:
            self._count(outcome)
            if outcome.error:
                unreadable.append(f"{outcome.kernel.producer} kernel '{outcome.kernel.name}': {outcome.error}")
            failures.extend(map(str, self._new(outcome, test)))
        self.record["unreadable"] += [f"{each}, in {test.name}" for each in unreadable]
        if failures:
            self.record["failed"].append(test.name)
        return "\n".join(failures), unreadable

    def _count(self, outcome: Any) -> None:
        if outcome.kernel.digest not in self.record["kernels"]:
            self.record["kernels"].append(outcome.kernel.digest)
        self.record["launches"] += outcome.launch is not None

    def _new(self, outcome: Any, test: _Test) -> Iterable[Any]:
        """The findings that fail a test; all go into the files."""
        if outcome.report is None or outcome.error:
            return
        wanted = test.wanted
        for problem in outcome.problems("low"):
            found = problem.finding
            known = found.raw.get("fingerprint") in self._known
            self.record["known"] += known
            self.record["findings"].append(
                {
                    "fingerprint": found.raw.get("fingerprint"),
                    "rule": found.rule,
                    "kernel": found.kernel,
                    "severity": found.severity,
                    "message": found.message,
                }
            )
            if not known and problem in outcome.problems(wanted.severity, wanted.tier):
                yield problem
        if self._config.getoption("--ptx-debug-sarif"):
            self.record["sarif"].append(_with_python_places(outcome.report.to_sarif(), str(self._config.rootpath)))

    # ---- The end ------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        self._current = self._outside
        text, _ = self._judge(self._outside)
        self.record["skipped"] = self._analyses.skipped_launches
        if text:
            self.record["outside"] = text
        if self._is_worker:
            self._config.workeroutput["ptx_debug"] = json.dumps(self.record)  # type: ignore[attr-defined]
        self._compiled.remove_listener(self._heard)
        for module in filter(None, self._hooked.values()):
            module.unhook()
        result = yield
        if self.record.get("outside") and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if not self._is_worker:
            self._write_files()
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Adds what a worker of xdist found."""
        text = getattr(node, "workeroutput", {}).get("ptx_debug")
        if text is None:
            return
        for key, value in json.loads(text).items():
            if key == "kernels":
                self.record[key] += [each for each in value if each not in self.record[key]]
            else:
                self.record[key] = self.record[key] + value if key in self.record else value

    def _write_files(self) -> None:
        baseline = self._config.getoption("--ptx-debug-write-baseline")
        if baseline:
            unique = {each["fingerprint"]: each for each in self.record["findings"]}
            _write(baseline, {"schema": BASELINE, "findings": list(unique.values())})
        sarif = self._config.getoption("--ptx-debug-sarif")
        if sarif:
            from ptxkit import debug

            merged = debug.analyze("").to_sarif()
            merged["runs"][0]["results"] = [each for found in self.record["sarif"] for each in found]
            merged["runs"][0]["invocations"] = [{"executionSuccessful": not self.record["unreadable"]}]
            _write(sarif, merged)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        record, say = self.record, terminalreporter.write_line
        terminalreporter.section("ptx-debug")
        say(
            f"{_plural(len(record['kernels']), 'kernel')} in {_plural(record['launches'], 'launch', 'launches')} "
            f"analyzed; {_plural(len(record['findings']), 'finding')}, {record['known']} of them in the baseline; "
            f"{_plural(len(record['failed']), 'test')} failed by findings; waited {record['waited']:.1f} s"
        )
        if record["skipped"]:
            say(
                f"{_plural(record['skipped'], 'further launch', 'further launches')} of kernels with "
                f"{self._compiled.MOST_LAUNCHES} different launches not analyzed"
            )
        for each in sorted(set(record["unreadable"])):
            say(f"not analyzed: {each}")
        if record.get("outside"):
            say("outside of tests:")
            say(record["outside"])


def _plural(count: int, one: str, many: Optional[str] = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _write(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def _with_python_places(sarif: Dict[str, Any], root: str) -> List[Any]:
    """The results, each at its line of Python where it has one; the line of PTX becomes a related location."""
    results: List[Any] = sarif["runs"][0]["results"]
    for result in results:
        sources = result.get("relatedLocations", [])
        source = next((each for each in sources if not _uri(each).endswith(".ptx")), None)
        if source is None:
            continue
        ptx = result["locations"][0]
        place = dict(source["physicalLocation"])
        path = _uri(source)
        if os.path.isabs(path) and os.path.commonpath([path, root]) == root:
            place["artifactLocation"] = {"uri": os.path.relpath(path, root)}
        result["locations"] = [{"physicalLocation": place, "logicalLocations": ptx.get("logicalLocations", [])}]
        related = {"physicalLocation": ptx["physicalLocation"], "message": {"text": "the instruction"}}
        result["relatedLocations"] = [*sources, {"id": len(sources), **related}]
    return results


def _uri(location: Dict[str, Any]) -> str:
    uri: str = location["physicalLocation"]["artifactLocation"]["uri"]
    return uri[7:] if uri.startswith("file://") else uri
