#!/usr/bin/env python3
"""Processor instructions of a whole run of ptx-debug that has next to nothing to do, counted by valgrind. A
limit on instructions also holds on a busy machine: 5.5 million of them, the dynamic loader's included, are 2.2 ms on an
idle server core. With --clock also the wall time, the minimum of 100 runs.

usage: start.py REPO PTX_DEBUG [--clock]"""
import subprocess
import sys
import time

from counting import instructions, require_valgrind

LIMIT, RUNS = 8_000_000, 100


def least_ms(*words):
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run(words, capture_output=True)
        times.append((time.perf_counter() - begin) * 1e3)
    return min(times)


def main():
    require_valgrind()
    repo, program = sys.argv[1:3]
    good, failed = f"{repo}/fkr_tests/cli/ptx-debug/inputs/good.ptx", False
    for words in (["--version"], ["rules"], ["analyze", "--no-config", "--falsify", good]):
        spent = instructions([program, *words])
        failed |= spent > LIMIT
        clock = f", {least_ms(program, *words):.2f} ms, the least of {RUNS} runs" if "--clock" in sys.argv else ""
        print(f"{' '.join(words)}: {spent} instructions, limit {LIMIT}{clock}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
