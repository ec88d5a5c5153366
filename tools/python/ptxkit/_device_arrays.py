"""Arrays in device memory: those of this package, and those of CuPy, PyTorch, JAX and Numba; and their streams."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from ptxkit import _buffers, _driver, _errors

_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_ITEMSIZES = {"|u1": 1, "<i4": 4, "<u8": 8}
_DLPACK_TYPES = {"|u1": (1, 8), "<i4": (0, 32), "<u8": (1, 64)}  # code and bits


class Region:
    """Device memory that is freed with its last array."""

    def __init__(self, device: _driver.Device, size: int, stream: int, stream_owner: Any) -> None:
        self.device, self.size = device, size
        self.stream, self._stream_owner = stream, stream_owner  # a destroyed stream could not free it
        self.address = device.allocate(size, stream)

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            try:
                self.device.free(address, self.stream)
            except Exception:  # the interpreter is ending: the driver frees what is left
                pass


class DeviceArray:
    """A one-dimensional array in device memory.

    CuPy, PyTorch, JAX and Numba take it without a copy: cupy.asarray(x), torch.as_tensor(x), jax.dlpack.from_dlpack(x),
    numba.cuda.as_cuda_array(x). They wait for the stream that fills it. The memory lives as long as its last array.
    """

    __slots__ = ("_owner", "_typestr", "address", "device", "nbytes", "shape", "stream")

    def __init__(self, owner: Any, device: int, address: int, length: int, typestr: str, stream: int) -> None:
        self._owner, self._typestr = owner, typestr
        self.stream = stream
        self.device, self.address = device, address
        self.shape = (length,)
        self.nbytes = length * _ITEMSIZES[typestr]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.shape[0]} of {self._typestr}, device {self.device})"

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self._typestr,
            "data": (self.address if self.nbytes else 0, False),
            "strides": None,
            "stream": self.stream or 1,
            "version": 3,
        }

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _DLPACK_CUDA[0], self.device

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None
    ) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a DeviceArray is not copied: expected copy=None and its own device")
        wanted = 1 if stream is None else stream
        if wanted != -1 and wanted != (self.stream or 1):
            with _driver.device(self.device) as device:
                device.order(self.stream, wanted)
        return _capsule(self)

    def to_host(self) -> bytes:
        """A copy of the bytes in host memory, once the stream has written them."""
        copied = _buffers.new_bytes(self.nbytes)
        if self.nbytes:
            with _driver.device(self.device) as device:
                device.download(copied, self.address, self.nbytes, self.stream)
                device.wait(self.stream)
        return copied


def from_host(data: Any, device: int = 0, stream: Any = None) -> DeviceArray:
    """The bytes of a buffer in host memory, copied to a GPU."""
    handle, owner = (0, None) if stream is None else stream_of(stream)
    with _driver.device(device) as gpu, _buffers.Buffers() as one:
        one.add([data], "data")
        size = one.sizes[0]
        region = Region(gpu, (size + 15) // 16 * 16, handle, owner)  # a compression reads to the next multiple of 16
        if size:
            gpu.upload(region.address, one.addresses[0], size, handle)
            gpu.wait(handle)
    return DeviceArray(region, device, region.address, size, "|u1", handle)


# ---- DLPack ----


class _DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DlManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _DlTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_NAME = b"dltensor"
_exported: Dict[int, Any] = {}  # what capsules refer to, by the address of the structure
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
# The same two of a capsule that is being destroyed, to which no reference may be taken.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _forget(managed: int) -> None:
    _exported.pop(managed, None)


def _destroy(capsule: int) -> None:
    if _dying_is_valid(capsule, _NAME):  # otherwise a consumer has taken it, and calls the deleter
        _exported.pop(_dying_pointer(capsule, _NAME), None)


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)


def _capsule(of: DeviceArray) -> Any:
    managed, shape = _DlManagedTensor(), (ctypes.c_int64 * 1)(of.shape[0])
    tensor = managed.tensor
    tensor.data = of.address
    tensor.device_type, tensor.device_id = of.__dlpack_device__()
    tensor.ndim, tensor.lanes = 1, 1
    tensor.code, tensor.bits = _DLPACK_TYPES[of._typestr]
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    where = ctypes.addressof(managed)
    _exported[where] = managed, shape, of
    return _new_capsule(where, _NAME, ctypes.cast(_destructor, ctypes.c_void_p))


# ---- Arrays and streams of others ----


class Source(NamedTuple):
    address: int
    size: int  # in bytes
    device: int
    stream: Optional[int]  # that fills it; None: nothing to wait for
    owner: Any


def _framework(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _is_dense(shape: Sequence[int], strides: Optional[Sequence[int]], item: int) -> bool:
    """Whether the elements are one block of memory, in any order of the dimensions."""
    if strides is None or 0 in shape:
        return True
    expected = item
    for stride, length in sorted((stride, length) for stride, length in zip(strides, shape) if length != 1):
        if stride != expected:
            return False
        expected *= length
    return True


def _product(shape: Sequence[int]) -> int:
    product = 1
    for length in shape:
        if length < 0:
            raise _errors.InvalidValueError(f"a shape of {tuple(shape)} is no array's", _errors.INVALID_VALUE)
        product *= length
    return product


def source_of(value: Any, what: str, stream: int) -> Source:
    """An array in device memory. `stream` is the one that will work on it."""
    if isinstance(value, DeviceArray):
        return Source(value.address, value.nbytes, value.device, value.stream, value)
    if _framework(value) == "torch" and hasattr(value, "data_ptr"):
        if not value.is_cuda:
            raise _not_on_device(value, what)
        if not _is_dense(value.shape, value.stride(), 1):
            raise _not_dense(value, what)
        return Source(value.data_ptr(), value.numel() * value.element_size(), value.device.index, None, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        if interface.get("mask") is not None:
            raise _errors.InvalidValueError(f"{what} is a masked array: expected a plain one", _errors.INVALID_VALUE)
        item = int(interface["typestr"][2:])
        if not _is_dense(interface["shape"], interface.get("strides"), item):
            raise _not_dense(value, what)
        address, size = interface["data"][0] or 0, item * _product(interface["shape"])
        filled_by = interface.get("stream")
        device = _driver.ordinal_of(address) if size else _driver_current(value)
        return Source(address, size, device, filled_by, value)
    if hasattr(value, "__dlpack_device__"):
        kind, device = value.__dlpack_device__()
        if kind not in _DLPACK_CUDA:
            raise _not_on_device(value, what)
        capsule = value.__dlpack__(stream=stream or 1)
        tensor = ctypes.cast(_capsule_pointer(capsule, _NAME), ctypes.POINTER(_DlManagedTensor)).contents.tensor
        shape = [tensor.shape[i] for i in range(tensor.ndim)]
        strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
        if not _is_dense(shape, strides, 1):
            raise _not_dense(value, what)
        size = _product(shape) * ((tensor.bits * tensor.lanes + 7) // 8)
        return Source((tensor.data or 0) + tensor.byte_offset, size, device, None, capsule)
    raise _not_on_device(value, what)


def _driver_current(value: Any) -> int:
    """The device of an array without elements, which has no address."""
    device = getattr(value, "device", None)
    return int(getattr(device, "id", 0) or 0)


def _not_on_device(value: Any, what: str) -> TypeError:
    return TypeError(f"{what}: expected an array in device memory like the others, found a {type(value).__name__}")


def _not_dense(value: Any, what: str) -> _errors.Error:
    return _errors.InvalidValueError(
        f"{what}, a {type(value).__name__}, is not contiguous: expected one block of memory; copy it first",
        _errors.INVALID_VALUE,
    )


def current_stream_of(value: Any, device: int) -> Callable[[], Tuple[int, Any]]:
    """A function that returns the handle of the current stream of an array's framework, and what keeps it."""
    framework = _framework(value)
    if framework == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:  # a microsecond less than the Stream object
            return lambda: (raw(device), None)
        return lambda: (int(torch.cuda.current_stream(device).cuda_stream), None)
    if framework == "cupy":
        get = sys.modules["cupy"].cuda.get_current_stream

        def of_cupy() -> Tuple[int, Any]:
            stream = get()
            return int(stream.ptr), stream

        return of_cupy
    if isinstance(value, DeviceArray):
        return lambda: (value.stream, value._owner)
    return lambda: (0, None)


def stream_of(stream: Any) -> Tuple[int, Any]:
    """The handle of a stream that the caller names, and what keeps it."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 <= stream < 2**64:
            raise _errors.InvalidValueError(f"stream is {stream}: expected a handle", _errors.INVALID_VALUE)
        return stream, None
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        return int((found() if callable(found) else found)[1]), stream
    for name in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        if hasattr(stream, name):
            return int(getattr(stream, name)), stream
    handle = getattr(stream, "handle", None)  # Numba
    if handle is not None:
        return int(getattr(handle, "value", handle) or 0), stream
    raise TypeError(f"stream: expected a CUDA stream or its handle, found a {type(stream).__name__}")
