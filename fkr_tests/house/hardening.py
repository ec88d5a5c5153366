#!/usr/bin/env python3
"""Checks that programs are linked and compiled with the protections that docs/testing.md lists.

usage: hardening.py PROGRAM...
"""
import os
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def faults(program):
    header = output("readelf", "-hW", program)
    if not re.search(r"Type:\s+DYN", header):
        yield "is no position-independent executable"
    segments = output("readelf", "-lW", program)
    if "GNU_RELRO" not in segments:
        yield "has no RELRO segment"
    stack = re.search(r"GNU_STACK.*", segments)
    if not stack or "E" in stack.group(0).split("0x")[-2]:
        yield "has an executable stack"
    if not re.search(r"\(FLAGS(_1)?\).*NOW", output("readelf", "-dW", program)):
        yield "binds symbols lazily: the linker was not given -z now"
    symbols = output("readelf", "--dyn-syms", "-W", program)
    if "__stack_chk_fail" not in symbols:
        yield "has no stack protector"
    if not re.search(r"__\w+_chk\b", symbols):
        yield "has no fortified call: _FORTIFY_SOURCE is missing"
    if "X86-64" in header:
        start = output("objdump", "-d", "--no-show-raw-insn", "--disassemble=main", program)
        if "endbr64" not in start:
            yield "has no endbr64 at main: -fcf-protection is missing"


absent = [program for program in sys.argv[1:] if not os.path.exists(program)]
if absent:
    sys.exit(f"not built: {', '.join(absent)}")
found = [f"{program} {what}" for program in sys.argv[1:] for what in faults(program)]
print("\n".join(found) or f"{len(sys.argv) - 1} programs have every protection")
sys.exit(bool(found) or len(sys.argv) == 1)
