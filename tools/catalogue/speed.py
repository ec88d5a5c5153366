#!/usr/bin/env python3
"""How long the whole catalogue takes beside ptxas: `speed.py PTX_DEBUG FILE...`

For every file `ptx-debug analyze --falsify` and `ptxas -O3` run one after the other. Seconds are by the clock and of the
processor (user and system), of which the second hardly depends on other load of the machine; ratios are of these. Files
that ptxas refuses for their own target are left out. `--generate MIB` makes one file of that size from the
kernels of the largest, under as many names as it takes, and takes it through both as well. `--total LINES` also analyzes the
files, largest first, in one call, as often as it takes to have that many lines. Prints the analyzer's peak memory, too.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def run(command):
    """Seconds by the clock and of the processor, peak memory in MiB, exit code."""
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
    return re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)[1]


class Comparison:
    def __init__(self, program, ptxas):
        self.program, self.ptxas = program, ptxas
        self.ours = self.theirs = 0.0
        self.slower = 0
        print(f"{'lines':>8} {'analyze, clock':>14} {'processor':>9} {'ptxas, clock':>12} {'processor':>9} {'ratio':>6} "
              f"{'MiB':>5}  file")

    def compare(self, path, text):
        theirs = run([self.ptxas, "-O3", "-c", f"-arch={target_of(text)}", "-o", "/dev/null", str(path)])
        if theirs[3]:
            return False
        ours = run([self.program, "analyze", "--no-config", "--falsify", str(path)])
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
    """From `.entry` to the brace that closes its body."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, text.index("{", begin)):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[begin:brace.end()]
    sys.exit("speed.py: --generate: expected a closing brace for each kernel")


def grown(first, size_bytes):
    """The largest text, its kernels again and again under new names."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--generate", type=float, default=0, metavar="MIB")
    parser.add_argument("--total", type=int, default=0, metavar="LINES")
    arguments = parser.parse_args()

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
        clock, processor, peak, _ = run([arguments.program, "analyze", "--no-config", "--falsify", *chosen])
        print(f"{lines} lines in {len(chosen)} files, one call: {clock:.1f} s by the clock, {processor:.1f} s of the "
              f"processor, {peak:.0f} MiB")


if __name__ == "__main__":
    main()
