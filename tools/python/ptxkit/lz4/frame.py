"""LZ4 frames, with the functions of lz4.frame of python-lz4, its arguments and their defaults.

What the encoders of this library do not have is refused with ptxkit.UnsupportedError: compression_level below 0 or
above 3, auto_flush, and level 3 with linked blocks. Classes that compress and decompress piece by piece are not here.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, Optional, Tuple, Union

from ptxkit import _batch, _buffers, _context, _errors, _files, _streams

__all__ = [
    "BLOCKSIZE_DEFAULT",
    "BLOCKSIZE_MAX1MB",
    "BLOCKSIZE_MAX256KB",
    "BLOCKSIZE_MAX4MB",
    "BLOCKSIZE_MAX64KB",
    "COMPRESSIONLEVEL_MAX",
    "COMPRESSIONLEVEL_MIN",
    "COMPRESSIONLEVEL_MINHC",
    "LZ4FrameFile",
    "compress",
    "decompress",
    "get_frame_info",
    "open",
]

BLOCKSIZE_DEFAULT = 0
BLOCKSIZE_MAX64KB = 4
BLOCKSIZE_MAX256KB = 5
BLOCKSIZE_MAX1MB = 6
BLOCKSIZE_MAX4MB = 7

COMPRESSIONLEVEL_MIN = 0
COMPRESSIONLEVEL_MINHC = 3
COMPRESSIONLEVEL_MAX = 3
"""Of this library; python-lz4 has levels up to 16."""

_MAGIC = 0x184D2204
_SKIPPABLE = 0x184D2A50
_LARGEST_RATIO = 255


def _block_bytes(block_size: int) -> int:
    if block_size == BLOCKSIZE_DEFAULT:
        return 1 << 16
    if block_size not in (4, 5, 6, 7):
        raise ValueError(f"block_size is {block_size}, expected a BLOCKSIZE_ constant: 0, 4, 5, 6 or 7")
    return int(1 << 8 + 2 * block_size)


def _level(compression_level: int) -> int:
    if not 0 <= compression_level <= 3:
        raise _errors.UnsupportedError(
            f"compression_level is {compression_level}, expected 0 to 3", _errors.UNSUPPORTED
        )
    return 2 if compression_level == 3 else 1


def _options(
    compression_level: int,
    block_size: int,
    content_checksum: bool,
    block_checksum: bool,
    block_linked: bool,
    content_bytes: int,
) -> Any:
    level, flags = _level(compression_level), 0
    if block_linked and level == 2:
        raise _errors.UnsupportedError(
            "compression_level 3 has independent blocks alone: expected block_linked=False", _errors.UNSUPPORTED
        )
    if not content_checksum:
        flags |= _streams.NO_CONTENT_CHECKSUM
    if block_checksum:
        flags |= _streams.BLOCK_CHECKSUMS
    if block_linked:
        flags |= _streams.LINKED_BLOCKS
    return _streams.options(_batch.LZ4, level, flags, _block_bytes(block_size), content_bytes)


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
    """A whole frame. A single block has nothing to be linked with: then block_linked changes nothing, as in liblz4."""
    with _buffers.Buffers() as one:
        one.add([data], "data")
        size = one.sizes[0]
    linked = bool(block_linked) and size > _block_bytes(block_size)
    if (
        not linked
        and store_size
        and not content_checksum
        and not block_checksum
        and _block_bytes(block_size) == 1 << 16
    ):
        frame = _batch.compress(_context.default(), _batch.LZ4, _batch.FRAME, _level(compression_level), (data,))[0]
    else:
        wanted = _options(
            compression_level, block_size, content_checksum, block_checksum, linked, size if store_size else 0
        )
        frame = _streams.convert(True, _context.default(), wanted, data)
    return bytearray(frame) if return_bytearray else frame


def decompress(data: Any, return_bytearray: bool = False, return_bytes_read: bool = False) -> Any:
    """The raw bytes of the first frame of data; what follows it is not read. Errors: none, or it is damaged."""
    frame = data if type(data) is bytes else _bytes_of(data)
    header = _header(frame)
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


def _bytes_of(data: Any) -> bytes:
    try:
        return memoryview(data).tobytes("A")
    except TypeError as reason:
        raise _buffers.refuse_buffer(data, "data", reason) from None


def _damaged(what: str) -> _errors.CorruptInputError:
    return _errors.CorruptInputError(what, _errors.CANNOT_DECOMPRESS)


def _header(frame: bytes) -> Dict[str, Any]:
    if len(frame) < 7:
        raise _damaged("ERROR_frameHeader_incomplete: the data ends in the header of the frame")
    magic, flags, descriptor = struct.unpack_from("<IBB", frame)
    if magic & ~0xF == _SKIPPABLE:
        return {
            "block_size": 0,
            "block_size_id": 0,
            "block_linked": False,
            "content_checksum": False,
            "block_checksum": False,
            "content_size": 0,
            "skippable": True,
            "header_size": 8,
        }
    if magic != _MAGIC:
        raise _damaged(
            f"ERROR_frameType_unknown: the data begins with 0x{magic:08x}, not with the mark of an LZ4 frame"
        )
    if flags >> 6 != 1:
        raise _damaged(f"ERROR_headerVersion_wrong: the frame has version {flags >> 6}, expected 1")
    block_size_id = descriptor >> 4 & 7
    if block_size_id < 4:
        raise _damaged(
            f"ERROR_maxBlockSize_invalid: the frame's size of blocks has the number {block_size_id}, expected 4 to 7"
        )
    header_size = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    if len(frame) < header_size:
        raise _damaged("ERROR_frameHeader_incomplete: the data ends in the header of the frame")
    return {
        "block_size": 1 << 8 + 2 * block_size_id,
        "block_size_id": block_size_id,
        "block_linked": not flags >> 5 & 1,
        "content_checksum": bool(flags >> 2 & 1),
        "block_checksum": bool(flags >> 4 & 1),
        "content_size": struct.unpack_from("<Q", frame, 6)[0] if flags & 8 else 0,
        "skippable": False,
        "header_size": header_size,
    }


def _end(frame: bytes, header: Dict[str, Any]) -> int:
    """Where the frame ends."""
    if header["skippable"]:
        end = 8 + struct.unpack_from("<I", frame, 4)[0] if len(frame) >= 8 else len(frame) + 1
        if end > len(frame):
            raise _damaged("Frame incomplete: the data ends in a skippable frame")
        return int(end)
    at, checksum_bytes = int(header["header_size"]), 4 * int(header["block_checksum"])
    while True:
        if at + 4 > len(frame):
            raise _damaged("Frame incomplete: the data ends before the frame")
        size = struct.unpack_from("<I", frame, at)[0] & 0x7FFFFFFF
        at += 4
        if size == 0:
            break
        at += int(size) + checksum_bytes
    at += 4 * int(header["content_checksum"])
    if at > len(frame):
        raise _damaged("Frame incomplete: the data ends before the frame")
    return at


def get_frame_info(frame: Any) -> Dict[str, Any]:
    """What the header of a frame says."""
    header = _header(_bytes_of(memoryview(frame)[:19]))
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
        wanted = _options(compression_level, block_size, content_checksum, block_checksum, block_linked, source_size)
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
