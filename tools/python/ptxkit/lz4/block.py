"""LZ4 blocks, with the functions and errors of lz4.block of python-lz4.

What the encoders of this library do not have is refused with ptxkit.UnsupportedError: dictionaries, acceleration above
1, and high_compression above 3.
"""

from __future__ import annotations

import builtins
from typing import Any, Union

from ptxkit import _batch, _buffers, _context, _errors

__all__ = ["LZ4BlockError", "compress", "decompress"]

_MODES = ("default", "fast", "high_compression")
_LARGEST = 2**31 - 1
_LARGEST_RATIO = 255


class LZ4BlockError(_errors.CorruptInputError):
    """The block is malformed, or larger than the output."""


def _level(mode: str, acceleration: int, compression: int) -> int:
    if mode not in _MODES:
        raise ValueError(f"Invalid mode argument: {mode}. Must be one of: standard, fast, high_compression")
    if acceleration != 1 and mode != "fast":
        raise ValueError(f"acceleration is {acceleration}: it is of mode 'fast'")
    if compression != 0 and mode != "high_compression":
        raise ValueError(f"compression is {compression}: it is of mode 'high_compression'")
    if acceleration > 1:
        raise _errors.UnsupportedError(f"acceleration is {acceleration}: expected at most 1", _errors.UNSUPPORTED)
    if compression > 3:
        raise _errors.UnsupportedError(
            f"compression is {compression}: expected at most 3, or 0 for the default", _errors.UNSUPPORTED
        )
    return 2 if mode == "high_compression" else 1


def _no_dictionary(dictionary: Any) -> None:
    if dictionary is not None and memoryview(dictionary).nbytes:
        raise _errors.UnsupportedError("dict: blocks with a dictionary are not supported", _errors.UNSUPPORTED)


def compress(
    source: Any,
    mode: str = "default",
    store_size: bool = True,
    acceleration: int = 1,
    compression: int = 0,
    return_bytearray: bool = False,
    dict: Any = b"",
) -> Union[bytes, bytearray]:
    """One LZ4 block; with store_size behind its raw size (4 bytes, little-endian).

    >>> decompress(compress(b"abc" * 1000)) == b"abc" * 1000
    True
    >>> len(compress(b"abc" * 1000, store_size=False))
    24
    """
    level = _level(mode, acceleration, compression)
    _no_dictionary(dict)
    framing = _batch.NUMCODECS if store_size else _batch.RAW
    block = _batch.compress(_context.default(), _batch.LZ4, framing, level, (source,))[0]
    return bytearray(block) if return_bytearray else block


def decompress(
    source: Any, uncompressed_size: int = -1, return_bytearray: bool = False, dict: Any = b""
) -> Union[bytes, bytearray]:
    """The raw bytes of a block: of one behind its raw size, or of at most uncompressed_size bytes."""
    _no_dictionary(dict)
    stored = source if type(source) is bytes else _bytes_of(source)
    if uncompressed_size < 0:
        if len(stored) < 4:
            raise ValueError("Input source data size too small")
        size = int.from_bytes(stored[:4], "little")
        if size > _LARGEST:
            raise ValueError(f"Invalid size: 0x{size:x}")
        framing, most = _batch.NUMCODECS, len(stored) - 4
        if size > _LARGEST_RATIO * most:
            raise LZ4BlockError(
                f"Decompression failed: corrupt input: {most} bytes cannot hold {size}", _errors.CANNOT_DECOMPRESS
            )
    else:
        framing, size = _batch.RAW, min(uncompressed_size, _LARGEST_RATIO * len(stored))
    try:
        raw = _batch.decompress(_context.default(), _batch.LZ4, framing, (stored,), (size,))[0]
    except _errors.Error as reason:
        if reason.status not in (_errors.CANNOT_DECOMPRESS, _errors.OUTPUT_TOO_SMALL):
            raise
        raise LZ4BlockError(
            f"Decompression failed: corrupt input or insufficient space in destination buffer: {reason}", reason.status
        ) from None
    return bytearray(raw) if return_bytearray else raw


def _bytes_of(source: Any) -> builtins.bytes:
    try:
        return memoryview(source).tobytes("A")
    except TypeError as reason:
        raise _buffers.refuse_buffer(source, "source", reason) from None
