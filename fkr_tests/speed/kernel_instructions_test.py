#!/usr/bin/env python3
"""The gate of the kernels' instruction counts: green for the kernels as they are, red for one that executes more.
usage: kernel_instructions_test.py KERNEL_COUNTS PTX_FOLDER"""
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
GATE = pathlib.Path(__file__).with_name("kernel_instructions.py")


def gate(*files):
    done = subprocess.run([sys.executable, GATE, PROGRAM, *map(str, files)], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    return done.returncode, done.stdout


def planted(at, added):
    """lz77_hash with an instruction more before each that begins with `at`: added(its line)."""
    lines = (FOLDER / "lz77_hash.sm_80.ptx").read_text().splitlines(keepends=True)
    return "".join(added(line) + line if line.startswith(at) else line for line in lines)


unbuilt = subprocess.run([sys.executable, GATE, FOLDER / "no_program", "--accept"], capture_output=True, text=True)
if unbuilt.returncode != 2 or not unbuilt.stderr.endswith("no_program is not built: ./dev build kernel_counts\n"):
    sys.exit(f"FAILED: a program that is not built: {unbuilt.stderr}")
status, text = gate()
if status != 0 or " kernels, 0 differences" not in text:
    sys.exit("FAILED: the kernels are not as accepted")
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "lz77_hash.ptx"
    for what, kernel, names in [("a move more", planted("\tsetp", lambda line: "\tmov.u32 %r1, %r1;\n"), ["in all", "move"]),
                                ("a load twice", planted("\tld.global", lambda line: line), ["global memory", "bytes of global memory"])]:
        file.write_text(kernel)
        status, text = gate(file)
        if status != 1 or "lz77_hash: " not in text or any(name not in text for name in names):
            sys.exit(f"FAILED: {what} is not told")
        if any(line and not line.startswith("lz77_hash") for line in text.splitlines()[:-2]):
            sys.exit("FAILED: another kernel is told")
