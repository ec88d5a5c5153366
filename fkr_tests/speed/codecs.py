#!/usr/bin/env python3
"""Ratio and speed of every codec of ptx-pack beside lz4, zstd, libdeflate, bzip2 and bzip3, as a Markdown table.

Every program has one thread and is timed by its processor time (user and system) over all files, each a run of its own,
so that a busy machine changes little. What is decompressed is compared with the file. The peers are the Debian packages
lz4, zstd, libdeflate-tools, bzip2 and bzip3; one that is missing is left out, and said so.

usage: codecs.py PTX_PACK FOLDER
"""
import math
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

PTX_PACK_CODECS = ["lz4", "lzr", "lzf", "deflate-like", "bbw"]
PEERS = [("lz4 -1", ["lz4", "-1", "-c", "-q"], ["lz4", "-d", "-c", "-q"]),
         ("zstd -1", ["zstd", "-1", "-c", "-q", "--single-thread"], ["zstd", "-d", "-c", "-q"]),
         ("zstd -3", ["zstd", "-3", "-c", "-q", "--single-thread"], ["zstd", "-d", "-c", "-q"]),
         ("libdeflate -6", ["libdeflate-gzip", "-6", "-c"], ["libdeflate-gzip", "-d", "-c"]),
         ("bzip2 -9", ["bzip2", "-9", "-c"], ["bzip2", "-d", "-c"]),
         ("bzip3", ["bzip3", "-e", "-c"], ["bzip3", "-d", "-c"])]


def timed(command, source, target):
    """Runs the command on the file, its output going to `target`; seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(target, "wb") as output:
        subprocess.run([*command, str(source)], stdout=output, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name, compress, decompress, suffix, files):
    raw_bytes, compress_seconds, decompress_seconds, ratios = 0, 0.0, 0.0, []
    with tempfile.TemporaryDirectory(prefix="ptxkit-") as folder:
        packed, back = pathlib.Path(folder, "packed" + suffix), pathlib.Path(folder, "back")
        for path in files:
            compress_seconds += timed(compress, path, packed)
            decompress_seconds += timed(decompress, packed, back)
            if back.read_bytes() != path.read_bytes():
                sys.exit(f"{name} does not give back {path}")
            raw_bytes += path.stat().st_size
            ratios.append((path.stat().st_size / packed.stat().st_size, path.name))
    mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
    worst, worst_name = min(ratios)
    print(f"| {name} | {mean:.3f} | {worst:.3f} ({worst_name}) | {raw_bytes / compress_seconds / 1e6:.1f} | "
          f"{raw_bytes / decompress_seconds / 1e6:.1f} |", flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pack = sys.argv[1]
    files = [path for path in sorted(pathlib.Path(sys.argv[2]).iterdir()) if path.is_file() and path.stat().st_size]
    print("| codec, one thread | ratio, geometric mean | smallest ratio | compress, MB/s | decompress, MB/s |")
    print("|---|--:|--:|--:|--:|")
    for codec in PTX_PACK_CODECS:
        flags = ["--codec", codec, "--backend", "cpu", "-T1", "-q"]
        measure(f"ptx-pack {codec}", [pack, *flags, "-c"], [pack, "-d", *flags, "-c"],
                ".lz4" if codec == "lz4" else ".ptz", files)
    for name, compress, decompress in PEERS:
        if shutil.which(compress[0]):
            suffix = {"lz4": ".lz4", "zstd": ".zst", "bzip2": ".bz2", "bzip3": ".bz3"}.get(compress[0], ".gz")
            measure(name, compress, decompress, suffix, files)
        else:
            print(f"NOT RUN: {compress[0]} is not installed", file=sys.stderr)


if __name__ == "__main__":
    main()
