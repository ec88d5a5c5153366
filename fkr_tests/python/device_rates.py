#!/usr/bin/env python3
"""What calls on arrays in device memory cost, with PyTorch on a GPU.

usage: device_rates.py FILE...

For each file, repeated to 64 MiB, 256 MiB and 1 GiB: GB/s of raw bytes of Compression.run() and Decompression.run()
between two events, and of Codec.encode() and .decode() on the clock, which allocate, and wait for the sizes. For one
item: microseconds of the host for run(), and for the function of the C ABI alone, both without waiting. Beside them, the
same arrays without a GPU codec: copied to page-locked memory, compressed there on all threads with LZ4, and with
zstd -1 where python-zstandard is installed.
"""

import pathlib
import statistics
import sys
import time

import torch

import ptxkit
from ptxkit import _c, device


def of_device(work, repeats=10):
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def of_clock(work, repeats=5):
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def call_costs():
    there = torch.zeros(4096, dtype=torch.uint8, device="cuda")
    batch = device.Compression(there)
    batch.run()
    torch.cuda.synchronize()
    function = _c.lib().ptxkit_device_compress
    arguments = (batch._handle, *batch._arguments, batch._options, batch.statuses.address, 0)
    for name, work in [("Compression.run()", batch.run), ("the C function", lambda: function(*arguments))]:
        rounds = []
        for _ in range(200):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(20):
                work()
            rounds.append((time.perf_counter() - begin) / 20 * 1e6)
        print(f"one item, {name}: {statistics.median(rounds):.2f} microseconds")


def rates(path):
    content = pathlib.Path(path).read_bytes()
    for size in (1 << 26, 1 << 28, 1 << 30):
        raw = (content * (size // len(content) + 1))[:size]
        there = torch.frombuffer(bytearray(raw), dtype=torch.uint8).cuda()
        for item_bytes in (4096, 65536):
            batch = device.Compression(there, item_bytes=item_bytes)
            back = device.Decompression(batch)
            batch.run(), back.run()
            torch.cuda.synchronize()
            rows = {"compress": of_device(batch.run), "decompress": of_device(back.run)}
            if item_bytes == 65536:
                items = list(there.view(-1, item_bytes))
                codec = ptxkit.Codec("lz4", framing="raw")
                packed = codec.encode(items)
                rows["encode()"] = of_clock(lambda: codec.encode(items))
                rows["decode()"] = of_clock(lambda: codec.decode(packed, [item_bytes] * len(items)))
                pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
                on_host = pinned.numpy()
                views = [on_host[i : i + item_bytes] for i in range(0, size, item_bytes)]

                def by_cpu(views=views, pinned=pinned, there=there, codec=codec):
                    pinned.copy_(there)
                    codec.encode(views)

                if size < 1 << 30:
                    rows["copy + LZ4 on the CPU"] = of_clock(by_cpu, 3)
            print(
                f"{pathlib.Path(path).name}, {size >> 20} MiB, items of {item_bytes}: "
                + ", ".join(f"{name} {size / seconds / 1e9:.1f}" for name, seconds in rows.items())
                + " GB/s"
            )


print(torch.cuda.get_device_name(0))
call_costs()
for name in sys.argv[1:]:
    rates(name)
