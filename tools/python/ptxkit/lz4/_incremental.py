"""LZ4 frames piece by piece: the contexts, functions and classes of lz4.frame of python-lz4.

What a call compresses or decompresses, whole blocks, is a frame of its own for the library: the header is put in front,
and of linked blocks the 64 KiB before them as a stored block. No thread is needed, and what a call returns depends on
its input alone. Only the checksum of the content is one stream, in a thread.
"""

from __future__ import annotations

import os
import struct
import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union

from ptxkit import _batch, _context, _errors, _streams
from ptxkit.lz4 import _format

_Bytes = Union[bytes, bytearray]
_END_MARK = bytes(4)
_STORED = 1 << 31
_LINKS_REACH = 1 << 16


def _end_worker(worker: _streams.Worker, process: int) -> None:
    if process == os.getpid():
        if threading.current_thread() is worker.thread:
            worker.pipe.stop()
        else:
            worker.stop()


class _ContentChecksum:
    """XXH32 of all pieces: the end of a frame over them, of which nothing else is kept."""

    def __init__(self) -> None:
        end = self._end = [b""]

        def keep_end(data: bytes) -> None:
            end[0] = (end[0] + data)[-4:]

        self._worker = _streams.compressor(
            _context.default(), _streams.options(_batch.LZ4, 1, block_bytes=1 << 22), keep_end
        )
        self._process = os.getpid()
        weakref.finalize(self, _end_worker, self._worker, self._process)

    def update(self, data: Any) -> None:
        if self._process != os.getpid():
            raise _errors.InvalidValueError(
                "the frame was begun before this process was forked: begin it again in the child",
                _errors.INVALID_VALUE,
            )
        self._worker.pipe.put(data)

    def digest(self) -> bytes:
        self._worker.pipe.end()
        self._worker.finish()
        return self._end[0]


class _CompressionContext:
    """The frame that is being written: between compress_begin() and compress_flush()."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.wanted: Any = None
        self.block_bytes = 0
        self.auto_flush = False
        self.pending = b""
        self.source_size = 0
        self.count = 0
        self.checksum: Optional[_ContentChecksum] = None

    def blocks(self, data: Any) -> bytes:
        """The blocks of data, without a header and an end."""
        return _streams.convert(True, _context.default(), self.wanted, data)[7:-4] if len(data) else b""


def create_compression_context() -> _CompressionContext:
    """A context for compress_begin(), compress_chunk() and compress_flush()."""
    return _CompressionContext()


def _of_compression(context: Any, has_begun: str = "") -> _CompressionContext:
    if not isinstance(context, _CompressionContext):
        raise ValueError("No valid compression context supplied")
    if has_begun and context.wanted is None:
        raise _errors.InvalidValueError(
            f"{has_begun}() without a frame: expected compress_begin() before it"
            " (ERROR_compressionState_uninitialized)",
            _errors.INVALID_VALUE,
        )
    return context


def _as(return_bytearray: bool, data: bytes) -> _Bytes:
    return bytearray(data) if return_bytearray else data


def compress_begin(
    context: Any,
    source_size: int = 0,
    compression_level: int = 0,
    block_size: int = 0,
    content_checksum: bool = False,
    block_checksum: bool = False,
    block_linked: bool = True,
    auto_flush: bool = False,
    return_bytearray: bool = False,
) -> _Bytes:
    """Begins a frame and returns its header. With auto_flush each chunk is returned at once, in blocks of its own."""
    context = _of_compression(context)
    if not isinstance(source_size, int) or not 0 <= source_size < 1 << 63:
        kind = ValueError if isinstance(source_size, int) else TypeError
        raise kind(f"source_size is {source_size!r}, expected a number of bytes")
    wanted = _format.options(compression_level, block_size, False, block_checksum, block_linked, 0)
    context.clear()
    context.wanted, context.block_bytes, context.auto_flush = wanted, _format.block_bytes(block_size), auto_flush
    context.source_size = source_size
    if content_checksum:
        context.checksum = _ContentChecksum()
    flags = 1 << 6 | (not block_linked) << 5 | bool(block_checksum) << 4
    flags |= bool(source_size) << 3 | bool(content_checksum) << 2
    descriptor = bytes((flags, (block_size or _format.BLOCKSIZE_MAX64KB) << 4))
    if source_size:
        descriptor += struct.pack("<Q", source_size)
    header = struct.pack("<I", _format.MAGIC) + descriptor + bytes((_format.header_checksum(descriptor),))
    return _as(return_bytearray, header)


def compress_chunk(context: Any, data: Any, return_bytearray: bool = False) -> _Bytes:
    """Takes in data and returns the blocks that are full, which may be none."""
    context = _of_compression(context, "compress_chunk")
    chunk = data if type(data) is bytes else _format.bytes_of(data)
    if context.checksum is not None:
        context.checksum.update(chunk)
    context.count += len(chunk)
    if context.pending:
        chunk = context.pending + chunk
    whole = len(chunk) if context.auto_flush else len(chunk) - len(chunk) % context.block_bytes
    result = context.blocks(memoryview(chunk)[:whole])
    context.pending = chunk[whole:]
    return _as(return_bytearray, result)


def compress_flush(context: Any, end_frame: bool = True, return_bytearray: bool = False) -> _Bytes:
    """The bytes that are kept back, as a block; with end_frame also the end of the frame."""
    context = _of_compression(context, "compress_flush")
    result, context.pending = context.blocks(context.pending), b""
    if end_frame:
        checksum, context.wanted = context.checksum, None
        context.checksum = None
        if context.source_size not in (0, context.count):
            raise _errors.InvalidValueError(
                f"source_size is {context.source_size}, and {context.count} bytes were compressed: expected as many"
                " (ERROR_frameSize_wrong)",
                _errors.INVALID_VALUE,
            )
        result += _END_MARK + (b"" if checksum is None else checksum.digest())
    return _as(return_bytearray, result)


class LZ4FrameCompressor:
    """Compresses a frame piece by piece: begin(), compress() as often as wanted, flush().

    >>> compressor = LZ4FrameCompressor()
    >>> frame = compressor.begin() + compressor.compress(b"abc") + compressor.compress(b"def") + compressor.flush()
    >>> LZ4FrameDecompressor().decompress(frame)
    b'abcdef'
    """

    def __init__(
        self,
        block_size: int = _format.BLOCKSIZE_DEFAULT,
        block_linked: bool = True,
        compression_level: int = _format.COMPRESSIONLEVEL_MIN,
        content_checksum: bool = False,
        block_checksum: bool = False,
        auto_flush: bool = False,
        return_bytearray: bool = False,
    ) -> None:
        self.block_size = block_size
        self.block_linked = block_linked
        self.compression_level = compression_level
        self.content_checksum = content_checksum
        self.block_checksum = block_checksum
        self.auto_flush = auto_flush
        self.return_bytearray = return_bytearray
        self._context: Optional[_CompressionContext] = None

    def __enter__(self) -> LZ4FrameCompressor:
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()

    def begin(self, source_size: int = 0) -> _Bytes:
        """The header of the frame."""
        if self._context is not None:
            raise RuntimeError("LZ4FrameCompressor.begin() called after already initialized")
        context = create_compression_context()
        header = compress_begin(
            context,
            source_size,
            self.compression_level,
            self.block_size,
            self.content_checksum,
            self.block_checksum,
            self.block_linked,
            self.auto_flush,
            self.return_bytearray,
        )
        self._context = context
        return header

    def compress(self, data: Any) -> _Bytes:
        """Takes in data and returns the blocks that are full."""
        if self._context is None:
            raise RuntimeError("compress called after flush(), or before begin()")
        return compress_chunk(self._context, data, self.return_bytearray)

    def flush(self) -> _Bytes:
        """The end of the frame. begin() begins another one."""
        context, self._context = self._context, None
        return compress_flush(context, True, self.return_bytearray)

    def reset(self) -> None:
        """Gives up the frame."""
        self._context = None

    def has_context(self) -> bool:
        return self._context is not None

    def started(self) -> bool:
        return self._context is not None


class _DecompressionContext:
    """The frame that is being read: what has been gathered of its next part, and what the caller has not taken."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.output = memoryview(b"")
        self.error: Optional[BaseException] = None
        self.begin_frame()

    def begin_frame(self) -> None:
        self.gathered = bytearray()
        self.part, self.part_bytes = "header", 7
        self.header: Dict[str, Any] = {}
        self.at = 0  # of the part that is gathered, in the frame
        self.block_index = 0
        self.count = 0
        self.history = b""
        self.checksum: Optional[_ContentChecksum] = None

    def expect(self, part: str, size: int) -> None:
        self.at += len(self.gathered)
        self.gathered = bytearray()
        self.part, self.part_bytes = part, size

    def finish_part(self) -> bool:
        """Acts upon a part that is there in full. True: it was the last one of the frame."""
        if self.part == "header":
            return self._read_header(bytes(self.gathered))
        if self.part == "checksum":
            return self._end(bytes(self.gathered))
        size = int.from_bytes(self.gathered[:4], "little") & ~_STORED
        if len(self.gathered) > 4:
            self.decode(bytes(self.gathered))
        elif size:
            if size > self.header["block_size"]:
                raise self._damaged(
                    f"a block of {size} bytes in a frame whose blocks have at most {self.header['block_size']}:"
                    " ERROR_maxBlockSize_invalid"
                )
            self.part_bytes = 4 + size + 4 * self.header["block_checksum"]
            return False
        elif self.header["content_checksum"]:
            self.expect("checksum", 4)
            return False
        else:
            return self._end(b"")
        self.expect("block", 4)
        return False

    def _read_header(self, data: bytes) -> bool:
        flags = data[4]
        if len(data) == 7 and data[:4] == struct.pack("<I", _format.MAGIC) and flags & 9:
            self.part_bytes = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
            return False
        if len(data) == 7 and data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5:
            self.part_bytes = 8
            return False
        header = _format.header(data)
        if header["skippable"]:
            size = struct.unpack_from("<I", data, 4)[0]
            self.expect("skipped", size)
            return bool(size == 0)
        if _format.header_checksum(data[4:-1]) != data[-1]:
            raise self._damaged("the header's checksum is another: ERROR_headerChecksum_invalid")
        if flags & 1:
            raise _errors.UnsupportedError("frames with a dictionary are not supported", _errors.UNSUPPORTED)
        self.header = header
        if header["content_checksum"]:
            self.checksum = _ContentChecksum()
        self.expect("block", 4)
        return False

    def _end(self, recorded: bytes) -> bool:
        if self.header["content_size"] not in (0, self.count):
            raise self._damaged(
                f"the header says {self.header['content_size']} bytes, and there are {self.count}:"
                " ERROR_frameSize_wrong"
            )
        if self.checksum is not None and self.checksum.digest() != recorded:
            raise self._damaged("the checksum of the content is another: ERROR_contentChecksum_invalid")
        return True

    def _damaged(self, what: str) -> _errors.CorruptInputError:
        return _format.damaged(f"Decompression failed: byte {self.at} of the frame: {what}")

    def whole_blocks(self, data: memoryview, at: int, most: int) -> int:
        """Where the last block ends that is there in full, of at most so many; `at` if the first one is not."""
        rest, size_limit = 4 * self.header["block_checksum"], self.header["block_size"]
        while most and at + 4 <= len(data):
            size = int.from_bytes(data[at : at + 4], "little") & ~_STORED
            if size == 0 or size > size_limit or at + 4 + size + rest > len(data):
                break
            at += 4 + size + rest
            most -= 1
        return at

    def decode(self, data: Any) -> None:
        """Whole blocks, which become the output."""
        blocks, begins, at = [], [], 0
        rest = 4 * self.header["block_checksum"]
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "little") & ~_STORED
            begins.append(at)
            blocks.append(data[at : at + 4 + size])
            if rest:
                blocks.append(data[at + 4 + size : at + 8 + size])
            at += 4 + size + rest
        if rest:  # a stored block has the same checksum, and needs no links
            stored = [
                block if i % 2 else struct.pack("<I", len(block) - 4 | _STORED) + block[4:]
                for i, block in enumerate(blocks)
            ]
            self._convert(stored, begins, has_checksums=True)
            blocks = blocks[::2]
        raw = self._convert(blocks, begins)
        if self.header["block_linked"]:
            self.history = (self.history + raw)[-_LINKS_REACH:]
        self.block_index += len(begins)
        self.count += len(raw)
        if self.checksum is not None:
            self.checksum.update(raw)
        self.output = memoryview(raw)

    def _convert(self, blocks: List[Any], begins: List[int], has_checksums: bool = False) -> bytes:
        linked = self.header["block_linked"] and not has_checksums
        history = self.history if linked else b""
        descriptor = bytes((1 << 6 | (not linked) << 5 | has_checksums << 4, self.header["block_size_id"] << 4))
        parts = [struct.pack("<I", _format.MAGIC), descriptor, bytes((_format.header_checksum(descriptor),))]
        if history:
            parts += [struct.pack("<I", len(history) | _STORED), history]
        try:
            raw = _streams.convert(
                False, _context.default(), _streams.options(), b"".join([*parts, *blocks, _END_MARK])
            )
        except _errors.CorruptInputError as reason:
            index = min(max((reason.block or 0) - bool(history), 0), len(begins) - 1)
            raise _errors.CorruptInputError(
                f"Decompression failed: block {self.block_index + index}, byte {self.at + begins[index]} of the frame:"
                f" {reason.message.split(': ', 2)[-1]}",
                reason.status,
            ) from None
        return raw[len(history) :]


def create_decompression_context() -> _DecompressionContext:
    """A context for decompress_chunk()."""
    return _DecompressionContext()


def _of_decompression(context: Any) -> _DecompressionContext:
    if not isinstance(context, _DecompressionContext):
        raise ValueError("No valid decompression context supplied")
    return context


def reset_decompression_context(context: Any) -> None:
    """Makes the context ready for the beginning of a frame, also after an error."""
    _of_decompression(context).clear()


def decompress_chunk(
    context: Any, data: Any, max_length: int = -1, return_bytearray: bool = False
) -> Tuple[_Bytes, int, bool]:
    """The next raw bytes, how many bytes of data were read, and whether the frame has ended.

    With max_length reading stops when that many bytes are there; the rest of data is to be given again. A context has
    to be reset after an error.
    """
    context = _of_decompression(context)
    view = memoryview(data if type(data) is bytes else _format.bytes_of(data))
    if context.error is not None:
        raise context.error
    try:
        result, at, has_ended = _decompress(context, view, max_length)
    except BaseException as reason:
        context.error = reason
        raise
    return _as(return_bytearray, result), at, has_ended


def _decompress(context: _DecompressionContext, data: memoryview, most: int) -> Tuple[bytes, int, bool]:
    chunks: List[Any] = []
    count = at = 0
    has_ended = False
    while not has_ended:
        if len(context.output):
            taken = context.output if most < 0 else context.output[: most - count]
            chunks.append(taken)
            count += len(taken)
            context.output = context.output[len(taken) :]
        if count == most:
            break
        if context.part == "block" and not context.gathered:
            end = context.whole_blocks(data, at, -1 if most < 0 else 1)
            if end > at:
                context.decode(data[at:end])
                context.at += end - at
                at = end
                continue
        if context.part == "skipped":
            step_bytes = min(context.part_bytes, len(data) - at)
            context.part_bytes -= step_bytes
            at += step_bytes
            has_ended = context.part_bytes == 0
            if has_ended:
                continue
            break
        step = data[at : at + context.part_bytes - len(context.gathered)]
        context.gathered += step
        at += len(step)
        if len(context.gathered) < context.part_bytes:
            break
        has_ended = context.finish_part()
    if has_ended:
        context.begin_frame()
    return bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks), at, has_ended


class LZ4FrameDecompressor:
    """Decompresses a frame piece by piece. It can be used again when the frame has ended.

    eof          the frame has ended with the last call
    needs_input  False: there is more to be had without new data
    unused_data  what followed the frame in the last call; otherwise None
    """

    def __init__(self, return_bytearray: bool = False) -> None:
        self._context = create_decompression_context()
        self._return_bytearray = return_bytearray
        self._clear()

    def _clear(self) -> None:
        self.eof = False
        self.needs_input = True
        self.unused_data: Optional[bytes] = None
        self._unconsumed = b""

    def __enter__(self) -> LZ4FrameDecompressor:
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()

    def reset(self) -> None:
        """Gives up the frame, also after an error."""
        reset_decompression_context(self._context)
        self._clear()

    def decompress(self, data: Any, max_length: int = -1) -> _Bytes:
        """The raw bytes that data adds, at most max_length of them if that is not negative."""
        chunk = data if type(data) is bytes else _format.bytes_of(data)
        if self._unconsumed:
            chunk = self._unconsumed + chunk
        result, taken, self.eof = decompress_chunk(self._context, chunk, max_length, self._return_bytearray)
        rest = chunk[taken:]
        self.unused_data = rest if self.eof and rest else None
        self._unconsumed = b"" if self.eof else rest
        self.needs_input = self.eof or not (self._unconsumed or len(self._context.output))
        return result
