"""Files of compressed bytes: File, and open() for .lz4 and .ptz."""

from __future__ import annotations

import atexit
import builtins
import errno
import io
import os
import weakref
from typing import Any, Callable, Optional, Union, cast

from ptxkit import _batch, _codec, _context, _errors, _streams

_BUFFER_BYTES = 1 << 20
_READ_BYTES = 1 << 17

Progress = Callable[[int], object]  # is called with a number of bytes, as tqdm.update


class _Reader(io.RawIOBase):
    """The raw bytes. A seek backwards begins again."""

    def __init__(self, source: Any, context: _context.Context, progress: Optional[Progress]) -> None:
        self._source, self._context, self._progress = source, context, progress
        self._read_bytes = self._reported = 0
        self._begin: Optional[int] = source.tell() if _can_seek(source) else None
        self._worker: Optional[_streams.Worker] = None
        self._at = 0
        self._at_end = False
        self._error: Optional[BaseException] = None
        self._process = os.getpid()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._begin is not None

    def tell(self) -> int:
        return self._at

    def readinto(self, into: Any) -> int:
        view = memoryview(into).cast("B")
        data = self._take(len(view)) if len(view) else b""
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        chunks = []
        while data := self._take(-1):
            chunks.append(data)
        return b"".join(chunks)

    def _take(self, size: int) -> bytes:
        """Up to `size` bytes, all that the thread has at once without one. An error is raised by each call."""
        _check_process(self._process)
        if self._error is not None:
            raise self._error
        if self._at_end:
            return b""
        try:
            if self._worker is None:
                self._worker = _streams.decompressor(self._context, self._read)
            data = self._worker.pipe.take(size)
            if not data:
                self._at_end = True
                self._worker.finish()
            count, self._reported = self._read_bytes - self._reported, self._read_bytes
            if self._progress is not None and count:
                self._progress(count)
        except BaseException as reason:
            self._error = reason  # after an interrupt, too: bytes may be lost
            self.stop()
            raise
        self._at += len(data)
        return data

    def _read(self, size: int) -> Any:
        data = self._source.read(size)
        if data is None:
            raise _would_block()
        self._read_bytes += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._begin is None:
            raise io.UnsupportedOperation("the file below cannot seek")
        if whence == io.SEEK_CUR:
            offset += self._at
        elif whence == io.SEEK_END:
            while self._skip(_BUFFER_BYTES):
                pass
            offset += self._at
        elif whence != io.SEEK_SET:
            raise ValueError(f"whence is {whence}, expected 0, 1 or 2")
        if offset < 0:
            raise ValueError(f"negative position {offset}")
        if offset < self._at or self._error is not None:
            self.stop()
            self._source.seek(self._begin)
            self._at, self._at_end, self._error = 0, False, None
        while self._at < offset and self._skip(min(offset - self._at, _BUFFER_BYTES)):
            pass
        return self._at

    def _skip(self, size: int) -> int:
        return self.readinto(bytearray(size))

    def stop(self) -> None:
        if self._worker is not None and self._process == os.getpid():
            self._worker.stop()
        self._worker = None

    def close(self) -> None:
        if not self.closed:
            self.stop()
        super().close()


class _Writer(io.RawIOBase):
    """Compresses what is written. end() ends the frame or container; writing again begins another."""

    def __init__(self, context: _context.Context, wanted: Any, write: _streams.Write) -> None:
        self._context, self._wanted, self._write = context, wanted, write
        self._worker: Optional[_streams.Worker] = None
        self._error: Optional[BaseException] = None
        self._has_begun = False
        self._process = os.getpid()

    def writable(self) -> bool:
        return True

    def begin(self) -> _streams.Worker:
        _check_process(self._process)
        if self._error is not None:
            raise self._error
        if self._worker is None:
            self._worker = _streams.compressor(self._context, self._wanted, self._write)
            self._has_begun = True
        return self._worker

    def write(self, data: Any) -> int:
        worker = self.begin()
        size = memoryview(data).nbytes
        try:
            worker.pipe.put(data)
        except _streams.Stopped:
            self.end()
            raise
        except BaseException as reason:  # an interrupt: how much was taken is not known, so the stream gets no end
            self._error, self._worker = reason, None
            worker.stop()
            raise
        return size

    def end(self) -> None:
        """Also where nothing was written: an empty file is a frame."""
        if not self._has_begun:
            self.begin()
        worker, self._worker = self._worker, None
        if worker is not None and self._process == os.getpid():
            worker.pipe.end()
            try:
                worker.finish()
            except BaseException as reason:
                self._error = reason
                raise


class File(io.BufferedIOBase):
    """A compressed file that is read or written as its raw bytes. One thread works beside it, and ends with it.

    Reading finds out what the file is; all frames of an .lz4 file are read. Seeking backwards begins again. Several
    threads may use an object, one at a time. flush() hands what was written to the encoder, which keeps a block until
    it is full.
    """

    def __init__(
        self,
        file: Any,
        mode: str,
        context: _context.Context,
        wanted: Any = None,
        as_bytes: Callable[[bytes], Any] = bytes,
        flush_ends_frame: bool = False,
        progress: Optional[Progress] = None,
    ) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(f"progress: expected a function of a number of bytes, found a {type(progress).__name__}")
        self._progress = progress
        self._process = os.getpid()
        self._flush_ends_frame = flush_ends_frame
        self._owns_file = isinstance(file, (str, bytes, os.PathLike))
        if not self._owns_file and not hasattr(file, "read" if mode == "rb" else "write"):
            raise TypeError(f"expected a path or a file object, found a {type(file).__name__}")
        # Without a buffer below: what a forked child inherits is nothing that it could write once more.
        self._file: Any = builtins.open(file, mode, buffering=0) if self._owns_file else file
        self.mode = mode
        self.name = os.fspath(file) if self._owns_file else getattr(file, "name", "")
        self._is_closed = False
        self._dirty = False
        if mode == "rb":
            self._reader = _Reader(self._file, context, progress)
            self._buffer: Any = io.BufferedReader(self._reader, _READ_BYTES)
        else:
            self._writer = _Writer(context, wanted, _write_all(self._file, as_bytes))
            self._buffer = io.BufferedWriter(self._writer, _BUFFER_BYTES)
            self._position = 0
        _open_files.add(self)

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError("cannot pickle a ptxkit.File: pickle its path, and open it again")

    def __repr__(self) -> str:
        return f"<ptxkit.File {self.name!r} mode={self.mode!r}{' closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        return getattr(self, "_is_closed", True)

    def close(self) -> None:
        """Ends the frame or container, and the thread. The file below is closed if it was opened here."""
        if self.closed:
            return
        self._is_closed = True
        _open_files.discard(self)
        try:
            if self._process != os.getpid():
                return  # the parent's thread and bytes
            if self.mode == "rb":
                self._reader.stop()
                self._buffer.close()
            else:
                try:
                    self._buffer.flush()
                finally:
                    if self._dirty or not self._writer._has_begun:
                        self._writer.end()
        finally:
            if self._owns_file:
                self._file.close()

    def _check(self, mode: str) -> Any:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        _check_process(self._process)
        if mode and (mode == "rb") != (self.mode == "rb"):
            raise io.UnsupportedOperation("File not open for " + ("reading" if mode == "rb" else "writing"))
        return self._buffer

    def fileno(self) -> int:
        self._check("")
        return cast(int, self._file.fileno())

    def readable(self) -> bool:
        self._check("")
        return self.mode == "rb"

    def writable(self) -> bool:
        self._check("")
        return self.mode != "rb"

    def seekable(self) -> bool:
        self._check("")
        return self.mode == "rb" and self._reader.seekable()

    def read(self, size: Optional[int] = -1) -> bytes:
        return cast(bytes, self._check("rb").read(size))

    def read1(self, size: int = -1) -> bytes:
        return cast(bytes, self._check("rb").read1(size))

    def readinto(self, into: Any) -> int:
        return cast(int, self._check("rb").readinto(into))

    def readinto1(self, into: Any) -> int:
        return cast(int, self._check("rb").readinto1(into))

    def readline(self, size: Optional[int] = -1) -> bytes:
        return cast(bytes, self._check("rb").readline(-1 if size is None else size))

    def __next__(self) -> bytes:
        if self._is_closed:
            raise ValueError("I/O operation on closed file")
        return cast(bytes, next(self._buffer))

    def peek(self, size: int = 0) -> bytes:
        return cast(bytes, self._check("rb").peek(size))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        buffer = self._check("rb")
        try:
            return cast(int, buffer.seek(offset, whence))
        except BaseException:
            if self._reader._error is not None:
                # The buffer has bytes from before, while the reader stands where the fault is.
                buffer.detach()
                self._buffer = io.BufferedReader(self._reader, _READ_BYTES)
            raise

    def tell(self) -> int:
        buffer = self._check("")
        return cast(int, buffer.tell()) if self.mode == "rb" else self._position

    def write(self, data: Any) -> int:
        size = cast(int, self._check("wb").write(data))
        self._dirty = True
        self._position += size
        if self._progress is not None:
            self._progress(size)
        return size

    def flush(self) -> None:
        buffer = self._check("")
        if self.mode == "rb":
            return
        buffer.flush()
        if self._flush_ends_frame and (self._dirty or not self._writer._has_begun):
            self._writer.end()
            self._dirty = False
        if hasattr(self._file, "flush"):
            self._file.flush()


_open_files: weakref.WeakSet[File] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """At the end of the process, before threads are stopped."""
    for file in list(_open_files):
        try:
            file.close()
        except Exception:  # as the destructor of a file does
            pass


def _check_process(process: int) -> None:
    if process != os.getpid():
        raise _errors.InvalidValueError(
            "the file was opened before this process was forked: open it again in the child", _errors.INVALID_VALUE
        )


def _can_seek(file: Any) -> bool:
    return bool(hasattr(file, "seekable") and file.seekable())


def _write_all(file: Any, as_bytes: Callable[[bytes], Any]) -> _streams.Write:
    def write(data: bytes) -> None:
        while data:
            count = file.write(as_bytes(data))
            if count is None and isinstance(file, io.RawIOBase):
                raise _would_block()
            if not isinstance(count, int) or count >= len(data):  # many objects with a write() return nothing
                return
            if count <= 0:
                raise OSError(f"write() of {file!r} returned {count} for {len(data)} bytes")
            data = data[count:]

    return write


def _would_block() -> BlockingIOError:
    return BlockingIOError(errno.EAGAIN, "the file does not block: open it without O_NONBLOCK", 0)


def binary_mode(mode: str) -> str:
    """ "rb" for "r", and so on. Errors: what is no mode."""
    binary = "".join(sorted(mode.replace("b", "").replace("t", ""))) + "b"
    if binary not in ("rb", "wb", "xb", "ab") or len(mode) > 2 or len(set(mode)) != len(mode):
        raise ValueError(f"Invalid mode: {mode!r}")
    return binary


def in_text(file: File, mode: str, encoding: Optional[str], errors: Optional[str], newline: Optional[str]) -> Any:
    if "t" in mode:
        return io.TextIOWrapper(file, encoding, errors, newline)
    return file


def check_text(mode: str, encoding: Optional[str], errors: Optional[str], newline: Optional[str]) -> None:
    if "t" not in mode:
        for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if value is not None:
                raise ValueError(f"Argument {name!r} not supported in binary mode")


def _codec_for(file: Any, codec: Union[str, _codec.Codec, None]) -> _codec.Codec:
    if codec is None:
        path = os.fsdecode(file) if isinstance(file, (str, bytes, os.PathLike)) else ""
        if not path.endswith(".lz4"):
            raise _errors.InvalidValueError(
                f"codec is not given, and the name {path!r} does not end in .lz4: expected codec='lz4' or a "
                "codec of .ptz files, such as 'lzr'",
                _errors.INVALID_VALUE,
            )
        codec = "lz4"
    if isinstance(codec, str):
        codec = _codec.Codec(codec, framing="frame")
    if not isinstance(codec, _codec.Codec):
        raise TypeError(f"codec: expected a name or a ptxkit.Codec, found a {type(codec).__name__}")
    if codec._settings["framing"] != "frame":
        raise _errors.InvalidValueError(
            f"codec has framing {codec._settings['framing']!r}: files have framing 'frame'", _errors.INVALID_VALUE
        )
    return codec


def open(
    file: Any,
    mode: str = "rb",
    codec: Union[str, _codec.Codec, None] = None,
    *,
    encoding: Optional[str] = None,
    errors: Optional[str] = None,
    newline: Optional[str] = None,
    progress: Optional[Progress] = None,
) -> Any:
    """Opens a compressed file: a path or a file object, to be read, written ("w", "x") or extended ("a", .lz4 only).

    codec, a name or a Codec, is for writing; without it a name that ends in .lz4 is written as LZ4. A reader finds out
    what the file is. Modes with "t" are of text, as in builtins.open().

    progress is called with a number of bytes, as tqdm.update is: of a file that is read with the compressed bytes that
    were read since the last call, of one that is written with the raw bytes that were. What it raises ends the call.

    >>> below, counts = io.BytesIO(), []
    >>> with open(below, "wb", codec="lz4", progress=counts.append) as file:
    ...     size = file.write(b"a line\\n")
    >>> open(io.BytesIO(below.getvalue()), "rt").readlines(), counts
    (['a line\\n'], [7])
    """
    binary = binary_mode(mode)
    check_text(mode, encoding, errors, newline)
    if binary == "rb":
        if codec is not None:
            raise _errors.InvalidValueError(
                "codec is for writing: a reader finds it in the file", _errors.INVALID_VALUE
            )
        return in_text(File(file, binary, _context.default(), progress=progress), mode, encoding, errors, newline)
    chosen = _codec_for(file, codec)
    if binary == "ab" and chosen.name != "lz4":
        raise _errors.InvalidValueError(
            "a .ptz file cannot be extended: mode 'a' is of .lz4 files", _errors.INVALID_VALUE
        )
    wanted = _streams.options(
        chosen._number, chosen._level, 0, chosen._chunk_bytes, elements=chosen._elements or _batch.BYTES
    )
    return in_text(File(file, binary, chosen._context, wanted, progress=progress), mode, encoding, errors, newline)
