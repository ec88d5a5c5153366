#!/usr/bin/env python3
"""Lines per second of `ptx-debug check` and of `ptxas -O0` on the same files in the same run, on one core.

Each program runs --runs times on each file, one after the other. The time is the processor time (user and system) of its
fastest run. Memory is the largest resident set that GNU time reports (/usr/bin/time; `-` without it); "/ file" is the excess
over that of a program start, divided by the size of the file. Prints a table; no figure makes it fail.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import judges

SKIPPED = 77


def once(command):
    """(processor seconds, exit code). The output is discarded."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, process.returncode


def fastest(command, runs):
    results = [once(command) for _ in range(runs)]
    return min(seconds for seconds, _ in results), results[0][1]


def largest_resident_set(command):
    """In bytes; None without GNU time. wait4 would report at least Python's own memory, from which the child was forked."""
    time = shutil.which("time")
    if time is None:
        return None
    with tempfile.NamedTemporaryFile("r") as report:
        subprocess.run([time, "-f", "%M", "-o", report.name, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return int(report.read().split()[-1]) * 1024


def write_repeated(source, path, size):
    """The functions of a text, repeated under other names until it has at least `size` bytes."""
    text = source.read_text(encoding="latin-1")
    start = re.search(r"^\.(?!version|target|address_size)", text, re.M).start()
    names = re.findall(r"\.(?:entry|func)\s+(\w+)", text[start:])
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    with open(path, "w", encoding="latin-1") as out:
        out.write(text[:start])
        for number in range(-(-size // (len(text) - start))):
            out.write(pattern.sub(rf"\1_{number}", text[start:]))


def line_count(path):
    with open(path, "rb") as stream:
        return sum(1 for _ in stream)


def target_of(path):
    with open(path, encoding="latin-1") as stream:
        return judges.target_of(stream.read(20000))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--ptx-debug", default="ptx-debug")
    parser.add_argument("--ptxas", default=judges.find_ptxas())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=0, help="MB: also the first file's functions repeated to that size, without ptxas")
    options = parser.parse_args()
    if not options.ptxas:
        print("NOT RUN: there is no ptxas on PATH")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ptxkit-") as folder:
        smallest = pathlib.Path(folder) / "empty.ptx"
        smallest.write_text(".version 9.0\n.target sm_90\n.address_size 64\n")
        start = [options.ptx_debug, "check", str(smallest)]
        floor = largest_resident_set(start)
        in_memory = f", {floor / 1e6:.1f} MB in memory" if floor else ""
        print(f"start (three lines): {1000 * fastest(start, options.runs)[0]:.1f} ms{in_memory}")
        files = [(path, True) for path in options.files]
        if options.repeat:
            big = pathlib.Path(folder) / f"{options.files[0].stem}_{options.repeat}MB.ptx"
            write_repeated(options.files[0], big, options.repeat * 1000000)
            files.append((big, False))
        print("| file | MB | lines | ours, s | lines a second | memory, MB | / file | ptxas -O0, s | ratio |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for path, with_ptxas in files:
            lines, size = line_count(path), path.stat().st_size
            command = [options.ptx_debug, "check", str(path)]
            seconds, code = fastest(command, options.runs)
            if code != 0:
                print(f"| {path.name} | refused |")
                continue
            memory = largest_resident_set(command)
            row = [path.name, f"{size / 1e6:.1f}", f"{lines}", f"{seconds:.3f}", f"{lines / seconds:.3g}"]
            row += [f"{memory / 1e6:.1f}", f"{(memory - floor) / size:.1f}"] if memory else ["-", "-"]
            if with_ptxas:
                arch = judges.architecture(target_of(path))
                theirs = fastest([options.ptxas, "-O0", f"-arch={arch}", str(path), "-o", os.devnull], 1)[0]
                row += [f"{theirs:.2f}", f"{theirs / seconds:.0f}"]
            else:
                row += ["", ""]
            print("| " + " | ".join(row) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
