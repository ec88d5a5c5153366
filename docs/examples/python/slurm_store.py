"""The tasks of a Slurm job write one Zarr store through ptxkit's codec. They need no communication.

    #!/bin/sh
    #SBATCH --ntasks=8 --cpus-per-task=4 --gpus-per-task=1
    srun python slurm_store.py /scratch/run1

Task N of SLURM_NTASKS writes every chunk whose number leaves the rest N, so no chunk has two writers. Task 0 makes the
store, the others wait. SLURM_LOCALID is the task's number on its node: with --gpus-per-task Slurm shows each task
one GPU, otherwise the task takes the GPU of that number. A task that is started again writes its chunks again.
"""

import os
import pathlib
import sys
import time

import numpy as np
import zarr

import ptxkit.zarr

SHAPE, CHUNK = (1024, 1024), (128, 128)


def values(row, column):
    """One chunk. A simulation would be here."""
    rows, columns = np.ogrid[row : row + CHUNK[0], column : column + CHUNK[1]]
    return (rows * 7 + columns // 16).astype("<i4")


def open_store(path, task):
    """Task 0 gives the store its name when it is complete."""
    if task == 0 and not path.exists():
        new = path.with_suffix(".new")
        zarr.create_array(str(new), shape=SHAPE, chunks=CHUNK, dtype="<i4", compressors=[ptxkit.zarr.LZ4()])
        new.rename(path)
    deadline = time.monotonic() + 300
    while not path.exists():
        if time.monotonic() > deadline:
            sys.exit(f"slurm_store.py: task {task}: expected task 0 to make {path} within 5 minutes")
        time.sleep(0.1)
    return zarr.open_array(str(path), mode="r+")


def main():
    if len(sys.argv) != 2 or "SLURM_PROCID" not in os.environ:
        sys.exit("usage: srun python slurm_store.py FOLDER")
    task, tasks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["SLURM_LOCALID"]
    ptxkit.zarr.register()
    array = open_store(pathlib.Path(sys.argv[1], "store.zarr"), task)
    places = [(row, column) for row in range(0, SHAPE[0], CHUNK[0]) for column in range(0, SHAPE[1], CHUNK[1])]
    for row, column in places[task::tasks]:
        array[row : row + CHUNK[0], column : column + CHUNK[1]] = values(row, column)
    print(f"task {task} of {tasks}: {len(places[task::tasks])} chunks")


if __name__ == "__main__":
    main()
