"""A cache of keys and values in pages of device memory, which are compressed into fixed slots while they wait.

usage: kv_cache.py [--pages N] [--page-bytes N]

A server of language models keeps keys and values of each request in pages of one size. One batch over all pages is
made once: putting them away and taking them back then neither allocates nor waits, and the sizes stay on the GPU, so
both go into a CUDA graph. A slot has room for a page that does not shrink; how many pages fit half a page is counted.
Prints GB/s beside a copy to page-locked memory that zstd -1 compresses there on all threads, where zstandard is
installed. Needs PyTorch and a GPU; without PyTorch it runs on the driver that $PTXKIT_LIBCUDA names, without figures.
"""

import argparse
import concurrent.futures
import os
import struct
import sys
import time

import ptxkit
from ptxkit import device


class Slots:
    """Pages of one array of device memory, and room for each of them when it is put away."""

    def __init__(self, pages, page_bytes):
        self._compress = device.Compression(pages, item_bytes=page_bytes)
        self._decompress = device.Decompression(self._compress)

    def put_away(self):
        """Queued on the current stream. What it takes is known when the stream gets there."""
        self._compress.run()

    def take_back(self):
        self._decompress.run()

    def sizes(self):
        count = len(self._compress)
        return struct.unpack(f"<{count}Q", self._compress.sizes.to_host())

    def content(self):
        return b"".join(item.to_host() for item in self._decompress.results())


def values(pages, page_bytes):
    """Half of the pages are full of small numbers, half of them are not filled to the end."""
    unit = b"".join(struct.pack("<f", (i * 37 % 211) / 8) for i in range(page_bytes // 4))
    return b"".join(unit if i % 2 else unit[: page_bytes // 4] + bytes(page_bytes * 3 // 4) for i in range(pages))


def check(slots, raw, page_bytes, slot_bytes):
    slots.put_away()
    slots.take_back()
    assert slots.content() == raw
    fit = [size <= slot_bytes for size in slots.sizes()]
    print(f"{sum(fit)} of {len(fit)} pages of {page_bytes} bytes fit slots of {slot_bytes}")
    return sum(fit)


def without_torch(options):
    raw = values(options.pages, options.page_bytes)
    slots = Slots(device.from_host(raw), options.page_bytes)
    return check(slots, raw, options.page_bytes, options.page_bytes // 2)


def with_torch(options, torch):
    raw = values(options.pages, options.page_bytes)
    pages = torch.frombuffer(bytearray(raw), dtype=torch.uint8).cuda()
    slots = Slots(pages, options.page_bytes)
    fit = check(slots, raw, options.page_bytes, options.page_bytes // 2)

    def rate(work, repeats=20):
        work()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(repeats):
            work()
        torch.cuda.synchronize()
        return len(raw) * repeats / (time.perf_counter() - begin) / 1e9

    print(f"put away: {rate(slots.put_away):.1f} GB/s, taken back: {rate(slots.take_back):.1f} GB/s")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        slots.put_away()
        slots.take_back()
    print(f"both in a CUDA graph: {rate(graph.replay):.1f} GB/s")
    pinned = torch.empty(len(raw), dtype=torch.uint8, pin_memory=True)
    try:
        import zstandard
    except ImportError:
        print(f"copy to page-locked memory: {rate(lambda: pinned.copy_(pages)):.1f} GB/s")
        return fit
    on_host = memoryview(pinned.numpy())
    parts = [on_host[at : at + (1 << 20)] for at in range(0, len(raw), 1 << 20)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def by_cpu():
            pinned.copy_(pages)
            list(pool.map(lambda part: zstandard.ZstdCompressor(level=1).compress(part), parts))

        print(f"copy and zstd -1 on {os.cpu_count()} threads: {rate(by_cpu, 3):.1f} GB/s")
    return fit


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--pages", type=int, default=4096)
    parser.add_argument("--page-bytes", type=int, default=65536)
    options = parser.parse_args()
    if options.page_bytes % 16 or options.page_bytes < 64 or options.pages < 1:
        parser.error("expected one page or more, of a multiple of 16 bytes")
    print(f"ptxkit {ptxkit.__version__}")
    try:
        import torch

        run = with_torch if torch.cuda.is_available() else None
    except ImportError:
        run = None
    fit = run(options, torch) if run else without_torch(options)
    return 0 if fit >= options.pages // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
