"""Cases of kernels from public packages: the kernel's source, how it is compiled and launched, and its expected result.

A case is a function with the decorator @case. It receives a Launch, creates inputs with the launch's random generator,
computes the result with NumPy, and ends with launch.triton(...) or launch.cuda(...).
"""
import dataclasses
import zlib

import numpy as np

from compare import BITS, decode

REGISTERED = {}

def case(package, name, file, kernel, targets=(80,)):
    """Registers a case for each target. The arguments must be literals: CMake's list of tests is read from the text."""
    def register(function):
        for target in targets:
            full = test_name(package, name, target)
            assert full not in REGISTERED, full
            REGISTERED[full] = Case(full, package, file, kernel, target, function)
        return function
    return register


def test_name(package, name, target):
    return f"{package}.{name}" if target == 80 else f"{package}.{name}.sm_{target}"


@dataclasses.dataclass
class Case:
    name: str
    package: str
    file: str
    kernel: str
    target: int
    function: object

    def launch(self):
        launch = Launch(self)
        self.function(launch)
        assert launch.compiler, f"{self.name} launches nothing"
        assert any(isinstance(a, (Out, InOut)) for a in launch.arguments_in_order()), f"{self.name} checks nothing"
        return launch


def round_to(kind, values):
    """Bits of the nearest numbers of a type that NumPy lacks, ties to even. NaN is not handled: no input has one."""
    if kind == "bf16":
        bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    table = decode(kind, np.arange(256, dtype=np.uint8))
    order = np.argsort(table[:0x7F if kind == "fp8e4nv" else 0x7C], kind="stable")
    positive = table[order]
    magnitude = np.minimum(np.abs(np.asarray(values, np.float64)), positive[-1])
    above = np.clip(np.searchsorted(positive, magnitude), 1, len(positive) - 1)
    low, high = positive[above - 1], positive[above]
    up = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) & (order[above] % 2 == 0))
    return (np.where(up, order[above], order[above - 1]) | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def rounded(kind, values):
    """Values rounded to the type, in float32."""
    return decode(kind, round_to(kind, values)).reshape(np.shape(values))


class Buffer:
    """The memory of a pointer parameter. `kind` names an element type that NumPy lacks."""
    def __init__(self, values, kind=None):
        values = np.ascontiguousarray(values)
        self.kind = kind
        self.bits = round_to(kind, values).reshape(values.shape) if kind and values.dtype != BITS[kind] else values

    def wanted(self):
        """The arguments for compare.difference()."""
        return {}


class In(Buffer):
    """A buffer that a kernel only reads. This is checked: its bytes must not change."""


class Checked(Buffer):
    def __init__(self, before, expected, rtol, atol, kind, where):
        super().__init__(before, kind)
        self.expected, self.rtol, self.atol = np.asarray(expected), rtol, atol
        self.where = None if where is None else np.broadcast_to(where, self.expected.shape)

    def wanted(self):
        return {"expected": self.expected, "rtol": self.rtol, "atol": self.atol, "where": self.where}


class Out(Checked):
    """A buffer that a kernel never reads, and of which it writes every element."""
    def __init__(self, expected, dtype=None, rtol=0.0, atol=0.0, kind=None):
        expected = np.asarray(expected)
        before = np.empty(expected.shape, BITS[kind] if kind else dtype or expected.dtype)
        before.view(np.uint8).fill(0xA5)  # so that an unwritten element is not right by chance
        super().__init__(before, expected, rtol, atol, kind, None)


class InOut(Checked):
    """A buffer that a kernel changes, wholly or in part. Only elements of `where` are compared."""
    def __init__(self, before, expected, rtol=0.0, atol=0.0, kind=None, where=None):
        super().__init__(before, expected, rtol, atol, kind, where)


class Launch:
    def __init__(self, of):
        self.case = of
        self.target = of.target
        self.random = np.random.default_rng(zlib.crc32(of.name.split(".sm_")[0].encode()))
        self.compiler = None
        self.findings = {}

    def finds(self, rule, why):
        """Declares a defect of the kernel that --check all reports. The case fails unless exactly the declared rules
        fire."""
        self.findings[rule] = why

    def normal(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape, dtype=np.float32).astype(dtype)

    def uniform(self, *shape, low=0.0, high=1.0, dtype=np.float32):
        return self.random.uniform(low, high, shape).astype(dtype)

    def integers(self, low, high, *shape, dtype=np.int32):
        return self.random.integers(low, high, shape, dtype=dtype)

    def triton(self, grid, arguments, constants=None, needs=(), prelude="", warps=4, stages=3, fusion=False,
               aliases=()):
        """`arguments` maps parameter names to values. `needs` are further files of the package whose functions the
        kernel calls, and `aliases` the names under which it imports them as modules."""
        self.fusion, self.aliases = fusion, aliases
        self.compiler = "triton"
        self.grid, self.arguments, self.constants = grid, arguments, constants or {}
        self.needs, self.prelude, self.warps, self.stages = needs, prelude, warps, stages

    def cuda(self, grid, block, arguments, shared=0, prelude="", only=None, needs=(), replace=(), until=None, tail="",
             headers=None, options=()):
        """The case's `kernel` is a name expression such as scale<float, 4>. If the file also has host code, `only` names
        the functions to keep; or `until` is the beginning of the part to drop, and `tail` closes the part that is kept.
        `replace` holds pairs of texts that the package's host code would substitute in the source. `headers` holds the
        contents of headers that only host code needs."""
        self.compiler = "cuda"
        self.grid, self.block, self.arguments, self.shared, self.prelude = grid, block, arguments, shared, prelude
        self.only, self.until, self.tail, self.needs, self.replace = only, until, tail, needs, replace
        self.headers, self.options = headers or {}, options

    def arguments_in_order(self):
        return list(self.arguments.values()) if isinstance(self.arguments, dict) else list(self.arguments)
