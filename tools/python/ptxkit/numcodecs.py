"""The LZ4 codec of numcodecs on this library, with its name and bytes: register() puts it in that one's place."""

from __future__ import annotations

from typing import Any, List, Sequence

import numcodecs
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray

from ptxkit import _batch, _context, _errors

__all__ = ["LZ4", "register"]

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


def register() -> None:
    """Makes this the codec "lz4" of numcodecs in this process. Each worker process has to call it.

    Arrays of Zarr 2 and Zarr 3 that name LZ4 use it from then on; what they write stays readable without this package.
    """
    numcodecs.registry.register_codec(LZ4, "lz4")
