"""The codecs LZ4, Zstd and GZip of numcodecs on this library, with their names and bytes: register() puts them in their
place."""

from __future__ import annotations

from typing import Any, List, Sequence

import numcodecs
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray

from ptxkit import _batch, _context, _errors, _standard, _streams

__all__ = ["GZip", "LZ4", "Zstd", "register"]

_LARGEST = 0x7E000000  # LZ4_MAX_INPUT_SIZE, as numcodecs.LZ4


class LZ4(Codec):  # type: ignore[misc]
    """Reads and writes what numcodecs.LZ4 does: the raw size (4 bytes, little-endian) and one LZ4 block.

    acceleration above 1 is kept, so that arrays with it can be read; encoding with it is refused.
    """

    codec_id = "lz4"
    max_buffer_size = _LARGEST

    def __init__(self, acceleration: int = 1) -> None:
        self.acceleration = acceleration

    def encode(self, buf: Any) -> bytes:
        return self.encode_batch([buf])[0]

    def encode_batch(self, buffers: Sequence[Any]) -> List[bytes]:
        """A list of buffers in one call."""
        if self.acceleration > 1:
            raise _errors.UnsupportedError(
                f"acceleration is {self.acceleration}: encoding has acceleration 1 alone", _errors.UNSUPPORTED
            )
        arrays = [
            buf if type(buf) is bytes else ensure_contiguous_ndarray(buf, self.max_buffer_size) for buf in buffers
        ]
        return _batch.compress(_context.default(), _batch.LZ4, _batch.NUMCODECS, 1, arrays)

    def decode(self, buf: Any, out: Any = None) -> Any:
        stored = buf if type(buf) is bytes else ensure_contiguous_ndarray(buf, self.max_buffer_size)
        if out is None:
            return self.decode_batch([stored])[0]
        room = ensure_contiguous_ndarray(out)
        _batch.decompress_into(_context.default(), _batch.LZ4, _batch.NUMCODECS, [stored], [room])
        return out

    def decode_batch(self, buffers: Sequence[Any]) -> List[bytes]:
        return _batch.decompress(_context.default(), _batch.LZ4, _batch.NUMCODECS, list(buffers), [None] * len(buffers))


class _Standard(Codec):  # type: ignore[misc]
    """A codec of which each item is a file of its own, which says more than a block."""

    _number = 0

    def _encode(self, items: List[Any]) -> List[bytes]:
        raise NotImplementedError

    def encode(self, buf: Any) -> bytes:
        return self.encode_batch([buf])[0]

    def encode_batch(self, buffers: Sequence[Any]) -> List[bytes]:
        """A list of buffers in one call."""
        return self._encode([buf if type(buf) is bytes else ensure_contiguous_ndarray(buf) for buf in buffers])

    def decode(self, buf: Any, out: Any = None) -> Any:
        if out is None:
            return self.decode_batch([buf])[0]
        stored = buf if type(buf) is bytes else ensure_contiguous_ndarray(buf)
        _standard.decode_into(self._number, stored, ensure_contiguous_ndarray(out))
        return out

    def decode_batch(self, buffers: Sequence[Any]) -> List[bytes]:
        return _standard.decode(self._number, [_standard.as_bytes(ensure_contiguous_ndarray(buf)) for buf in buffers])


class Zstd(_Standard):
    """Reads and writes what numcodecs.Zstd does: one Zstandard frame. level is libzstd's; 0 is its default, 3."""

    codec_id = "zstd"
    _number = _standard.ZSTD

    def __init__(self, level: int = 0, checksum: bool = False) -> None:
        self.level = level
        self.checksum = checksum

    def _encode(self, items: List[Any]) -> List[bytes]:
        level = min(self.level, 22)  # as libzstd does
        if not self.checksum:
            return _standard.encode(self._number, level, items)
        raw = [_standard.as_bytes(item) for item in items]
        context = _context.default()
        return [
            _streams.convert(True, context, _streams.options(self._number, level, 0, 0, len(item)), item)
            for item in raw
        ]


class GZip(_Standard):
    """Reads what numcodecs.GZip does, and writes a member. level is 1 to 9."""

    codec_id = "gzip"
    _number = _standard.GZIP

    def __init__(self, level: int = 1) -> None:
        self.level = level

    def _encode(self, items: List[Any]) -> List[bytes]:
        if not 1 <= self.level <= 9:
            raise _errors.UnsupportedError(f"level is {self.level}, expected 1 to 9", _errors.UNSUPPORTED)
        return _standard.encode(self._number, self.level, items)


def register() -> None:
    """Makes these the codecs "lz4", "zstd" and "gzip" of numcodecs in this process. Each worker process has to call it.

    Arrays of Zarr 2 and Zarr 3 that name them use them from then on. What they write stays readable without this
    package.
    """
    for codec in (LZ4, Zstd, GZip):
        numcodecs.registry.register_codec(codec, codec.codec_id)
