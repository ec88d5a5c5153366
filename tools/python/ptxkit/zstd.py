"""Zstandard, with the functions, arguments and defaults of compression.zstd of Python 3.14.

What this library does not have is refused with ptxkit.UnsupportedError: dictionaries, and parameters other than
compression_level, content_size_flag and checksum_flag. Classes that compress and decompress piece by piece, and those
of dictionaries, are not here.
"""

from __future__ import annotations

import enum
from typing import Any, Mapping, NamedTuple, Optional, Tuple

from ptxkit import _context, _errors, _files, _standard, _streams

__all__ = [
    "COMPRESSION_LEVEL_DEFAULT",
    "CompressionParameter",
    "FrameInfo",
    "ZstdError",
    "ZstdFile",
    "compress",
    "decompress",
    "get_frame_info",
    "get_frame_size",
    "open",
]

COMPRESSION_LEVEL_DEFAULT = 3
_LEVELS = (-131072, 22)
_MAGIC = b"\x28\xb5\x2f\xfd"


class ZstdError(_errors.DataError):
    """The data is no Zstandard frame, damaged, or ends within one."""


class CompressionParameter(enum.IntEnum):
    """The parameters that options may have, by libzstd's numbers."""

    compression_level = 100
    content_size_flag = 200
    checksum_flag = 201

    def bounds(self) -> Tuple[int, int]:
        return _LEVELS if self is CompressionParameter.compression_level else (0, 1)


class FrameInfo(NamedTuple):
    """What the header of a frame says. decompressed_size is None where it does not say it."""

    decompressed_size: Optional[int]
    dictionary_id: int


class _Settings(NamedTuple):
    level: int
    has_size: bool
    has_checksum: bool


def _no_dictionary(zstd_dict: Any) -> None:
    if zstd_dict is not None:
        raise _errors.UnsupportedError("zstd_dict: dictionaries are not supported", _errors.UNSUPPORTED)


def _settings(level: Optional[int], options: Optional[Mapping[int, int]]) -> _Settings:
    if level is not None and options is not None:
        raise TypeError("Only one of level or options should be used.")
    given = {int(key): value for key, value in (options or {}).items()}
    for key in given:
        if key not in set(CompressionParameter):
            raise _errors.UnsupportedError(
                f"options: the parameter {key} is not supported, expected compression_level, content_size_flag or "
                "checksum_flag",
                _errors.UNSUPPORTED,
            )
    for key, value in given.items():
        least, most = CompressionParameter(key).bounds()
        if not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"options: {CompressionParameter(key).name} is {value!r}, expected {least} to {most}")
    if level is not None and not isinstance(level, int):
        raise TypeError(f"level: expected an int, found {level!r}")
    chosen = given.get(100, 0) if level is None else level
    if not _LEVELS[0] <= chosen <= _LEVELS[1]:
        raise ValueError(f"level is {chosen}, expected {_LEVELS[0]} to {_LEVELS[1]}")
    return _Settings(chosen, bool(given.get(200, 1)), bool(given.get(201, 0)))


def _stream_options(settings: _Settings, size: int) -> Any:
    flags = 0 if settings.has_checksum else _streams.NO_CONTENT_CHECKSUM
    return _streams.options(_standard.ZSTD, settings.level, flags, 0, size if settings.has_size else 0)


def compress(
    data: Any, level: Optional[int] = None, options: Optional[Mapping[int, int]] = None, zstd_dict: Any = None
) -> bytes:
    """One frame."""
    _no_dictionary(zstd_dict)
    settings = _settings(level, options)
    if settings.has_size and not settings.has_checksum:
        return _standard.encode(_standard.ZSTD, settings.level, (data,))[0]
    raw = _standard.as_bytes(data)
    return _streams.convert(True, _context.default(), _stream_options(settings, len(raw)), raw)


def decompress(data: Any, zstd_dict: Any = None, options: Optional[Mapping[int, int]] = None) -> bytes:
    """The content of all frames of data."""
    _no_dictionary(zstd_dict)
    if options:
        raise _errors.UnsupportedError("options: decompression has none", _errors.UNSUPPORTED)
    stored = _standard.as_bytes(data)
    try:
        return _standard.decode(_standard.ZSTD, (stored,))[0]
    except _errors.DataError as reason:
        raise ZstdError(f"Unable to decompress Zstandard data: {reason}", reason.status) from None


def _header(frame: bytes) -> Tuple[FrameInfo, int, bool]:
    """What the header says, its size, and whether a checksum follows the blocks."""
    if frame[:4] != _MAGIC or len(frame) < 5:
        raise ZstdError("the data does not begin with a Zstandard frame", _errors.CANNOT_DECOMPRESS)
    descriptor = frame[4]
    is_single = bool(descriptor & 32)
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    size_code = descriptor >> 6
    size_bytes = (int(is_single), 2, 4, 8)[size_code]
    at = 5 + (not is_single)
    end = at + dictionary_bytes + size_bytes
    if len(frame) < end:
        raise ZstdError("the data ends in the header of the frame", _errors.CANNOT_DECOMPRESS)
    dictionary_id = int.from_bytes(frame[at : at + dictionary_bytes], "little")
    size = int.from_bytes(frame[end - size_bytes : end], "little") + (256 if size_code == 1 else 0)
    return FrameInfo(size if size_bytes else None, dictionary_id), end, bool(descriptor & 4)


def get_frame_info(frame_buffer: Any) -> FrameInfo:
    """What the header of a frame says."""
    return _header(_standard.as_bytes(memoryview(frame_buffer)[:18], "frame_buffer"))[0]


def get_frame_size(frame_buffer: Any) -> int:
    """The bytes of the frame, or the skippable frame, with which the buffer begins."""
    frame = _standard.as_bytes(frame_buffer, "frame_buffer")
    if frame[1:4] == b"\x2a\x4d\x18" and frame[0] >> 4 == 5 and len(frame) >= 8:
        at = 8 + int.from_bytes(frame[4:8], "little")
    else:
        _, at, has_checksum = _header(frame)
        is_last = False
        while not is_last:
            header = int.from_bytes(frame[at : at + 3], "little")
            if at + 3 > len(frame) or header >> 1 & 3 == 3:
                break
            is_last = bool(header & 1)
            at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
        at += 4 * has_checksum if is_last else len(frame)
    if at > len(frame):
        raise ZstdError("the data ends before the frame", _errors.CANNOT_DECOMPRESS)
    return at


class ZstdFile(_files.File):
    """A file of Zstandard frames. flush() ends a frame, and the next write begins another."""

    FLUSH_BLOCK, FLUSH_FRAME = 1, 2

    def __init__(
        self,
        file: Any,
        /,
        mode: str = "r",
        *,
        level: Optional[int] = None,
        options: Optional[Mapping[int, int]] = None,
        zstd_dict: Any = None,
    ) -> None:
        _no_dictionary(zstd_dict)
        binary = _files.binary_mode(mode)
        if "t" in mode:
            raise ValueError(f"Invalid mode: {mode!r}")
        if binary == "rb" and (level is not None or options):
            raise TypeError("level and options are of writing")
        wanted = _stream_options(_settings(level, options), 0)
        super().__init__(file, binary, _context.default(), wanted, flush_ends_frame=True)


def open(
    file: Any,
    /,
    mode: str = "rb",
    *,
    level: Optional[int] = None,
    options: Optional[Mapping[int, int]] = None,
    zstd_dict: Any = None,
    encoding: Optional[str] = None,
    errors: Optional[str] = None,
    newline: Optional[str] = None,
) -> Any:
    """Opens a file of Zstandard frames; with "t" in mode as text."""
    if "t" in mode and "b" in mode:
        raise ValueError(f"Invalid mode: {mode!r}")
    _files.check_text(mode, encoding, errors, newline)
    made = ZstdFile(file, mode.replace("t", ""), level=level, options=options, zstd_dict=zstd_dict)
    return _files.in_text(made, mode, encoding, errors, newline)
