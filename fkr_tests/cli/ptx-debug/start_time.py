#!/usr/bin/env python3
"""Starting ptx-debug takes less than 5 ms of wall time: the least of many runs, because what else the machine does is
not the program's.

usage: start_time.py REPO PTX_DEBUG"""
import subprocess
import sys
import time

LIMIT_MS, RUNS = 5, 100
repo, program = sys.argv[1:3]


def least_ms(*words):
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        times.append((time.perf_counter() - begin) * 1e3)
    return min(times)


good = f"{repo}/fkr_tests/cli/ptx-debug/inputs/good.ptx"
slow = False
for words in (["--version"], ["rules"], ["analyze", "--no-config", "--falsify", good]):
    spent = least_ms(program, *words)
    slow |= spent >= LIMIT_MS
    print(f"{' '.join(words)}: {spent:.2f} ms, the least of {RUNS} runs, limit {LIMIT_MS} ms")
sys.exit(slow)
