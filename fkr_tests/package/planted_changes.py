#!/usr/bin/env python3
"""Checks that the tests written by gen-fkr notice changes. Plants changes into PTX, one at a time, at every place where one
fits, and runs the test of the unchanged file against each. A change that is not noticed must be listed in CASES with the
reason why it has no effect. An unlisted one fails, and so does a listed one that is noticed.

usage: planted_changes.py PTX_DEBUG CASES FOLDER SCRATCH [PREFIX]

CASES    JSON: for each file of FOLDER its `launches` (launch files, as objects) and `same` ({"LINE: CHANGE": reason});
         the figures in docs/testing-kernels.md are those of planted_changes.json
SCRATCH  contains the tests as build/STEM_fkr_test; with PREFIX, the folder of an installed ptxkit, they are written and
         built there
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

KERNEL_CHANGES = {
    "an addition is a subtraction": (r"^(\s*(?:@!?%\w+ )?)add\.(s32|f32|f64|u32|s64|u64|rn\.f32)", r"\1sub.\2"),
    "a product is a sum": (r"^(\s*)mul\.lo\.(s32|u32|s64|u64)", r"\1add.\2"),
    "a shift is one more": (r"^(\s*(?:shl|shr)\.\w+\s+[^;]*,\s*)(\d+);", lambda m: f"{m[1]}{int(m[2]) + 1};"),
    "a comparison is off by one": (r"setp\.(lt|ge|le|gt)\.",
                                   lambda m: "setp." + {"lt": "le", "ge": "gt", "le": "lt", "gt": "ge"}[m[1]] + "."),
    "a branch is negated": (r"@(%\w+)\s+bra", r"@!\1 bra"),
    "a store is gone": (r"^\s*st\.(global|shared)[^;]*;", ""),
    "a load is 4 bytes further": (r"(ld\.global[^\[]*\[%\w+)\]", r"\1+4]"),
    "operands change places": (r"^(\s*(?:sub|div|rem)[\w.]*\s+%\w+, )(%\w+), (%\w+);", r"\1\3, \2;"),
    "rounding is to zero": (r"\.rn\.(f32|f64)", r".rz.\1"),
}
FILE_CHANGES = {
    "a parameter has another size": (r"(\.param \.)u32 ", r"\1u64 "),
    "a block is bounded differently": (r"^(\.reqntid|\.maxntid) (\d+)", r"\1 16"),
    "an entry has another name": (r"(\.entry\s+)(\w+)", r"\1\2_x"),
    "a shared array is larger": (r"(\.shared [^;\[]*\[)(\d+)\]", r"\g<1>1\2]"),
}
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(planted LANGUAGES CXX)
find_package(ptxkit REQUIRED)
find_package(GTest REQUIRED)
file(GLOB tests *_fkr_test.cpp)
foreach(test ${tests})
  get_filename_component(name ${test} NAME_WE)
  add_executable(${name} ${test})
  target_link_libraries(${name} PRIVATE ptxkit::harness GTest::gtest_main)
endforeach()
"""


def is_run(command, **options):
    try:
        return subprocess.run(command, capture_output=True, timeout=300, **options).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def write_and_build(ptx_debug, cases, folder, scratch, prefix):
    for path, case in cases.items():
        command = [ptx_debug, "gen-fkr", str(folder / path), "-o", str(scratch / f"{pathlib.Path(path).stem}_fkr_test.cpp")]
        for number, launch in enumerate(case["launches"]):
            file = scratch / f"{pathlib.Path(path).stem}.{number}.launch.json"
            file.write_text(json.dumps(launch))
            command += ["--launch", str(file)]
        subprocess.run(command, check=True)
    (scratch / "CMakeLists.txt").write_text(PROJECT)
    build = str(scratch / "build")
    subprocess.run(["cmake", "-G", "Ninja", "-S", str(scratch), "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"], check=True)
    subprocess.run(["cmake", "--build", build], check=True)


def changes_of(text, launched):
    """(line, change, changed text) for each place. The body of a kernel counts if a golden launch runs it."""
    bodies = []
    for name in launched:
        start = re.search(r"\.entry\s+" + re.escape(name) + r"\b", text).start()
        end = text.find("\n}", start)
        bodies.append((start, end if end > 0 else len(text)))
    for changes, spans in ((KERNEL_CHANGES, bodies), (FILE_CHANGES, [(0, len(text))])):
        for change, (pattern, replacement) in changes.items():
            for found in re.finditer(pattern, text, re.M):
                if not any(start <= found.start() < end for start, end in spans):
                    continue
                new = replacement(found) if callable(replacement) else found.expand(replacement)
                line = text[:found.start() + len(found[0]) - len(found[0].lstrip())].count("\n") + 1
                yield line, change, text[:found.start()] + new + text[found.end():]


def main():
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    ptx_debug, folder, scratch = sys.argv[1], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]).resolve()
    cases = json.loads(pathlib.Path(sys.argv[2]).read_text())
    scratch.mkdir(exist_ok=True)
    if len(sys.argv) == 6:
        write_and_build(ptx_debug, cases, folder, scratch, pathlib.Path(sys.argv[5]).resolve())
    planted, noticed, wrong, same = collections.Counter(), collections.Counter(), [], 0
    for number, (path, case) in enumerate(cases.items()):
        stem, original = pathlib.Path(path).stem, folder / path
        test, text = str(scratch / "build" / f"{stem}_fkr_test"), original.read_text(errors="replace")
        if not is_run([test], env={**os.environ, "FKR_PTX": str(original)}):
            sys.exit(f"{path}: its own test fails")
        launched = set(re.findall(r'this->launch\("([^"]+)"', (scratch / f"{stem}_fkr_test.cpp").read_text()))

        def judge(numbered):
            index, (line, change, changed) = numbered
            file = scratch / f"changed{number}_{index}.ptx"
            file.write_text(changed)
            try:
                if not is_run([ptx_debug, "check", str(file)]):
                    return None  # it is not a kernel any more
                if change != "an entry has another name" and is_run([ptx_debug, "diff", str(original), str(file)]):
                    return None
                return line, change, not is_run([test], env={**os.environ, "FKR_PTX": str(file)})
            finally:
                file.unlink()

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = [verdict for verdict in pool.map(judge, enumerate(changes_of(text, launched))) if verdict]
        unnoticed = set()
        for line, change, is_noticed in verdicts:
            planted[change] += 1
            noticed[change] += is_noticed
            if not is_noticed:
                unnoticed.add(f"{line}: {change}")
        same += len(unnoticed & set(case["same"]))
        wrong += [f"{path}:{place}: not noticed" for place in sorted(unnoticed - set(case["same"]))]
        wrong += [f"{path}:{place}: listed as no change, and noticed" for place in sorted(set(case["same"]) - unnoticed)]
    for change in sorted(planted):
        print(f"| {change} | {planted[change]} | {noticed[change]} |")
    print(f"{planted.total()} planted changes, {noticed.total()} noticed, {same} that are none")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
