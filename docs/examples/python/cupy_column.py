"""A column of a data frame in CuPy arrays that stays compressed on the GPU: values, validity bits, and offsets of text.

usage: cupy_column.py [--rows N]

As in cudf, a column of text is an array of bytes and one of offsets, and a mask says which rows have a value. Each is
kept as LZ4 blocks of 64 KiB; the column is decompressed when it is asked for. Prints the ratio, GB/s, and GB/s of
a copy to page-locked memory that zstd -1 compresses there, where zstandard is installed. Needs CuPy and a GPU.
"""

import argparse
import concurrent.futures
import os
import sys
import time

import cupy
import numpy as np

from ptxkit import device

ITEM_BYTES = 65536


class Packed:
    """One array, compressed; its bytes, and how to get them back."""

    def __init__(self, array):
        self.dtype, self.shape = array.dtype, array.shape
        results = device.Compression(array, item_bytes=ITEM_BYTES).run().results()  # waits for the sizes
        ends = np.cumsum([-(-item.nbytes // 16) * 16 for item in results])  # items begin at multiples of 16
        self.memory = cupy.empty(int(ends[-1]) + 16, dtype=cupy.uint8)
        begins = [0, *map(int, ends[:-1])]
        self.items = [self.memory[begin : begin + item.nbytes] for begin, item in zip(begins, results)]
        for room, item in zip(self.items, results):
            room[:] = cupy.asarray(item)
        whole, rest = divmod(array.nbytes, ITEM_BYTES)
        self.sizes = [ITEM_BYTES] * whole + [rest] * (rest > 0)

    @property
    def nbytes(self):
        return self.memory.nbytes

    def get(self):
        back = cupy.empty(sum(self.sizes), dtype=cupy.uint8)
        ends = list(map(int, np.cumsum(self.sizes)))
        rooms = [back[end - size : end] for end, size in zip(ends, self.sizes)]
        device.Decompression(self.items, outputs=rooms).run()
        return back.view(self.dtype).reshape(self.shape)


class TextColumn:
    def __init__(self, characters, offsets, mask):
        self.packed = {"characters": Packed(characters), "offsets": Packed(offsets), "mask": Packed(mask)}
        self.raw_bytes = characters.nbytes + offsets.nbytes + mask.nbytes

    @property
    def nbytes(self):
        return sum(each.nbytes for each in self.packed.values())

    def get(self):
        return {name: each.get() for name, each in self.packed.items()}


def make(rows):
    words = [b"alpha", b"beta", b"gamma ray", b"", b"delta-epsilon"]
    number = np.arange(rows)
    which = (number * 7 + number // 13) % len(words)
    lengths = np.array([len(word) for word in words])[which]
    offsets = np.zeros(rows + 1, "<i4")
    np.cumsum(lengths, out=offsets[1:])
    characters = np.frombuffer(b"".join(words[i] for i in which), "u1")
    mask = np.packbits(number % 17 != 0, bitorder="little")
    return [cupy.asarray(array) for array in (characters, offsets, mask)]


def rate(raw_bytes, work, repeats=5):
    work()
    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    cupy.cuda.Device().synchronize()
    return raw_bytes * repeats / (time.perf_counter() - begin) / 1e9


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    arrays = make(options.rows)
    column = TextColumn(*arrays)
    back = column.get()
    same = all(bool((array == back[name]).all()) for name, array in zip(("characters", "offsets", "mask"), arrays))
    print(f"{options.rows} rows, {column.raw_bytes} bytes in {column.nbytes}: {'the same' if same else 'DIFFERENT'}")
    print(f"column made: {rate(column.raw_bytes, lambda: TextColumn(*arrays)):.1f} GB/s, with its allocations")
    print(f"column read: {rate(column.raw_bytes, column.get):.1f} GB/s, with its allocations")
    batch = device.Compression(arrays[0], item_bytes=ITEM_BYTES)
    print(f"characters alone, batch made once: {rate(arrays[0].nbytes, batch.run, 20):.1f} GB/s")
    try:
        import zstandard
    except ImportError:
        return 0 if same else 1
    pinned = cupy.cuda.alloc_pinned_memory(arrays[0].nbytes)
    on_host = np.frombuffer(pinned, "u1", arrays[0].nbytes)
    parts = [on_host[at : at + (1 << 20)] for at in range(0, len(on_host), 1 << 20)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def by_cpu():
            arrays[0].get(out=on_host)
            list(pool.map(lambda part: zstandard.ZstdCompressor(level=1).compress(part), parts))

        print(f"characters, copied, zstd -1 on {os.cpu_count()} threads: {rate(arrays[0].nbytes, by_cpu, 3):.1f} GB/s")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
