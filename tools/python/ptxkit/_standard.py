"""What the modules of Zstandard and gzip share: whole buffers and batches of them."""

from __future__ import annotations

from typing import Any, List, Sequence

from ptxkit import _batch, _buffers, _context, _errors, _streams

ZSTD, GZIP, ZLIB, DEFLATE = 2, 3, 4, 5
LARGEST_CLAIM_RATIO = 64  # beyond it a claim of the content's size is not believed before the content is there


def as_bytes(data: Any, name: str = "data") -> bytes:
    if type(data) is bytes:
        return data
    try:
        return memoryview(data).tobytes("A")
    except TypeError as reason:
        raise _buffers.refuse_buffer(data, name, reason) from None


def encode(codec: int, level: int, items: Sequence[Any]) -> List[bytes]:
    return _batch.compress(_context.default(), codec, _batch.FRAME, level, items)


def decode(codec: int, items: Sequence[bytes]) -> List[bytes]:
    """In one call where all items say their sizes, otherwise one after another."""
    sizes = [_claim(codec, item) for item in items]
    if all(size is not None for size in sizes):
        return _batch.decompress(_context.default(), codec, _batch.FRAME, items, sizes)
    return [decode_stream(codec, item) for item in items]


def decode_stream(codec: int, item: bytes) -> bytes:
    if not item:
        raise _errors.DataError("the data is empty: expected at least one frame or member", _errors.CANNOT_DECOMPRESS)
    if codec == GZIP and item[:2] != b"\x1f\x8b":  # a stream would take it for what it is
        raise _errors.DataError("the data begins with no gzip member", _errors.CANNOT_DECOMPRESS)
    if codec == ZSTD and item[:4] != b"\x28\xb5\x2f\xfd" and item[1:4] != b"\x2a\x4d\x18":
        raise _errors.DataError("the data begins with no Zstandard frame", _errors.CANNOT_DECOMPRESS)
    return _streams.convert(False, _context.default(), _streams.options(codec), item)


def _claim(codec: int, item: bytes) -> Any:
    if codec != ZSTD or not item:
        return None
    try:
        size = _batch.raw_size(codec, _batch.FRAME, item, len(item))
    except _errors.UnsupportedError:
        return None
    return size if size <= LARGEST_CLAIM_RATIO * len(item) else None


def decode_into(codec: int, item: Any, room: Any) -> None:
    """Fills room; errors if the item has more bytes, or fewer."""
    used = _batch.decompress_into(_context.default(), codec, _batch.FRAME, [item], [room])[0]
    if used.nbytes != memoryview(room).nbytes:
        raise _errors.DataError(
            f"the item has {used.nbytes} bytes, out has {memoryview(room).nbytes}: expected as many",
            _errors.CANNOT_DECOMPRESS,
        )
