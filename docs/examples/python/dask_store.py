"""Processes write and read one Zarr store through ptxkit's codec: dask.distributed, one process a GPU or a few cores.

usage: dask_store.py FOLDER [--workers N] [--kill]

Each task makes and writes one chunk. With --kill one worker is killed while the store is being written: Dask gives its
chunks to others. The store names the stock codec in its metadata, so that it stays readable without ptxkit; the last
step reads it that way.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

import numpy as np
import zarr
from distributed import Client, LocalCluster, WorkerPlugin, as_completed

import ptxkit.zarr

SHAPE, CHUNK = (2048, 2048), (128, 128)


class UsePtxkit(WorkerPlugin):
    """Registers the codec in every worker, those that take the place of a killed one included."""

    def setup(self, worker):
        ptxkit.zarr.register()


def values(row, column):
    """One chunk. A simulation would be here, or an array on the worker's GPU."""
    rows, columns = np.ogrid[row : row + CHUNK[0], column : column + CHUNK[1]]
    return (rows * 7 + columns // 16).astype("<i4")


def write(path, row, column):
    time.sleep(0.02)  # the work that makes the values
    array = zarr.open_array(path, mode="r+")
    array[row : row + CHUNK[0], column : column + CHUNK[1]] = values(row, column)
    return os.getpid()


def is_whole(path, row, column):
    array = zarr.open_array(path, mode="r")
    codec = type(array.metadata.codecs[-1]).__module__
    part = array[row : row + CHUNK[0], column : column + CHUNK[1]]
    return codec == "ptxkit.zarr" and bool((part == values(row, column)).all())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    path = os.path.join(options.folder, "store.zarr")
    ptxkit.zarr.register()
    zarr.create_array(path, shape=SHAPE, chunks=CHUNK, dtype="<i4", compressors=[ptxkit.zarr.LZ4()])
    places = [(row, column) for row in range(0, SHAPE[0], CHUNK[0]) for column in range(0, SHAPE[1], CHUNK[1])]

    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(UsePtxkit())
        written = [client.submit(write, path, *place, pure=False) for place in places]
        killed = None
        writers = set()
        for count, future in enumerate(as_completed(written)):
            writers.add(future.result())
            if options.kill and killed is None and count == len(places) // 4:
                killed = max(writers)
                os.kill(killed, signal.SIGKILL)
        read = client.gather([client.submit(is_whole, path, *place, pure=False) for place in places])
    print(f"{len(places)} chunks by {len(writers)} processes" + (f", of which {killed} was killed" if killed else ""))
    print(f"{sum(read)} of {len(read)} chunks are right")

    stock = "import sys, zarr; print(zarr.open_array(sys.argv[1], mode='r')[:].sum(), 'ptxkit' in sys.modules)"
    run = [sys.executable, "-W", "ignore", "-c", stock, path]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    expected = sum(int(values(*place).sum()) for place in places)
    is_same = said == [str(expected), "False"]
    print(f"read without ptxkit: {'the same' if is_same else 'other values'}")
    return 0 if all(read) and is_same else 1


if __name__ == "__main__":
    sys.exit(main())
