"""LZ4 frames, with the functions of lz4.frame of python-lz4, its arguments and their defaults.

What the encoders of this library do not have is refused with ptxkit.UnsupportedError: compression_level below 0 or
above 3, level 3 with linked blocks, and auto_flush of files. What is compressed piece by piece has links within what
one call hands out, so its blocks should be handed in many at a time.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, Optional, Tuple, Union

from ptxkit import _batch, _buffers, _context, _errors, _files, _streams
from ptxkit.lz4 import _format
from ptxkit.lz4._format import (
    BLOCKSIZE_DEFAULT,
    BLOCKSIZE_MAX1MB,
    BLOCKSIZE_MAX4MB,
    BLOCKSIZE_MAX64KB,
    BLOCKSIZE_MAX256KB,
    COMPRESSIONLEVEL_MAX,
    COMPRESSIONLEVEL_MIN,
    COMPRESSIONLEVEL_MINHC,
)
from ptxkit.lz4._incremental import (
    LZ4FrameCompressor,
    LZ4FrameDecompressor,
    compress_begin,
    compress_chunk,
    compress_flush,
    create_compression_context,
    create_decompression_context,
    decompress_chunk,
    reset_decompression_context,
)

__all__ = [
    "BLOCKSIZE_DEFAULT",
    "BLOCKSIZE_MAX1MB",
    "BLOCKSIZE_MAX256KB",
    "BLOCKSIZE_MAX4MB",
    "BLOCKSIZE_MAX64KB",
    "COMPRESSIONLEVEL_MAX",
    "COMPRESSIONLEVEL_MIN",
    "COMPRESSIONLEVEL_MINHC",
    "LZ4FrameCompressor",
    "LZ4FrameDecompressor",
    "LZ4FrameFile",
    "compress",
    "compress_begin",
    "compress_chunk",
    "compress_flush",
    "create_compression_context",
    "create_decompression_context",
    "decompress",
    "decompress_chunk",
    "get_frame_info",
    "open",
    "reset_decompression_context",
]

_LARGEST_RATIO = 255


def compress(
    data: Any,
    compression_level: int = 0,
    block_size: int = 0,
    content_checksum: bool = False,
    block_checksum: bool = False,
    block_linked: bool = True,
    store_size: bool = True,
    return_bytearray: bool = False,
) -> Union[bytes, bytearray]:
    """A whole frame. A single block has nothing to be linked with: then block_linked changes nothing, as in liblz4.

    >>> frame = compress(b"abc" * 1000, content_checksum=True)
    >>> decompress(frame) == b"abc" * 1000, get_frame_info(frame)["content_checksum"]
    (True, True)
    """
    with _buffers.Buffers() as one:
        one.add([data], "data")
        size = one.sizes[0]
    linked = bool(block_linked) and size > _format.block_bytes(block_size)
    if (
        not linked
        and store_size
        and not content_checksum
        and not block_checksum
        and _format.block_bytes(block_size) == 1 << 16
    ):
        frame = _batch.compress(
            _context.default(), _batch.LZ4, _batch.FRAME, _format.level(compression_level), (data,)
        )[0]
    else:
        wanted = _format.options(
            compression_level, block_size, content_checksum, block_checksum, linked, size if store_size else 0
        )
        frame = _streams.convert(True, _context.default(), wanted, data)
    return bytearray(frame) if return_bytearray else frame


def decompress(data: Any, return_bytearray: bool = False, return_bytes_read: bool = False) -> Any:
    """The raw bytes of the first frame of data; what follows it is not read. Errors: none, or it is damaged."""
    frame = data if type(data) is bytes else _format.bytes_of(data)
    header = _format.header(frame)
    end = _end(frame, header)
    if end != len(frame):
        frame = frame[:end]
    size = header["content_size"]
    if header["skippable"]:
        raw = b""
    elif size and size <= _LARGEST_RATIO * end:
        try:
            raw = _batch.decompress(_context.default(), _batch.LZ4, _batch.FRAME, (frame,), (size,))[0]
        except _errors.CorruptInputError:
            raw = _streams.convert(False, _context.default(), _streams.options(), frame)  # names block and byte
    else:
        raw = _streams.convert(False, _context.default(), _streams.options(), frame)
    result = bytearray(raw) if return_bytearray else raw
    return (result, end) if return_bytes_read else result


def _end(frame: bytes, header: Dict[str, Any]) -> int:
    """Where the frame ends."""
    if header["skippable"]:
        end = 8 + struct.unpack_from("<I", frame, 4)[0] if len(frame) >= 8 else len(frame) + 1
        if end > len(frame):
            raise _format.damaged("Frame incomplete: the data ends in a skippable frame")
        return int(end)
    at, checksum_bytes = int(header["header_size"]), 4 * int(header["block_checksum"])
    while True:
        if at + 4 > len(frame):
            raise _format.damaged("Frame incomplete: the data ends before the frame")
        size = struct.unpack_from("<I", frame, at)[0] & 0x7FFFFFFF
        at += 4
        if size == 0:
            break
        at += int(size) + checksum_bytes
    at += 4 * int(header["content_checksum"])
    if at > len(frame):
        raise _format.damaged("Frame incomplete: the data ends before the frame")
    return at


def get_frame_info(frame: Any) -> Dict[str, Any]:
    """What the header of a frame says."""
    header = _format.header(_format.bytes_of(memoryview(frame)[:19]))
    del header["header_size"]
    return header


class LZ4FrameFile(_files.File):
    """A file of LZ4 frames. flush() ends a frame, and the next write begins another."""

    def __init__(
        self,
        filename: Any = None,
        mode: str = "r",
        block_size: int = BLOCKSIZE_DEFAULT,
        block_linked: bool = True,
        compression_level: int = COMPRESSIONLEVEL_MIN,
        content_checksum: bool = False,
        block_checksum: bool = False,
        auto_flush: bool = False,
        return_bytearray: bool = False,
        source_size: int = 0,
    ) -> None:
        binary = _files.binary_mode(mode)
        if "t" in mode:
            raise ValueError(f"Invalid mode: {mode!r}")
        if auto_flush:
            raise _errors.UnsupportedError(
                "auto_flush: an encoder that keeps nothing back is not supported; flush() ends the frame",
                _errors.UNSUPPORTED,
            )
        wanted = _format.options(
            compression_level, block_size, content_checksum, block_checksum, block_linked, source_size
        )
        super().__init__(
            filename,
            binary,
            _context.default(),
            wanted,
            bytearray if return_bytearray else bytes,
            flush_ends_frame=True,
        )


def open(
    filename: Any,
    mode: str = "rb",
    encoding: Optional[str] = None,
    errors: Optional[str] = None,
    newline: Optional[str] = None,
    block_size: int = BLOCKSIZE_DEFAULT,
    block_linked: bool = True,
    compression_level: int = COMPRESSIONLEVEL_MIN,
    content_checksum: bool = False,
    block_checksum: bool = False,
    auto_flush: bool = False,
    return_bytearray: bool = False,
    source_size: int = 0,
) -> Any:
    """Opens a file of LZ4 frames; with "t" in mode as text."""
    if "t" in mode and "b" in mode:
        raise ValueError(f"Invalid mode: {mode!r}")
    _files.check_text(mode, encoding, errors, newline)
    file = LZ4FrameFile(
        filename,
        mode.replace("t", ""),
        block_size,
        block_linked,
        compression_level,
        content_checksum,
        block_checksum,
        auto_flush,
        return_bytearray,
        source_size,
    )
    return _files.in_text(file, mode, encoding, errors, newline)
