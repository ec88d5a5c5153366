"""What the hooks of compilers hand over: compiled kernels and their launches; and the analysis of both in threads."""

from __future__ import annotations

import hashlib
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ptxkit import debug

MOST_LAUNCHES = 8  # different launches of one text that are analysed
SEVERITIES = ("info", "low", "medium", "high", "critical")
TIERS = ("possible", "likely", "observed", "proved")


@dataclass(frozen=True)
class Fact:
    """What a launch says about one parameter of the PTX entry."""

    argument: str  # of the Python function
    described: str  # "float32 [1000]", "n = 1000"
    facts: Tuple[Tuple[str, int], ...] = ()  # of the launch file: bytes and align of a pointer, value of a scalar


@dataclass(frozen=True)
class Launch:
    grid: Tuple[int, ...]
    block: Tuple[int, ...]
    shared_bytes: int
    parameters: Tuple[Fact, ...]

    def file(self, entry: str, names: Sequence[str]) -> Dict[str, Any]:
        """A launch file; names are those of the entry's parameters."""
        parameters = [{"name": name, **dict(fact.facts)} for name, fact in zip(names, self.parameters) if fact.facts]
        return {
            "entries": {
                entry: {
                    "grid": list(self.grid),
                    "block": list(self.block),
                    "dynamic_shared_bytes": self.shared_bytes,
                    "parameters": parameters,
                }
            }
        }

    def __str__(self) -> str:
        arguments = ", ".join(f"{fact.argument}: {fact.described}" for fact in self.parameters if fact.described)
        return f"grid {list(self.grid)}, block {list(self.block)}, {self.shared_bytes} bytes shared; {arguments}"


@dataclass
class Kernel:
    """A text that a compiler made."""

    producer: str  # "Triton", "Numba"
    name: str  # of the Python function
    text: bytes
    where: str = ""  # "add.py:3", the function's definition
    entry: str = ""
    arguments: Tuple[str, ...] = ()  # the Python argument behind each parameter of the entry
    digest: str = field(init=False)
    launches: List[Launch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.digest = hashlib.sha256(self.text).hexdigest()
        head = re.search(rb"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?", self.text)
        if head and not self.entry:
            self.entry = head[1].decode()
        listed = head[2].decode().split(",") if head and head[2] else []
        self.parameters = [each.split()[-1].split("[")[0] for each in listed if each.strip()]

    def required_block(self) -> Optional[Tuple[int, ...]]:
        found = re.search(rb"\.reqntid\s+([\d, ]+)", self.text)
        return tuple(int(each) for each in found[1].split(b",")) if found else None


@dataclass(frozen=True)
class Problem:
    """A finding, with the kernel and the launch it was found in."""

    kernel: Kernel
    launch: Optional[Launch]
    finding: debug.Finding

    def __str__(self) -> str:
        found = self.finding
        lines = [f"{found.severity}: {found.message} [{found.rule} {found.name}, {found.tier}]"]
        file = self.kernel.where.rpartition(":")[0]
        lines.extend(
            f"  at {debug.existing_path(each['file'], file)}:{each['line']}" for each in found.raw.get("source") or []
        )
        lines.append(f"  PTX line {found.line}: {' '.join(found.raw.get('ptx', '').split())}")
        lines.extend(f"  assumes: {each}" for each in found.raw.get("assumptions") or [])
        if self.launch:
            lines.append(f"  launch: {self.launch}")
        named = {
            parameter: argument
            for parameter, argument in zip(self.kernel.parameters, self.kernel.arguments)
            if parameter in str(found.raw)
        }
        lines.extend(f"  {parameter} is the argument '{argument}'" for parameter, argument in named.items())
        lines.append(f"  remedy: {found.remedy}")
        return f"{self.kernel.producer} kernel '{self.kernel.name}': " + "\n".join(lines)


@dataclass
class Outcome:
    """What the analysis of one text with the facts of one launch said."""

    kernel: Kernel
    launch: Optional[Launch]
    report: Optional[debug.Report] = None
    error: Optional[str] = None  # why there is no verdict: the text could not be read

    def problems(self, least: str = "low", tier: str = "possible") -> List[Problem]:
        """The findings of at least this severity and certainty."""
        if self.report is None or self.error:
            return []
        return [
            Problem(self.kernel, self.launch, finding)
            for finding in self.report.findings
            if SEVERITIES.index(finding.severity) >= SEVERITIES.index(least)
            and TIERS.index(finding.tier) >= TIERS.index(tier)
        ]


class Analyses:
    """Analyses each text with each launch once, in threads."""

    def __init__(self, extra_launch: Optional[Dict[str, Any]] = None) -> None:
        self.extra_launch = (extra_launch or {}).get("entries", {})
        self.skipped_launches = 0
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="ptx-debug")
        self._done: Dict[Tuple[str, str, Optional[Launch]], Future[Outcome]] = {}
        self._lock = threading.Lock()

    def submit(self, kernel: Kernel, launch: Optional[Launch], options: Dict[str, Any]) -> Optional[Future[Outcome]]:
        """The analysis, if it is new; None where these have been given before. options: of debug.analyze()."""
        text = kernel.digest, repr(sorted(options.items()))
        key = *text, launch
        with self._lock:
            if key in self._done:
                return None
            if launch is not None and sum(each[:2] == text for each in self._done) >= MOST_LAUNCHES:
                self.skipped_launches += 1
                return None
            self._done[key] = self._threads.submit(self._analyze, kernel, launch, options)
            return self._done[key]

    def outcomes(self) -> List[Outcome]:
        with self._lock:
            futures = list(self._done.values())
        return [future.result() for future in futures]

    def _analyze(self, kernel: Kernel, launch: Optional[Launch], options: Dict[str, Any]) -> Outcome:
        outcome = Outcome(kernel, launch)
        try:
            facts = launch.file(kernel.entry, kernel.parameters) if launch else None
            given = self.extra_launch.get(kernel.entry)
            if given:
                facts = facts or {"entries": {kernel.entry: {}}}
                facts["entries"][kernel.entry].update(given)
            outcome.report = debug.analyze(kernel.text, facts, name=f"{kernel.name}.ptx", **options)
            if outcome.report.exit_code == 10:
                first = outcome.report.raw["files"][0]["diagnostics"][0]
                outcome.error = f"line {first['line']}: {first['message']}"
        except Exception as reason:  # a verdict is missing: this is a result, not an end of the program
            outcome.error = f"{type(reason).__name__}: {reason}"
        return outcome


Listener = Callable[[Kernel, Optional[Launch]], None]
_listeners: List[Listener] = []


def add_listener(listener: Listener) -> None:
    """listener(kernel, None) is called for each compilation, also out of a cache, and (kernel, launch) for launches."""
    if listener not in _listeners:
        _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    if listener in _listeners:
        _listeners.remove(listener)


def tell(kernel: Kernel, launch: Optional[Launch]) -> None:
    for listener in list(_listeners):
        listener(kernel, launch)


def alignment_of(address: int, most: int = 256) -> int:
    return min(address & -address, most) if address else most


class Watch:
    """Analyzes what the hooks tell, until close().

    outcomes() waits for the analyses and returns them, findings() their findings.
    """

    def __init__(
        self, report: Optional[Callable[[Any], object]], options: Dict[str, Any], unhook: Callable[[], None]
    ) -> None:
        self._analyses, self._options = Analyses(), options
        self._report, self._unhook = report, unhook
        self._waiting: Dict[str, Kernel] = {}  # compiled, not launched
        self._is_open = True
        add_listener(self)

    def __call__(self, kernel: Kernel, launch: Optional[Launch]) -> None:
        if launch is None:
            self._waiting.setdefault(kernel.digest, kernel)
        else:
            self._waiting.pop(kernel.digest, None)
            self._submit(kernel, launch)

    def _submit(self, kernel: Kernel, launch: Optional[Launch]) -> None:
        future = self._analyses.submit(kernel, launch, self._options)
        if future is not None and self._report is not None:
            future.add_done_callback(self._tell)

    def _tell(self, future: Future[Outcome]) -> None:
        outcome = future.result()
        assert self._report is not None
        if outcome.error:
            self._report(f"{outcome.kernel.producer} kernel '{outcome.kernel.name}' was not analyzed: {outcome.error}")
        for problem in outcome.problems():
            self._report(problem)

    def outcomes(self) -> List[Outcome]:
        """Of every kernel and launch so far; kernels that were not launched are analyzed without a launch."""
        while self._waiting:
            self._submit(self._waiting.popitem()[1], None)
        return self._analyses.outcomes()

    def findings(self) -> List[Problem]:
        return [problem for outcome in self.outcomes() for problem in outcome.problems()]

    def close(self) -> None:
        """Ends the analysis; the previous hooks stay."""
        if self._is_open:
            self._is_open = False
            remove_listener(self)
            self._unhook()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
