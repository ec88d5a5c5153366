"""gzip, with the functions, arguments and defaults of Python's module gzip.

compress() makes one member, on one thread; files have members of 64 KiB (BGZF), which all threads code, and which every
reader of gzip takes. compresslevel 0, which stores, is refused with ptxkit.UnsupportedError.
"""

from __future__ import annotations

import gzip as _gzip
from typing import Any, Optional

from ptxkit import _context, _errors, _files, _standard, _streams

__all__ = ["BadGzipFile", "GzipFile", "compress", "decompress", "open"]

_LEVEL = 9


class BadGzipFile(_errors.DataError, _gzip.BadGzipFile):
    """The data is no gzip member, or damaged."""


class _EndedEarly(BadGzipFile, EOFError):
    """The data ends within a member."""


def _level(compresslevel: int) -> int:
    if not 0 <= compresslevel <= 9:
        raise ValueError(f"compresslevel is {compresslevel}, expected 1 to 9")
    if compresslevel == 0:
        raise _errors.UnsupportedError("compresslevel is 0: storing is not supported", _errors.UNSUPPORTED)
    return compresslevel


def compress(data: Any, compresslevel: int = _LEVEL, *, mtime: Optional[float] = 0) -> bytes:
    """One member. mtime is the time that its header has, in seconds since 1970; None: now."""
    member = _standard.encode(_standard.GZIP, _level(compresslevel), (data,))[0]
    if mtime is None:
        import time

        mtime = time.time()
    return member if mtime == 0 else member[:4] + int(mtime).to_bytes(4, "little") + member[8:]


def decompress(data: Any) -> bytes:
    """The content of all members of data; nothing for no data. Zeros may follow the last one."""
    stored = _standard.as_bytes(data)
    if not stored:
        return b""
    try:
        return _standard.decode(_standard.GZIP, (stored,))[0]
    except _errors.DataError as reason:
        kind = _EndedEarly if "truncated" in str(reason) else BadGzipFile
        raise kind(str(reason), reason.status) from None


class GzipFile(_files.File):
    """A file of gzip members. flush() hands what was written to the encoder, which keeps a member until it is full."""

    def __init__(
        self,
        filename: Any = None,
        mode: Optional[str] = None,
        compresslevel: int = _LEVEL,
        fileobj: Any = None,
        mtime: Optional[float] = None,
    ) -> None:
        if mtime:
            raise _errors.UnsupportedError("mtime: members of files have none", _errors.UNSUPPORTED)
        if filename is None and fileobj is None:
            raise TypeError("expected filename or fileobj")
        wanted_mode = mode or str(getattr(fileobj, "mode", "rb"))
        if "t" in wanted_mode or "U" in wanted_mode:
            raise ValueError(f"Invalid mode: {wanted_mode!r}")
        binary = _files.binary_mode(wanted_mode)
        wanted = _streams.options(_standard.GZIP, _level(compresslevel))
        super().__init__(filename if fileobj is None else fileobj, binary, _context.default(), wanted)


def open(
    filename: Any,
    mode: str = "rb",
    compresslevel: int = _LEVEL,
    encoding: Optional[str] = None,
    errors: Optional[str] = None,
    newline: Optional[str] = None,
) -> Any:
    """Opens a gzip file, a path or a file object; with "t" in mode as text."""
    if "t" in mode and "b" in mode:
        raise ValueError(f"Invalid mode: {mode!r}")
    _files.check_text(mode, encoding, errors, newline)
    return _files.in_text(
        GzipFile(filename, mode.replace("t", ""), compresslevel), mode, encoding, errors, newline
    )
