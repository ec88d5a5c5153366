"""Warp's kernels without a GPU: wp.launch() compiles them to PTX and runs that on the emulator.

    ptxkit.warp.use_emulator()            # wp.launch(kernel, dim, inputs) on arrays of the device "cpu" from here on
    ptxkit.warp.install(print)            # each kernel that is launched so is analyzed; print() gets every finding

Tested with warp-lang 1.19, of whose internals it uses some.
"""

from __future__ import annotations

import ctypes
import inspect
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ptxkit import _c, _compiled, _errors, debug, emulator

__all__ = ["install", "use_emulator"]


BLOCK = 256  # threads of a block, for which Warp compiles


def _refuse(text: str) -> _errors.Error:
    return _errors.UnsupportedError(text, _errors.UNSUPPORTED)


class _Settings:
    def __init__(
        self, sm: int, options: Optional[Dict[str, Any]], on_fault: Union[str, Callable[[Any], object]]
    ) -> None:
        self.sm, self.options, self.on_fault = sm, options, on_fault
        self.warp_instructions = 0
        self.modules: Dict[str, Tuple[emulator.Module, bytes]] = {}  # by the name of the entry


_settings: Optional[_Settings] = None
_original: List[Any] = []
_users = 0  # calls of install() without close()


class _ElementType:
    def __init__(self, dtype: Any, itemsize: int) -> None:
        self.name, self.itemsize = getattr(dtype, "__name__", str(dtype)), itemsize

    def __str__(self) -> str:
        return self.name


class _Copy:
    """A Warp array, at the place of its copy in the emulator's memory."""

    def __init__(self, array: Any, memory: emulator._Allocation, offset: int) -> None:
        import warp

        self._memory, self._offset = memory, offset
        self.dtype = _ElementType(array.dtype, warp.types.type_size_in_bytes(array.dtype))
        self.shape = tuple(array.shape)
        self._strides = tuple(step // self.dtype.itemsize for step in array.strides)

    def stride(self) -> Tuple[int, ...]:
        return self._strides

    def data_ptr(self) -> int:
        return self._memory.address + self._offset


def _range(array: Any) -> Tuple[int, int]:
    """The first byte of an array's elements, and the one after the last."""
    import warp

    size = warp.types.type_size_in_bytes(array.dtype)
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides)]
    if not array.ptr or any(extent == 0 for extent in array.shape):
        return 0, 0
    return array.ptr + sum(min(step, 0) for step in steps), array.ptr + sum(max(step, 0) for step in steps) + size


class _Memory:
    """Copies of host arrays; those that overlap share one, with the names of all."""

    def __init__(self, arrays: Dict[str, Any]) -> None:
        np = emulator._numpy()
        self._parts: List[Tuple[int, int, Any, emulator._Allocation]] = []
        merged: List[List[int]] = []
        for begin, end in sorted(_range(array) for array in arrays.values()):
            if merged and begin < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            elif end > begin:
                merged.append([begin, end])
        for begin, end in merged:
            host = np.ctypeslib.as_array((ctypes.c_uint8 * (end - begin)).from_address(begin))
            names = ", ".join(name for name, array in arrays.items() if begin <= _range(array)[0] < end)
            memory = emulator._Allocation(emulator.default(), end - begin, _compiled.alignment_of(begin), names)
            memory.write(0, host)
            self._parts.append((begin, end, host, memory))

    def copy_of(self, array: Any) -> Optional[_Copy]:
        for begin, end, _, memory in self._parts:
            if array.ptr and begin <= array.ptr < end:
                return _Copy(array, memory, array.ptr - begin)
        return None

    def finish(self) -> None:
        for _, _, host, memory in self._parts:
            memory.read(0, host)
            memory.free()


def _entry(kernel: Any) -> str:
    return f"{kernel.get_mangled_name()}_cuda_kernel_forward"


def _module_of(kernel: Any, settings: _Settings) -> Tuple[str, emulator.Module, bytes]:
    import warp

    if kernel.hash is None or _entry(kernel) not in settings.modules:
        with tempfile.TemporaryDirectory() as folder:
            kernel.module.options["lineinfo"] = True
            (path,) = warp.compile_aot_module(kernel.module, arch=settings.sm, module_dir=folder, use_ptx=True)
            text = path.read_bytes()
        module = emulator.default().load(text, f"{kernel.key}.ptx")
        settings.modules.update({name: (module, text) for name in module.entries})
    return (_entry(kernel), *settings.modules[_entry(kernel)])


def _launch(settings: _Settings, kernel: Any, dim: Any, values: Sequence[Any]) -> None:
    import warp
    from warp._src import context

    arguments = kernel.adj.args
    if len(values) != len(arguments):
        raise _errors.InvalidValueError(
            f"kernel '{kernel.key}' has {len(arguments)} arguments, found {len(values)}", _errors.INVALID_VALUE
        )
    if kernel.is_generic:
        kernel = kernel._add_normalized_overload(kernel.infer_argument_types(values))
        arguments = kernel.adj.args
    extents, count = context._normalize_launch_dim(dim)
    if count == 0:
        return
    entry, module, text = _module_of(kernel, settings)
    bounds = context._build_launch_bounds_from_tuple(extents, kernel.adj.kernel_dim)
    memory = _Memory({each.label: value for each, value in zip(arguments, values) if isinstance(value, warp.array)})
    parameters = [emulator.Parameter(bytes(bounds), "dim")]
    facts = [_compiled.Fact("dim", "")]
    for argument, value in zip(arguments, values):
        packed = context.pack_arg(kernel, argument.type, argument.label, value, "cpu")
        copy = None
        if isinstance(value, warp.array):
            copy = memory.copy_of(value)
            packed = type(packed).from_buffer_copy(packed)
            packed.data, packed.grad = copy.data_ptr() if copy else 0, 0
            facts.append(_compiled.Fact(argument.label, f"{value.dtype.__name__} {list(value.shape)}"))
        elif not isinstance(packed, (ctypes._SimpleCData, ctypes.Array)):
            raise _refuse(f"argument '{argument.label}' of kernel '{kernel.key}' is a {type(value).__name__}")
        else:
            facts.append(_compiled.Fact(argument.label, repr(value)))
        parameters.append(emulator.Parameter(bytes(packed), argument.label, copy))
    grid = -(-bounds.size // BLOCK)
    file = inspect.getsourcefile(kernel.func) or ""
    if _users:
        names = tuple(fact.argument for fact in facts)
        made = _compiled.Kernel("Warp", kernel.key, text.rstrip(b"\0"), f"{file}:{kernel.adj.fun_lineno}", entry, names)
        _compiled.tell(made, _compiled.Launch((grid,), (BLOCK,), 0, tuple(facts)))
    shape = _c.LaunchShape(
        grid=debug._axes(grid, "grid"), block=debug._axes(BLOCK, "block"), cluster=debug._axes(1, "cluster")
    )
    try:
        result = module.launch(entry, shape, parameters, settings.options)
    finally:
        memory.finish()
    settings.warp_instructions += result.statistics.get("warp_instructions", 0)
    if result.output:
        print(result.output, end="")
    if result.faults and settings.on_fault != "ignore":
        what = f"{kernel.key}, dim {dim}"
        faults = emulator.LaunchFaults(emulator.explain(result, parameters, what, module, file), result)
        if settings.on_fault == "raise":
            raise faults
        assert callable(settings.on_fault)
        settings.on_fault(faults)


class _Use:
    """What use_emulator() returns: a context manager that gives Warp its launch() back."""

    def __init__(self, settings: _Settings) -> None:
        self.settings, self._is_open = settings, True

    @property
    def warp_instructions(self) -> int:
        """Of all launches so far."""
        return self.settings.warp_instructions

    def close(self) -> None:
        global _settings
        import warp

        if self._is_open:
            self._is_open, _settings = False, None
            warp.launch = _original.pop()

    def __enter__(self) -> _Use:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def use_emulator(
    sm: int = 90,
    *,
    checks: Union[str, Sequence[str], None] = None,
    on_fault: Union[str, Callable[[Any], object]] = "raise",
    seed: Optional[int] = None,
    adversarial: Optional[bool] = None,
    threads: Optional[int] = None,
    max_steps: Optional[int] = None,
    max_faults: Optional[int] = None,
) -> _Use:
    """From here on wp.launch() compiles for sm_{sm} and runs kernels on the emulator, with its sanitizer.

    Arguments are arrays of the device "cpu", which are copied for each launch and back, and values. A launch with faults
    raises emulator.LaunchFaults; on_fault may be a function that takes it instead, or "ignore".
    """
    global _settings
    if on_fault not in ("raise", "ignore") and not callable(on_fault):
        raise _errors.InvalidValueError(
            f"on_fault is {on_fault!r}, expected 'raise', 'ignore' or a function", _errors.INVALID_VALUE
        )
    if _settings is not None:
        raise _errors.InvalidValueError("the emulator is used already: close() that first", _errors.INVALID_VALUE)
    import warp

    settings = _Settings(sm, debug._launch_options(checks, seed, adversarial, threads, max_steps, max_faults), on_fault)

    def launch(
        kernel: Any,
        dim: Any,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        adj_inputs: Sequence[Any] = (),
        adj_outputs: Sequence[Any] = (),
        device: Any = None,
        stream: Any = None,
        adjoint: bool = False,
        record_tape: bool = True,
        record_cmd: bool = False,
        max_blocks: int = 0,
        block_dim: Optional[int] = None,
    ) -> None:
        if adjoint or record_cmd or max_blocks or block_dim not in (None, BLOCK):
            raise _refuse(f"adjoint, record_cmd, max_blocks and a block_dim other than {BLOCK} of wp.launch()")
        _launch(settings, kernel, dim, [*inputs, *outputs])

    warp.init()
    _settings = settings
    _original.append(warp.launch)
    warp.launch = launch
    return _Use(settings)


def hook() -> None:
    """Tells the listeners of ptxkit._compiled what is launched on the emulator."""
    global _users
    _users += 1


def unhook() -> None:
    global _users
    _users -= 1


def install(report: Optional[Callable[[Any], object]] = None, **options: Any) -> _compiled.Watch:
    """Analyzes every kernel that use_emulator() runs, in threads, once for each different launch.

    report() is called with every finding, on a thread of the analysis, and with a text where a kernel could not be
    analyzed. options are those of debug.analyze().
    """
    hook()
    return _compiled.Watch(report, options, unhook)
