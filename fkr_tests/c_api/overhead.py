#!/usr/bin/env python3
"""Compares the instructions of two programs that do the same work: by the C ABI and by the C++ classes below it.

usage: overhead.py PAGES_C PAGES_CPP PAGES_NOTHING    the last makes the pages and exits. Exit 77: no valgrind.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

MOST_PERCENT = 2.0


def instructions(program):
    with tempfile.TemporaryDirectory() as scratch:
        ran = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.path.join(scratch, 'out')}", program],
                             check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", ran.stderr)[1])


if not shutil.which("valgrind"):
    print("SKIPPED: no valgrind")
    sys.exit(77)
by_c, by_cpp, nothing = (instructions(program) for program in sys.argv[1:4])
percent = 100 * (by_c - by_cpp) / (by_cpp - nothing)
print(f"{by_c - nothing} instructions by the C ABI, {by_cpp - nothing} by C++: {percent:+.2f} %, at most {MOST_PERCENT} %")
sys.exit(percent > MOST_PERCENT)
