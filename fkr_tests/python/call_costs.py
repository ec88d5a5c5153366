#!/usr/bin/env python3
"""Prints what calls of the Python package cost beside python-lz4's, in one process, as ratios of the best times.

usage: PYTHONPATH=tools/python PTXKIT_LIBRARY=FILE ~/.cache/ptxkit/python-…/bin/python3 fkr_tests/python/call_costs.py
"""

import time

import lz4.block
import lz4.frame
import ptxkit

TEXT = b"".join(b"line %d of the file, value %d\n" % (i, i * i % 977) for i in range(200_000))[: 4 << 20]


def best(functions, repetitions):
    """The shortest time of each, measured in turns."""
    shortest = [float("inf")] * len(functions)
    for _ in range(repetitions):
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            shortest[i] = min(shortest[i], time.perf_counter() - begin)
    return shortest


def show(what, ours, theirs, repetitions):
    a, b = best((ours, theirs), repetitions)
    print(f"{what:32} {a * 1e6:9.1f} us, python-lz4 {b * 1e6:9.1f} us: {a / b:.2f} times")


def main():
    for size, repetitions in ((4 << 10, 3000), (64 << 10, 400), (4 << 20, 20)):
        raw = TEXT[:size]
        for name, ours, theirs in (("block", ptxkit.lz4.block, lz4.block), ("frame", ptxkit.lz4.frame, lz4.frame)):
            stored = theirs.compress(raw)
            what = f"{name} {size} "
            show(what + "compress", lambda: ours.compress(raw), lambda: theirs.compress(raw), repetitions)
            show(what + "decompress", lambda: ours.decompress(stored), lambda: theirs.decompress(stored), repetitions)
    pages = [TEXT[i * 4096 : (i + 1) * 4096] for i in range(1000)]
    stored = [lz4.block.compress(page) for page in pages]
    codec = ptxkit.Codec("lz4", framing="numcodecs", threads=1, policy="cpu")
    assert codec.decode(codec.encode(pages)) == pages
    compress, decompress = lz4.block.compress, lz4.block.decompress
    show("1,000 pages, one call, encode", lambda: codec.encode(pages), lambda: list(map(compress, pages)), 50)
    show("1,000 pages, one call, decode", lambda: codec.decode(stored), lambda: list(map(decompress, stored)), 50)


main()
