"""Numba's CUDA kernels without a GPU: analyzed as they are compiled, and run on the emulator.

    ptxkit.numba.use_emulator()           # kernel[grid, block](x, y) and cuda.to_device() from here on
    ptxkit.numba.install(print)           # each compiled kernel is analyzed; print() gets every finding

Tested with numba-cuda 0.30, which brings its compiler: pip install "numba-cuda[cu13]".
"""

from __future__ import annotations

import struct
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ptxkit import _c, _compiled, _errors, debug, emulator

__all__ = ["DeviceArray", "install", "use_emulator"]


def _refuse(text: str) -> _errors.Error:
    return _errors.UnsupportedError(text, _errors.UNSUPPORTED)


class DeviceArray(emulator.Array):
    """An array in the emulator's memory with the names of numba.cuda's device arrays."""

    size = property(emulator.Array.numel)
    alloc_size = property(lambda self: self.nbytes)
    strides = property(lambda self: tuple(step * self.element_size() for step in self._strides))
    ptr = property(lambda self: self.data_ptr())
    stream = 0

    @property
    def _numba_type_(self) -> Any:
        from numba.cuda import types
        from numba.cuda.np import numpy_support

        layout = "C" if self.is_contiguous() else "F" if self.T.is_contiguous() else "A"
        return types.Array(numpy_support.from_dtype(self.dtype), len(self.shape), layout)

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        if ary is None:
            return self.numpy()
        ary[...] = self.numpy()
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        self.copy_(ary.numpy() if isinstance(ary, emulator.Array) else ary)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found if found.shape else found.numpy()[()]

    def __setitem__(self, index: Any, values: Any) -> None:
        emulator.Array.__getitem__(self, index).copy_(values)

    def ravel(self, order: str = "C", stream: Any = 0) -> Any:
        return self.reshape(-1)

    def is_c_contiguous(self) -> bool:
        return self.is_contiguous()


def _made(shape: Any, dtype: Any, order: str = "C") -> DeviceArray:
    extents = (int(shape),) if not hasattr(shape, "__len__") else tuple(int(extent) for extent in shape)
    if order == "F":
        turned = _made(extents[::-1], dtype).T
        assert isinstance(turned, DeviceArray)
        return turned
    found = emulator.empty(extents, dtype)
    return DeviceArray(found._memory, found.dtype, found.shape, found.stride())


def _order(values: Any) -> str:
    return "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"


# ---- What was compiled, and how it is launched ----------------------------------------------------------------------

_users = 0  # calls of hook() without unhook()
_original: Dict[str, Any] = {}


def _kernel_of(kernel: Any) -> _compiled.Kernel:
    made: Dict[Any, _compiled.Kernel] = kernel.__dict__.setdefault("_ptxkit", {})
    capability = _compute_capability()
    if capability not in made:
        code = kernel.py_func.__code__
        names: List[str] = []
        for name, kind in zip(code.co_varnames, kernel.argument_types):
            names.extend(fact.argument for fact in _facts(name, kind, None))
        made[capability] = _compiled.Kernel(
            "Numba",
            kernel.py_func.__name__,
            kernel._codelibrary.get_asm_str(cc=capability).encode(),
            f"{code.co_filename}:{code.co_firstlineno}",
            kernel.entry_name,
            tuple(names),
        )
    return made[capability]


def _compute_capability() -> Tuple[int, int]:
    if _settings is not None:
        return divmod(_settings.sm, 10)
    from numba import cuda

    found: Tuple[int, int] = cuda.get_current_device().compute_capability
    return found


def _scalar(name: str, kind: Any, value: Any) -> _compiled.Fact:
    if value is None:
        return _compiled.Fact(name, "")
    try:
        bits = int.from_bytes(_bytes_of(kind, value), "little")
    except _errors.UnsupportedError:
        return _compiled.Fact(name, repr(value))
    return _compiled.Fact(name, repr(value), (("value", bits),))


def _facts(name: str, kind: Any, value: Any) -> Iterator[_compiled.Fact]:
    """What a launch says about each parameter that an argument becomes; value None: of any launch."""
    from numba.cuda import types

    if isinstance(kind, types.Array):
        value = getattr(value, "value", value)  # cuda.In() and its kind
        for part in ("meminfo", "parent", "size", "itemsize"):
            yield _compiled.Fact(f"{name}.{part}", "")
        if value is None:
            yield _compiled.Fact(name, "")
        else:
            host = not hasattr(value, "copy_to_host")
            align = 256 if host else _compiled.alignment_of(int(getattr(value, "data_ptr", lambda: 0)() or 0))
            room = _room(value)
            facts = (("align", align),) + ((("bytes", room),) if room is not None else ())
            yield _compiled.Fact(name, f"{value.dtype} {list(value.shape)}", facts)
        for part in ("shape", "strides"):
            for axis in range(kind.ndim):
                extents = getattr(value, part, None) if value is not None else None
                facts = () if extents is None or extents[axis] < 0 else (("value", extents[axis]),)
                yield _compiled.Fact(f"{name}.{part}[{axis}]", "", facts)
    elif isinstance(kind, types.BaseTuple):
        for i, each in enumerate(kind):
            yield from _facts(f"{name}[{i}]", each, None if value is None else value[i])
    elif isinstance(kind, types.Complex):
        half = types.float32 if kind == types.complex64 else types.float64
        yield _scalar(f"{name}.real", half, None if value is None else value.real)
        yield _scalar(f"{name}.imag", half, None if value is None else value.imag)
    else:
        yield _scalar(name, kind, value)


def _room(value: Any) -> Optional[int]:
    if isinstance(value, emulator.Array):
        return value._memory.size if value._offset == 0 else None
    return int(value.nbytes)


def _tell_launch(kernel: Any, arguments: Sequence[Any], grid: Any, block: Any, shared_bytes: int) -> None:
    made = _kernel_of(kernel)
    facts: List[_compiled.Fact] = []
    for name, kind, value in zip(kernel.py_func.__code__.co_varnames, kernel.argument_types, arguments):
        facts.extend(_facts(name, kind, value))
    launch = _compiled.Launch(tuple(map(int, grid)), tuple(map(int, block)), int(shared_bytes), tuple(facts))
    _compiled.tell(made, launch)


# ---- The emulator as Numba's device ---------------------------------------------------------------------------------

_FORMS = {"float32": "<f", "float64": "<d", "float16": "<e"}


def _bytes_of(kind: Any, value: Any) -> bytes:
    from numba.cuda import types

    if isinstance(kind, types.Boolean):
        return bytes([bool(value)])
    if isinstance(kind, types.Integer):
        bits: int = kind.bitwidth
        return (int(value) & ((1 << bits) - 1)).to_bytes(bits // 8, "little")
    if str(kind) in _FORMS:
        return struct.pack(_FORMS[str(kind)], float(value))
    if isinstance(kind, (types.NPDatetime, types.NPTimedelta)):
        return int(value.view("i8")).to_bytes(8, "little", signed=True)
    if isinstance(kind, types.EnumMember):
        return _bytes_of(kind.dtype, value.value)
    if isinstance(kind, types.CPointer):
        return int(value).to_bytes(8, "little")
    raise _refuse(f"an argument of the type {kind} cannot be passed to the emulator yet")


class _Settings:
    def __init__(
        self, sm: int, options: Optional[Dict[str, Any]], on_fault: Union[str, Callable[[Any], object]]
    ) -> None:
        self.sm, self.options, self.on_fault = sm, options, on_fault
        self.warp_instructions = 0
        self.modules: Dict[str, emulator.Module] = {}  # by the digest of the text


_settings: Optional[_Settings] = None


def _word(value: int) -> bytes:
    return (value & (2**64 - 1)).to_bytes(8, "little")


def _parameters(name: str, kind: Any, value: Any, after: List[Callable[[], object]]) -> Iterator[emulator.Parameter]:
    """The parameters that an argument becomes; functions that copy arrays back go to `after`."""
    from numba.cuda import types

    if isinstance(kind, types.Array):
        array = _on_emulator(value, after)
        for number in (0, 0, array.numel(), array.element_size()):
            yield emulator.Parameter(_word(number), name)
        yield emulator.Parameter(_word(array.data_ptr()), name, array)
        for number in (*array.shape, *(step * array.element_size() for step in array.stride())):
            yield emulator.Parameter(_word(number), name)
    elif isinstance(kind, types.Record):
        np = emulator._numpy()
        array = _on_emulator(np.asarray(getattr(value, "value", value)).reshape(1), after)
        yield emulator.Parameter(_word(array.data_ptr()), name, array)
    elif isinstance(kind, types.BaseTuple):
        for i, each in enumerate(kind):
            yield from _parameters(f"{name}[{i}]", each, value[i], after)
    elif isinstance(kind, types.Complex):
        half = types.float32 if kind == types.complex64 else types.float64
        for part in (value.real, value.imag):
            yield emulator.Parameter(_bytes_of(half, part), name)
    else:
        yield emulator.Parameter(_bytes_of(kind, value), name)


def _on_emulator(value: Any, after: List[Callable[[], object]]) -> emulator.Array:
    """The array itself, or a copy of a host array, which cuda.In and cuda.Out may say more about."""
    hint = type(value).__name__ if type(value).__name__ in ("In", "Out", "InOut") else "InOut"
    value = getattr(value, "value", value)
    if isinstance(value, emulator.Array):
        return value
    np = emulator._numpy()
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"a {type(value).__name__} is no array of the emulator: expected NumPy's or cuda.to_device()'s")
    made = _made(value.shape, value.dtype, _order(value))
    if hint != "Out":
        made.copy_(value)
    if hint != "In" and value.flags.writeable:
        after.append(lambda: made.copy_to_host(value))
    return made


def _run(kernel: Any, arguments: Sequence[Any], grid: Any, block: Any, shared_bytes: int) -> None:
    settings = _settings
    assert settings is not None
    made = _kernel_of(kernel)
    if made.digest not in settings.modules:
        settings.modules[made.digest] = emulator.default().load(made.text, f"{made.name}.ptx")
    module = settings.modules[made.digest]
    after: List[Callable[[], object]] = []
    parameters: List[emulator.Parameter] = []
    for extension in reversed(kernel.extensions):
        raise _refuse(f"the extension {extension!r} of a kernel's arguments")
    for name, kind, value in zip(kernel.py_func.__code__.co_varnames, kernel.argument_types, arguments):
        parameters.extend(_parameters(name, kind, value, after))
    shape = _c.LaunchShape(
        grid=debug._axes(tuple(grid), "grid"),
        block=debug._axes(tuple(block), "block"),
        cluster=debug._axes(1, "cluster"),
        dynamic_shared_bytes=shared_bytes,
    )
    result = module.launch(kernel.entry_name, shape, parameters, settings.options)
    for copy_back in after:
        copy_back()
    settings.warp_instructions += result.statistics.get("warp_instructions", 0)
    if result.output:
        print(result.output, end="")
    if result.faults and settings.on_fault != "ignore":
        function = kernel.py_func
        what = f"{function.__name__}[{list(map(int, grid))}, {list(map(int, block))}]"
        text = emulator.explain(result, parameters, what, module, function.__code__.co_filename)
        faults = emulator.LaunchFaults(text, result)
        if settings.on_fault == "raise":
            raise faults
        assert callable(settings.on_fault)
        settings.on_fault(faults)


# ---- Numba's own functions ------------------------------------------------------------------------------------------


def _patch() -> None:
    """Puts functions around Numba's, which ask what is wanted at each call."""
    if _original:
        return
    from numba import cuda
    from numba.cuda import codegen, dispatcher

    kernel_class = dispatcher._Kernel
    _original.update(init=kernel_class.__init__, bind=kernel_class.bind, launch=kernel_class.launch)

    def init(self: Any, py_func: Any, argtypes: Any, *rest: Any, **options: Any) -> None:
        if _settings is not None:
            if options.get("debug"):
                raise _refuse("debug=True: the exceptions of a kernel are not read; expected lineinfo=True")
            if options.get("link"):
                raise _refuse(f"link={options['link']!r}: only Python is compiled for the emulator")
            options["lineinfo"] = True
        _original["init"](self, py_func, argtypes, *rest, **options)
        self.py_func = py_func
        if _users:
            _compiled.tell(_kernel_of(self), None)

    def bind(self: Any) -> None:
        if _settings is None:
            _original["bind"](self)

    def launch(self: Any, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> None:
        if _users:
            _tell_launch(self, args, griddim, blockdim, sharedmem)
        if _settings is None:
            _original["launch"](self, args, griddim, blockdim, stream, sharedmem)
        else:
            _run(self, args, griddim, blockdim, sharedmem)

    def ensure_cc(self: Any, cc: Any) -> Any:
        return _compute_capability() if cc is None and _settings is not None else _original["cc"](self, cc)

    kernel_class.__init__, kernel_class.bind, kernel_class.launch = init, bind, launch
    _original["cc"] = codegen.CUDACodeLibrary._ensure_cc
    codegen.CUDACodeLibrary._ensure_cc = ensure_cc
    _original["cuda"] = {name: getattr(cuda, name) for name in _functions() if hasattr(cuda, name)}
    _original["device"] = dispatcher.get_current_device
    _original["threads"] = dispatcher.ForAll._compute_thread_per_block
    _original["warnings"] = dispatcher.config.CUDA_LOW_OCCUPANCY_WARNINGS


def _functions() -> Dict[str, Any]:
    """What numba.cuda has instead while the emulator is used."""

    class Event:
        def __init__(self) -> None:
            self._at = 0

        def record(self, stream: Any = 0) -> None:
            self._at = _settings.warp_instructions if _settings else 0

        def synchronize(self) -> None:
            pass

        def query(self) -> bool:
            return True

        def wait(self, stream: Any = 0) -> None:
            pass

        def elapsed_time(self, end: Event) -> float:
            """A thousand warp instructions to the millisecond."""
            return (end._at - self._at) / 1000

    class Stream:
        handle = 0

        def __bool__(self) -> bool:
            return False

        def synchronize(self) -> None:
            pass

        @contextmanager
        def auto_synchronize(self) -> Iterator[Any]:
            yield self

    def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
        if isinstance(obj, DeviceArray):
            return obj
        np = emulator._numpy()
        values = np.asarray(obj)
        made = to if to is not None else _made(values.shape, values.dtype, _order(values))
        if copy:
            made.copy_(values)
        return made

    def device_array(shape: Any, dtype: Any = "f8", strides: Any = None, order: str = "C", stream: Any = 0) -> Any:
        if strides is not None:
            raise _refuse("device_array() with strides")
        return _made(shape, dtype, order)

    def device_array_like(ary: Any, stream: Any = 0) -> Any:
        return _made(ary.shape, ary.dtype, _order(ary) if hasattr(ary, "flags") else "C")

    def host_array(shape: Any, dtype: Any = "f8", strides: Any = None, order: str = "C", **_: Any) -> Any:
        return emulator._numpy().empty(shape, dtype, order)

    @contextmanager
    def nothing(*_: Any, **__: Any) -> Iterator[None]:
        yield

    def device() -> Any:
        return SimpleNamespace(
            id=0,
            name=b"ptxkit emulator",
            compute_capability=_compute_capability(),
            WARP_SIZE=32,
            MULTIPROCESSOR_COUNT=132,
            MAX_THREADS_PER_BLOCK=1024,
            MAX_SHARED_MEMORY_PER_BLOCK=49152,
            MAX_BLOCK_DIM_X=1024,
            MAX_BLOCK_DIM_Y=1024,
            MAX_BLOCK_DIM_Z=64,
            MAX_GRID_DIM_X=2**31 - 1,
            MAX_GRID_DIM_Y=65535,
            MAX_GRID_DIM_Z=65535,
        )

    return {
        "is_available": lambda: True,
        "cuda_error": lambda: None,
        "synchronize": lambda: time.sleep(0),
        "to_device": to_device,
        "device_array": device_array,
        "device_array_like": device_array_like,
        "pinned_array": host_array,
        "pinned_array_like": lambda ary: emulator._numpy().empty_like(ary),
        "pinned": nothing,
        "defer_cleanup": nothing,
        "stream": Stream,
        "default_stream": Stream,
        "event": lambda timing=True: Event(),
        "get_current_device": device,
        "select_device": lambda device_id: device(),
        "close": lambda: None,
        "is_cuda_array": lambda obj: isinstance(obj, DeviceArray),
        "gpus": [device],
    }


class _Use:
    """What use_emulator() returns: a context manager that gives Numba its device back."""

    def __init__(self, before: Optional[_Settings], settings: _Settings) -> None:
        self._before, self.settings = before, settings
        self._is_open = True

    @property
    def warp_instructions(self) -> int:
        """Of all launches so far."""
        return self.settings.warp_instructions

    def close(self) -> None:
        global _settings
        if self._is_open:
            self._is_open = False
            _settings = self._before
            if _settings is None:
                _set_functions(_original["cuda"], _original["device"], _original["threads"], _original["warnings"])

    def __enter__(self) -> _Use:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _set_functions(functions: Dict[str, Any], device: Any, threads: Any, warnings: Any) -> None:
    from numba import cuda
    from numba.cuda import dispatcher

    for name, function in functions.items():
        setattr(cuda, name, function)
    dispatcher.get_current_device = device
    dispatcher.ForAll._compute_thread_per_block = threads
    dispatcher.config.CUDA_LOW_OCCUPANCY_WARNINGS = warnings


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
    """From here on @cuda.jit compiles for sm_{sm} and launches run on the emulator, with its sanitizer.

    Arguments are NumPy's arrays, which are copied for each launch, and those of cuda.to_device() and its kind, which
    stay in the emulator's memory. A launch with faults raises emulator.LaunchFaults; on_fault may be a function that
    takes it instead, or "ignore". NUMBA_ENABLE_CUDASIM must not be set.
    """
    global _settings
    if on_fault not in ("raise", "ignore") and not callable(on_fault):
        raise _errors.InvalidValueError(
            f"on_fault is {on_fault!r}, expected 'raise', 'ignore' or a function", _errors.INVALID_VALUE
        )
    from numba import cuda

    if "simulator" in cuda.jit.__module__:
        raise _errors.InvalidValueError(
            "NUMBA_ENABLE_CUDASIM is set, by which Numba compiles nothing: unset it", _errors.INVALID_VALUE
        )
    _patch()
    options = debug._launch_options(checks, seed, adversarial, threads, max_steps, max_faults)
    use = _Use(_settings, _Settings(sm, options, on_fault))
    _settings = use.settings
    functions = _functions()
    _set_functions(
        functions, functions["get_current_device"], lambda for_all, dispatcher: for_all.thread_per_block or 128, 0
    )
    return use


def hook() -> None:
    """Tells the listeners of ptxkit._compiled what Numba compiles and launches."""
    global _users
    _patch()
    _users += 1


def unhook() -> None:
    global _users
    _users -= 1


def install(report: Optional[Callable[[Any], object]] = None, **options: Any) -> _compiled.Watch:
    """Analyzes every CUDA kernel that Numba compiles in this process, in threads, once with the facts of each launch.

    report() is called with every finding, on a thread of the analysis, and with a text where a kernel could not be
    analyzed. options are those of debug.analyze(). lineinfo=True of @cuda.jit gives findings their Python lines.
    """
    hook()
    return _compiled.Watch(report, options, unhook)
