#!/usr/bin/env python3
"""Finds the size from which the GPU compresses a file faster than the CPU, codec by codec: runs `ptx-pack --codec`
under each policy on files of growing size, each a process that starts CUDA where it needs it, and writes the least
seconds in the form that plot_crossover.py reads. The outputs of all policies must have the same bytes.

usage: codec_crossover.py PTX_PACK OUT.json FILE... [--largest BYTES] [--runs N] [--codecs lzr,lzf,...] [--scratch DIR]
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

SIDES = {"cpu": "cpu", "gpu": "gpu + start", "mixed": "mixed + start", "auto": "auto"}  # policy -> row


def device():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], check=True,
                              capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no GPU"


def seconds_of(program, codec, policy, source, target):
    target.unlink(missing_ok=True)
    begin = time.monotonic()
    subprocess.run([program, "-q", "--codec", codec, "--policy", policy, "-o", target, source], check=True)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("out")
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="their bytes, one file after another, are the input")
    parser.add_argument("--largest", type=int, default=1 << 30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--codecs", default="lzr,lzf,deflate-like,bbw")
    parser.add_argument("--scratch", default="/dev/shm", help="a folder in memory, so that the disk is not measured")
    arguments = parser.parse_args()
    content = b"".join(path.read_bytes() for path in arguments.files)
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        source, target = pathlib.Path(folder, "input"), pathlib.Path(folder, "output")
        size = 1 << 20
        while size <= arguments.largest:
            with source.open("wb") as file:
                for begin in range(0, size, len(content)):
                    file.write(content[: size - begin])
            for codec in arguments.codecs.split(","):
                least, digests = {}, set()
                for _ in range(arguments.runs):
                    for policy in SIDES:
                        seconds = seconds_of(arguments.program, codec, policy, source, target)
                        least[policy] = min(seconds, least.get(policy, seconds))
                        digests.add(hashlib.sha256(target.read_bytes()).hexdigest())
                if len(digests) != 1:
                    raise SystemExit(f"{codec}, {size} bytes: the policies do not give the same bytes")
                for policy, seconds in least.items():
                    rows.append({"input": codec, "what": SIDES[policy], "raw_bytes": size, "seconds": seconds})
                print(codec, size, {policy: round(seconds, 3) for policy, seconds in least.items()}, flush=True)
            size *= 4
    with open(arguments.out, "w", encoding="utf-8") as file:
        json.dump({"device": device(), "cpu": f"{os.cpu_count()} CPU threads", "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
