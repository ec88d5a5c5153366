"""Codec: buffers and batches of buffers of one codec."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, List, NamedTuple, Optional, Sequence, Union, overload

from ptxkit import _batch, _buffers, _c, _context, _errors, _streams


_CAN_STREAM = 2  # PTXKIT_CAN_STREAM


class CodecInfo(NamedTuple):
    """What a codec can do, as ptxkit_codec_query() says it."""

    name: str
    extension: str
    framings: Sequence[str]
    levels: range
    default_level: int
    default_block_bytes: int
    largest_item_bytes: int
    has_streams: bool  # it is a format of files


def find(name: str) -> int:
    """The number of a codec. The error lists the names."""
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string such as 'lz4', found a {type(name).__name__}")
    if "\0" in name:
        raise _errors.InvalidValueError(f"there is no codec {name!r}", _errors.INVALID_VALUE)
    number = ctypes.c_uint32()
    _c.check(_c.lib().ptxkit_codec_find(name.encode(), ctypes.byref(number)))
    return number.value


def _info(number: int) -> CodecInfo:
    info = _c.CodecInfo()
    _c.check(_c.lib().ptxkit_codec_query(number, ctypes.byref(info)))
    framings = [name for name, bit in _batch.FRAMINGS.items() if info.framings >> bit & 1]
    return CodecInfo(
        info.name.decode(),
        info.extension.decode(),
        framings,
        range(info.least_level, info.greatest_level + 1),
        info.default_level,
        info.default_block_bytes,
        info.largest_host_item,
        bool(info.operations & _CAN_STREAM),
    )


def codecs() -> List[CodecInfo]:
    """All codecs of the library."""
    found = []
    for index in range(_c.lib().ptxkit_codec_count()):
        number = ctypes.c_uint32()
        _c.check(_c.lib().ptxkit_codec_at(index, ctypes.byref(number)))
        found.append(_info(number.value))
    return found


def whole_number(value: Any, name: str, most: int = sys.maxsize) -> int:
    """An int of -most - 1 to most: ctypes would take another modulo its type's size."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected a whole number, found {value!r}")
    number = int(value.__index__())
    if not -most - 1 <= number <= most:
        raise _errors.InvalidValueError(f"{name}: {number} is not in {-most - 1} to {most}", _errors.INVALID_VALUE)
    return number


class Codec:
    """Compresses and decompresses buffers in host memory, and arrays in device memory.

    name         "lz4"; of .ptz containers "lzr", "lzf", "deflate-like", "bbw", and "rans" for arrays of numbers; codecs()
                 lists all
    level        0: the codec's default; codecs() lists the levels
    chunk_bytes  raw bytes of a block of framing "frame"; None: 64 KiB for lz4, the codec's default otherwise
    framing      "frame" (default but of rans): a whole file. Of rans "raw" is the default. Of lz4 also "raw", "numcodecs", "hdf5"
                 and "stored" (docs/c-api.md)
    threads      0: one for each usable core
    policy       "automatic", "cpu", "gpu" or "mixed"; of buffers in host memory
    dtype        of rans: what the elements are, as a name ("bfloat16"), a dtype of NumPy, ml_dtypes or PyTorch; None:
                 each array's own where it is known, otherwise bytes
    stream       of arrays in device memory; None: the current stream of their framework (ptxkit.device)

    An array of CuPy, PyTorch, JAX or Numba stays on its GPU: of lz4 and rans, arrays of the exact sizes come back.
    A list or a tuple of buffers is one batch, which is worked off by all threads. Objects can be used by several
    threads at a time, pickled and copied.
    """

    def __init__(
        self,
        name: str = "lz4",
        *,
        level: int = 0,
        chunk_bytes: Optional[int] = None,
        framing: Optional[str] = None,
        threads: int = 0,
        policy: str = "automatic",
        dtype: Any = None,
        stream: Any = None,
    ) -> None:
        if framing is None:
            framing = "raw" if name == "rans" else "frame"
        if framing not in _batch.FRAMINGS:
            raise _errors.InvalidValueError(
                f"there is no framing {framing!r}, expected {', '.join(_batch.FRAMINGS)}", _errors.INVALID_VALUE
            )
        self._settings = {
            "level": whole_number(level, "level", 2**31 - 1),
            "chunk_bytes": chunk_bytes,
            "framing": framing,
            "threads": threads,
            "policy": policy,
            "dtype": None if dtype is None else _batch.dtype_name(dtype),
        }
        self._stream = stream
        self._name = name
        self._number = find(name)
        self._level = int(level)
        self._framing = _batch.FRAMINGS[framing]
        self._chunk_bytes = 0
        self._elements = None if dtype is None else self._read_dtype(dtype)
        _batch.bound(self._number, self._framing, self._level, 0)  # refuses what the codec lacks
        if chunk_bytes is not None:
            self._chunk_bytes = self._read_chunk_bytes(chunk_bytes)
        self._context = _context.shared(policy, threads)

    def _read_dtype(self, dtype: Any) -> _batch.Elements:
        if self._number != _batch.RANS:
            raise _errors.InvalidValueError(
                f"dtype is of codec 'rans', found codec {self._name!r}", _errors.INVALID_VALUE
            )
        found = _batch.DTYPES.get(_batch.dtype_name(dtype))
        if found is None:
            raise _errors.InvalidValueError(
                f"there is no dtype {_batch.dtype_name(dtype)!r}, expected {', '.join(_batch.DTYPES)}",
                _errors.INVALID_VALUE,
            )
        return found

    def _elements_of(self, items: List[Any]) -> _batch.Elements:
        if self._number != _batch.RANS:
            return _batch.BYTES
        return _batch.elements_of(items) if self._elements is None else self._elements

    def _read_chunk_bytes(self, value: int) -> int:
        size = whole_number(value, "chunk_bytes")
        if self._framing != _batch.FRAME:
            raise _errors.InvalidValueError(
                f"chunk_bytes is of framing 'frame', found framing {self._settings['framing']!r}", _errors.INVALID_VALUE
            )
        allowed = [2**n for n in range(12, 21)] if self._number != _batch.LZ4 else [2**16, 2**18, 2**20, 2**22]
        if size not in allowed:
            raise _errors.InvalidValueError(
                f"chunk_bytes is {size}, {self._name} takes {', '.join(map(str, allowed))}", _errors.INVALID_VALUE
            )
        return size

    @property
    def name(self) -> str:
        return self._name

    @property
    def info(self) -> CodecInfo:
        return _info(self._number)

    def describe(self) -> str:
        """What runs the work: "cpu, 16 threads, liblz4 1.9.4"."""
        return self._context.describe()

    def __repr__(self) -> str:
        given = [f"{key}={value!r}" for key, value in self._settings.items() if value != _DEFAULTS[key]]
        return f"Codec({', '.join([repr(self._name), *given])})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codec) and (self._name, self._settings) == (other._name, other._settings)

    def __hash__(self) -> int:
        return hash((self._name, *self._settings.values()))

    def __reduce__(self) -> Any:
        return _remake, (self._name, self._settings)

    @overload
    def encode(self, data: Union[List[Any], "tuple[Any, ...]"], out: Optional[Sequence[Any]] = None) -> List[bytes]: ...

    @overload
    def encode(self, data: Any, out: Any = None) -> bytes: ...

    def encode(self, data: Any, out: Any = None) -> Any:
        """The compressed bytes of a buffer, or a list of them for a list of buffers.

        With out, a writable buffer (or as many as there are items), the bytes are written there. The result is then a
        memoryview of the part that is used (or a list of them). Of arrays in device memory the results are
        DeviceArrays, and the call waits for their sizes; ptxkit.device.Compression does not.
        """
        items = list(data) if isinstance(data, (list, tuple)) else [data]
        if items and _buffers.is_on_device(items[0]):
            from ptxkit import device

            framing = str(self._settings["framing"])
            rooms = None if out is None else _rooms(data, items, out)
            self._refuse_chunk_bytes()
            batch = device.Compression(
                items,
                framing=framing,
                outputs=rooms,
                stream=self._stream,
                codec=self._name,
                dtype=self._settings["dtype"],
                level=self._level,
            )
            arrays = batch.run().results()
            return arrays if isinstance(data, (list, tuple)) else arrays[0]
        if self._chunk_bytes:
            wanted = _streams.options
            results: Any = [
                _streams.convert(
                    True,
                    self._context,
                    wanted(
                        self._number,
                        self._level,
                        _streams.NO_CONTENT_CHECKSUM if self._number == _batch.LZ4 else 0,
                        self._chunk_bytes,
                        _size_of(item) if self._number == _batch.LZ4 else 0,
                        elements=self._elements_of(items),
                    ),
                    item,
                )
                for item in items
            ]
            if out is not None:
                results = [_copy(result, room) for result, room in zip(results, _rooms(data, items, out))]
        elif out is None:
            elements = self._elements_of(items)
            results = _batch.compress(self._context, self._number, self._framing, self._level, items, elements)
        else:
            results = _batch.compress_into(
                self._context,
                self._number,
                self._framing,
                self._level,
                items,
                _rooms(data, items, out),
                self._elements_of(items),
            )
        return results if isinstance(data, (list, tuple)) else results[0]

    @overload
    def decode(
        self,
        data: Union[List[Any], "tuple[Any, ...]"],
        sizes: Optional[Sequence[int]] = None,
        out: Optional[Sequence[Any]] = None,
    ) -> List[bytes]: ...

    @overload
    def decode(self, data: Any, sizes: Optional[int] = None, out: Any = None) -> bytes: ...

    def decode(self, data: Any, sizes: Any = None, out: Any = None) -> Any:
        """The raw bytes of a compressed buffer, or a list of them for a list of buffers.

        sizes is the largest raw size (of each item of a list). It is needed for framing "stored", whose raw sizes it
        must be exactly, and saves a look at the others. With out the bytes are written there, see encode().
        """
        is_batch = isinstance(data, (list, tuple))
        items = list(data) if is_batch else [data]
        if items and _buffers.is_on_device(items[0]):
            from ptxkit import device

            framing = str(self._settings["framing"])
            batch = device.Decompression(
                items,
                sizes=sizes if sizes is None or is_batch else [sizes],
                framing=framing,
                outputs=None if out is None else _rooms(data, items, out),
                stream=self._stream,
                codec=self._name,
            )
            arrays = batch.run().results()
            return arrays if is_batch else arrays[0]
        if out is not None:
            if sizes is not None:
                raise _errors.InvalidValueError(
                    "sizes and out: expected one of them, a buffer of out has a size", _errors.INVALID_VALUE
                )
            results: Any = _batch.decompress_into(
                self._context, self._number, self._framing, items, _rooms(data, items, out)
            )
            return results if is_batch else results[0]
        if self._framing == _batch.STORED and sizes is None:
            raise _errors.InvalidValueError(
                "items of framing 'stored' do not say their raw size: expected sizes or out", _errors.INVALID_VALUE
            )
        wanted = self._sizes(items, sizes, is_batch)
        try:
            results = _batch.decompress(self._context, self._number, self._framing, items, wanted)
        except _errors.UnsupportedError:
            if self._framing != _batch.FRAME or sizes is not None or not self.info.has_streams:
                raise  # what is no format of files is no stream, either
            results = [
                _streams.convert(False, self._context, _streams.options(), item) for item in items
            ]  # no content size
        return results if is_batch else results[0]

    def _refuse_chunk_bytes(self) -> None:
        if self._chunk_bytes:
            raise _errors.UnsupportedError("arrays in device memory have no chunk_bytes", _errors.UNSUPPORTED)

    def _sizes(self, items: List[Any], sizes: Any, is_batch: bool) -> Sequence[Optional[int]]:
        if sizes is None:
            return [None] * len(items)
        given = list(sizes) if is_batch else [sizes]
        if len(given) != len(items):
            raise _errors.InvalidValueError(
                f"{len(items)} items and {len(given)} sizes: expected as many", _errors.INVALID_VALUE
            )
        checked = [whole_number(size, "sizes", _MOST_BYTES) for size in given]
        if any(size < 0 for size in checked):
            raise _errors.InvalidValueError(f"sizes: {min(checked)} is negative", _errors.INVALID_VALUE)
        return checked


_MOST_BYTES = 1 << 47  # of an address space
_DEFAULTS = {"level": 0, "chunk_bytes": None, "framing": "frame", "threads": 0, "policy": "automatic", "dtype": None}


def _remake(name: str, settings: Any) -> Codec:
    return Codec(name, **settings)


def _rooms(data: Any, items: List[Any], out: Any) -> List[Any]:
    if not isinstance(data, (list, tuple)):
        return [out]
    if not isinstance(out, (list, tuple)):
        raise TypeError(f"out: expected a list of {len(items)} buffers, found a {type(out).__name__}")
    return list(out)


def _size_of(item: Any) -> int:
    with _buffers.Buffers() as one:
        one.add([item], "item")
        return one.sizes[0]


def _copy(result: bytes, room: Any) -> memoryview:
    view = memoryview(room).cast("B")
    if view.readonly:
        raise _errors.InvalidValueError("out is read-only: expected a writable buffer", _errors.INVALID_VALUE)
    if len(result) > len(view):
        raise _errors.InvalidValueError(
            f"out has {len(view)} bytes, expected at least {len(result)}", _errors.OUTPUT_TOO_SMALL
        )
    view[: len(result)] = result
    return view[: len(result)]
