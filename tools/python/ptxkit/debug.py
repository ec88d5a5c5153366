"""PTX without a GPU: analyze() checks a text against the catalogue of rules, run() executes an entry."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ptxkit import _buffers, _c, _errors

__all__ = [
    "Argument",
    "Fault",
    "Finding",
    "Report",
    "Result",
    "analyze",
    "bytes_value",
    "f32",
    "f64",
    "in_",
    "out",
    "run",
    "s32",
    "s64",
    "u32",
    "u64",
]

Text = Union[str, bytes, "os.PathLike[str]"]


def _text_and_name(ptx: Text, name: Optional[str]) -> Tuple[bytes, str]:
    """A path is read; a str or bytes object is the text itself."""
    if isinstance(ptx, os.PathLike):
        with open(ptx, "rb") as file:
            return file.read(), name or os.fspath(ptx)
    if isinstance(ptx, str):
        return ptx.encode(), name or "input.ptx"
    if isinstance(ptx, bytes):
        return ptx, name or "input.ptx"
    raise TypeError(f"ptx: expected the text as str or bytes, or a pathlib.Path, found a {type(ptx).__name__}")


def existing_path(path: str, file: str) -> str:
    """The path, or `file` where that has the same name and the path is gone: compilers keep code of moved sources."""
    moved = os.path.basename(path) == os.path.basename(file) and not os.path.exists(path)
    return file if moved else path


@dataclass(frozen=True)
class Finding:
    """A rule that a kernel breaks. raw is its object in the JSON report (docs/reports.md)."""

    kernel: str
    rule: str
    name: str
    severity: str
    tier: str
    message: str
    line: int
    column: int
    remedy: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.severity}: {self.message} [{self.rule} {self.name}, {self.tier}]"


class Report:
    """What analyze() found. exit_code is that of ptx-debug: 0 good, 2 poor, 3 critical, 10 the text does not parse."""

    def __init__(self, text: bytes, options: Dict[str, Any]) -> None:
        self._text, self._options = text, options
        report, self.exit_code = _analyze(text, options, "json")
        self.raw: Dict[str, Any] = json.loads(report)
        file = self.raw["files"][0]
        self.error: Optional[str] = file["error"]
        self.score: Optional[float] = file.get("score")
        self.findings: List[Finding] = [
            Finding(
                kernel["name"],
                verdict["rule"],
                verdict["name"],
                found["severity"],
                found["tier"],
                found["message"],
                found["line"],
                found["column"],
                found["remedy"],
                found,
            )
            for kernel in file.get("kernels", [])
            for verdict in kernel["verdicts"]
            for found in verdict["findings"]
        ]

    def to_sarif(self) -> Dict[str, Any]:
        """The report as a SARIF 2.1.0 object."""
        sarif: Dict[str, Any] = json.loads(_analyze(self._text, self._options, "sarif")[0])
        return sarif

    def __str__(self) -> str:
        return _analyze(self._text, self._options, "text")[0]

    def __repr__(self) -> str:
        return (
            f"<ptxkit.debug.Report {self._options['name']}: exit code {self.exit_code}, {len(self.findings)} findings>"
        )


def _analyze(text: bytes, options: Dict[str, Any], form: str) -> Tuple[str, int]:
    report, exit_code = ctypes.c_void_p(), ctypes.c_int()
    chosen = json.dumps({**options, "format": form}).encode()
    _c.check(_c.lib().ptxkit_analyze(text, len(text), chosen, ctypes.byref(report), ctypes.byref(exit_code)))
    return _c.take_string(report), exit_code.value


def analyze(
    ptx: Text,
    launch: Optional[Mapping[str, Any]] = None,
    *,
    name: Optional[str] = None,
    falsify: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    check: Sequence[str] = (),
    kernels: Sequence[str] = (),
    assume_align: Optional[int] = None,
    profile: Optional[str] = None,
    release: bool = False,
    fail_on: Optional[str] = None,
    min_score: Optional[float] = None,
) -> Report:
    """Checks a PTX text, or the file of a pathlib.Path.

    The arguments are options of `ptx-debug analyze`; launch is a launch file as a dict (docs/analyzer.md).
    """
    text, shown = _text_and_name(ptx, name)
    options: Dict[str, Any] = {"name": shown}
    given = {
        "launch": launch,
        "assume_align": assume_align,
        "profile": profile,
        "fail_on": fail_on,
        "min_score": min_score,
    }
    options.update({key: value for key, value in given.items() if value is not None})
    lists = {"select": select, "ignore": ignore, "check": check, "kernels": kernels}
    for key, words in lists.items():
        if isinstance(words, str):
            raise TypeError(f"{key}: expected a list of strings, found the string {words!r}")
        if words:
            options[key] = list(words)
    options.update({key: True for key, value in {"falsify": falsify, "release": release}.items() if value})
    return Report(text, options)


_VALUE, _IN, _OUT, _IN_OUT, _ADDRESS = range(5)


@dataclass(frozen=True)
class Argument:
    """An argument of run() that says more than its value does."""

    kind: int
    data: Any
    alignment: int = 0
    name: Optional[str] = None


def in_(buffer: Any, *, alignment: int = 0, name: Optional[str] = None) -> Argument:
    """A buffer that the kernel reads; what it writes there is dropped."""
    return Argument(_IN, buffer, alignment, name)


def out(buffer: Any, *, alignment: int = 0, name: Optional[str] = None) -> Argument:
    """A buffer that the kernel writes. It is not initialised before: a read of what nothing wrote is a fault."""
    return Argument(_OUT, buffer, alignment, name)


def bytes_value(value: bytes) -> Argument:
    """A parameter by its bytes, such as a structure."""
    return Argument(_VALUE, bytes(value))


def u32(value: int) -> Argument:
    return _packed("<I", value)


def s32(value: int) -> Argument:
    return _packed("<i", value)


def u64(value: int) -> Argument:
    return _packed("<Q", value)


def s64(value: int) -> Argument:
    return _packed("<q", value)


def f32(value: float) -> Argument:
    return _packed("<f", value)


def f64(value: float) -> Argument:
    return _packed("<d", value)


def _packed(form: str, value: Any) -> Argument:
    try:
        return Argument(_VALUE, struct.pack(form, value))
    except (struct.error, OverflowError) as reason:
        raise _errors.InvalidValueError(
            f"{value!r} does not fit the parameter: {reason}", _errors.INVALID_VALUE
        ) from None


def _of_parameter(value: Any, parameter: Dict[str, Any], index: int) -> Argument:
    """An int or a float in the size of its parameter; a NumPy scalar by its bytes; a buffer to be read and written."""
    size = parameter["size_bytes"]
    where = f"argument {index}, parameter '{parameter['name']}'"
    if isinstance(value, Argument):
        return value
    if isinstance(value, bool) or (isinstance(value, int) and size in (1, 2, 4, 8)):
        try:
            return Argument(_VALUE, int(value).to_bytes(size, "little", signed=value < 0))
        except OverflowError:
            raise _errors.InvalidValueError(
                f"{where}: {value} does not fit {size} bytes", _errors.INVALID_VALUE
            ) from None
    if type(value) is float and size in (4, 8):
        return _packed("<f" if size == 4 else "<d", value)
    if isinstance(value, (int, float)) and type(value) in (int, float):
        raise _errors.InvalidValueError(
            f"{where}: {size} bytes cannot be made from {value!r}: expected bytes_value(...)", _errors.INVALID_VALUE
        )
    if hasattr(value, "dtype") and getattr(value, "shape", None) == () and not hasattr(value, "__setitem__"):
        return Argument(_VALUE, value.tobytes())
    return Argument(_IN_OUT, value)


@dataclass(frozen=True)
class Fault:
    """What the emulator or the GPU found. raw is its object in the JSON report (docs/emulator.md)."""

    kind: str
    rule: str
    message: str
    line: int
    ptx: str
    source: str
    thread: Tuple[int, ...]
    block: Tuple[int, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        place = f"line {self.line}, thread {self.thread} of block {self.block}: " if self.line else ""
        return f"{self.kind}: {place}{self.message}"


def _fault(raw: Dict[str, Any]) -> Fault:
    at = raw.get("at", {})
    return Fault(
        raw["kind"],
        raw.get("rule", ""),
        raw["message"],
        at.get("line", 0),
        at.get("ptx", ""),
        at.get("source", ""),
        tuple(at.get("thread", ())),
        tuple(at.get("block", ())),
        raw,
    )


class Result:
    """What a launch did: faults, notes (what did no harm), output (what the kernel printed), statistics."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw
        self.faults = [_fault(each) for each in raw["faults"]]
        self.notes = [_fault(each) for each in raw.get("notes", [])]
        self.output: str = raw.get("output", "")
        self.statistics: Dict[str, int] = raw.get("statistics", {})

    def __bool__(self) -> bool:
        """True for a launch without faults."""
        return not self.faults

    def __repr__(self) -> str:
        return f"<ptxkit.debug.Result {self.raw['entry']}: {len(self.faults)} faults>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults)) or "no faults"


class _Module:
    def __init__(self, text: bytes, options: Dict[str, Any]) -> None:
        self._handle = ctypes.c_void_p()
        _c.check(_c.lib().ptxkit_module_load(text, len(text), json.dumps(options).encode(), ctypes.byref(self._handle)))

    def parameters(self, entry: str) -> List[Dict[str, Any]]:
        described = ctypes.c_void_p()
        _c.check(_c.lib().ptxkit_module_describe(self._handle, ctypes.byref(described)))
        entries = {each["name"]: each["parameters"] for each in json.loads(_c.take_string(described))["entries"]}
        if entry not in entries:
            raise _errors.InvalidValueError(
                f"there is no entry {entry!r}, expected {', '.join(entries) or 'none: the module has no entry'}",
                _errors.INVALID_VALUE,
            )
        found: List[Dict[str, Any]] = entries[entry]
        return found

    def launch(
        self, entry: str, shape: Any, arguments: Sequence[Argument], options: Optional[Dict[str, Any]]
    ) -> Result:
        read = [each.data for each in arguments if each.kind in (_VALUE, _IN)]
        written = [each.data for each in arguments if each.kind in (_OUT, _IN_OUT)]
        report = ctypes.c_void_p()
        with _buffers.Buffers() as reading, _buffers.Buffers() as writing:
            reading.add(read, "argument")
            writing.add(written, "argument", writable=True)
            passed = (_c.Argument * len(arguments))()
            next_of = {
                True: iter(zip(writing.addresses, writing.sizes)),
                False: iter(zip(reading.addresses, reading.sizes)),
            }
            for target, each in zip(passed, arguments):
                target.kind, target.alignment = each.kind, each.alignment
                target.data, target.bytes = next(next_of[each.kind in (_OUT, _IN_OUT)])
                target.name = each.name.encode() if each.name is not None else None
            _c.check(
                _c.lib().ptxkit_launch(
                    self._handle,
                    entry.encode(),
                    ctypes.byref(shape),
                    passed,
                    len(arguments),
                    None if options is None else json.dumps(options).encode(),
                    ctypes.byref(report),
                    None,
                )
            )
        return Result(json.loads(_c.take_string(report)))

    def close(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        _c.lib().ptxkit_module_destroy(handle)


def _axes(value: Union[int, Sequence[int]], name: str) -> Any:
    axes = (value,) if isinstance(value, int) else tuple(value)
    if not 1 <= len(axes) <= 3 or any(not isinstance(each, int) or not 1 <= each < 2**32 for each in axes):
        raise _errors.InvalidValueError(
            f"{name} is {value!r}, expected one to three whole numbers of at least 1", _errors.INVALID_VALUE
        )
    return (ctypes.c_uint32 * 3)(*axes, *[1] * (3 - len(axes)))


def _launch_options(
    checks: Union[str, Sequence[str], None],
    seed: Optional[int],
    adversarial: Optional[bool],
    threads: Optional[int],
    max_steps: Optional[int],
    max_faults: Optional[int],
) -> Optional[Dict[str, Any]]:
    """The options of ptxkit_launch() that are not its defaults."""
    given = {
        "checks": checks if checks is None or isinstance(checks, str) else ",".join(checks),
        "seed": seed,
        "adversarial": adversarial,
        "threads": threads,
        "max_steps": max_steps,
        "max_faults": max_faults,
    }
    return {key: value for key, value in given.items() if value is not None} or None


def run(
    ptx: Text,
    entry: str,
    grid: Union[int, Sequence[int]],
    block: Union[int, Sequence[int]],
    args: Sequence[Any] = (),
    *,
    checks: Union[str, Sequence[str], None] = None,
    cluster: Union[int, Sequence[int]] = 1,
    shared_bytes: int = 0,
    backend: str = "emulator",
    sm: Optional[int] = None,
    device: Optional[int] = None,
    seed: Optional[int] = None,
    adversarial: Optional[bool] = None,
    threads: Optional[int] = None,
    max_steps: Optional[int] = None,
    max_faults: Optional[int] = None,
    name: Optional[str] = None,
) -> Result:
    """Runs an entry to its end, with one argument for each parameter.

    An int or a float becomes a value in the size of its parameter, a NumPy scalar its bytes, a writable buffer the
    address of a copy that is written back. in_(), out(), u32(), f32() and bytes_value() say it otherwise. checks is
    "standard", "all", "none" or names such as ["bounds", "races"]. A launch with faults returns them; it raises
    nothing.
    """
    text, shown = _text_and_name(ptx, name)
    options: Dict[str, Any] = {"name": shown, "backend": backend}
    options.update({key: value for key, value in {"sm": sm, "device": device}.items() if value is not None})
    launch_options = _launch_options(checks, seed, adversarial, threads, max_steps, max_faults)
    shape = _c.LaunchShape(
        grid=_axes(grid, "grid"),
        block=_axes(block, "block"),
        cluster=_axes(cluster, "cluster"),
        dynamic_shared_bytes=shared_bytes,
    )
    module = _Module(text, options)
    try:
        parameters = module.parameters(entry)
        if len(parameters) != len(args):
            raise _errors.InvalidValueError(
                f"'{entry}' has {len(parameters)} parameters, found {len(args)} arguments", _errors.INVALID_VALUE
            )
        arguments = [_of_parameter(value, parameter, i) for i, (value, parameter) in enumerate(zip(args, parameters))]
        return module.launch(entry, shape, arguments, launch_options)
    finally:
        module.close()
