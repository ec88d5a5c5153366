#!/usr/bin/env python3
"""How often `ptx-pack --auto` and `--trial` choose the codec whose output is smallest, as lines of a Markdown table.

A folder's files of 4 KiB to 6 MiB, links left out, are sorted by name, and COUNT of them are drawn with a fixed seed. A
second column has the size of the output over that of the best codec, a third that of always taking bbw; geometric means.

usage: choices.py PTX_PACK COUNT FOLDER...      COUNT 0: every file, whatever its size
"""
import math
import os
import pathlib
import random
import subprocess
import sys


def packed_bytes(pack, path, *flags):
    return len(subprocess.run([pack, "--backend", "cpu", "-T1", "-qc", *flags, "-z", path], check=True, capture_output=True).stdout)


def files_of(folder, count):
    found = []
    for root, _, names in os.walk(folder):
        for path in (os.path.join(root, name) for name in names):
            if not os.path.islink(path) and os.path.isfile(path) and os.access(path, os.R_OK) and \
                    (count == 0 or 4096 <= os.path.getsize(path) <= 6 << 20):
                found.append(path)
    found.sort()
    return found if count == 0 else random.Random(11).sample(found, min(count, len(found)))


def mean(factors):
    return math.exp(sum(map(math.log, factors)) / len(factors))


def main():
    pack, count, folders = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    listed = subprocess.run([pack, "--list-codecs"], check=True, capture_output=True, text=True).stdout
    codecs = [line.split()[0] for line in listed.splitlines() if line.split()[1] in (".lz4", ".ptz")]
    print("| files | number | `--auto` is the best | over the best | `--trial` is the best | over the best | `bbw` is the best | over the best |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for folder in folders:
        ways = {"auto": [], "trial": [], "bbw": []}
        for path in files_of(folder, count):
            sizes = {codec: packed_bytes(pack, path, "--codec", codec) for codec in codecs}
            best = min(sizes.values())
            for way, size in (("auto", packed_bytes(pack, path, "--auto")), ("trial", packed_bytes(pack, path, "--trial")),
                              ("bbw", sizes["bbw"])):
                ways[way].append(size / best)
        cells = [f"{100 * sum(factor == 1 for factor in factors) / len(factors):.1f} % | {100 * mean(factors) - 100:.2f} %"
                 for factors in ways.values()]
        print(f"| {folder} | {len(ways['auto'])} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main()
