#!/usr/bin/env python3
"""Measures recall and precision of the catalogue on kernels with known defects: `recall.py PTX_DEBUG`

Three sets of kernels with labels, none of which is part of this project:

--sanitizer CHECKOUT  the samples of NVIDIA's Compute Sanitizer (GitHub: NVIDIA/compute-sanitizer-samples), compiled with
                      nvcc. The table SANITIZER below has each kernel's defect, from their READMEs.
--gpuverify CHECKOUT  the CUDA tests of GPUVerify (GitHub: mc-imperial/gpuverify), compiled with nvcc. The first lines of
                      a test state whether it passes, the defect, and the shape of the launch, which goes into a launch
                      file. Assertions and null pointers from the host are left out, since no rule of the catalogue
                      concerns them. So are tests that rely on lockstep (--warp-sync).
--good FOLDER         defects planted, one at a time, into PTX that ptxas accepts, from the held-out half (see
                      budget.py): pairs of a kernel without and with the defect. A change that no run on the emulator
                      shows to be a defect (planting.py) does not count. Their number, and how many of them are found,
                      are printed too.

A kernel counts as found if a rule of the defect's class has a finding of high or critical severity, or of medium severity
if the catalogue gives the rule no higher one. It counts as a false alarm if a class fires on a kernel without defects.
Prints recall and precision for each set and class, and in total. --misses lists kernels that were not found, and false
alarms.
"""
import argparse
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import budget
import planting

CLASSES = {
    "alignment": ("F051", "F074"),
    "bounds": ("F025", "F054"),
    "race": ("F036", "F050", "F058", "F102"),
    "barrier": ("F037", "F038", "F039", "F040", "F041", "F045"),
    "warp mask": ("F046", "F067", "F085", "F086"),
    "read-only": ("F026", "F029"),
}
CLASS_OF = {rule: name for name, rules in CLASSES.items() for rule in rules}
MEDIUM = ("F058",)  # rules whose severity in the catalogue is medium
ARCHITECTURE = "sm_75"

# File, part of the kernel's name, threads of its block, class.
SANITIZER = (
    ("Memcheck/memcheck_demo.cu", "unaligned_kernel", 1, "alignment"),
    ("Memcheck/memcheck_demo.cu", "out_of_bounds_kernel", 1, "bounds"),
    ("Racecheck/block_error.cu", "sumKernel", 128, "race"),
    ("Racecheck/warp_error.cu", "sumKernel", 64, "race"),
    ("Synccheck/divergent_threads.cu", "myKernel", 64, "barrier"),
    ("Synccheck/illegal_syncwarp.cu", "myKernel", 32, "warp mask"),
)

# A compiler ignores GPUVerify's annotations.
ANNOTATIONS = """#pragma once
#ifdef WITH_GROUPS
#include <cooperative_groups.h>
namespace cooperative_groups { template <class Group> __device__ void synchronize(const Group& group) { group.sync(); } }
#endif
#define __requires(...)
#define __ensures(...)
#define __global_requires(...)
#define __global_ensures(...)
#define __requires_fresh_array(...)
#define __invariant(...)
#define __global_invariant(...)
#define __function_wide_invariant(...)
#define __candidate_invariant(...)
#define __assert(...)
#define __global_assert(...)
#define __assume(...)
#define __non_temporal_loads_begin()
#define __non_temporal_loads_end()
#define __barrier_invariant(...)
#define __barrier_invariant_binary(...)
"""


class Tally:
    """Counts of true and false positives and negatives, by class."""

    def __init__(self, name):
        self.name = name
        self.found = collections.Counter()
        self.missed = collections.Counter()
        self.false = collections.Counter()
        self.clean = 0
        self.left_out = collections.Counter()
        self.not_shown = collections.Counter()
        self.not_shown_found = collections.Counter()
        self.notes = []

    def judge(self, what, defect, fired):
        """`defect` is a class, or None for a kernel without one; `fired` the classes that fired on it."""
        if defect is None:
            self.clean += 1
            for name in fired:
                self.false[name] += 1
                self.notes.append(f"false alarm: {what}: {name}")
        elif defect in fired:
            self.found[defect] += 1
        else:
            self.missed[defect] += 1
            self.notes.append(f"missed: {what}: {defect}, fired: {', '.join(sorted(fired)) or 'nothing'}")

    def add(self, other):
        for mine, theirs in ((self.found, other.found), (self.missed, other.missed), (self.false, other.false)):
            mine.update(theirs)
        self.clean += other.clean

    def report(self):
        print(f"== {self.name}: {self.found.total() + self.missed.total()} with a defect, {self.clean} without")
        for what, count in self.left_out.most_common():
            print(f"  left out: {count}: {what}")
        for name, count in self.not_shown.items():
            print(f"  left out: {count} of {name}: no run shows the defect; found of these: {self.not_shown_found[name]}")
        ratio = lambda part, rest: f"{100 * part / (part + rest):6.1f} %" if part + rest else "       -"
        print(f"  {'':12} {'recall':>8}  {'precision':>9}  found missed false")
        for name in (*CLASSES, None):
            found, missed, false = ((by[name] if name else by.total()) for by in (self.found, self.missed, self.false))
            if found or missed or false:
                print(f"  {name or 'all':12} {ratio(found, missed)}   {ratio(found, false)}  {found:5} {missed:6} {false:5}")


def fired_on(program, path, launch=None, kernel=None):
    """The classes, for each kernel, that have a finding which counts."""
    command = [program, "analyze", "--no-config", "--json=-", "--select", ",".join(CLASS_OF), str(path)]
    if launch:
        command[2:2] = ["--launch", str(launch)]
    if kernel:
        command[2:2] = ["--kernel", f"^{re.escape(kernel)}$"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if not run.stdout:
        sys.exit(f"recall.py: {' '.join(command)}: {run.stderr.strip()}")
    report = json.loads(run.stdout)["files"][0]
    return {each["name"]: {CLASS_OF[verdict["rule"]] for verdict in each["verdicts"]
                           if any(finding["severity"] in ("high", "critical", *(["medium"] if verdict["rule"] in MEDIUM else []))
                                  for finding in verdict["findings"])}
            for each in report.get("kernels", ()) if each["name"]}


def compiled(nvcc, source, scratch, *flags):
    path = scratch / (hashlib.sha256(str(source).encode()).hexdigest()[:16] + ".ptx")
    run = subprocess.run([nvcc, "-ptx", f"-arch={ARCHITECTURE}", *flags, "-o", str(path), str(source)], capture_output=True)
    return path if run.returncode == 0 else None


def launch_file(scratch, names, block, grid=None):
    entry = {"block": block, **({"grid": grid} if grid else {})}
    path = scratch / "launch.json"
    path.write_text(json.dumps({"entries": {name: entry for name in names}}))
    return path


def entries_of(path):
    return re.findall(r"\.entry\s+([\w$]+)", path.read_text(errors="replace"))


def judge_sanitizer(arguments, scratch):
    tally = Tally("Compute Sanitizer samples")
    for file, kernel, threads, defect in SANITIZER:
        path = compiled(arguments.nvcc, arguments.sanitizer / file, scratch)
        if not path:
            tally.left_out["nvcc refuses it"] += 1
            continue
        launch = launch_file(scratch, entries_of(path), [threads])
        for name, fired in fired_on(arguments.program, path, launch).items():
            if kernel in name:
                tally.judge(f"{file} {kernel}", defect, fired)
    return tally


def defect_of(text):
    """The class of a GPUVerify test; None if it passes; a list with the reason if it is left out."""
    lines = text.splitlines()
    expected = lines[0].strip().lower()
    if "--warp-sync" in "\n".join(lines[:3]):
        return ["it relies on lockstep"]
    if expected == "//pass":
        return None
    if "not_all_verified" not in expected:
        return ["the verifier cannot read it"]
    said = "\n".join(line for line in lines[:12] if line.startswith("//")).lower()
    if "constant memory" in said:
        return "read-only"
    if "divergence" in said:
        return "barrier"
    if "race" in said or "racy" in said:
        return "race"
    return ["what fails is no race, barrier or constant: an assertion, a null pointer, an invariant"]


def dimensions(text, option):
    found = re.search(rf"--{option}=\[?([\d,]+)\]?", text)
    return [int(number) for number in found[1].split(",") if number][:3] if found else None


def within_limits(block):
    """Reduces blocks with more threads than a GPU supports."""
    block = list(block)
    while block[0] * (block[1] if len(block) > 1 else 1) * (block[2] if len(block) > 2 else 1) > 1024:
        block[block.index(max(block))] //= 2
    return block


def judge_gpuverify(arguments, scratch):
    tally = Tally("GPUVerify's CUDA tests")
    (scratch / "annotations.h").write_text(ANNOTATIONS)
    for source in sorted((arguments.gpuverify / "testsuite/CUDA").rglob("*.cu")):
        text = source.read_text(errors="replace")
        defect = defect_of(text)
        # The path states it too: cooperative_groups/fail/divergence_thread_block.
        if isinstance(defect, list) and "no race" in defect[0] and "divergence_thread_block" in str(source):
            defect = "barrier"
        if isinstance(defect, list):
            tally.left_out[defect[0]] += 1
            continue
        groups = ["-DWITH_GROUPS"] if "cooperative_groups" in text else []
        path = compiled(arguments.nvcc, source, scratch, "-include", str(scratch / "annotations.h"), *groups)
        names = entries_of(path) if path else []
        if not names:
            tally.left_out["nvcc refuses it, or there is no kernel"] += 1
            continue
        code = path.read_text()
        if (defect == "race" and not re.search(r"\bst\.|\bred\.|\batom\.", code)) or (defect == "read-only" and not re.search(r"\bst\.", code)):
            tally.left_out["the compiler deletes the defect, or traps in its place"] += 1
            continue
        block = dimensions(text, "blockDim") or dimensions(text, "local_size") or [64]
        launch = launch_file(scratch, names, within_limits(block), dimensions(text, "gridDim"))
        fired = fired_on(arguments.program, path, launch)
        tally.judge(str(source.relative_to(arguments.gpuverify)), defect, set().union(*fired.values()))
    return tally


def judge_planted(arguments, scratch):
    tally = Tally("planted defects")
    files = sorted(path for path in arguments.good.rglob("*.ptx") if path.stat().st_size < arguments.largest)
    files = [path for path in files if budget.is_held_out(path) != arguments.looked_at][:: arguments.every]
    planted = scratch / "planted.ptx"
    for path in files:
        before = None
        for plant, defect, name, text in planting.planted_in(path.read_text(errors="replace")):
            planted.write_text(text)
            before = before or budget.is_accepted(path) and fired_on(arguments.program, path)
            if not before or not budget.is_accepted(planted) or defect in before.get(name, ()):
                tally.left_out["ptxas refuses it, or the class fires without the defect already"] += 1
                continue
            fired = fired_on(arguments.program, planted, kernel=name)[name] - before[name]
            if planting.is_shown(arguments.program, path, planted, name, set(CLASSES[defect])):
                tally.judge(f"{path} {name}: {plant.__doc__}", defect, fired & {defect})
            else:
                tally.not_shown[defect] += 1
                tally.not_shown_found[defect] += defect in fired
        for name, fired in (before or {}).items():
            tally.judge(f"{path} {name}", None, fired)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--sanitizer", type=pathlib.Path)
    parser.add_argument("--gpuverify", type=pathlib.Path)
    parser.add_argument("--good", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="of --good, only each N-th file")
    parser.add_argument("--largest", type=int, default=400_000, help="of --good, only files of fewer bytes")
    parser.add_argument("--looked-at", action="store_true", help="of --good, the half that is not held out: the one to learn from")
    parser.add_argument("--misses", action="store_true")
    arguments = parser.parse_args()

    total = Tally("all sets")
    with tempfile.TemporaryDirectory() as folder:
        for given, judge in ((arguments.sanitizer, judge_sanitizer), (arguments.gpuverify, judge_gpuverify),
                             (arguments.good, judge_planted)):
            if not given:
                continue
            tally = judge(arguments, pathlib.Path(folder))
            tally.report()
            total.add(tally)
            if arguments.misses:
                print("\n".join(f"  {note}" for note in tally.notes))
    if not total.found and not total.missed and not total.clean:
        sys.exit("recall.py: expected --sanitizer, --gpuverify or --good with kernels in it, found none")
    total.report()


if __name__ == "__main__":
    main()
