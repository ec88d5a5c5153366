"""Processor instructions of a program, counted by valgrind. The counts of cachegrind without its model of the caches are
callgrind's, in a third of the time."""
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def require_valgrind():
    if not shutil.which("valgrind"):
        print("NOT RUN: valgrind is not installed (Debian package valgrind)")
        sys.exit(SKIPPED)


def instructions(words, exit_codes=(0,)):
    """Of a run of `words`, which may end with one of `exit_codes`."""
    run = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *words],
                         capture_output=True, text=True)
    found = re.search(r"I +refs: +([\d,]+)", run.stderr)
    if run.returncode not in exit_codes or not found:
        sys.exit(f"cachegrind counted nothing for {' '.join(map(str, words))}: exit {run.returncode}\n"
                 f"{run.stdout[:2000]}{run.stderr}")
    return int(found[1].replace(",", ""))
