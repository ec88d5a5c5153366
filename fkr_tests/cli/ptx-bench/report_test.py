#!/usr/bin/env python3
"""Tests ptx-bench from outside, wrong usage included, and report.py on its output and on made-up rows.
usage: report_test.py REPORT_PY PTX_BENCH"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

REPORT, BENCH = sys.argv[1:]


def report(*arguments):
    done = subprocess.run([sys.executable, REPORT, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def expect(what, condition, text=""):
    if not condition:
        sys.exit(f"FAILED: {what}\n{text}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    def store(file, content):
        (folder / file).write_text(json.dumps(content))
        return folder / file

    source = folder / "source.txt"
    source.write_text("".join(f"line {i * i % 977}\n" for i in range(9000)))
    subprocess.run([BENCH, "lz4", str(source), "--cpu-only", "--size", "256KiB", "--json", str(folder / "real.json")],
                   check=True, stdout=subprocess.DEVNULL)
    measured = json.loads((folder / "real.json").read_text())
    expect("rows were measured", len(measured["rows"]) >= 4, measured)

    for words, status, what in [([], 2, "ptx-bench: A subcommand is required; see ptx-bench --help"),
                                (["lz4"], 2, "ptx-bench: FILE is required"),
                                (["copy", "--size", "much"], 2, "--size: expected a size such as 64M, found 'much'"),
                                (["copy", "--size", "-1"], 2, "--size: expected a size such as 64M, found '-1'"),
                                (["copy", "--size", "0"], 2, "--size: "),
                                (["copy", "--json", str(folder / "no" / "x")], 1, "/no/x: cannot write: No such file")]:
        done = subprocess.run([BENCH, *words], capture_output=True, text=True)
        expect(f"{words} exits {status}", done.returncode == status and what in done.stderr, done.stderr)

    status, text = report("compare", folder / "real.json", folder / "real.json")
    expect("equal to itself", status == 0 and " 0 more than 5% slower, 0 not measured" in text, text)

    status, text = report("table", folder / "real.json")
    lines = text.splitlines()
    expect("a line for each row", status == 0 and len(lines) == 2 + len(measured["rows"]) and "| 65536 | 4 |" in text, text)
    shares = copy.deepcopy(measured)
    shares["rows"][0].update(memory_share=0.25, issue_share=0.5, seconds=1, fastest_seconds=0.9, slowest_seconds=1.1)
    status, text = report("table", store("shares.json", shares))
    expect("spread and shares in per cent", "| 20% | 25% | 50% |" in text, text)

    def with_speed(factor):
        changed = copy.deepcopy(measured)
        changed["rows"][0]["gigabytes_per_second"] *= factor
        return store("changed.json", changed)

    status, text = report("compare", folder / "real.json", with_speed(0.94))
    expect("6 % slower is told", status == 1 and "6.0% slower: " + measured["rows"][0]["input"] in text, text)
    status, text = report("compare", folder / "real.json", with_speed(0.96))
    expect("4 % slower is not", status == 0, text)
    fewer = copy.deepcopy(measured)
    del fewer["rows"][0]
    status, text = report("compare", folder / "real.json", store("fewer.json", fewer))
    expect("a row that is gone is told", status == 0 and "not measured: " in text and ", 1 not measured" in text, text)
    other = copy.deepcopy(measured) | {"cpu": "another"}
    status, text = report("compare", folder / "real.json", store("other.json", other))
    expect("another machine is refused", status == 2 and "not comparable" in text, text)

    for stored in sorted(pathlib.Path(REPORT).parent.glob("baseline/*.json")):
        status, text = report("compare", stored, stored)
        expect(f"{stored.name} is a baseline", status == 0 and " 0 more than 5% slower, 0 not measured" in text, text)
        slower = json.loads(stored.read_text())
        slower["rows"][-1]["gigabytes_per_second"] *= 0.9
        status, text = report("compare", stored, store("slower.json", slower))
        expect("and a row that is 10 % slower is told", status == 1 and "10.0% slower: " in text, text)

    status, text = report("plot", folder / "real.json", "--out", folder / "plots")
    expect("plots are drawn", status == 0, text)
    drawing = tree.parse(folder / "plots" / "throughput.svg").getroot()
    lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
    kinds = {row["what"] for row in measured["rows"]}
    expect("a line for each kind of row", len(lines) == len(kinds), [line.attrib for line in lines])
    tree.parse(folder / "plots" / "ratio.svg")
print("report.py: compare and plot do what they say")
