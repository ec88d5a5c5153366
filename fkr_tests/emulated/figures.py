#!/usr/bin/env python3
"""Measures the figures of docs/emulator.md and writes them into it, between its two marks.

  figures.py BUILD ZLUDA [ROWS]

BUILD: a build folder with test_emulator and ptx-debug. ZLUDA: a checkout of ZLUDA (spirv_run.py describes what is run).
ROWS: the output of speeds.py on a quiet machine; without it the rows of speeds are not changed. Exit status 1 if a
measurement fails.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs" / "emulator.md"
BEGIN, END = "<!-- figures.py -->\n", "<!-- end of figures.py -->\n"


def output_of(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return done.returncode, done.stdout


def public_suite(build, zluda):
    _, text = output_of(sys.executable, HERE / "spirv_run.py", zluda / "ptx/src/test/spirv_run", build / "bin/ptx-debug")
    passed, total = re.search(r"(\d+) of (\d+) programs pass", text).groups()
    failures = sorted(line.split(".ptx:")[0] for line in text.splitlines() if ".ptx: " in line)
    return f"| programs of ZLUDA's `spirv_run` with the values expected | {passed} of {total}" + (
        f" (not: {', '.join(failures)})" if failures else "") + " |"


def planted_bugs(build):
    status, text = output_of(build / "tests/test_emulator", "--gtest_filter=Faults.*:Races.*:*.Missing*")
    if status:
        sys.exit(text)
    planted, clean = (sum(map(int, re.findall(rf"(\d+) {what}", text))) for what in ("planted bugs found", "clean twins untouched"))
    return f"| planted bugs found, clean twins untouched | {planted}, {clean} |"


def forms(build):
    status, text = output_of(build / "tests/test_emulator", "--gtest_filter=Forms.*")
    if status:
        sys.exit(text)
    decoded, total = re.search(r"(\d+) of (\d+) forms are decoded", text).groups()
    equal, known = map(int, re.search(r"(\d+) instructions bit for bit as on an H200, (\d+) known to differ", text).groups())
    reasons = {}
    for count, op, what in re.findall(r"^refused: (\d+) of (\w+): (.*)$", text, re.M):
        by_op = reasons.setdefault(op, {})
        by_op[what] = by_op.get(what, 0) + int(count)
    refused = "; ".join(f"{op}: " + ", ".join(f"{count} ({what})" for what, count in by_op.items()) for op, by_op in reasons.items())
    return [f"| forms of the ISA table that run, `tcgen05` counted in | {decoded} of {total} |",
            f"| forms refused | {refused} |",
            f"| instructions on registers with the bits recorded from an H200 | {equal} of {equal + known} |"]


def memory_forms(build):
    status, text = output_of(build / "tests/test_emulator", "--gtest_filter=MemoryForms.*")
    if status:
        sys.exit(text)
    equal, known = map(int, re.search(r"(\d+) instructions of memory bit for bit as on an H200, (\d+) known to differ", text).groups())
    compared, total = re.search(r"(\d+) of (\d+) forms compared", text).groups()
    reasons = "; ".join(f"{count} ({why})" for count, why in re.findall(r"^not compared: (\d+) \((.*)\)$", text, re.M))
    return [f"| instructions of memory and synchronisation with the bits recorded from an H200 | {equal} of {equal + known} |",
            f"| forms of the ISA table in a program that was compared with an H200 | {compared} of {total} |",
            f"| forms in none | {reasons} |"]


def textures(build):
    status, text = output_of(build / "tests/test_emulator", "--gtest_filter=Texture.TheBits*:ImageForms.*")
    if status:
        sys.exit(text)
    count = re.search(r"(\d+) fetches of 256 threads bit for bit", text).group(1)
    equal, known = map(int, re.search(r"(\d+) instructions of textures and surfaces bit for bit as on an H200, (\d+) known to differ",
                                      text).groups())
    return [f"| texture fetches of 256 threads with the bits recorded from an H200 | {count} of {count} |",
            f"| instructions of textures and surfaces with the bits recorded from an H200 | {equal} of {equal + known} |"]


def main():
    build, zluda = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    speeds = [row for row in rest.splitlines() if re.match(r"\| (.*: million thread instructions a second|speeds of)", row)]
    if len(sys.argv) > 3:
        speeds = pathlib.Path(sys.argv[3]).read_text().splitlines()
    rows = [public_suite(build, zluda), *forms(build), *memory_forms(build), *textures(build), planted_bugs(build), *speeds]
    table = "| figure | |\n|---|---|\n" + "".join(f"{row}\n" for row in rows)
    DOCUMENT.write_text(before + BEGIN + table + END + after)
    print(table, end="")


if __name__ == "__main__":
    main()
