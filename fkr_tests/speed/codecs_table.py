#!/usr/bin/env python3
"""Ratio and speed of every codec of ptx-pack beside lz4, zstd, libdeflate, bzip2 and bzip3, as a Markdown table.

Every program has one thread and is timed by its processor time (user and system), start included. On each file the
programs alternate, so that other load affects all of them. The robust figure is the factor over zstd -1: the median
over the turns of a file; the table has the geometric mean over the files and the worst file. Decompressed data is
compared with the file. The peers are the Debian packages lz4, zstd, libdeflate-tools, bzip2 and bzip3. A missing one is
left out, with a message; without zstd there are no factors.

usage: codecs_table.py PTX_PACK FOLDER [TURNS]      TURNS: 3 by default
"""
import math
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

MEASURE = "zstd -1"


class Program(NamedTuple):
    name: str
    compress: list
    decompress: list
    suffix: str


PEERS = [Program("lz4 -1", ["lz4", "-1", "-c", "-q"], ["lz4", "-d", "-c", "-q"], ".lz4"),
         Program(MEASURE, ["zstd", "-1", "-c", "-q", "--single-thread"], ["zstd", "-d", "-c", "-q"], ".zst"),
         Program("zstd -3", ["zstd", "-3", "-c", "-q", "--single-thread"], ["zstd", "-d", "-c", "-q"], ".zst"),
         Program("libdeflate -6", ["libdeflate-gzip", "-6", "-c"], ["libdeflate-gzip", "-d", "-c"], ".gz"),
         Program("bzip2 -9", ["bzip2", "-9", "-c"], ["bzip2", "-d", "-c"], ".bz2"),
         Program("bzip3", ["bzip3", "-e", "-c"], ["bzip3", "-d", "-c"], ".bz3")]


def ptx_pack_codecs(pack):
    listed = subprocess.run([pack, "--list-codecs"], check=True, capture_output=True, text=True).stdout
    return [line.split()[:2] for line in listed.splitlines()]


def programs(pack):
    for codec, suffix in ptx_pack_codecs(pack):
        flags = ["--codec", codec, "--backend", "cpu", "-T1", "-q"]
        yield Program(f"ptx-pack {codec}", [pack, *flags, "-c"], [pack, "-d", *flags, "-c"], suffix)
    for peer in PEERS:
        if shutil.which(peer.compress[0]):
            yield peer
        else:
            print(f"NOT RUN: {peer.compress[0]} is not installed", file=sys.stderr)


def timed(command, source, target):
    """Runs the command on the file, with its output to `target`. Returns the seconds of processor time, more than 0."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(target, "wb") as output:
        subprocess.run([*command, str(source)], stdout=output, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return max(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1e-6)


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


class Figures:
    """The figures of a program: for each file its ratio, and for each direction the seconds of each turn."""

    def __init__(self):
        self.ratios, self.seconds = {}, ({}, {})

    def take_turn(self, program, path, folder):
        packed, back = pathlib.Path(folder, "packed" + program.suffix), pathlib.Path(folder, "back")
        self.seconds[0].setdefault(path, []).append(timed(program.compress, path, packed))
        self.seconds[1].setdefault(path, []).append(timed(program.decompress, packed, back))
        if back.read_bytes() != path.read_bytes():
            sys.exit(f"{program.name} does not give back {path}")
        self.ratios[path] = path.stat().st_size / packed.stat().st_size

    def speed(self, way):
        """MB/s over all files."""
        seconds = sum(statistics.median(turns) for turns in self.seconds[way].values())
        return sum(path.stat().st_size for path in self.ratios) / seconds / 1e6

    def factors(self, way, other):
        """For each file the median, over the turns, of the speed relative to the other program."""
        return [statistics.median(theirs / ours for ours, theirs in zip(turns, other.seconds[way][path]))
                for path, turns in self.seconds[way].items()]


def row(name, figures, measure):
    smallest, smallest_path = min((ratio, path) for path, ratio in figures.ratios.items())
    cells = [name, f"{geometric_mean(figures.ratios.values()):.3f}", f"{smallest:.3f} ({smallest_path.name})"]
    for way in range(2):
        cells.append(f"{figures.speed(way):.1f}")
        if measure:
            factors = figures.factors(way, measure)
            cells.append(f"{geometric_mean(factors):.2f} ({min(factors):.2f})")
        else:
            cells.append("–")
    return "| " + " | ".join(cells) + " |"


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder, turns = pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) == 4 else 3
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.stat().st_size]
    if not files:
        sys.exit(f"{folder} has no file with bytes to compress")
    if turns < 1:
        sys.exit(f"{turns} turns: at least 1")
    contenders = list(programs(sys.argv[1]))
    figures = {program.name: Figures() for program in contenders}
    with tempfile.TemporaryDirectory(prefix="ptxkit-") as scratch:
        for path in files:
            for _ in range(turns):
                for program in contenders:
                    figures[program.name].take_turn(program, path, scratch)
    print(f"| codec, one thread | ratio, geometric mean | smallest ratio | compress, MB/s | × {MEASURE} (worst) | "
          f"decompress, MB/s | × {MEASURE} (worst) |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, found in figures.items():
        print(row(name, found, figures.get(MEASURE)))


if __name__ == "__main__":
    main()
