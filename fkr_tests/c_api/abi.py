#!/usr/bin/env python3
"""Compares the ABI of libptxkit.so with the stored list abi.txt.

usage: abi.py LIBRARY LAYOUT_PROGRAM HEADER [--accept]

The list has the exported symbols, their versions, the libraries that are needed, and what LAYOUT_PROGRAM prints. A line
that is gone or changed breaks programs that are compiled already; --accept takes further lines only. `reserved` may lose
bytes at its begin, where a member has taken them.
Every structure, number and function of HEADER has to be in the list.
"""
import os
import re
import subprocess
import sys

ALLOWED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def current(library, program):
    lines = []
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            lines.append(f"symbol {kind} {name}")
    return lines + run(program).splitlines()


def keeps(stored, found):
    """Whether a line of the list still holds."""
    before, now = (re.fullmatch(r"  reserved (\d+)\+(\d+)", line) for line in (stored, found))
    if before and now:
        begin, end, now_begin, now_end = [int(m[1]) + more * int(m[2]) for m in (before, now) for more in (0, 1)]
        return begin <= now_begin and end == now_end
    return stored == found


def main():
    library, program, header = sys.argv[1:4]
    stored_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi.txt")
    found = current(library, program)
    stored = open(stored_path, encoding="utf-8").read().splitlines() if os.path.exists(stored_path) else []
    faults = []
    for line in found:
        if line.startswith("symbol") and not re.fullmatch(r"symbol T ptxkit_\w+@@PTXKIT_\d+", line):
            faults.append(f"exported by accident: {line}")
    text = "\n".join(found)
    declared = open(header, encoding="utf-8").read()
    for name in re.findall(r"^PTXKIT_API [^;(]*?\b(ptxkit_\w+)\(", declared, re.M):
        if f" {name}@@" not in text:
            faults.append(f"declared, but not exported: {name}")
    for name in re.findall(r"^} (ptxkit_\w+);", declared, re.M):
        if not re.search(rf"^{name} \d+$", text, re.M) and f"enum {name} {{" not in declared:
            faults.append(f"layout.c does not print {name}")
    for name in re.findall(r"^\s+(PTXKIT_\w+) = \d+", declared, re.M):
        if f"{name} = " not in text:
            faults.append(f"layout.c does not print {name}")
    needed = set(re.findall(r"Shared library: \[(.*?)\]", run("readelf", "-d", library)))
    faults += [f"needs {name}, which is not of glibc" for name in sorted(needed - ALLOWED)]
    if "Library soname: [libptxkit.so.1]" not in run("readelf", "-d", library):
        faults.append("the SONAME is not libptxkit.so.1")
    # In order: a member that moved to another structure is a change, too.
    rest = iter(found)
    gone = [line for line in stored if not any(keeps(line, other) for other in rest)]
    faults += [f"changed or gone: {line.strip()}" for line in gone]
    more = len(found) - len(stored)
    if more > 0 and not gone:
        if "--accept" in sys.argv and not faults:
            with open(stored_path, "w", encoding="utf-8") as file:
                file.write("\n".join(found) + "\n")
            print(f"{more} lines accepted")
            return 0
        faults.append(f"{more} lines are not in abi.txt; if they are meant, add --accept")
    for fault in faults:
        print(f"FAILED: {fault}")
    print(f"{len(found)} lines compared")
    return 1 if faults else 0


sys.exit(main())
