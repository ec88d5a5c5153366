"""python -m ptxkit bench: this package beside others, in one process."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple

PAGE_BYTES = 4096
PAGES = 1000


class Coder(NamedTuple):
    """One way to compress a buffer, and back."""

    package: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any, int], Any]


class Case(NamedTuple):
    what: str
    raw: Any  # a buffer, or a list of them for one call
    coders: List[Coder]


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _each(coder: Coder) -> Coder:
    """The coder for a list of buffers, one call each."""
    return Coder(
        coder.package,
        lambda items: [coder.encode(item) for item in items],
        lambda items, size: [coder.decode(item, size) for item in items],
    )


def _coders() -> Dict[str, List[Coder]]:
    """What is installed: coders of blocks, of frames, and of lists of pages."""
    import ptxkit

    one, all_threads = (ptxkit.Codec("lz4", framing="numcodecs", threads=threads, policy="cpu") for threads in (1, 0))
    frame, block = ptxkit.lz4.frame, ptxkit.lz4.block
    blocks = [Coder("ptxkit", block.compress, lambda data, _: block.decompress(data))]
    frames = [Coder("ptxkit", frame.compress, lambda data, _: frame.decompress(data))]
    pages = [
        Coder("ptxkit", one.encode, lambda items, _: one.decode(items)),
        Coder("ptxkit, all threads", all_threads.encode, lambda items, _: all_threads.decode(items)),
    ]
    lz4_block, lz4_frame = _installed("lz4.block"), _installed("lz4.frame")
    if lz4_block and lz4_frame:
        blocks.append(Coder("python-lz4", lz4_block.compress, lambda data, _: lz4_block.decompress(data)))
        frames.append(Coder("python-lz4", lz4_frame.compress, lambda data, _: lz4_frame.decompress(data)))
    numcodecs = _installed("numcodecs")
    if numcodecs:
        codec = numcodecs.LZ4()
        blocks.append(Coder("numcodecs", codec.encode, lambda data, _: codec.decode(data)))
    zstandard = _installed("zstandard")
    if zstandard:
        writer, reader = zstandard.ZstdCompressor(level=1), zstandard.ZstdDecompressor()
        zstd = Coder("zstandard -1", writer.compress, lambda data, size: reader.decompress(data, size))
        blocks.append(zstd)
        frames.append(zstd)
    pages += [_each(coder) for coder in blocks[1:]]
    return {"block": blocks, "frame": frames, "pages": pages}


def _cases(raw: bytes) -> List[Case]:
    coders = _coders()
    cases = []
    for size, what in ((PAGE_BYTES, "block, 4 KiB"), (65536, "block, 64 KiB"), (4 << 20, "block, 4 MiB")):
        if size <= len(raw):
            cases.append(Case(what, raw[:size], coders["block"]))
    pages = [raw[at : at + PAGE_BYTES] for at in range(0, len(raw), PAGE_BYTES)][:PAGES]
    cases.append(Case(f"{len(pages)} pages of 4 KiB", pages, coders["pages"]))
    cases.append(Case("whole file", raw, coders["frame"]))
    return cases


def _best(calls: List[Callable[[], Any]], seconds: float) -> List[float]:
    """The shortest time of each, measured in turns."""
    shortest = [float("inf")] * len(calls)
    deadline = time.perf_counter() + seconds * len(calls)
    turns = 0
    while turns < 3 or time.perf_counter() < deadline:
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            shortest[i] = min(shortest[i], time.perf_counter() - begin)
        turns += 1
    return shortest


def _measure(case: Case, seconds: float) -> List[List[Any]]:
    """A row for each package: its name, the ratio, and GB/s there and back. Each result is compared with the input."""
    is_list = isinstance(case.raw, list)
    size = sum(map(len, case.raw)) if is_list else len(case.raw)
    item_bytes = PAGE_BYTES if is_list else size
    packed = [coder.encode(case.raw) for coder in case.coders]
    for coder, stored in zip(case.coders, packed):
        back = coder.decode(stored, item_bytes)
        if (list(map(bytes, back)) if is_list else bytes(back)) != case.raw:
            raise RuntimeError(f"{coder.package}: what comes back of {case.what} is not what went in")
    encode = _best([lambda coder=coder: coder.encode(case.raw) for coder in case.coders], seconds)  # type: ignore[misc]
    decode = _best(
        [
            lambda coder=coder, stored=stored: coder.decode(stored, item_bytes)  # type: ignore[misc]
            for coder, stored in zip(case.coders, packed)
        ],
        seconds,
    )
    rows = []
    for coder, stored, there, back_time in zip(case.coders, packed, encode, decode):
        stored_bytes = sum(map(len, stored)) if is_list else len(stored)
        rows.append([coder.package, size / stored_bytes, size / there / 1e9, size / back_time / 1e9])
    return rows


def main(paths: List[str], seconds: float) -> int:
    import ptxkit

    print(
        f"ptxkit {ptxkit.__version__}, {ptxkit.Codec('lz4').describe()}; GB/s of raw bytes, the best of several turns"
    )
    for path in paths:
        try:
            with open(path, "rb") as file:
                raw = file.read()
        except OSError as reason:
            print(f"ptxkit bench: cannot read {path}: {reason.strerror}", file=sys.stderr)
            return 1
        if not raw:
            print(f"ptxkit bench: {path} is empty: expected a file to be compressed", file=sys.stderr)
            return 1
        print(f"\n{path}, {len(raw)} bytes")
        print(f"{'operation':<24} {'package':<20} {'ratio':>7} {'compress':>9} {'decompress':>10}")
        for case in _cases(raw):
            for package, ratio, there, back in _measure(case, seconds):
                print(f"{case.what:<24} {package:<20} {ratio:>7.2f} {there:>9.3f} {back:>10.3f}", flush=True)
    return 0
