#!/usr/bin/env python3
"""Processor instructions of a whole run of ptx-debug that has next to nothing to do, counted by valgrind's callgrind. A
limit on instructions also holds on a busy machine: 5.5 million of them, the dynamic loader's included, are 2.2 ms on an
idle server core. With --clock also the wall time, the minimum of 100 runs.

usage: start.py REPO PTX_DEBUG [--clock]"""
import re
import shutil
import subprocess
import sys
import time

LIMIT, SKIPPED, RUNS = 8_000_000, 77, 100


def instructions(*words):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words],
                         capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if not found:
        sys.exit(f"callgrind counted nothing for {' '.join(words)}:\n{run.stdout}{run.stderr}")
    return int(found[1])


def least_ms(*words):
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run(words, capture_output=True)
        times.append((time.perf_counter() - begin) * 1e3)
    return min(times)


def main():
    if not shutil.which("valgrind"):
        print("NOT RUN: valgrind is not installed (Debian package valgrind)")
        return SKIPPED
    repo, program = sys.argv[1:3]
    good, failed = f"{repo}/fkr_tests/cli/ptx-debug/inputs/good.ptx", False
    for words in (["--version"], ["rules"], ["analyze", "--no-config", "--falsify", good]):
        spent = instructions(program, *words)
        failed |= spent > LIMIT
        clock = f", {least_ms(program, *words):.2f} ms, the least of {RUNS} runs" if "--clock" in sys.argv else ""
        print(f"{' '.join(words)}: {spent} instructions, limit {LIMIT}{clock}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
