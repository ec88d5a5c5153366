"""The C ABI (runtime/c_api/ptxkit.h) through ctypes: structures and functions from two tables, and the library."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Tuple, Type

from ptxkit import _errors

SONAME = "libptxkit.so.1"
VARIABLE = "PTXKIT_LIBRARY"

ReadFunction = ctypes.CFUNCTYPE(c_int64, c_void_p, c_void_p, c_size_t)
WriteFunction = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)

_Fields = List[Tuple[str, Any]]

STRUCTURES: Dict[str, _Fields] = {
    "ptxkit_codec_info": [
        ("struct_bytes", c_uint32),
        ("codec", c_uint32),
        ("name", c_char * 24),
        ("extension", c_char * 8),
        ("operations", c_uint32),
        ("framings", c_uint32),
        ("least_level", c_int32),
        ("greatest_level", c_int32),
        ("default_level", c_int32),
        ("default_block_bytes", c_uint32),
        ("largest_host_item", c_uint64),
        ("largest_device_item", c_uint64),
        ("input_alignment", c_uint32),
        ("reserved", c_uint32 * 11),
    ],
    "ptxkit_hooks": [
        ("struct_bytes", c_uint32),
        ("reserved0", c_uint32),
        ("user", c_void_p),
        ("log", c_void_p),
        ("allocate", c_void_p),
        ("release", c_void_p),
        ("progress", c_void_p),
        ("is_cancelled", c_void_p),
        ("reserved", c_uint64),
    ],
    "ptxkit_context_options": [
        ("struct_bytes", c_uint32),
        ("policy", c_uint32),
        ("cpu_threads", c_uint32),
        ("device_count", c_uint32),
        ("devices", c_void_p),
        ("device_memory_bytes", c_uint64),
        ("expected_bytes", c_uint64),
        ("cuda_library", c_char_p),
        ("calibration_path", c_char_p),
        ("hooks", c_void_p),
    ],
    "ptxkit_batch_options": [
        ("struct_bytes", c_uint32),
        ("codec", c_uint32),
        ("framing", c_uint32),
        ("level", c_int32),
        ("flags", c_uint32),
        ("dtype", c_uint32),
        ("stride", c_uint32),
        ("reserved", c_uint32 * 9),
    ],
    "ptxkit_device_requirements": [
        ("struct_bytes", c_uint32),
        ("input_alignment", c_uint32),
        ("output_alignment", c_uint32),
        ("temp_alignment", c_uint32),
        ("temp_bytes", c_uint64),
        ("output_bytes", c_uint64),
        ("decompress_temp_bytes", c_uint64),
        ("reserved", c_uint32 * 6),
    ],
    "ptxkit_stream_options": [
        ("struct_bytes", c_uint32),
        ("codec", c_uint32),
        ("level", c_int32),
        ("flags", c_uint32),
        ("block_bytes", c_uint32),
        ("reserved0", c_uint32),
        ("content_bytes", c_uint64),
        ("memory_bytes", c_uint64),
        ("hooks", c_void_p),
        ("dtype", c_uint32),
        ("stride", c_uint32),
        ("reserved", c_uint32 * 2),
    ],
    "ptxkit_totals": [
        ("raw_bytes", c_uint64),
        ("stored_bytes", c_uint64),
        ("frame_count", c_uint64),
        ("block_count", c_uint64),
    ],
    "ptxkit_argument": [
        ("kind", c_uint32),
        ("alignment", c_uint32),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("name", c_char_p),
    ],
    "ptxkit_launch_shape": [
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("cluster", c_uint32 * 3),
        ("dynamic_shared_bytes", c_uint32),
        ("reserved", c_uint32 * 6),
    ],
}


def _structure(name: str) -> Type[ctypes.Structure]:
    """The structure, whose objects begin with their size in bytes where the ABI wants that."""
    fields = STRUCTURES[name]
    made = type(name, (ctypes.Structure,), {"_fields_": fields})
    if fields[0][0] != "struct_bytes":
        return made

    def begin(self: Any, **values: Any) -> None:
        ctypes.Structure.__init__(self, struct_bytes=ctypes.sizeof(made), **values)

    return type(name, (made,), {"__init__": begin})


CodecInfo: Any = _structure("ptxkit_codec_info")
ContextOptions: Any = _structure("ptxkit_context_options")
BatchOptions: Any = _structure("ptxkit_batch_options")
DeviceRequirements: Any = _structure("ptxkit_device_requirements")
StreamOptions: Any = _structure("ptxkit_stream_options")
Totals: Any = _structure("ptxkit_totals")
Argument: Any = _structure("ptxkit_argument")
LaunchShape: Any = _structure("ptxkit_launch_shape")

STATUS = c_int32
_STRING_OUT = POINTER(c_void_p)
_BATCH = [c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]
_DEVICE_BATCH = [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, *[c_void_p] * 5]
_DEVICE_UNBATCH = [*[c_void_p] * 5, c_size_t, c_void_p, c_size_t, *[c_void_p] * 4]
_DEVICE_SIZES = [*[c_void_p] * 4, c_size_t, *[c_void_p] * 3]
_STREAM = [c_void_p, c_void_p, ReadFunction, c_void_p, WriteFunction, c_void_p, c_void_p]

# Arrays and structures are passed as c_void_p: ctypes takes an array or byref(...) for it, and checks nothing twice.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "ptxkit_version": (c_uint32, []),
    "ptxkit_version_string": (c_char_p, []),
    "ptxkit_status_name": (c_char_p, [STATUS]),
    "ptxkit_last_error": (c_char_p, []),
    "ptxkit_string_free": (None, [c_void_p]),
    "ptxkit_codec_count": (c_size_t, []),
    "ptxkit_codec_at": (STATUS, [c_size_t, c_void_p]),
    "ptxkit_codec_find": (STATUS, [c_char_p, c_void_p]),
    "ptxkit_codec_query": (STATUS, [c_uint32, c_void_p]),
    "ptxkit_context_create": (STATUS, [c_void_p, c_void_p]),
    "ptxkit_context_destroy": (None, [c_void_p]),
    "ptxkit_context_describe": (STATUS, [c_void_p, _STRING_OUT]),
    "ptxkit_compress_bound": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "ptxkit_compress_batch": (STATUS, _BATCH),
    "ptxkit_decompress_batch": (STATUS, _BATCH),
    "ptxkit_decompressed_size": (STATUS, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "ptxkit_device_create": (STATUS, [c_int32, c_char_p, c_void_p]),
    "ptxkit_device_query": (STATUS, [c_void_p, c_size_t, c_size_t, c_void_p]),
    "ptxkit_device_compress": (STATUS, _DEVICE_BATCH),
    "ptxkit_device_decompress": (STATUS, _DEVICE_UNBATCH),
    "ptxkit_device_decompressed_sizes": (STATUS, _DEVICE_SIZES),
    "ptxkit_compress_stream": (STATUS, _STREAM),
    "ptxkit_decompress_stream": (STATUS, _STREAM),
    "ptxkit_analyze": (STATUS, [c_char_p, c_size_t, c_char_p, _STRING_OUT, c_void_p]),
    "ptxkit_emulator_create": (STATUS, [c_char_p, c_void_p]),
    "ptxkit_emulator_destroy": (None, [c_void_p]),
    "ptxkit_emulator_load": (STATUS, [c_void_p, c_char_p, c_size_t, c_char_p, c_void_p]),
    "ptxkit_emulator_allocate": (STATUS, [c_void_p, c_size_t, c_uint32, c_char_p, c_void_p]),
    "ptxkit_emulator_release": (STATUS, [c_void_p, c_uint64]),
    "ptxkit_emulator_write": (STATUS, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "ptxkit_emulator_read": (STATUS, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "ptxkit_module_load": (STATUS, [c_char_p, c_size_t, c_char_p, c_void_p]),
    "ptxkit_module_destroy": (None, [c_void_p]),
    "ptxkit_module_describe": (STATUS, [c_void_p, _STRING_OUT]),
    "ptxkit_launch": (STATUS, [c_void_p, c_char_p, c_void_p, c_void_p, c_size_t, c_char_p, _STRING_OUT, c_void_p]),
}


def _places() -> List[str]:
    """Where the library is looked for: $PTXKIT_LIBRARY alone if it is set; otherwise the package, then the system."""
    named = os.environ.get(VARIABLE)
    if named:
        return [named]
    return [os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", SONAME), SONAME]


def _load() -> Any:
    tried = []
    for place in _places():
        try:
            library = ctypes.CDLL(place)
            for name, (result, arguments) in FUNCTIONS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
            return library
        except (OSError, AttributeError) as reason:
            tried.append(f"  {place}: {reason}")
    where = (
        f"named by ${VARIABLE}"
        if os.environ.get(VARIABLE)
        else f"set ${VARIABLE} to its path, or install the wheel of ptxkit"
    )
    raise _errors.LibraryNotFoundError(f"cannot load {SONAME} ({where}):\n" + "\n".join(tried))


def __getattr__(name: str) -> Any:  # `library` is loaded by its first use
    if name != "library":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["library"] = _load()
    return globals()["library"]


def lib() -> Any:
    """The loaded library."""
    try:
        return globals()["library"]
    except KeyError:
        return __getattr__("library")


def failure(status: int, statuses: Any = None) -> _errors.Error:
    """The error of a call that has just returned `status` on this thread."""
    text = lib().ptxkit_last_error().decode("utf-8", "replace") or lib().ptxkit_status_name(status).decode()
    return _errors.error(text, status, statuses)


def check(status: int) -> None:
    if status != _errors.OK:
        raise failure(status)


def take_string(pointer: c_void_p) -> str:
    """The text of a string that the library returned, which is freed."""
    try:
        return ctypes.string_at(pointer.value or 0).decode("utf-8", "replace") if pointer.value else ""
    finally:
        lib().ptxkit_string_free(pointer)
