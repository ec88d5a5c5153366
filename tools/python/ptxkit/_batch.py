"""Batches of host buffers: the calls behind every codec of this package."""

from __future__ import annotations

import ctypes
import functools
from itertools import accumulate
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ptxkit import _buffers, _c, _context, _errors

LZ4 = 1
RAW, FRAME, NUMCODECS, HDF5, STORED = range(5)
FRAMINGS = {"raw": RAW, "frame": FRAME, "numcodecs": NUMCODECS, "hdf5": HDF5, "stored": STORED}
LARGEST_LZ4_RATIO = 255  # of a block, and so of a frame
RANS = 261
# 32768 elements of one byte each are 20 bytes, those of one value that are coded.
LARGEST_RATIOS = {LZ4: LARGEST_LZ4_RATIO, RANS: 1639}

# dtype and stride of ptxkit_batch_options, by the names that NumPy, ml_dtypes and PyTorch have for types. Integers and
# other types of more than a byte are coded byte by byte.
Elements = Tuple[int, int]
BYTES: Elements = (0, 0)
DTYPES: Dict[str, Elements] = {
    "bfloat16": (1, 0),
    "float16": (2, 0),
    "float32": (3, 0),
    "float8_e4m3fn": (4, 0),
    "float8_e4m3": (4, 0),
    "float8_e5m2": (5, 0),
    "int8": (6, 0),
    "uint8": BYTES,
    **{name: (0, 2) for name in ("int16", "uint16")},
    **{name: (0, 4) for name in ("int32", "uint32")},
    **{name: (0, 8) for name in ("int64", "uint64", "float64", "complex64")},
}


def dtype_name(dtype: Any) -> str:
    """The name of a type: of a string, a NumPy or ml_dtypes dtype or scalar type, or a PyTorch dtype."""
    if isinstance(dtype, str):
        return dtype
    named = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return named if isinstance(named, str) else str(dtype).split(".")[-1]


def elements_of(values: Sequence[Any]) -> Elements:
    """What the items of a batch are by their own `dtype`; bytes where there is none, or none that rans knows."""
    kinds = {DTYPES.get(dtype_name(getattr(value, "dtype", "uint8")), BYTES) for value in values}
    if len(kinds) > 1:
        raise _errors.InvalidValueError(
            "the items have several dtypes: expected one a batch, or dtype=", _errors.INVALID_VALUE
        )
    return kinds.pop() if kinds else BYTES


@functools.lru_cache(maxsize=None)
def options(codec: int, framing: int, level: int, elements: Elements = BYTES) -> Any:
    return _c.BatchOptions(codec=codec, framing=framing, level=level, dtype=elements[0], stride=elements[1])


@functools.lru_cache(maxsize=4096)
def bound(codec: int, framing: int, level: int, size: int, elements: Elements = BYTES) -> int:
    """The most bytes that an item of `size` bytes takes."""
    most, wanted = ctypes.c_size_t(), options(codec, framing, level, elements)
    _c.check(_c.lib().ptxkit_compress_bound(ctypes.byref(wanted), size, ctypes.byref(most)))
    return most.value


def _call(
    function: Any, context: _context.Context, wanted: Any, inputs: _buffers.Buffers, outputs: Any, capacities: Any
) -> Any:
    """Runs a batch and returns the array of the results' sizes."""
    count = len(inputs.sizes)
    array = ctypes.c_size_t * count
    used = array()
    statuses = (_c.STATUS * count)()
    status = function(
        context.handle(),
        ctypes.byref(wanted),
        inputs.addresses,
        array(*inputs.sizes),
        count,
        outputs,
        array(*capacities),
        used,
        statuses,
    )
    if status != _errors.OK:
        raise _c.failure(status, list(statuses) if any(statuses) else None)
    return used


def _call_one(function: Any, context: _context.Context, wanted: Any, data: bytes, room: Any, capacity: int) -> int:
    """The same for one bytes object; `room` is one, too."""
    used = ctypes.c_size_t()
    status = function(
        context.handle(),
        ctypes.byref(wanted),
        ctypes.byref(ctypes.c_char_p(data)),
        ctypes.byref(ctypes.c_size_t(len(data))),
        1,
        ctypes.byref(ctypes.c_char_p(room)),
        ctypes.byref(ctypes.c_size_t(capacity)),
        ctypes.byref(used),
        None,
    )
    if status != _errors.OK:
        raise _c.failure(status, [status])
    return used.value


def compress(
    context: _context.Context,
    codec: int,
    framing: int,
    level: int,
    values: Sequence[Any],
    elements: Elements = BYTES,
) -> List[bytes]:
    wanted, function = options(codec, framing, level, elements), _c.lib().ptxkit_compress_batch
    if len(values) == 1 and type(values[0]) is bytes:
        most = bound(codec, framing, level, len(values[0]), elements)
        room = _buffers.new_bytes(most)
        return [room[: _call_one(function, context, wanted, values[0], room, most)]]
    with _buffers.Buffers() as inputs:
        inputs.add(values, "item")
        if not inputs.sizes:
            return []
        capacities = [bound(codec, framing, level, size, elements) for size in inputs.sizes]
        room = _buffers.new_bytes(sum(capacities))
        begins = list(accumulate(capacities, initial=0))
        base = ctypes.cast(ctypes.c_char_p(room), ctypes.c_void_p).value or 0
        outputs = (ctypes.c_void_p * len(capacities))(*[base + begin for begin in begins[:-1]])
        used = _call(function, context, wanted, inputs, outputs, capacities)
        return [room[begin : begin + size] for begin, size in zip(begins, used)]


def compress_into(
    context: _context.Context,
    codec: int,
    framing: int,
    level: int,
    values: Sequence[Any],
    rooms: Sequence[Any],
    elements: Elements = BYTES,
) -> List[memoryview]:
    """Into buffers of the caller. Returns the part of each that is used."""
    return _into(_c.lib().ptxkit_compress_batch, context, options(codec, framing, level, elements), values, rooms)


def decompress_into(
    context: _context.Context, codec: int, framing: int, values: Sequence[Any], rooms: Sequence[Any]
) -> List[memoryview]:
    return _into(_c.lib().ptxkit_decompress_batch, context, options(codec, framing, 0), values, rooms)


def _into(
    function: Any, context: _context.Context, wanted: Any, values: Sequence[Any], rooms: Sequence[Any]
) -> List[memoryview]:
    if len(values) != len(rooms):
        raise _errors.InvalidValueError(
            f"{len(values)} items and {len(rooms)} buffers in out: expected as many", _errors.INVALID_VALUE
        )
    with _buffers.Buffers() as inputs, _buffers.Buffers() as outputs:
        inputs.add(values, "item")
        outputs.add(rooms, "out", writable=True)
        if not values:
            return []
        used = _call(function, context, wanted, inputs, outputs.addresses, outputs.sizes)
    return [_buffers.bytes_view(room)[:size] for room, size in zip(rooms, used)]


def decompress(
    context: _context.Context, codec: int, framing: int, values: Sequence[Any], sizes: Sequence[Optional[int]]
) -> List[bytes]:
    """Into new bytes objects. A size is the most bytes that the item may have; None: the item says it."""
    wanted, function = options(codec, framing, 0), _c.lib().ptxkit_decompress_batch
    if len(values) == 1 and type(values[0]) is bytes:
        size = sizes[0]
        if size is None:
            size = raw_size(codec, framing, values[0], len(values[0]))
        room = _buffers.new_bytes(size)
        used = _call_one(function, context, wanted, values[0], room, size)
        return [room if used == size else room[:used]]
    with _buffers.Buffers() as inputs:
        inputs.add(values, "item")
        if not inputs.sizes:
            return []
        capacities = [
            raw_size(codec, framing, address, size) if wanted_size is None else wanted_size
            for address, size, wanted_size in zip(inputs.addresses, inputs.sizes, sizes)
        ]
        rooms = [_buffers.new_bytes(capacity) for capacity in capacities]
        outputs = (ctypes.c_char_p * len(rooms))(*rooms)
        all_used = _call(function, context, wanted, inputs, outputs, capacities)
    return [room if used == capacity else room[:used] for room, used, capacity in zip(rooms, all_used, capacities)]


def raw_size(codec: int, framing: int, data: Union[bytes, int, None], size: int) -> int:
    """The raw size that an item claims. Errors: it claims more than its bytes can hold."""
    if (
        framing == NUMCODECS and size >= 4 and data is not None
    ):  # for batches of pages the call below would be a third of all
        raw = (
            int.from_bytes(data[:4], "little") if isinstance(data, bytes) else ctypes.c_uint32.from_address(data).value
        )
    else:
        claimed = ctypes.c_size_t()
        status = _c.lib().ptxkit_decompressed_size(
            ctypes.byref(options(codec, framing, 0)), data, size, ctypes.byref(claimed)
        )
        if status != _errors.OK:
            raise _c.failure(status)
        raw = claimed.value
    most = LARGEST_RATIOS.get(codec)
    if most is not None and raw > most * size:
        raise _errors.DataError(
            f"an item of {size} bytes claims to hold {raw}: expected at most {most} times as many",
            _errors.CANNOT_DECOMPRESS,
        )
    return raw
