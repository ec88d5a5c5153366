#!/usr/bin/env python3
"""ptx-pack with zstd and gzip beside the programs of these formats, two threads each, as a table of ratios.

usage: formats_table.py PTX_PACK FOLDER [--rounds N]

For each file of FOLDER both programs take turns; the processor time and the elapsed time of a program are the least of
all rounds. Files below 100 kB are left out: they cost little more than a start. The factors are geometric means over
the files, and the worst file in parentheses: sizes and times of ptx-pack by those of the other program, so that less
than 1 is smaller or faster.
"""
import argparse
import math
import os
import pathlib
import resource
import subprocess
import tempfile
import time

LEAST_BYTES = 100_000
PAIRS = [("zstd -1 -T2", ["--codec", "zstd", "-1"], ["zstd", "-1", "-T2", "-q", "-c"], ["zstd", "-d", "-q", "-c"]),
         ("zstd -3 -T2", ["--codec", "zstd", "-3"], ["zstd", "-3", "-T2", "-q", "-c"], ["zstd", "-d", "-q", "-c"]),
         ("pigz -p2", ["--codec", "gzip"], ["pigz", "-p2", "-c"], ["pigz", "-d", "-p2", "-c"])]


def measured(command, source, target):
    """Processor and elapsed seconds of a run."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(source, "rb") as given, open(target, "wb") as made:
        subprocess.run(command, stdin=given, stdout=made, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - begin)


def best(commands, source, folder, rounds):
    """The least processor and elapsed time of each command, in turns. What each wrote stays in FOLDER/0, FOLDER/1."""
    least = [[math.inf, math.inf] for _ in commands]
    for _ in range(rounds):
        for number, command in enumerate(commands):
            times = measured(command, source, os.path.join(folder, str(number)))
            least[number] = [min(pair) for pair in zip(least[number], times)]
    return least


def text(factors):
    mean = math.exp(sum(map(math.log, factors)) / len(factors))
    return f"{mean:.3f} ({max(factors):.3f})"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("ptx_pack")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    files = [file for file in sorted(options.folder.iterdir()) if file.stat().st_size >= LEAST_BYTES]
    print("| beside | size | compress: processor time | elapsed | decompress: processor time | elapsed |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, own_flags, peer, peer_back in PAIRS:
        rows = []
        for file in files:
            with tempfile.TemporaryDirectory() as folder:
                own = [options.ptx_pack, "-q", "-T2", "--backend", "cpu"]
                ours, theirs = best([[*own, *own_flags, "-c"], peer], file, folder, options.rounds)
                sizes = [os.path.getsize(os.path.join(folder, number)) for number in "01"]
                packed = os.path.join(folder, "packed")
                os.rename(os.path.join(folder, "1"), packed)
                ours_back, theirs_back = best([[*own, "-d", "-c"], peer_back], packed, folder, options.rounds)
                rows.append([sizes[0] / sizes[1], ours[0] / theirs[0], ours[1] / theirs[1],
                             ours_back[0] / theirs_back[0], ours_back[1] / theirs_back[1]])
        print(f"| {name} | " + " | ".join(text(column) for column in zip(*rows)) + " |")


main()
