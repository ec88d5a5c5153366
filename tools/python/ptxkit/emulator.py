"""Memory of the emulator that stays between launches, arrays in it, and launches on them.

    x = ptxkit.emulator.array(np.arange(1000, dtype="f4"))
    y = ptxkit.emulator.empty(1000, "f4")               # not initialised: a read before a write is a fault
    ptxkit.emulator.launch(ptx, "twice", grid=8, block=128, args=[x, y, 1000])
    y.numpy()

An Array has what Triton takes for a tensor (data_ptr(), dtype, shape, stride()), so its kernels run on it.
"""

from __future__ import annotations

import ctypes
import json
import linecache
import os
import re
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ptxkit import _c, _errors, debug

__all__ = [
    "Array",
    "Emulator",
    "LaunchFaults",
    "Module",
    "array",
    "bfloat16",
    "empty",
    "empty_like",
    "launch",
    "ones",
    "zeros",
    "zeros_like",
]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as reason:
        raise ImportError("arrays of the emulator need NumPy: pip install numpy") from reason
    return numpy


class _Bfloat16:
    """The upper 16 bits of a float32. NumPy lacks it: array() rounds to it, and Array.numpy() returns float32."""

    itemsize = 2
    name = "bfloat16"

    def __str__(self) -> str:
        return "bfloat16"

    __repr__ = __str__


bfloat16 = _Bfloat16()


def _dtype(dtype: Any) -> Any:
    if dtype is bfloat16 or str(dtype).rsplit(".", 1)[-1] == "bfloat16":
        return bfloat16
    name = str(dtype)
    return _numpy().dtype(name[6:] if name.startswith("torch.") else dtype)


def _rounded_to_bfloat16(values: Any) -> Any:
    np = _numpy()
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype("<u2")
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, rounded).astype("<u2")


class Emulator:
    """An emulated device: its memory, and the modules that are loaded on it."""

    def __init__(self, sm: Optional[int] = None) -> None:
        self._handle = ctypes.c_void_p()
        options = None if sm is None else json.dumps({"sm": sm}).encode()
        _c.check(_c.lib().ptxkit_emulator_create(options, ctypes.byref(self._handle)))
        self._end = weakref.finalize(self, _c.lib().ptxkit_emulator_destroy, self._handle)
        self._allocations: Dict[int, weakref.ref[_Allocation]] = {}

    def load(self, ptx: debug.Text, name: Optional[str] = None) -> Module:
        """Parses and decodes a text, or the file of a pathlib.Path."""
        text, shown = debug._text_and_name(ptx, name)
        handle = ctypes.c_void_p()
        options = json.dumps({"name": shown}).encode()
        _c.check(_c.lib().ptxkit_emulator_load(self._handle, text, len(text), options, ctypes.byref(handle)))
        return Module(self, handle, text)

    def allocation_at(self, address: int) -> Optional[_Allocation]:
        """The live allocation that holds the address, or begins or ends at it."""
        for start, reference in self._allocations.items():
            found = reference()
            if found is not None and start <= address <= start + found.size:
                return found
        return None


class _Allocation:
    """Memory of an emulator, freed with the last array in it."""

    def __init__(self, owner: Emulator, size: int, alignment: int = 256, name: str = "array") -> None:
        address = ctypes.c_uint64()
        _c.check(
            _c.lib().ptxkit_emulator_allocate(owner._handle, size, alignment, name.encode(), ctypes.byref(address))
        )
        self.owner, self.address, self.size = owner, address.value, size
        owner._allocations[self.address] = weakref.ref(self)

    def write(self, offset: int, data: Any) -> None:
        _c.check(
            _c.lib().ptxkit_emulator_write(
                self.owner._handle, self.address + offset, ctypes.c_void_p(data.ctypes.data), data.nbytes
            )
        )

    def read(self, offset: int, data: Any) -> None:
        _c.check(
            _c.lib().ptxkit_emulator_read(
                self.owner._handle, self.address + offset, ctypes.c_void_p(data.ctypes.data), data.nbytes
            )
        )

    def free(self) -> None:
        if self.owner._allocations.pop(self.address, None) is not None:
            _c.lib().ptxkit_emulator_release(self.owner._handle, self.address)

    def __del__(self) -> None:
        if hasattr(self, "address") and self.owner._end.alive:
            self.free()


class Array:
    """An array in the memory of an emulator. Slices and reshapes are views of the same memory."""

    def __init__(
        self, memory: _Allocation, dtype: Any, shape: Sequence[int], strides: Sequence[int], offset: int = 0
    ) -> None:
        self._memory, self.dtype, self._offset = memory, dtype, offset
        self.shape, self._strides = tuple(shape), tuple(strides)  # strides in elements

    def data_ptr(self) -> int:
        """The address in the emulator's memory."""
        return self._memory.address + self._offset * self.element_size()

    def stride(self, axis: Optional[int] = None) -> Any:
        """Elements from one index to the next, of an axis or of all."""
        return self._strides if axis is None else self._strides[axis]

    def size(self, axis: Optional[int] = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def numel(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    def element_size(self) -> int:
        size: int = self.dtype.itemsize
        return size

    def nelement(self) -> int:
        return self.numel()

    device = property(lambda self: "emulator")
    data = property(lambda self: self)  # triton.reinterpret() asks for it
    nbytes = property(lambda self: self.numel() * self.element_size())
    T = property(lambda self: self._view(self.shape[::-1], self._strides[::-1]))

    def is_contiguous(self) -> bool:
        return self._strides == _strides_of(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<ptxkit.emulator.Array {self.dtype} {list(self.shape)} at {self.data_ptr():#x}>"

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Array:
        return type(self)(self._memory, self.dtype, shape, strides, self._offset + offset)

    def reshape(self, *shape: Any) -> Array:
        if not self.is_contiguous():
            raise ValueError("reshape() of an array that is not contiguous: expected a copy; pass array(x.numpy())")
        wanted = _numpy().empty(self.shape, "u1").reshape(*shape).shape
        return self._view(wanted, _strides_of(wanted))

    view = reshape

    def __getitem__(self, index: Any) -> Array:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > len(self.shape):
            raise IndexError(f"{len(indices)} indices for an array of {len(self.shape)} dimensions")
        shape: List[int] = []
        strides: List[int] = []
        offset = 0
        for axis, (extent, step) in enumerate(zip(self.shape, self._strides)):
            chosen: Any = range(extent)[indices[axis] if axis < len(indices) else slice(None)]
            if isinstance(chosen, range):
                if chosen.step < 0:
                    raise ValueError("slices of the emulator's arrays go forwards")
                offset += chosen.start * step if len(chosen) else 0
                shape.append(len(chosen))
                strides.append(step * chosen.step)
            else:
                offset += chosen * step
        return self._view(shape, strides, offset)

    def _memory_words(self) -> Any:
        """The whole allocation as a NumPy array, and this array as a view of it."""
        np = _numpy()
        kind = np.dtype("<u2") if self.dtype is bfloat16 else self.dtype
        whole = np.empty(self._memory.size, "u1")
        self._memory.read(0, whole)
        view = np.ndarray(
            self.shape,
            kind,
            whole,
            self._offset * kind.itemsize,
            [step * kind.itemsize for step in self._strides],
        )
        return whole, view

    def numpy(self) -> Any:
        """A copy in host memory; of bfloat16 as float32."""
        np = _numpy()
        _, view = self._memory_words()
        if self.dtype is bfloat16:
            return (view.astype("<u4") << 16).view("<f4")
        return np.array(view)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def copy_(self, values: Any) -> Array:
        """Writes values of the same shape, or that broadcast to it."""
        np = _numpy()
        data = _host(values, self.dtype)
        data = np.ascontiguousarray(np.broadcast_to(data, self.shape))
        if self.is_contiguous():
            self._memory.write(self._offset * self.dtype.itemsize, data)
        else:
            for place in np.ndindex(*self.shape[:-1]):
                self._write_row(place, data[place])
        return self

    def _write_row(self, place: Tuple[int, ...], row: Any) -> None:
        start = self._offset + sum(i * step for i, step in zip(place, self._strides))
        size = self.dtype.itemsize
        if self._strides[-1] == 1:
            self._memory.write(start * size, _numpy().ascontiguousarray(row))
            return
        for i in range(self.shape[-1]):
            self._memory.write((start + i * self._strides[-1]) * size, _numpy().ascontiguousarray(row[i]))

    __setitem__ = lambda self, index, values: self[index].copy_(values) and None  # noqa: E731

    def fill_(self, value: Any) -> Array:
        return self.copy_(value)

    def zero_(self) -> Array:
        return self.copy_(0)


def _strides_of(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _host(values: Any, dtype: Any) -> Any:
    """Values as a NumPy array with the bits of `dtype`."""
    np = _numpy()
    if dtype is bfloat16:
        found = np.asarray(values)
        return found.view("<u2") if str(found.dtype) == "bfloat16" else _rounded_to_bfloat16(found)
    return np.asarray(values, dtype)


_default: List[Tuple[int, Emulator]] = []


def default() -> Emulator:
    """The emulator of this process, on which the functions below work."""
    if not _default or _default[0][0] != os.getpid():
        _default[:] = [(os.getpid(), Emulator())]
    return _default[0][1]


def empty(shape: Union[int, Sequence[int]], dtype: Any = "float32", *, name: Optional[str] = None) -> Array:
    """An array that is not initialised: a kernel that computes with what it has not written has a fault."""
    kind = _dtype(dtype)
    extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
    count = 1
    for extent in extents:
        count *= extent
    return Array(
        _Allocation(default(), count * kind.itemsize, name=name or "array"), kind, extents, _strides_of(extents)
    )


def array(values: Any, dtype: Any = None, *, name: Optional[str] = None) -> Array:
    """A copy of the values, which may be a NumPy array, a list, a number or a CPU tensor."""
    np = _numpy()
    if hasattr(values, "detach"):  # a tensor of PyTorch
        dtype = dtype or str(values.dtype)
        values = values.detach().cpu()
        values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    if dtype is None:
        dtype = np.asarray(values).dtype
    return empty(np.shape(values), dtype, name=name).copy_(values)


def zeros(shape: Union[int, Sequence[int]], dtype: Any = "float32", *, name: Optional[str] = None) -> Array:
    return empty(shape, dtype, name=name).zero_()


def ones(shape: Union[int, Sequence[int]], dtype: Any = "float32", *, name: Optional[str] = None) -> Array:
    return empty(shape, dtype, name=name).fill_(1)


def empty_like(other: Any, dtype: Any = None) -> Array:
    return empty(other.shape, dtype or other.dtype)


def zeros_like(other: Any, dtype: Any = None) -> Array:
    return zeros(other.shape, dtype or other.dtype)


@dataclass(frozen=True)
class Parameter:
    """An argument of a launch as the emulator takes it, and the array that faults are explained by."""

    data: bytes
    name: str
    array: Any = None  # an Array, or what has its _memory, data_ptr(), dtype, shape and stride()


class Module:
    """A text that an emulator has loaded."""

    def __init__(self, owner: Emulator, handle: ctypes.c_void_p, text: bytes) -> None:
        self.owner, self._handle, self.text = owner, handle, text
        weakref.finalize(self, _c.lib().ptxkit_module_destroy, handle)
        described = ctypes.c_void_p()
        _c.check(_c.lib().ptxkit_module_describe(handle, ctypes.byref(described)))
        self.entries: Dict[str, Dict[str, Any]] = {
            each["name"]: each for each in json.loads(_c.take_string(described))["entries"]
        }

    def launch(
        self, entry: str, shape: Any, parameters: Sequence[Parameter], options: Optional[Dict[str, Any]] = None
    ) -> debug.Result:
        passed = (_c.Argument * len(parameters))()
        held = []
        for target, each, name in zip(passed, parameters, _names(parameters)):
            held.append(ctypes.create_string_buffer(each.data, len(each.data)))
            target.kind = debug._VALUE if each.array is None else debug._ADDRESS
            target.data, target.bytes = ctypes.addressof(held[-1]), len(each.data)
            target.name = name.encode()
        report = ctypes.c_void_p()
        _c.check(
            _c.lib().ptxkit_launch(
                self._handle,
                entry.encode(),
                ctypes.byref(shape),
                passed,
                len(parameters),
                json.dumps(options).encode() if options else None,
                ctypes.byref(report),
                None,
            )
        )
        return debug.Result(json.loads(_c.take_string(report)))


def _names(parameters: Sequence[Parameter]) -> List[str]:
    """Names for faults; arguments in one allocation share it."""
    sharing: Dict[int, Dict[str, None]] = {}
    for each in parameters:
        if each.array is not None:
            sharing.setdefault(id(each.array._memory), {})[each.name] = None
    return [each.name if each.array is None else ", ".join(sharing[id(each.array._memory)]) for each in parameters]


class LaunchFaults(_errors.Error, AssertionError):
    """A launch had faults. result has them all; the message explains them by the kernel's source and arguments."""

    def __init__(self, message: str, result: Optional[debug.Result] = None) -> None:
        _errors.Error.__init__(self, message, _errors.OK)
        self.result = result

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.message, self.result)


def _index(offset: int, parameter: Parameter) -> str:
    """Which element of the argument a byte offset from its first one is."""
    found = parameter.array
    size = found.dtype.itemsize
    element, rest = offset // size, offset % size
    text = f"element {element}" + (f", byte {rest} of it" if rest else "")
    extents, strides = list(found.shape), list(found.stride())
    if 0 <= element and all(step > 0 for step in strides) and len(extents) > 1 and strides == sorted(strides)[::-1]:
        left, place = element, []
        for step in strides:
            place.append(left // step)
            left %= step
        text = f"index {place}" + (f", byte {rest} of it" if rest else "")
    return f"{text} of {found.dtype} {extents}"


def _place(source: str, file: str) -> Tuple[str, str]:
    """The place with a path, and its line of source."""
    path, _, line = source.rpartition(":")
    if not line.isdigit():
        return source, ""
    path = debug.existing_path(path, file)
    return f"{path}:{line}", linecache.getline(path, int(line)).strip()


def explain(
    result: debug.Result,
    parameters: Sequence[Parameter],
    what: str,
    module: Module,
    file: str = "",
) -> str:
    """The faults of a launch in words: the line of source, the argument and the index in it, thread and block.

    file: that of the kernel's function.
    """
    text = module.text.decode("utf-8", "replace")
    lines = [f"{what}: {len(result.faults)} fault{'s' if len(result.faults) != 1 else ''}"]
    for fault in result.faults:
        rule = f" [{fault.rule}]" if fault.rule else ""
        lines.append(f"  {fault.kind}{rule}: {fault.message}")
        lines.extend(_source_lines("at", text, fault.line, fault.ptx, file))
        lines.append(f"    program {list(fault.block)}, thread {list(fault.thread)}")
        lines.extend(_object_lines(fault, parameters))
        other = fault.raw.get("other")
        if other:
            lines.append(f"    {other['message']}: program {list(other['block'])}, thread {list(other['thread'])}")
            lines.extend(_source_lines("there", text, other["line"], other["ptx"], file))
    return "\n".join(lines)


def _sources(text: str, line: int) -> List[str]:
    """The places in the source of a line of PTX: the innermost inlined call, and where each is called from."""
    places = []
    form = r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
    wanted: Optional[Tuple[Any, ...]] = None
    for each in reversed(text.split("\n")[:line]):
        found = re.match(form, each)
        if found is None or (wanted is not None and found.groups()[:3] != wanted):
            continue
        named = re.search(rf'^\s*\.file\s+{found[1]}\s+"(.*?)"', text, re.MULTILINE)
        places.append(f"{named[1] if named else '?'}:{found[2]}")
        wanted = found.groups()[3:]
        if wanted[0] is None:
            break
    return places


def _source_lines(word: str, text: str, line: int, ptx: str, file: str) -> Iterator[str]:
    for source in _sources(text, line):
        place, shown = _place(source, file)
        yield f"    {word} {place}" + (f": {shown}" if shown else "")
        word = "called from"
    if line:
        yield f"    PTX line {line}: {ptx}"


def _object_lines(fault: debug.Fault, parameters: Sequence[Parameter]) -> Iterator[str]:
    found = fault.raw.get("object")
    if not found:
        return
    told: Dict[str, None] = {}
    for each, name in zip(parameters, _names(parameters)):
        if each.array is not None and name == found["name"]:
            start = each.array.data_ptr() - each.array._memory.address
            told[f"    argument '{each.name}', {_index(found['offset_bytes'] - start, each)}"] = None
    yield from told
    if not told:
        yield f"    object '{found['name']}' of {found['size_bytes']} bytes, offset {found['offset_bytes']}"


def _parameter(value: Any, described: Dict[str, Any], index: int) -> Parameter:
    if isinstance(value, Array):
        return Parameter(value.data_ptr().to_bytes(8, "little"), described["name"], value)
    made = debug._of_parameter(value, described, index)
    if made.kind != debug._VALUE:
        raise _errors.InvalidValueError(
            f"argument {index}, parameter '{described['name']}': expected a number or an emulator.array(), "
            f"found a {type(value).__name__}",
            _errors.INVALID_VALUE,
        )
    return Parameter(bytes(made.data), described["name"])


def launch(
    ptx: Union[debug.Text, Module],
    entry: str,
    grid: Union[int, Sequence[int]],
    block: Union[int, Sequence[int]],
    args: Sequence[Any] = (),
    *,
    checks: Union[str, Sequence[str], None] = None,
    cluster: Union[int, Sequence[int]] = 1,
    shared_bytes: int = 0,
    seed: Optional[int] = None,
    adversarial: Optional[bool] = None,
    threads: Optional[int] = None,
    max_steps: Optional[int] = None,
    max_faults: Optional[int] = None,
) -> debug.Result:
    """Runs an entry on arrays of the emulator and numbers. Raises LaunchFaults where the sanitizer has found any."""
    module = ptx if isinstance(ptx, Module) else default().load(ptx)
    if entry not in module.entries:
        raise _errors.InvalidValueError(
            f"there is no entry {entry!r}, expected {', '.join(module.entries) or 'none: the module has no entry'}",
            _errors.INVALID_VALUE,
        )
    described = module.entries[entry]["parameters"]
    if len(described) != len(args):
        raise _errors.InvalidValueError(
            f"'{entry}' has {len(described)} parameters, found {len(args)} arguments", _errors.INVALID_VALUE
        )
    parameters = [_parameter(value, each, i) for i, (value, each) in enumerate(zip(args, described))]
    shape = _c.LaunchShape(
        grid=debug._axes(grid, "grid"),
        block=debug._axes(block, "block"),
        cluster=debug._axes(cluster, "cluster"),
        dynamic_shared_bytes=shared_bytes,
    )
    options = debug._launch_options(checks, seed, adversarial, threads, max_steps, max_faults)
    result = module.launch(entry, shape, parameters, options)
    if result.faults:
        raise LaunchFaults(explain(result, parameters, entry, module), result)
    return result
