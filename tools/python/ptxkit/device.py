"""Batches of arrays in device memory: CuPy, PyTorch, JAX and Numba arrays, without a copy, on the caller's stream.

    batch = ptxkit.device.Compression(x, item_bytes=65536)   # x: an array on a GPU; allocates, copies and waits
    back = ptxkit.device.Decompression(batch)                # sizes stay on the GPU
    batch.run()                                              # these two are queued, and do none of that
    back.run()
    packed = batch.results()                                 # waits; arrays of the exact sizes

Arrays are found by __cuda_array_interface__ or __dlpack__ (of PyTorch directly), and must be contiguous. Work is queued
on `stream`: None, the current stream of the arrays' framework at each call; a stream object of PyTorch, CuPy, Numba or
cuda.core; or a handle, where 0 and 1 are the legacy default stream and 2 the per-thread one. Codec.encode() and
.decode() use these classes for arrays in device memory.
"""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ptxkit import _batch, _c, _codec, _driver, _errors
from ptxkit._device_arrays import DeviceArray, Region, Source, current_stream_of, from_host, source_of, stream_of

__all__ = ["Compression", "Decompression", "DeviceArray", "from_host"]

_ALIGNMENT = 256
_LARGEST_RAW = 0x7E000000  # of an LZ4 block

_library_lock = threading.Lock()
_library_devices: Dict[Tuple[str, int, int], int] = {}


def _kernels(ordinal: int) -> int:
    """The ptxkit_device of a GPU. It lives as long as the process, which pays for its start once."""
    path = os.environ.get(_driver.VARIABLE, "")
    key = path, ordinal, os.getpid()
    found = _library_devices.get(key)
    if found is None:
        with _library_lock:
            found = _library_devices.get(key)
            if found is None:
                handle = ctypes.c_void_p()
                _c.check(_c.lib().ptxkit_device_create(ordinal, path.encode() or None, ctypes.byref(handle)))
                found = _library_devices[key] = handle.value or 0
    return found


def _aligned(size: int) -> int:
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def _same(count: int, given: Sequence[Any], what: str) -> None:
    if len(given) != count:
        raise _errors.InvalidValueError(
            f"{count} items and {len(given)} {what}: expected as many", _errors.INVALID_VALUE
        )


class _Items:
    """The arrays that a batch reads, and the stream that it is made for."""

    def __init__(self, items: Any, stream: Any) -> None:
        values = list(items) if isinstance(items, (list, tuple)) else [items]
        self.current: Optional[Callable[[], Tuple[int, Any]]] = None  # run() asks it for the stream
        self.stream: int
        if stream is None:
            device = source_of(values[0], "item 0", 0).device if values else 0
            self.current = current_stream_of(values[0] if values else None, device)
            self.stream, self.stream_owner = self.current()
        else:
            self.stream, self.stream_owner = stream_of(stream)
        self.sources = [source_of(value, f"item {i}", self.stream) for i, value in enumerate(values)]
        devices = sorted({source.device for source in self.sources})
        if len(devices) > 1:
            raise _errors.InvalidValueError(
                f"the items are on devices {devices}: expected one device a batch", _errors.INVALID_VALUE
            )
        self.device = devices[0] if devices else 0


class _Batch:
    """What a batch keeps on the device: an array of numbers for each argument, and the outputs it has made."""

    sizes: DeviceArray  # of the results, in bytes: u64
    statuses: DeviceArray  # ptxkit_status: i32

    def __init__(
        self,
        codec: str,
        framing: str,
        device: int,
        stream: int,
        stream_owner: Any,
        count: int,
        elements: _batch.Elements = _batch.BYTES,
        level: int = 0,
    ) -> None:
        if framing not in _batch.FRAMINGS:
            raise _errors.InvalidValueError(
                f"there is no framing {framing!r}, expected one of {', '.join(_batch.FRAMINGS)}", _errors.INVALID_VALUE
            )
        self._codec, self._number = codec, _codec.find(codec)
        self._options = ctypes.byref(_batch.options(self._number, _batch.FRAMINGS[framing], level, elements))
        self._framing = framing
        self._gpu = _driver.device(device)
        self._handle = _kernels(device)
        self._stream, self._stream_owner = stream, stream_owner
        self._count = count
        self._current: Optional[Callable[[], Tuple[int, Any]]] = None  # of the arrays' framework: where run() queues
        self._keeps: List[Any] = []  # the arrays of others that the batch reads and writes
        self._outputs: List[Tuple[Any, int]] = []  # owner and address of each
        self._regions: List[Region] = []  # memory of the batch itself
        self._has_run = False

    @property
    def device(self) -> int:
        return self._gpu.ordinal

    def __len__(self) -> int:
        return self._count

    def _requirements(self, largest: int) -> Any:
        """What the batch needs, for items of up to `largest` raw bytes."""
        needed = _c.DeviceRequirements()
        _c.check(_c.lib().ptxkit_device_query(self._options, largest, self._count, ctypes.byref(needed)))
        return needed

    def _wait_for(self, sources: Sequence[Source]) -> None:
        """The batch's stream waits for what fills the items."""
        for before in {source.stream for source in sources} - {None, self._stream, self._stream or 1}:
            self._gpu.order(before or 0, self._stream)
        self._keeps += [source.owner for source in sources]

    def _make_outputs(self, rooms: Sequence[int]) -> None:
        """Memory for outputs of these sizes."""
        begins, total = [], 0
        for room in rooms:
            begins.append(total)
            total += _aligned(room)
        region = Region(self._gpu, total, self._stream, self._stream_owner)
        self._regions.append(region)
        self._outputs = [(region, region.address + begin) for begin in begins]

    def _take_outputs(self, given: Sequence[Any]) -> List[int]:
        """The caller's outputs. Returns their sizes."""
        _same(self._count, given, "outputs")
        sources = [source_of(value, f"output {i}", self._stream) for i, value in enumerate(given)]
        self._wait_for(sources)
        self._outputs = [(source.owner, source.address) for source in sources]
        return [source.size for source in sources]

    def _upload(self, arrays: Sequence[Sequence[int]], temp_bytes: int = 0) -> List[int]:
        """Puts arrays of u64 on the device, and adds sizes, statuses and `temp_bytes`. Returns all addresses."""
        count, stream = self._count, self._stream
        words, sizes = _aligned(8 * count), len(arrays)
        region = Region(
            self._gpu, (sizes + 1) * words + _aligned(4 * count) + temp_bytes, stream, self._stream_owner
        )
        self._regions.append(region)
        where = [region.address + words * i for i in range(sizes + 2)]
        for values, address in zip(arrays, where):
            if count:
                self._gpu.upload(address, array("Q", values).tobytes(), 8 * count, stream)
        self.sizes = DeviceArray(region, self.device, where[sizes], count, "<u8", stream)
        self.statuses = DeviceArray(region, self.device, where[sizes + 1], count, "<i4", stream)
        self._gpu.wait(stream)  # so that every stream finds them, one that is captured too
        return [*where, where[-1] + _aligned(4 * count)]

    def _queue(self, function: Any, stream: Any, arguments: Tuple[Any, ...]) -> None:
        """Calls a function of the C ABI whose last arguments are options, statuses and stream."""
        handle = self._stream
        if stream is not None:
            handle = stream_of(stream)[0]
        elif self._current is not None:
            handle = self._current()[0]
        status = function(self._handle, *arguments, self._options, self.statuses.address, handle)
        if status != _errors.OK:
            raise _c.failure(status)
        self._has_run = True
        if handle != self._stream:
            self._stream = self.sizes.stream = self.statuses.stream = handle
            for region in self._regions:
                region.stream = handle  # which frees it, after this run

    def _wait_for_sizes(self) -> Sequence[int]:
        """Waits for the last run, and raises the error of the first item that has one."""
        sizes, statuses = array("Q", bytes(8 * self._count)), array("i", bytes(4 * self._count))
        with self._gpu as gpu:
            if self._count:
                gpu.download(sizes.buffer_info()[0], self.sizes.address, self.sizes.nbytes, self._stream)
                gpu.download(statuses.buffer_info()[0], self.statuses.address, self.statuses.nbytes, self._stream)
            gpu.wait(self._stream)
        for i, status in enumerate(statuses):
            if status != _errors.OK:
                name = _c.lib().ptxkit_status_name(status).decode()
                raise _errors.error(f"item {i} of {self._count}: {name}", status, list(statuses))
        return sizes

    def results(self) -> List[DeviceArray]:
        """Waits for the last run. The results have their exact sizes, and lie in `outputs` where it was given.

        Raises the error of the first item that has one; its statuses are those of all items.
        """
        if not self._has_run:
            raise _errors.InvalidValueError("the batch has no results before run()", _errors.INVALID_VALUE)
        sizes = self._wait_for_sizes()
        return [
            DeviceArray(owner, self.device, address, size, "|u1", self._stream)
            for (owner, address), size in zip(self._outputs, sizes)
        ]


class Compression(_Batch):
    """A batch of items to be compressed. run() queues it, again whenever the items have new content.

    items       a list of arrays in device memory, each one item, at addresses that are multiples of 16; or one array
    item_bytes  of one array: how many bytes each item has, a multiple of 16; None: the array is one item
    framing     "raw", one LZ4 block each; "numcodecs", with the raw size (4 bytes) before it; "frame" or "hdf5", blocks
                of 64 KiB each, which are decompressed at the same time
    outputs     a list of arrays to be written, of at least `bound` bytes each; None: they are allocated
    stream      see the module
    codec       "lz4"; or "rans", of framing "raw", whose outputs begin at multiples of 16
    dtype       of rans: what the elements are, as in ptxkit.Codec; None: the arrays' own
    level       0: the codec's default; of zstd, gzip, zlib and deflate also 1, faster, and 2, which is the default
    """

    def __init__(
        self,
        items: Any,
        *,
        item_bytes: Optional[int] = None,
        framing: str = "raw",
        outputs: Optional[Sequence[Any]] = None,
        stream: Any = None,
        codec: str = "lz4",
        dtype: Any = None,
        level: int = 0,
    ) -> None:
        wanted = _codec.Codec(codec, framing=framing, dtype=dtype, level=level)
        given = _Items(items, stream)
        addresses, raw_bytes = [s.address for s in given.sources], [s.size for s in given.sources]
        if item_bytes is not None:
            if isinstance(items, (list, tuple)):
                raise _errors.InvalidValueError("item_bytes is of one array, found a list", _errors.INVALID_VALUE)
            step = _codec.whole_number(item_bytes, "item_bytes")
            if step <= 0 or step % 16:
                raise _errors.InvalidValueError(
                    f"item_bytes is {step}: expected a multiple of 16", _errors.INVALID_VALUE
                )
            begin, size = addresses[0], raw_bytes[0]
            addresses = list(range(begin, begin + size, step))
            raw_bytes = [min(step, begin + size - address) for address in addresses]
        elements = wanted._elements_of(list(items) if isinstance(items, (list, tuple)) else [items])
        super().__init__(
            codec, framing, given.device, given.stream, given.stream_owner, len(addresses), elements, wanted._level
        )
        self._current = given.current
        for i, address in enumerate(addresses):
            if address % 16 and raw_bytes[i]:
                raise _errors.InvalidValueError(
                    f"item {i} begins at {address:#x}: expected a multiple of 16; copy it first", _errors.MISALIGNED
                )
        self._raw_bytes = raw_bytes
        needed = self._requirements(max(raw_bytes, default=0))
        self.bound: int = needed.output_bytes
        with self._gpu:
            self._wait_for(given.sources)
            if outputs is None:
                self._make_outputs([self.bound] * self._count)
            else:
                for i, room in enumerate(self._take_outputs(outputs)):
                    if room < self.bound:
                        raise _errors.InvalidValueError(
                            f"output {i} has {room} bytes, expected at least {self.bound}", _errors.OUTPUT_TOO_SMALL
                        )
            rooms = [address for _, address in self._outputs]
            there, there_bytes, self._rooms, _, _, temp = self._upload([addresses, raw_bytes, rooms], needed.temp_bytes)
        self._arguments = (
            there,
            there_bytes,
            max(raw_bytes, default=0),
            self._count,
            temp if needed.temp_bytes else None,
            needed.temp_bytes,
            self._rooms,
            self.sizes.address,
        )

    def run(self, stream: Any = None) -> Compression:
        """Queues the batch; on a stream that is captured it becomes a part of the graph."""
        self._queue(_c.lib().ptxkit_device_compress, stream, self._arguments)
        return self


class Decompression(_Batch):
    """A batch of items to be decompressed. run() queues it.

    items    a list of arrays in device memory, at any address, or one array; or a Compression, whose sizes then stay
             on the device
    sizes    the most raw bytes of each item; None: they are found on the device, which is waited for. Items of framing
             "raw" are read through for that, half of what decompressing them does; the others say their size
    outputs  a list of arrays to be written, whose sizes bound those of the items; None: they are allocated
    codec    as of Compression, which says its own. Items and outputs of rans begin at multiples of 16
    """

    def __init__(
        self,
        items: Any,
        *,
        sizes: Any = None,
        framing: str = "raw",
        outputs: Optional[Sequence[Any]] = None,
        stream: Any = None,
        codec: str = "lz4",
    ) -> None:
        if sizes is not None and outputs is not None:
            raise _errors.InvalidValueError(
                "sizes and outputs: expected one of them, an array of outputs has a size", _errors.INVALID_VALUE
            )
        if isinstance(items, Compression):
            framing, codec = items._framing, items._codec
            handle, owner = (items._stream, items) if stream is None else stream_of(stream)
            super().__init__(codec, framing, items.device, handle, owner, len(items))
            sources = [Source(items.sizes.address, 0, items.device, items._stream, items)]
            self._current = items._current if stream is None else None
            claims = items._raw_bytes
        else:
            given = _Items(items, stream)
            sources = given.sources
            super().__init__(codec, framing, given.device, given.stream, given.stream_owner, len(sources))
            self._current = given.current
            claims = None
        with self._gpu:
            self._wait_for(sources)
            if outputs is not None:
                capacities = self._take_outputs(outputs)
            else:
                if sizes is not None:
                    listed = list(sizes) if isinstance(items, (list, tuple, Compression)) else [sizes]
                    capacities = [_codec.whole_number(size, "sizes") for size in listed]
                else:
                    capacities = list(self._claims(sources) if claims is None else claims)
                _same(self._count, capacities, "sizes")
                wrong = [size for size in capacities if not 0 <= size <= _LARGEST_RAW]
                if wrong:
                    raise _errors.InvalidValueError(
                        f"sizes: {wrong[0]} is not in 0 to {_LARGEST_RAW}", _errors.INVALID_VALUE
                    )
                self._make_outputs(capacities)
            rooms = [address for _, address in self._outputs]
            temp_bytes = self._requirements(max(capacities, default=0)).decompress_temp_bytes
            if isinstance(items, Compression):
                packed = [items._rooms, items.sizes.address]
                most, back, _, _, temp = self._upload([capacities, rooms], temp_bytes)
            else:
                *packed, most, back, _, _, temp = self._upload(
                    [[source.address for source in sources], [source.size for source in sources], capacities, rooms],
                    temp_bytes,
                )
        self._arguments = (*packed, most, self.sizes.address, self._count, temp, temp_bytes, back)

    def _claims(self, sources: Sequence[Source]) -> Sequence[int]:
        """The raw sizes of the items, as the device finds them. Waits for the items."""
        if self._number == _batch.RANS:
            return [self._typed_claim(i, source) for i, source in enumerate(sources)]
        there, there_bytes, sizes, statuses, _ = self._upload(
            [[source.address for source in sources], [source.size for source in sources]]
        )
        _c.check(
            _c.lib().ptxkit_device_decompressed_sizes(
                self._handle, there, there_bytes, sizes, self._count, self._options, statuses, self._stream
            )
        )
        claims = self._wait_for_sizes()
        for i, (claim, source) in enumerate(zip(claims, sources)):
            self._check_claim(i, claim, source)
        return claims

    def _typed_claim(self, index: int, source: Source) -> int:
        """What the header of an item of typed rANS says, copied to the host."""
        header = array("Q", [0])
        if source.size >= 16:
            self._gpu.download(header.buffer_info()[0], source.address + 8, 8, self._stream)
            self._gpu.wait(self._stream)
        self._check_claim(index, header[0], source)
        return header[0]

    def _check_claim(self, index: int, claim: int, source: Source) -> None:
        most = _batch.LARGEST_RATIOS[self._number]
        if claim > most * source.size:
            raise _errors.CorruptInputError(
                f"item {index} of {source.size} bytes claims to hold {claim}: expected at most {most} times as many",
                _errors.CANNOT_DECOMPRESS,
            )

    def run(self, stream: Any = None) -> Decompression:
        """Queues the batch; on a stream that is captured it becomes a part of the graph."""
        self._queue(_c.lib().ptxkit_device_decompress, stream, self._arguments)
        return self
