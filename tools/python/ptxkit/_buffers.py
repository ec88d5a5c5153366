"""Addresses of host buffers, through the buffer protocol; and bytes objects to be filled."""

from __future__ import annotations

import ctypes
from typing import Any, List, Sequence

from ptxkit import _errors

_ANY_CONTIGUOUS = 0x80 | 0x10 | 0x08  # PyBUF_ANY_CONTIGUOUS
_WRITABLE = 0x01
_DLPACK_CPU = (1, 3)  # kDLCPU, kDLCUDAHost


class _View(ctypes.Structure):  # Py_buffer
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [ctypes.py_object, ctypes.POINTER(_View), ctypes.c_int], ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_View)], None
_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes, _new_bytes.restype = [ctypes.c_void_p, ctypes.c_ssize_t], ctypes.py_object


def new_bytes(size: int) -> bytes:
    """A bytes object that nothing else refers to, with undefined content: to be filled before it is handed out."""
    made: bytes = _new_bytes(None, size)
    return made


def bytes_view(value: Any) -> memoryview:
    """The bytes of a contiguous buffer, in the order of memory.

    NumPy exports neither times nor Fortran's order as such.
    """
    flags = getattr(value, "flags", None)
    if flags is not None and getattr(flags, "forc", False):
        value = value.reshape(-1, order="A").view("u1")
    view = memoryview(value)
    return view.cast("B") if view.c_contiguous else view


def is_on_device(value: Any) -> bool:
    """Whether a value is an array in device memory."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return False
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] not in _DLPACK_CPU
    return hasattr(value, "__cuda_array_interface__")


def refuse_buffer(value: Any, what: str, reason: BaseException) -> BaseException:
    """The error for a value that is no buffer in host memory."""
    kind = type(value).__name__
    if is_on_device(value):
        return _errors.UnsupportedError(
            f"{what} is a {kind} in device memory: expected host memory; Codec.encode() and .decode() take arrays in"
            " device memory, all items and outputs of a batch",
            _errors.UNSUPPORTED,
        )
    if isinstance(reason, (BufferError, ValueError)):
        if "writable" in str(reason) or "read-only" in str(reason) or "readonly" in str(reason):
            return _errors.InvalidValueError(
                f"{what}, a {kind}, is read-only: expected a writable buffer", _errors.INVALID_VALUE
            )
        return _errors.InvalidValueError(
            f"{what}, a {kind}, is not contiguous: expected one block of memory; copy it first ({reason})",
            _errors.INVALID_VALUE,
        )
    if hasattr(value, "__dlpack__"):
        return TypeError(f"{what}: expected a bytes-like object, found a {kind}; pass its NumPy view")
    return TypeError(f"{what}: a bytes-like object is required, not '{kind}'")


class Buffers:
    """Holds the memory of buffers: addresses and sizes are valid until release()."""

    def __init__(self) -> None:
        self._views: List[_View] = []
        self.addresses: Any = ()
        self.sizes: Sequence[int] = ()

    def add(self, values: Sequence[Any], what: str, writable: bool = False) -> None:
        if not writable and all(type(value) is bytes for value in values):
            self.sizes = [len(value) for value in values]
            pointers = (ctypes.c_char_p * len(values))(*values)  # holds the objects, too
            self.addresses = (ctypes.c_void_p * len(values)).from_buffer(pointers)
            return
        flags = _ANY_CONTIGUOUS | (_WRITABLE if writable else 0)
        for i, value in enumerate(values):
            view = _View()
            try:
                try:
                    _get_buffer(value, view, flags)
                except ValueError:
                    _get_buffer(bytes_view(value), view, flags)
            except (TypeError, BufferError, ValueError) as reason:
                raise refuse_buffer(value, what if len(values) == 1 else f"{what} {i}", reason) from None
            self._views.append(view)
        self.sizes = [view.len for view in self._views]
        self.addresses = (ctypes.c_void_p * len(values))(*[view.buf for view in self._views])

    def release(self) -> None:
        for view in self._views:
            _release_buffer(view)
        self._views.clear()
        self.addresses = ()

    def __enter__(self) -> Buffers:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
