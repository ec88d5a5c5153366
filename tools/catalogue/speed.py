#!/usr/bin/env python3
"""How long the whole catalogue takes beside ptxas: `measure_speed.py PTX_DEBUG FILE...`

For every file `ptx-debug analyze --falsify` and `ptxas -O3` run one after the other. Seconds are of processor time, user
and system, so that other load on the machine counts for neither. Files that ptxas refuses for their own target are left
out. Prints lines, seconds, the ratio and the analyzer's peak memory, and the totals. `--total LINES` also analyzes the
files, largest first, in one call, as often as it takes to have that many lines; its wall time needs a quiet machine.
"""
import argparse
import pathlib
import re
import resource
import subprocess
import sys
import time


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def seconds_of(command):
    start = processor_seconds()
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return processor_seconds() - start, run.returncode


def peak_mib(command):
    child = subprocess.run([sys.executable, "-c",
                            "import resource, subprocess, sys\n"
                            "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
                            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", *command],
                           capture_output=True, text=True)
    return int(child.stdout) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--total", type=int, default=0, help="lines of the set that is analyzed in one call")
    arguments = parser.parse_args()

    analyzed = assembled = 0.0
    slower = 0
    lines_of = {}
    print(f"{'lines':>8} {'analyze s':>9} {'ptxas s':>8} {'ratio':>6} {'MiB':>5}  file")
    for path in sorted(arguments.files, key=lambda path: -path.stat().st_size):
        text = path.read_text(errors="replace")
        lines_of[path] = text.count("\n")
        target = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)
        own = [arguments.program, "analyze", "--falsify", str(path)]
        theirs, status = seconds_of([arguments.ptxas, "-O3", "-c", f"-arch={target.group(1)}", "-o", "/dev/null", str(path)])
        if status:
            continue
        ours, _ = seconds_of(own)
        analyzed += ours
        assembled += theirs
        slower += ours > theirs
        print(f"{lines_of[path]:8} {ours:9.2f} {theirs:8.2f} {ours / theirs:6.2f} {peak_mib(own):5.0f}  {path.name}", flush=True)
    if assembled:
        print(f"all: {analyzed:.1f} s beside {assembled:.1f} s of ptxas -O3, ratio {analyzed / assembled:.2f}; "
              f"slower than ptxas on {slower} files")
    if arguments.total:
        chosen, lines = [], 0
        while lines < arguments.total:
            for path, count in lines_of.items():
                if lines < arguments.total:
                    chosen.append(str(path))
                    lines += count
        start, spent = time.perf_counter(), processor_seconds()
        subprocess.run([arguments.program, "analyze", "--falsify", *chosen], stdout=subprocess.DEVNULL)
        print(f"{lines} lines in one call: {processor_seconds() - spent:.1f} s of processor time, "
              f"{time.perf_counter() - start:.1f} s by the clock")


if __name__ == "__main__":
    main()
