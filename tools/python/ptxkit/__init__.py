"""Compression on CPUs and NVIDIA GPUs, the PTX analyzer and the PTX emulator.

    ptxkit.Codec("lz4").encode(data)            buffers and batches of buffers
    ptxkit.device                               arrays in device memory: batches on the caller's stream
    ptxkit.open("data.lz4")                     files
    ptxkit.lz4.frame, ptxkit.lz4.block          the functions of python-lz4
    ptxkit.zstd, ptxkit.gzip                    the functions of compression.zstd and gzip
    ptxkit.numcodecs, ptxkit.zarr               codecs for numcodecs and Zarr
    ptxkit.debug.analyze(ptx), .run(ptx, ...)   kernels without a GPU
    ptxkit.emulator.array(x), .launch(ptx, ...) kernels on memory that stays between launches
    ptxkit.triton, .numba, .warp                kernels of these compilers, analyzed and run without a GPU

Importing this package loads nothing; its first use loads libptxkit.so.1.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing has it, and takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any, List

    from ptxkit import debug as debug
    from ptxkit import device as device
    from ptxkit import emulator as emulator
    from ptxkit import gzip as gzip
    from ptxkit import lz4 as lz4
    from ptxkit import zstd as zstd
    from ptxkit._codec import Codec as Codec
    from ptxkit._codec import CodecInfo as CodecInfo
    from ptxkit._codec import codecs as codecs
    from ptxkit._errors import CorruptInputError as CorruptInputError
    from ptxkit._errors import DataError as DataError
    from ptxkit._errors import DeviceError as DeviceError
    from ptxkit._errors import Error as Error
    from ptxkit._errors import InvalidValueError as InvalidValueError
    from ptxkit._errors import LibraryNotFoundError as LibraryNotFoundError
    from ptxkit._errors import OutOfMemoryError as OutOfMemoryError
    from ptxkit._errors import StreamError as StreamError
    from ptxkit._errors import UnsupportedError as UnsupportedError
    from ptxkit._files import File as File
    from ptxkit._files import open as open

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(("Codec", "CodecInfo", "codecs"), "ptxkit._codec"),
    **dict.fromkeys(("File", "open"), "ptxkit._files"),
    **dict.fromkeys(
        (
            "CorruptInputError",
            "DataError",
            "DeviceError",
            "Error",
            "InvalidValueError",
            "LibraryNotFoundError",
            "OutOfMemoryError",
            "StreamError",
            "UnsupportedError",
        ),
        "ptxkit._errors",
    ),
}
_MODULES = ("debug", "device", "emulator", "gzip", "lz4", "numba", "numcodecs", "triton", "warp", "zarr", "zstd")

__all__ = [
    "Codec",
    "CodecInfo",
    "CorruptInputError",
    "DataError",
    "DeviceError",
    "Error",
    "File",
    "InvalidValueError",
    "LibraryNotFoundError",
    "OutOfMemoryError",
    "StreamError",
    "UnsupportedError",
    "codecs",
    "library_version",
    "open",
]


def library_version() -> str:
    """The version of libptxkit.so.1."""
    from ptxkit import _c

    text: bytes = _c.lib().ptxkit_version_string()
    return text.decode()


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"ptxkit.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ptxkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
