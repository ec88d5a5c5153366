"""Triton's kernels without a GPU: analyzed as they are compiled, and run on the emulator.

    ptxkit.triton.use_emulator()                     # kernel[grid](x, y, n) on ptxkit.emulator.array() from here on
    ptxkit.triton.install(print)                     # each compiled kernel is analyzed; print() gets every finding

Tested with Triton 3.9; 3.4 is the first that has the hooks.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ptxkit import _c, _compiled, _errors, debug, emulator

__all__ = ["install", "use_emulator"]


def _triton() -> Any:
    import triton

    if not hasattr(triton, "knobs"):
        raise _errors.UnsupportedError(
            f"Triton {triton.__version__} has no hooks for this: expected 3.4 or later", _errors.UNSUPPORTED
        )
    return triton


# ---- What was compiled, and how it is launched ----------------------------------------------------------------------

_SCALARS = {"i1": "<b", "u1": "<B", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I"}
_SCALARS.update({"i64": "<q", "u64": "<Q", "fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"})

_kernels: Dict[str, _compiled.Kernel] = {}  # by the hash that Triton gives a compiled kernel
_signatures: Dict[str, List[Tuple[str, str]]] = {}  # argument and type behind each parameter
_previous: List[Any] = []  # the listener that was there before
_users = 0  # calls of hook() without unhook()


def _flat(name: str, kind: Any, value: Any = None) -> Iterator[Tuple[str, str, Any]]:
    """Name, type and value of each parameter that an argument becomes."""
    if isinstance(kind, tuple):
        for i, each in enumerate(kind):
            yield from _flat(f"{name}[{i}]", each, None if value is None else value[i])
    elif kind != "constexpr":
        yield name, kind, value


def _bytes_of(value: Any, kind: str) -> bytes:
    if kind == "bf16":
        return int(emulator._rounded_to_bfloat16(value)).to_bytes(2, "little")
    if kind not in _SCALARS:
        raise _errors.UnsupportedError(f"a parameter of type {kind} cannot be passed yet", _errors.UNSUPPORTED)
    form = _SCALARS[kind]
    if form[1] in "efd":
        return struct.pack(form, value)
    size = struct.calcsize(form)
    wrapped: int = int(value) & ((1 << 8 * size) - 1)
    return wrapped.to_bytes(size, "little")


def _unwrapped(value: Any) -> Any:
    """The tensor behind triton.reinterpret()."""
    return value.base if type(value).__name__ == "TensorWrapper" else value


def _room(value: Any) -> Optional[int]:
    """Bytes from the tensor's address to the end of its memory; None where memory lies before it, or is unknown."""
    value = _unwrapped(value)
    if isinstance(value, emulator.Array):
        return value._memory.size if value._offset == 0 else None
    if hasattr(value, "untyped_storage") and value.storage_offset() == 0:
        return int(value.untyped_storage().nbytes())
    return None


def _fact(name: str, kind: str, value: Any) -> _compiled.Fact:
    if hasattr(value, "data_ptr"):
        address, room = value.data_ptr(), _room(value)
        facts = [("align", _compiled.alignment_of(address))] if address else []
        if room is not None:
            facts.append(("bytes", room))
        return _compiled.Fact(name, f"{value.dtype} {list(value.shape)}", tuple(facts))
    if kind in _SCALARS or kind == "bf16":
        return _compiled.Fact(name, repr(value), (("value", int.from_bytes(_bytes_of(value, kind), "little")),))
    return _compiled.Fact(name, repr(value))


def _on_compile(*, src: Any, metadata: Dict[str, Any], metadata_group: Dict[str, str], **rest: Any) -> None:
    path = next((path for name, path in metadata_group.items() if name.endswith(".ptx")), None)
    function = getattr(src, "fn", None)
    if path is None:  # TRITON_STORE_BINARY_ONLY, or another backend
        return
    with open(path, "rb") as file:
        text = file.read()
    code = getattr(getattr(function, "fn", None), "__code__", None)
    signature = [each[:2] for name, kind in src.signature.items() for each in _flat(str(name), kind)]
    kernel = _compiled.Kernel(
        "Triton",
        metadata.get("name") or src.name,
        text,
        f"{code.co_filename}:{code.co_firstlineno}" if code else "",
        arguments=tuple(name for name, _ in signature),
    )
    _kernels[metadata["hash"]], _signatures[metadata["hash"]] = kernel, signature
    if function is not None:
        _watch_launches(function, src.signature)
    _compiled.tell(kernel, None)


def _listen(**compiled: Any) -> None:
    if _previous[0] is not None:
        _previous[0](**compiled)
    if _users:
        _on_compile(**compiled)


def _watch_launches(function: Any, signature: Dict[str, Any]) -> None:
    """Triton asks launch_metadata for what is known of a launch; the one that is there is asked as well."""
    before = function.launch_metadata
    if getattr(before, "ptxkit", False):
        return

    def launch_metadata(grid: Any, metadata: Any, arguments: Dict[str, Any]) -> Dict[str, Any]:
        _on_launch(grid, metadata, arguments)
        found: Dict[str, Any] = before(grid, metadata, arguments) if before else {}
        return found

    launch_metadata.ptxkit = True  # type: ignore[attr-defined]
    function.launch_metadata = launch_metadata


def _on_launch(grid: Any, metadata: Any, arguments: Dict[str, Any]) -> None:
    kernel = _kernels.get(metadata.hash)
    if kernel is None:
        return
    values: Dict[str, Any] = {}
    for name, value in arguments.items():
        _collect(name, value, values)
    facts = tuple(_fact(name, kind, values.get(name)) for name, kind in _signatures[metadata.hash])
    extent = tuple(int(axis) for axis in (*grid, 1, 1)[:3])
    ctas = getattr(metadata, "num_ctas", 1)
    block = kernel.required_block() or (32 * metadata.num_warps,)
    launch = _compiled.Launch((extent[0] * ctas, *extent[1:]), block, metadata.shared, facts)
    _compiled.tell(kernel, launch)


def _collect(name: str, value: Any, values: Dict[str, Any]) -> None:
    values[name] = value
    if isinstance(value, tuple):
        for i, each in enumerate(value):
            _collect(f"{name}[{i}]", each, values)


def _ask(metadata: Any) -> None:
    if metadata is not None:
        metadata.get()


def hook() -> None:
    """Tells the listeners of ptxkit._compiled what Triton compiles and launches. The previous listener is called too."""
    global _users
    knobs = _triton().knobs
    _users += 1
    if _users == 1:
        _previous[:] = [knobs.compilation.listener]
        knobs.compilation.listener = _listen
        knobs.runtime.launch_enter_hook.add(_ask)


def unhook() -> None:
    """Ends one hook(). A listener that was set later, and calls this one, stays."""
    global _users
    knobs = _triton().knobs
    _users -= 1
    if _users == 0:
        if knobs.compilation.listener is _listen:
            knobs.compilation.listener = _previous[0]
        knobs.runtime.launch_enter_hook.remove(_ask)


def install(report: Optional[Callable[[Any], object]] = None, **options: Any) -> _compiled.Watch:
    """Analyzes every kernel that Triton compiles in this process, in threads, once with the facts of each launch.

    report() is called with every finding, on a thread of the analysis, and with a text where a kernel could not be
    analyzed. options are those of debug.analyze().
    """
    hook()
    return _compiled.Watch(report, options, unhook)


# ---- The emulator as Triton's device --------------------------------------------------------------------------------


_devices = itertools.count(1000)  # Triton keeps compiled kernels by the device's number: each use has its own


class _Settings:
    def __init__(
        self, sm: int, options: Optional[Dict[str, Any]], on_fault: Union[str, Callable[[Any], object]]
    ) -> None:
        self.sm, self.options, self.on_fault = sm, options, on_fault
        self.device = next(_devices)
        self.warp_instructions = 0  # of all launches, which is the clock


class _Event:
    """An event of the device interface; times are in warp instructions, a thousand to the millisecond."""

    def __init__(self, settings: _Settings) -> None:
        self._settings, self._at = settings, 0

    def record(self) -> None:
        self._at = self._settings.warp_instructions

    def elapsed_time(self, end: _Event) -> float:
        return max(end._at - self._at, 1) / 1000


class _Function:
    def __init__(self, module: emulator.Module, entry: str) -> None:
        self.module, self.entry = module, entry


class _Scratch:
    """Tensors in host memory, which are copied to the emulator for one launch and back after it."""

    def __init__(self) -> None:
        self._copies: Dict[int, Tuple[Any, emulator._Allocation, Any]] = {}

    def copy_of(self, tensor: Any, name: str) -> _Foreign:
        if not hasattr(tensor, "untyped_storage") or str(getattr(tensor, "device", "cpu")) != "cpu":
            raise TypeError(
                f"argument '{name}' is a {type(tensor).__name__}: the emulator takes ptxkit.emulator.array() and "
                "PyTorch's tensors in host memory"
            )
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if start not in self._copies:
            host = emulator._numpy().ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
            memory = emulator._Allocation(emulator.default(), size, _compiled.alignment_of(start), name)
            if size:
                memory.write(0, host)
            self._copies[start] = host, memory, storage
        return _Foreign(tensor, self._copies[start][1], tensor.data_ptr() - start)

    def finish(self) -> None:
        for host, memory, _ in self._copies.values():
            if memory.size:
                memory.read(0, host)
            memory.free()


def _integer_or_none(value: Any) -> Optional[int]:
    return 0 if value is None else value if isinstance(value, int) else None


class _Launcher:
    """Made by Triton for each compiled kernel, and called for each launch."""

    settings: _Settings

    def __init__(self, src: Any, metadata: Any) -> None:
        from triton.backends import driver as helpers

        self.metadata = metadata
        code = getattr(getattr(getattr(src, "fn", None), "fn", None), "__code__", None)
        self.file = code.co_filename if code else ""
        self.descriptors = getattr(metadata, "tensordesc_meta", None)
        kinds = list(src.signature.values())
        if self.descriptors and any("tensordesc" in str(kind) for kind in kinds):
            raise _errors.UnsupportedError(
                "a tensor descriptor made by the host, for TMA: expected use_emulator(sm=80), which needs no TMA, or a "
                "descriptor made in the kernel",
                _errors.UNSUPPORTED,
            )
        names = [str(name) for name in src.signature]
        if any("tensordesc" in str(kind) for kind in kinds):
            self.kinds = helpers.expand_signature(kinds, self.descriptors, "nvTmaDesc")
            self.names = self._descriptor_names(names, kinds)
        else:
            self.kinds, self.names = kinds, names
        self.signature = kinds

    def _descriptor_names(self, names: Sequence[str], kinds: Sequence[Any]) -> List[str]:
        expanded: List[str] = []
        for name, kind in zip(names, kinds):
            made = 1
            if isinstance(kind, str) and kind.startswith("tensordesc"):
                from triton.backends import driver as helpers

                made = len(helpers.expand_signature([kind], None, "nvTmaDesc"))
            expanded.extend([name] * made)
        return expanded

    def _values(self, arguments: Sequence[Any]) -> List[Any]:
        from triton.backends import driver as helpers

        values: List[Any] = []
        for kind, value in zip(self.signature, arguments):
            if isinstance(kind, str) and kind.startswith("tensordesc"):
                values.extend(helpers.decompose_descriptor(value))
            else:
                values.append(value)
        return values

    def _parameters(self, arguments: Sequence[Any], scratch: _Scratch) -> Iterator[emulator.Parameter]:
        for name, kind, value in zip(self.names, self.kinds, self._values(arguments)):
            for place, what, each in _flat(name, kind, value):
                if what.startswith("*") or what == "nvTmaDesc":
                    yield self._pointer(place, each, scratch)
                else:
                    yield emulator.Parameter(_bytes_of(each, what), place)

    def _pointer(self, name: str, value: Any, scratch: _Scratch) -> emulator.Parameter:
        plain = _integer_or_none(value)
        if plain is not None:
            return emulator.Parameter(plain.to_bytes(8, "little"), name)
        base = _unwrapped(value)
        if isinstance(base, emulator.Array):
            return emulator.Parameter(base.data_ptr().to_bytes(8, "little"), name, base)
        if not hasattr(base, "data_ptr"):
            raise TypeError(f"argument '{name}' is a {type(value).__name__}: expected ptxkit.emulator.array()")
        copy = scratch.copy_of(base, name)
        return emulator.Parameter(copy.data_ptr().to_bytes(8, "little"), name, copy)

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: _Function,
        packed: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *arguments: Any,
    ) -> None:
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if grid_x * grid_y * grid_z > 0:
            self._run((grid_x, grid_y, grid_z), function, arguments)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _run(self, grid: Tuple[int, int, int], function: _Function, arguments: Sequence[Any]) -> None:
        described = function.module.entries[function.entry]
        ctas = getattr(self.metadata, "num_ctas", 1)
        scratch = _Scratch()
        parameters = list(self._parameters(arguments, scratch))
        working: List[emulator._Allocation] = []
        for kind in ("global_scratch", "profile_scratch"):
            if len(parameters) == len(described["parameters"]):
                break
            size = getattr(self.metadata, f"{kind}_size", 0) * grid[0] * grid[1] * grid[2] * ctas
            if size:
                align = max(getattr(self.metadata, f"{kind}_align", 1), 1)
                working.append(emulator._Allocation(emulator.default(), size, align, kind))
            address = working[-1].address if size else 0
            parameters.append(emulator.Parameter(address.to_bytes(8, "little"), kind))
        block = described["required_block"]
        shape = _c.LaunchShape(
            grid=debug._axes((grid[0] * ctas, grid[1], grid[2]), "grid"),
            block=debug._axes(block if block[0] else 32 * self.metadata.num_warps, "block"),
            cluster=debug._axes(ctas, "cluster"),
            dynamic_shared_bytes=self.metadata.shared,
        )
        try:
            result = function.module.launch(function.entry, shape, parameters, self.settings.options)
        finally:
            scratch.finish()
            for memory in working:
                memory.free()
        self.settings.warp_instructions += result.statistics.get("warp_instructions", 0)
        if result.output:
            print(result.output, end="")
        if result.faults:
            self._report(result, parameters, function, grid)

    def _report(
        self, result: debug.Result, parameters: Sequence[emulator.Parameter], function: _Function, grid: Any
    ) -> None:
        warps = self.metadata.num_warps
        what = f"{function.entry}[{', '.join(map(str, grid))}] of {warps} warp{'s' if warps != 1 else ''}"
        faults = emulator.LaunchFaults(emulator.explain(result, parameters, what, function.module, self.file), result)
        if self.settings.on_fault == "raise":
            raise faults
        if callable(self.settings.on_fault):
            self.settings.on_fault(faults)


class _ElementType:
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __str__(self) -> str:
        return self.name


class _Foreign:
    """A tensor in host memory, at the place of its copy."""

    def __init__(self, tensor: Any, memory: emulator._Allocation, offset: int) -> None:
        self._memory, self._offset = memory, offset
        self.dtype = _ElementType(str(tensor.dtype), tensor.element_size())
        self.shape, self.stride = tuple(tensor.shape), tensor.stride

    def data_ptr(self) -> int:
        return self._memory.address + self._offset


def _backend_and_driver(settings: _Settings) -> Any:
    """Classes over those of Triton, which are there once it is imported."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.backends.nvidia.compiler import CUDABackend

    class EmulatorBackend(CUDABackend):  # type: ignore[misc]
        """Ends with PTX, which takes the cubin's place."""

        def add_stages(self, stages: Dict[str, Any], *arguments: Any) -> None:
            super().add_stages(stages, *arguments)
            stages["cubin"] = lambda src, metadata: src.encode()

        def hash(self) -> str:
            return f"ptxkit-emulator-{super().hash()}"

    class Launcher(_Launcher):
        pass

    Launcher.settings = settings

    class Utils:
        @staticmethod
        def load_binary(name: str, kernel: bytes, shared: int, device: int) -> Tuple[Any, ...]:
            module = emulator.default().load(kernel, f"{name}.ptx")
            return module, _Function(module, name), 0, 0, 1024

        @staticmethod
        def unload_module(module: Any) -> None:
            pass

        @staticmethod
        def get_device_properties(device: int) -> Dict[str, int]:
            return {
                "max_shared_mem": 232448 if settings.sm >= 90 else 166912,
                "multiprocessor_count": 132,
                "max_num_regs": 65536,
                "warpSize": 32,
                "sm_clock_rate": 1_000_000,
                "mem_clock_rate": 1_000_000,
                "mem_bus_width": 5120,
            }

    class EmulatorDriver(DriverBase):  # type: ignore[misc]
        launcher_cls = Launcher
        utils = Utils()

        def __init__(self) -> None:
            pass

        @classmethod
        def is_active(cls) -> bool:
            return True

        def get_current_device(self) -> int:
            return settings.device

        def set_current_device(self, device: int) -> None:
            pass

        def get_current_stream(self, device: Optional[int] = None) -> int:
            return 0

        def get_device_capability(self, device: Optional[int] = None) -> Tuple[int, int]:
            return settings.sm // 10, settings.sm % 10

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", settings.sm, 32)

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cpu")

        def get_device_interface(self) -> Any:
            return SimpleNamespace(
                Event=lambda enable_timing=True: _Event(settings),
                synchronize=lambda: None,
                current_device=lambda: settings.device,
                set_device=lambda device: None,
            )

        def map_python_to_cpp_type(self, kind: str) -> str:
            from triton.backends.nvidia.driver import ty_to_cpp

            found: str = ty_to_cpp(kind)
            return found

        def get_benchmarker(self) -> Any:
            def benchmark(kernel_call: Callable[[], object], quantiles: Any = None, **_: Any) -> Any:
                before = settings.warp_instructions
                kernel_call()
                took = (settings.warp_instructions - before) / 1000
                return [took] * len(quantiles) if quantiles else took

            return benchmark

        def get_empty_cache_for_benchmark(self) -> Any:
            return None

        def clear_cache(self, cache: Any) -> None:
            pass

    return EmulatorBackend, EmulatorDriver


class _Use:
    """What use_emulator() returns: a context manager that gives Triton its driver back."""

    def __init__(self, before: Any, settings: _Settings) -> None:
        self._before, self.settings = before, settings

    @property
    def warp_instructions(self) -> int:
        """Of all launches so far."""
        return self.settings.warp_instructions

    def close(self) -> None:
        from triton.backends import backends
        from triton.runtime.driver import driver

        if self._before is not None:
            backends["nvidia"], driver._active = self._before
            self._before = None

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
    """From here on Triton compiles for sm_{sm} and runs kernels on the emulator, with its sanitizer.

    Arguments are ptxkit.emulator.array() or PyTorch's tensors in host memory, which are copied for each launch. A launch
    with faults raises emulator.LaunchFaults; on_fault may be a function that takes it instead, or "ignore".
    TRITON_INTERPRET must not be set.
    """
    if on_fault not in ("raise", "ignore") and not callable(on_fault):
        raise _errors.InvalidValueError(
            f"on_fault is {on_fault!r}, expected 'raise', 'ignore' or a function", _errors.INVALID_VALUE
        )
    triton = _triton()
    if triton.knobs.runtime.interpret:
        raise _errors.InvalidValueError(
            "TRITON_INTERPRET is set, by which Triton compiles nothing: unset it", _errors.INVALID_VALUE
        )
    from triton.backends import Backend, backends
    from triton.runtime.driver import driver

    options = debug._launch_options(checks, seed, adversarial, threads, max_steps, max_faults)
    settings = _Settings(sm, options, on_fault)
    compiler, driver_class = _backend_and_driver(settings)
    before = backends["nvidia"], driver._active
    backends["nvidia"] = Backend(compiler, driver_class)
    driver.set_active(driver_class())
    return _Use(before, settings)
