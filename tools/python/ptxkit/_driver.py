"""The CUDA driver through ctypes: what arrays in device memory need of it. Loaded by its first use."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Dict, List, Tuple

from ptxkit import _errors

VARIABLE = "PTXKIT_LIBCUDA"

# The last ones may be missing from a driver.
FUNCTIONS: Dict[str, List[Any]] = {
    "cuInit": [c_uint],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuCtxGetCurrent": [POINTER(c_void_p)],
    "cuPointerGetAttribute": [c_void_p, c_int, c_uint64],
    "cuMemAllocAsync": [POINTER(c_uint64), c_size_t, c_void_p],
    "cuMemFreeAsync": [c_uint64, c_void_p],
    "cuDeviceGetDefaultMemPool": [POINTER(c_void_p), c_int],
    "cuMemPoolCreate": [POINTER(c_void_p), c_void_p],
    "cuMemPoolSetAttribute": [c_void_p, c_int, c_void_p],
    "cuMemAllocFromPoolAsync": [POINTER(c_uint64), c_size_t, c_void_p, c_void_p],
}
_OPTIONAL = list(FUNCTIONS)[list(FUNCTIONS).index("cuGetErrorString")], *list(FUNCTIONS)[-8:]

_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_PINNED, _LOCATION_DEVICE = 1, 1  # CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE


class _PoolProperties(ctypes.Structure):  # CUmemPoolProps
    _fields_ = [
        ("allocation_type", c_int),
        ("handle_types", c_int),
        ("location_type", c_int),
        ("location_id", c_int),
        ("security_attributes", c_void_p),
        ("max_size", c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    ]


class Driver:
    """libcuda, initialised. Every call raises DeviceError where the driver reports an error."""

    def __init__(self) -> None:
        path = os.environ.get(VARIABLE) or "libcuda.so.1"
        self.path = path
        try:
            self._library = ctypes.CDLL(path)
        except OSError as reason:
            raise _errors.DeviceError(f"cannot open the CUDA driver: {reason}", _errors.NO_DEVICE) from None
        for name, arguments in FUNCTIONS.items():
            function = getattr(self._library, name, None)
            if function is None and name not in _OPTIONAL:
                raise _errors.DeviceError(f"{path} lacks {name}: expected a CUDA driver", _errors.NO_DEVICE)
            if function is not None:
                function.restype, function.argtypes = c_int, arguments
            setattr(self, name, function)
        status = self.cuInit(0)
        if status != 0:
            raise _errors.DeviceError(self._message("cuInit", status), _errors.NO_DEVICE)
        count = c_int()
        self.check("cuDeviceGetCount", byref(count))
        self.device_count = count.value

    def __getattr__(self, name: str) -> Any:  # tells type checkers that the functions of the table are attributes
        raise AttributeError(name)

    def _message(self, name: str, status: int) -> str:
        text = c_char_p()
        if self.cuGetErrorString is not None:
            self.cuGetErrorString(status, byref(text))
        return f"{name}: CUDA error {status}" + (f", {text.value.decode()}" if text.value else "")

    def check(self, name: str, *arguments: Any) -> None:
        status = getattr(self, name)(*arguments)
        if status != 0:
            raise _errors.DeviceError(self._message(name, status), _errors.DEVICE)


class Device:
    """A GPU: its primary context, which the CUDA runtime uses too, and memory in it."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        if not 0 <= ordinal < driver.device_count:
            raise _errors.DeviceError(
                f"there is no device {ordinal}, the driver has {driver.device_count}", _errors.NO_DEVICE
            )
        self.driver, self.ordinal = driver, ordinal
        number, context = c_int(), c_void_p()
        driver.check("cuDeviceGet", byref(number), ordinal)
        driver.check("cuDevicePrimaryCtxRetain", byref(context), number)
        self._context = context.value or 0
        self._process = os.getpid()
        self._pool = 0
        with self:
            self._pool = self._make_pool()

    def refuse_fork(self) -> None:
        if self._process != os.getpid():
            raise _errors.DeviceError(
                "CUDA was started before this process was forked: start it in the child, or use the start method spawn",
                _errors.DEVICE,
            )

    def _make_pool(self) -> int:
        """A pool that keeps what is freed: the default pool gives it back at each wait. 0: the driver has no pools."""
        driver, pool = self.driver, c_void_p()
        if driver.cuMemPoolCreate is None or driver.cuMemAllocFromPoolAsync is None or driver.cuMemFreeAsync is None:
            return 0
        wanted = _PoolProperties(
            allocation_type=_PINNED, location_type=_LOCATION_DEVICE, location_id=self.ordinal
        )
        if driver.cuMemPoolCreate(byref(pool), byref(wanted)) != 0:
            return 0
        driver.check("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, byref(c_uint64(2**64 - 1)))
        return pool.value or 0

    def __enter__(self) -> Device:
        """Makes the context current for the calling thread."""
        self.refuse_fork()
        before = c_void_p()
        if self.driver.cuCtxGetCurrent is not None:
            self.driver.check("cuCtxGetCurrent", byref(before))
        if before.value != self._context:
            self.driver.check("cuCtxSetCurrent", self._context)
        _entered.contexts.append(before.value)
        return self

    def __exit__(self, *_: object) -> None:
        before = _entered.contexts.pop()
        if before is not None and before != self._context:
            self.driver.cuCtxSetCurrent(before)

    def allocate(self, size: int, stream: int) -> int:
        """Memory for the stream's next work, aligned to 256 bytes."""
        address = c_uint64()
        if self._pool:
            self.driver.check("cuMemAllocFromPoolAsync", byref(address), max(size, 1), self._pool, stream)
        else:
            self.driver.check("cuMemAlloc_v2", byref(address), max(size, 1))
        return address.value

    def free(self, address: int, stream: int) -> None:
        """After what the stream has been given. An error means that the context is gone, and the memory with it."""
        if self._process != os.getpid():
            return
        with self:
            if self._pool:
                self.driver.cuMemFreeAsync(address, stream)
            else:
                self.driver.cuMemFree_v2(address)

    def upload(self, address: int, data: Any, size: int, stream: int) -> None:
        self.driver.check("cuMemcpyHtoDAsync_v2", address, data, size, stream)

    def download(self, into: Any, address: int, size: int, stream: int) -> None:
        self.driver.check("cuMemcpyDtoHAsync_v2", into, address, size, stream)

    def wait(self, stream: int) -> None:
        self.driver.check("cuStreamSynchronize", stream)

    def order(self, before: int, after: int) -> None:
        """Stream `after` waits for what stream `before` has been given."""
        event = c_void_p()
        self.driver.check("cuEventCreate", byref(event), _DISABLE_TIMING)
        try:
            self.driver.check("cuEventRecord", event, before)
            self.driver.check("cuStreamWaitEvent", after, event, 0)
        finally:
            self.driver.cuEventDestroy_v2(event)


class _Entered(threading.local):
    """The contexts that were current before each `with device` of this thread."""

    def __init__(self) -> None:
        self.contexts: List[Any] = []


_entered = _Entered()
_lock = threading.Lock()
_devices: Dict[Tuple[str, int], Device] = {}
_drivers: Dict[str, Driver] = {}


def driver() -> Driver:
    """The driver; raises DeviceError where there is none."""
    path = os.environ.get(VARIABLE, "")
    found = _drivers.get(path)
    if found is None:
        with _lock:
            found = _drivers.get(path)
            if found is None:
                found = _drivers[path] = Driver()
    return found


def device(ordinal: int) -> Device:
    key = (os.environ.get(VARIABLE, ""), ordinal)
    found = _devices.get(key)
    if found is None:
        library = driver()
        with _lock:
            found = _devices.get(key)
            if found is None:
                found = _devices[key] = Device(library, ordinal)
    found.refuse_fork()
    return found


def ordinal_of(address: int) -> int:
    """The device of an address; 0 where the driver does not say."""
    library = driver()
    ordinal = c_int()
    if library.cuPointerGetAttribute is None:
        return 0
    if library.cuPointerGetAttribute(byref(ordinal), _DEVICE_ORDINAL, address) != 0:
        raise _errors.InvalidValueError(f"{address:#x} is no address of a device", _errors.INVALID_VALUE)
    return ordinal.value
