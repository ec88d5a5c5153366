"""Streams through functions in Python: of whole buffers, and in a thread of their own for file objects."""

from __future__ import annotations

import _thread
import ctypes
import threading
from typing import Any, Callable, List, Optional, Tuple

from ptxkit import _buffers, _c, _context, _errors

NO_CONTENT_CHECKSUM, BLOCK_CHECKSUMS, LINKED_BLOCKS = 2, 4, 8

Read = Callable[[int], Any]  # at most so many bytes as a bytes-like object, an empty one at the end
Write = Callable[[bytes], Any]


def options(
    codec: int = 1,
    level: int = 0,
    flags: int = 0,
    block_bytes: int = 0,
    content_bytes: int = 0,
    elements: Tuple[int, int] = (0, 0),
) -> Any:
    return _c.StreamOptions(
        codec=codec,
        level=level,
        flags=flags,
        block_bytes=block_bytes,
        content_bytes=content_bytes,
        dtype=elements[0],
        stride=elements[1],
    )


def run(compresses: bool, context: _context.Context, wanted: Any, read: Read, write: Write) -> Any:
    """Runs a stream to its end and returns its totals. An exception of read or write ends it and is raised again."""
    raised = []

    def on_read(_: Any, into: int, size: int) -> int:
        try:
            data = read(size)
            if type(data) is not bytes:
                data = bytes(memoryview(data))
            if len(data) > size:
                raise ValueError(f"read({size}) returned {len(data)} bytes")
            ctypes.memmove(into, data, len(data))
            return len(data)
        except BaseException as reason:  # it must not pass through the library
            raised.append(reason)
            return -1

    def on_write(_: Any, source: int, size: int) -> int:
        try:
            write(ctypes.string_at(source, size))
            return 0
        except BaseException as reason:
            raised.append(reason)
            return 1

    totals = _c.Totals()
    function = _c.lib().ptxkit_compress_stream if compresses else _c.lib().ptxkit_decompress_stream
    status = function(
        context.handle(),
        ctypes.byref(wanted),
        _c.ReadFunction(on_read),
        None,
        _c.WriteFunction(on_write),
        None,
        ctypes.byref(totals),
    )
    if status != _errors.OK:
        failure = _c.failure(status)
        if raised:
            raise raised[0]
        raise failure
    return totals


def convert(compresses: bool, context: _context.Context, wanted: Any, data: Any) -> bytes:
    """Compresses or decompresses a buffer as one stream.

    Python runs signal handlers between any two steps of the main thread, and what they raise within a function that the
    library calls would be lost, together with the bytes. So the main thread waits for another one. An interrupt stops
    the stream between two batches.
    """
    if threading.current_thread() is not threading.main_thread():
        return _convert(compresses, context, wanted, data, [])
    stops: List[bool] = []
    results: List[bytes] = []
    failures: List[BaseException] = []
    has_begun, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        try:
            results.append(_convert(compresses, context, wanted, data, stops))
        except BaseException as reason:
            failures.append(reason)
        finally:
            has_ended.set()

    interrupt: Optional[BaseException] = None
    try:
        _thread.start_new_thread(work, ())
    except BaseException as reason:
        if isinstance(reason, RuntimeError) and "can't start new thread" in str(reason):  # the process ends, say
            return _convert(compresses, context, wanted, data, [])
        stops.append(True)
        if not has_begun.wait(1):
            raise
        interrupt = reason
    while not has_ended.is_set():
        try:
            has_ended.wait()
        except BaseException as reason:
            interrupt = reason
            stops.append(True)
    if interrupt is not None:
        raise interrupt
    if failures:
        raise failures.pop()
    return results[0]


def _convert(compresses: bool, context: _context.Context, wanted: Any, data: Any, stops: List[bool]) -> bytes:
    with _buffers.Buffers() as inputs:
        inputs.add([data], "data")
        size = inputs.sizes[0]
        begin = inputs.addresses[0] or 0
        at = 0

        def on_read(_: Any, into: int, most: int) -> int:
            nonlocal at
            if stops:
                return -1
            count = min(most, size - at)
            ctypes.memmove(into, begin + at, count)
            at += count
            return count

        chunks = []

        def on_write(_: Any, source: int, count: int) -> int:
            if stops:
                return 1
            chunks.append(ctypes.string_at(source, count))
            return 0

        function = _c.lib().ptxkit_compress_stream if compresses else _c.lib().ptxkit_decompress_stream
        _c.check(
            function(
                context.handle(),
                ctypes.byref(wanted),
                _c.ReadFunction(on_read),
                None,
                _c.WriteFunction(on_write),
                None,
                None,
            )
        )
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class Stopped(Exception):
    """The other side of a pipe has gone."""


class Pipe:
    """Hands bytes from one thread to another, one object at a time."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._chunk: Optional[memoryview] = None
        self._has_ended = False  # nothing more is put
        self._is_stopped = False  # nothing more is taken

    def put(self, data: Any) -> None:
        """Waits until all of it has been taken, or the taker has stopped."""
        view = memoryview(data).cast("B")
        if not len(view):
            return
        with self._condition:
            if self._is_stopped:
                raise Stopped
            self._chunk = view
            self._condition.notify_all()
            while self._chunk is not None and not self._is_stopped:
                self._condition.wait()
            self._chunk = None
            if self._is_stopped:
                raise Stopped

    def take(self, size: int = -1) -> bytes:
        """Up to `size` bytes, all that is there without one; b"" at the end."""
        with self._condition:
            while self._chunk is None and not self._has_ended and not self._is_stopped:
                self._condition.wait()
            if self._is_stopped:
                raise Stopped
            if self._chunk is None:
                return b""
            taken = bytes(self._chunk[:size] if size >= 0 else self._chunk)
            rest = self._chunk[len(taken) :]
            self._chunk = rest if len(rest) else None
            if self._chunk is None:
                self._condition.notify_all()
            return taken

    def check(self) -> None:
        if self._is_stopped:
            raise Stopped

    def end(self) -> None:
        with self._condition:
            self._has_ended = True
            self._condition.notify_all()

    def stop(self) -> None:
        with self._condition:
            self._is_stopped = True
            self._condition.notify_all()


class Worker:
    """A stream in a thread of its own. What it raised is in `error` when it has ended."""

    def __init__(self, pipe: Pipe, work: Callable[[], Any], ends: Callable[[], None]) -> None:
        self.pipe = pipe
        self.error: Optional[BaseException] = None
        self._has_ended = threading.Event()

        def run_it() -> None:
            try:
                work()
            except Stopped:
                pass
            except BaseException as reason:
                self.error = reason
            finally:
                ends()
                self._has_ended.set()

        self.thread = threading.Thread(target=run_it, name="ptxkit stream", daemon=True)
        try:
            self.thread.start()
        except BaseException:  # an interrupt, before anything can stop the thread
            pipe.stop()
            self._has_ended.wait(1)
            raise

    def stop(self) -> None:
        """Ends the stream between two batches, and waits for that."""
        self.pipe.stop()
        self._has_ended.wait()
        self.thread.join()

    def finish(self) -> None:
        """Waits for the end of the stream. Raises what ended it too early."""
        try:
            self._has_ended.wait()  # Thread.join() takes a thread for dead when it is interrupted
        except BaseException:
            self.stop()
            raise
        self.thread.join()
        if self.error is not None:
            error, self.error = self.error, None
            raise error


def compressor(context: _context.Context, wanted: Any, write: Write) -> Worker:
    """Compresses what is put into its pipe until that ends."""
    pipe = Pipe()

    def write_unless_stopped(data: bytes) -> None:
        pipe.check()
        write(data)

    return Worker(pipe, lambda: run(True, context, wanted, pipe.take, write_unless_stopped), pipe.stop)


def decompressor(context: _context.Context, read: Read) -> Worker:
    """Decompresses; the raw bytes are taken from its pipe."""
    pipe = Pipe()
    return Worker(pipe, lambda: run(False, context, options(), read, pipe.put), pipe.end)
