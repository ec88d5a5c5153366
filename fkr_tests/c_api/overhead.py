#!/usr/bin/env python3
"""Compares the instructions of two programs that do the same work: by the C ABI and by the C++ classes below it.

usage: overhead.py PAGES_C PAGES_CPP PAGES_NOTHING    the last makes the pages and exits. Exit 77: no valgrind.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "speed"))
from counting import instructions, require_valgrind  # noqa: E402

MOST_PERCENT = 2.0

require_valgrind()
by_c, by_cpp, nothing = (instructions([program]) for program in sys.argv[1:4])
percent = 100 * (by_c - by_cpp) / (by_cpp - nothing)
print(f"{by_c - nothing} instructions by the C ABI, {by_cpp - nothing} by C++: {percent:+.2f} %, at most {MOST_PERCENT} %")
sys.exit(percent > MOST_PERCENT)
