#!/usr/bin/env python3
"""Compares the time of the whole catalogue with that of ptxas: `speed.py PTX_DEBUG FILE...`

Runs `ptx-debug analyze --falsify` and `ptxas -O3` on every file, one after the other. Prints wall-clock seconds and
processor seconds (user and system), which other load hardly affects; ratios are of processor seconds. Files that ptxas
refuses for their own target are left out. `--generate MIB` makes one file of that size from the kernels of the largest
file, renamed as often as needed, and runs both on it too. `--total LINES` also analyzes the files, largest first, in one
call, repeated until they have that many lines. Prints the analyzer's peak memory too.

`--set FOLDER` runs both on every .ptx file below a folder instead: the ratio of each goes to `--ratios`; it prints their
geometric mean, the number above 1, and the worst. `--start` prints how long the program takes to start.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time


def run(command):
    """Wall-clock seconds, processor seconds, peak memory in MiB, exit code."""
    child = subprocess.run(
        [sys.executable, "-c",
         "import resource, subprocess, sys, time\n"
         "start = time.perf_counter()\n"
         "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode\n"
         "clock = time.perf_counter() - start\n"
         "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
         "print(clock, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, code)", *command],
        capture_output=True, text=True, check=True)
    clock, processor, peak, code = child.stdout.split()
    return float(clock), float(processor), float(peak), int(code)


def target_of(text):
    found = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)
    return found and found[1]


def ptxas_command(ptxas, path, target):
    return [ptxas, "-O3", "-c", f"-arch={target}", "-o", "/dev/null", str(path)]


def analyze_command(program, *paths):
    return [program, "analyze", "--no-config", "--falsify", *map(str, paths)]


class Comparison:
    def __init__(self, program, ptxas):
        self.program, self.ptxas = program, ptxas
        self.ours = self.theirs = 0.0
        self.slower = 0
        print(f"{'lines':>8} {'analyze, clock':>14} {'processor':>9} {'ptxas, clock':>12} {'processor':>9} {'ratio':>6} "
              f"{'MiB':>5}  file")

    def compare(self, path, text):
        theirs = run(ptxas_command(self.ptxas, path, target_of(text)))
        if theirs[3]:
            return False
        ours = run(analyze_command(self.program, path))
        self.ours += ours[1]
        self.theirs += theirs[1]
        self.slower += ours[1] > theirs[1]
        lines = text.count("\n")
        print(f"{lines:8} {ours[0]:14.2f} {ours[1]:9.2f} {theirs[0]:12.2f} {theirs[1]:9.2f} {ours[1] / theirs[1]:6.2f} "
              f"{ours[2]:5.0f}  {path.name}", flush=True)
        return True

    def report(self):
        if self.theirs:
            print(f"all: {self.ours:.1f} s of the processor beside {self.theirs:.1f} s of ptxas -O3, ratio "
                  f"{self.ours / self.theirs:.2f}; slower than ptxas on {self.slower} files")


def kernel_at(text, begin):
    """The text from `.entry` to the brace that closes its body."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, text.index("{", begin)):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[begin:brace.end()]
    sys.exit("speed.py: --generate: expected a closing brace for each kernel")


def grown(first, size_bytes):
    """The kernels of the largest text, repeated under new names."""
    kernels = [kernel_at(first, match.start()) for match in re.finditer(r"(?m)^(?:\.visible )?\.entry ", first)]
    if not kernels:
        sys.exit("speed.py: --generate: expected kernels in the largest file, found none")
    parts, size, number = [first], len(first), 0
    while size < size_bytes:
        number += 1
        for kernel in kernels:
            name = re.search(r"\.entry ([\w$]+)", kernel)[1]
            copy = re.sub(rf"\b{re.escape(name)}(?=[\s(_])", f"{name}_{number}x", kernel)
            parts.append(copy)
            size += len(copy)
    return "\n".join(parts) + "\n"


def whole_set(program, ptxas, folder, every, ratios):
    """Every file that ptxas accepts for its own target, with the times of both."""
    rows, refused = [], 0
    for path in sorted(folder.rglob("*.ptx"))[::every]:
        text = path.read_text(errors="replace")
        target = target_of(text)
        theirs = run(ptxas_command(ptxas, path, target)) if target else None
        if not theirs or theirs[3]:
            refused += 1
            continue
        ours = run(analyze_command(program, path))
        row = (ours[1] / theirs[1], ours[1], theirs[1], text.count("\n"), path.relative_to(folder))
        rows.append(row)
        if ratios:
            ratios.write("\t".join(map(str, row)) + "\n")
            ratios.flush()
    if not rows:
        sys.exit("speed.py: --set: expected files that ptxas accepts for their own target, found none")
    rows.sort(reverse=True)
    each = [row[0] for row in rows]
    print(f"set: {len(rows)} files, {sum(row[3] for row in rows)} lines ({refused} that ptxas refuses): "
          f"{sum(row[1] for row in rows):.1f} s of the processor beside {sum(row[2] for row in rows):.1f} s of ptxas -O3")
    print(f"set: ratio: geometric mean {statistics.geometric_mean(each):.3f}, median {statistics.median(each):.3f}, "
          f"worst {each[0]:.2f}, above 1 in {sum(ratio > 1 for ratio in each)} files")
    for ratio, ours, theirs, lines, name in rows[:8]:
        print(f"  {ratio:5.2f} = {ours:.3f} s / {theirs:.3f} s, {lines} lines: {name}")


def start(program, runs=101):
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - begin)
    print(f"start: {1000 * statistics.median(seconds):.1f} ms by the clock, median of {runs} runs, "
          f"{1000 * min(seconds):.1f} ms the quickest")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--generate", type=float, default=0, metavar="MIB")
    parser.add_argument("--total", type=int, default=0, metavar="LINES")
    parser.add_argument("--set", type=pathlib.Path, metavar="FOLDER", help="every file below it instead")
    parser.add_argument("--every", type=int, default=1, help="of --set, only each N-th file")
    parser.add_argument("--ratios", type=argparse.FileType("w"), metavar="FILE",
                        help="of --set: ratio, seconds, seconds of ptxas, lines and path of each, tab-separated")
    parser.add_argument("--start", action="store_true")
    arguments = parser.parse_args()

    if arguments.start:
        start(arguments.program)
    if arguments.set:
        whole_set(arguments.program, arguments.ptxas, arguments.set, arguments.every, arguments.ratios)
    if not arguments.files:
        if not arguments.start and not arguments.set:
            parser.error("expected files, --set or --start, found none of them")
        return

    files = sorted(arguments.files, key=lambda path: -path.stat().st_size)
    texts = {path: path.read_text(errors="replace") for path in files}
    comparison = Comparison(arguments.program, arguments.ptxas)
    accepted = [path for path in files if comparison.compare(path, texts[path])]
    comparison.report()
    if not accepted:
        sys.exit("speed.py: expected files that ptxas accepts, found none")
    if arguments.generate:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "generated.ptx"
            path.write_text(grown(texts[accepted[0]], arguments.generate * 2**20))
            if not comparison.compare(path, path.read_text()):
                sys.exit("speed.py: ptxas refuses the generated file")
    if arguments.total:
        chosen, lines = [], 0
        while lines < arguments.total:
            for path in accepted:
                if lines < arguments.total:
                    chosen.append(str(path))
                    lines += texts[path].count("\n")
        clock, processor, peak, _ = run(analyze_command(arguments.program, *chosen))
        print(f"{lines} lines in {len(chosen)} files, one call: {clock:.1f} s by the clock, {processor:.1f} s of the "
              f"processor, {peak:.0f} MiB")


if __name__ == "__main__":
    main()
