"""What the modules of lz4.frame share: constants, settings and headers of frames."""

from __future__ import annotations

import struct
from typing import Any, Dict

from ptxkit import _batch, _buffers, _errors, _streams

BLOCKSIZE_DEFAULT = 0
BLOCKSIZE_MAX64KB = 4
BLOCKSIZE_MAX256KB = 5
BLOCKSIZE_MAX1MB = 6
BLOCKSIZE_MAX4MB = 7

COMPRESSIONLEVEL_MIN = 0
COMPRESSIONLEVEL_MINHC = 3
COMPRESSIONLEVEL_MAX = 3
"""Of this library; python-lz4 has levels up to 16."""

MAGIC = 0x184D2204
_SKIPPABLE = 0x184D2A50


def block_bytes(block_size: int) -> int:
    if block_size == BLOCKSIZE_DEFAULT:
        return 1 << 16
    if block_size not in (4, 5, 6, 7):
        raise ValueError(f"block_size is {block_size}, expected a BLOCKSIZE_ constant: 0, 4, 5, 6 or 7")
    return int(1 << 8 + 2 * block_size)


def level(compression_level: int) -> int:
    if not 0 <= compression_level <= 3:
        raise _errors.UnsupportedError(
            f"compression_level is {compression_level}, expected 0 to 3", _errors.UNSUPPORTED
        )
    return 2 if compression_level == 3 else 1


def options(
    compression_level: int,
    block_size: int,
    content_checksum: bool,
    block_checksum: bool,
    block_linked: bool,
    content_bytes: int,
) -> Any:
    own_level, flags = level(compression_level), 0
    if block_linked and own_level == 2:
        raise _errors.UnsupportedError(
            "compression_level 3 has independent blocks alone: expected block_linked=False", _errors.UNSUPPORTED
        )
    if not content_checksum:
        flags |= _streams.NO_CONTENT_CHECKSUM
    if block_checksum:
        flags |= _streams.BLOCK_CHECKSUMS
    if block_linked:
        flags |= _streams.LINKED_BLOCKS
    return _streams.options(_batch.LZ4, own_level, flags, block_bytes(block_size), content_bytes)


def bytes_of(data: Any) -> bytes:
    try:
        return memoryview(data).tobytes("A")
    except TypeError as reason:
        raise _buffers.refuse_buffer(data, "data", reason) from None


def damaged(what: str) -> _errors.CorruptInputError:
    return _errors.CorruptInputError(what, _errors.CANNOT_DECOMPRESS)


def header(frame: bytes) -> Dict[str, Any]:
    if len(frame) < 7:
        raise damaged("ERROR_frameHeader_incomplete: the data ends in the header of the frame")
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
    if magic != MAGIC:
        raise damaged(f"ERROR_frameType_unknown: the data begins with 0x{magic:08x}, not with the mark of an LZ4 frame")
    if flags >> 6 != 1:
        raise damaged(f"ERROR_headerVersion_wrong: the frame has version {flags >> 6}, expected 1")
    block_size_id = descriptor >> 4 & 7
    if block_size_id < 4:
        raise damaged(
            f"ERROR_maxBlockSize_invalid: the frame's size of blocks has the number {block_size_id}, expected 4 to 7"
        )
    header_size = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    if len(frame) < header_size:
        raise damaged("ERROR_frameHeader_incomplete: the data ends in the header of the frame")
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


def header_checksum(descriptor: bytes) -> int:
    """The second byte of XXH32 over the descriptor of a frame, which has less than 16 bytes."""
    value, at = (0x165667B1 + len(descriptor)) & 0xFFFFFFFF, 0
    while at + 4 <= len(descriptor):
        value = (value + int.from_bytes(descriptor[at : at + 4], "little") * 0xC2B2AE3D) & 0xFFFFFFFF
        value = (value << 17 | value >> 15) * 0x27D4EB2F & 0xFFFFFFFF
        at += 4
    for byte in descriptor[at:]:
        value = (value + byte * 0x165667B1) & 0xFFFFFFFF
        value = (value << 11 | value >> 21) * 0x9E3779B1 & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return (value ^ value >> 16) >> 8 & 0xFF
