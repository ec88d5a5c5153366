"""Errors. ptxkit.Error is a RuntimeError with the status of the C ABI; its subclasses are Python's exceptions, too."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

OK = 0
INVALID_VALUE = 10
UNSUPPORTED = 11
CANNOT_DECOMPRESS = 12
BAD_CHECKSUM = 13
OUTPUT_TOO_SMALL = 15
MISALIGNED = 17
ITEM_TOO_LARGE = 18
NO_MEMORY = 100
IO = 101
CANCELLED = 102
NO_DEVICE = 103
DEVICE = 1000
INTERNAL = 10000


class LibraryNotFoundError(ImportError):
    """libptxkit.so.1 cannot be loaded; the message lists where it was looked for."""


class Error(RuntimeError):
    """A call that failed.

    status is a ptxkit_status, such as 12. statuses has one for each item of a batch, and is None without a batch.
    """

    def __init__(self, message: str, status: int = INTERNAL, statuses: Optional[Sequence[int]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.statuses: Optional[Tuple[int, ...]] = None if statuses is None else tuple(statuses)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.message, self.status, self.statuses)


class InvalidValueError(Error, ValueError):
    """An argument is wrong, or an output is too small."""


class UnsupportedError(Error, NotImplementedError):
    """This codec, framing or device cannot do it."""


class CorruptInputError(Error):
    """Compressed bytes are malformed, or are not those that were compressed.

    block and byte say where, counted from 0, as far as the message does: of a stream or file the block, and the place
    in the compressed bytes. Of a batch, statuses says which item.

    >>> error = CorruptInputError("input, frame 0, block 2, byte 932: block checksum mismatch", BAD_CHECKSUM)
    >>> error.block, error.byte
    (2, 932)
    >>> CorruptInputError("item 0 of 1").byte is None
    True
    """

    @property
    def block(self) -> Optional[int]:
        return _number_after("block", self.message)

    @property
    def byte(self) -> Optional[int]:
        return _number_after("byte", self.message)


DataError = CorruptInputError  # the older name


def _number_after(word: str, text: str) -> Optional[int]:
    import re

    found = re.search(rf"\b{word} (\d+)", text)
    return int(found[1]) if found else None


class OutOfMemoryError(Error, MemoryError):
    """Memory that the library needs cannot be had."""


class StreamError(Error, OSError):
    """A file cannot be read or written."""


class DeviceError(Error):
    """There is no GPU or no driver, or the driver reported an error."""


_CLASSES = {
    INVALID_VALUE: InvalidValueError,
    UNSUPPORTED: UnsupportedError,
    CANNOT_DECOMPRESS: CorruptInputError,
    BAD_CHECKSUM: CorruptInputError,
    OUTPUT_TOO_SMALL: InvalidValueError,
    MISALIGNED: InvalidValueError,
    ITEM_TOO_LARGE: InvalidValueError,
    NO_MEMORY: OutOfMemoryError,
    IO: StreamError,
    NO_DEVICE: DeviceError,
    DEVICE: DeviceError,
}


def error(message: str, status: int, statuses: Optional[Sequence[int]] = None) -> Error:
    """The error of a status."""
    return _CLASSES.get(status, Error)(message, status, statuses)
