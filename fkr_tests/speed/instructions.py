#!/usr/bin/env python3
"""Processor instructions that the front end and the rules of the catalogue spend on PTX, counted by valgrind's
callgrind and compared with accepted counts. Inputs: what nvcc writes with -lineinfo, what clang writes with -g (debug
sections), and what people write (inputs/hand.py); for the rules also the kernel of this project that took
them longest for its size (bwt_rank, as it was in November 2026). Fails when a count grows or shrinks by more than the
tolerance: growth means a slower analyzer, and a smaller count should be accepted.

usage: instructions.py PTX_DEBUG [--accept]
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOLERANCE = 0.05  # other builds of the same compiler version differ by less than one per cent
SKIPPED = 77
FOLDER = pathlib.Path(__file__).parent
INPUTS = ["nvcc.ptx", "clang.ptx", "hand.ptx"]  # inputs/ has the source of each
# What is counted: the function, the words that make ptx-debug run it, the files.
SUBJECTS = {
    "parse": ("ptxkit::ptx::parse(*", ["check"], INPUTS),
    "rules": ("ptxkit::rules::run_rule(*", ["analyze", "--no-config", "--falsify", "--no-prove"],
              [*INPUTS, "own.ptx"]),
}
VERDICTS = (0, 1, 2, 3)  # exit codes of a run that came to its end


def count(ptx_debug, function, words, path):
    with tempfile.TemporaryDirectory(prefix="ptxkit-") as folder:
        run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                              f"--toggle-collect={function}", ptx_debug, *words, str(path)],
                             capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode not in VERDICTS or not found or int(found[1]) == 0:
        sys.exit(f"callgrind counted nothing for {path}:\n{run.stdout}{run.stderr}")
    return int(found[1])


def main():
    ptx_debug = sys.argv[1]
    if not shutil.which("valgrind"):
        print("NOT RUN: valgrind is not installed (Debian package valgrind)")
        return SKIPPED
    accepted_path = FOLDER / "instructions.json"
    counts = {f"{subject} {name}": count(ptx_debug, function, words, FOLDER / "inputs" / name)
              for subject, (function, words, names) in SUBJECTS.items() for name in names}
    if "--accept" in sys.argv:
        accepted_path.write_text(json.dumps(counts, indent=2) + "\n")
        return 0
    accepted, failed = json.loads(accepted_path.read_text()), False
    for name, now in counts.items():
        change = now / accepted[name] - 1
        lines = (FOLDER / "inputs" / name.split()[1]).read_text().count("\n")
        print(f"{name}: {now} instructions, {now / lines:.0f} a line, {100 * change:+.1f} % of what was accepted")
        failed |= abs(change) > TOLERANCE
    if failed:
        print(f"more than {100 * TOLERANCE:.0f} % off; if that is meant: {' '.join(sys.argv)} --accept")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
