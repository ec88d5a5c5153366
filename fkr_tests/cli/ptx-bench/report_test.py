#!/usr/bin/env python3
"""Tests ptx-bench from outside, wrong usage included, and report.py on its output and on made-up rows.
The GPU of `gate` and of the roofline is the emulator, behind a driver of its own.

usage: report_test.py REPORT_PY PTX_BENCH EMULATED_LIBCUDA"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

REPORT, BENCH, LIBCUDA = sys.argv[1:]
GPU = os.environ | {"PTXKIT_LIBCUDA": LIBCUDA}


def report(*arguments):
    done = subprocess.run([sys.executable, REPORT, *map(str, arguments)], capture_output=True, text=True, env=GPU)
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

    # What a baseline measured is measured again. The emulator's times mean nothing, so the baselines are far off.
    inputs = folder / "inputs"
    inputs.mkdir()
    (inputs / "lines").write_bytes(source.read_bytes()[:16384])
    first = subprocess.run([BENCH, "lz4", str(inputs / "lines"), "--gpu-only", "--size", "16KiB", "--chunk", "4096",
                            "--batch", "2", "--runs", "1", "--warm-up", "0", "--json", str(folder / "gpu.json")],
                           capture_output=True, text=True, env=GPU)
    expect("the emulated GPU is measured", first.returncode == 0, first.stderr)
    on_gpu = json.loads((folder / "gpu.json").read_text())
    expect("rows of the GPU alone", on_gpu["rows"] and all(row["instructions_per_byte"] > 0 for row in on_gpu["rows"]), on_gpu)

    def baseline_with(factor, **changes):
        stored = copy.deepcopy(on_gpu) | changes
        for row in stored["rows"]:
            row["gigabytes_per_second"] *= factor
        return store("stored.json", stored)

    words = ["--bench", BENCH, "--inputs", inputs]
    status, text = report("gate", baseline_with(1e-6), *words, "--json", folder / "again.json")
    expect("faster than its baseline", status == 0 and " 0 more than 5% slower, 0 not measured" in text, text)
    again = json.loads((folder / "again.json").read_text())
    names = lambda rows: [(row["input"], row["what"], row["chunk_bytes"], row["raw_bytes"]) for row in rows]
    expect("the same rows, batches included", names(again["rows"]) == names(on_gpu["rows"]), again)
    status, text = report("gate", baseline_with(1e6), *words)
    expect("a regression is red", status == 1 and "100.0% slower: lines, " in text, text)
    cpu_row = on_gpu["rows"][0] | {"what": "cpu compress"}
    status, text = report("gate", baseline_with(1e-6, cpu="another", rows=[*copy.deepcopy(on_gpu["rows"]), cpu_row]), *words)
    expect("rows of the CPU do not count", status == 0, text)
    gone = on_gpu["rows"][0] | {"what": "lz4_compress_past"}
    status, text = report("gate", baseline_with(1e-6, rows=[*copy.deepcopy(on_gpu["rows"]), gone]), *words)
    expect("a row that is gone is red", status == 2 and "not measured: lines, lz4_compress_past" in text, text)
    status, text = report("gate", baseline_with(1e-6, device="NVIDIA H200"), *words)
    expect("another device is refused", status == 2 and "not comparable" in text, text)
    status, text = report("gate", baseline_with(1e-6), "--bench", BENCH, "--inputs", folder)
    expect("a missing input is refused", status == 2 and f"{folder}/lines: no such input" in text, text)
    status, text = report("gate", folder / "real.json", *words)
    expect("a baseline without a GPU is refused", status == 2 and "no rows of a GPU" in text, text)
    status, text = report("gate", baseline_with(1e6), *words, "--accept")
    expect("accepted", status == 0 and f'{len(on_gpu["rows"])} rows of ' in text, text)
    expect("and stored", names(json.loads((folder / "stored.json").read_text())["rows"]) == names(on_gpu["rows"]))

    # The roofline: coders and LZ4 have a point a row, beside two ceilings.
    coders = subprocess.run([BENCH, "transforms", str(inputs / "lines"), "--only", "huffman", "--size", "16KiB", "--chunk",
                             "4096", "--runs", "1", "--warm-up", "0", "--json", str(folder / "coders.json")],
                            capture_output=True, text=True, env=GPU)
    expect("the coders are measured", coders.returncode == 0, coders.stderr)
    for file, groups in ("gpu.json", len(on_gpu["rows"])), ("coders.json", 2):
        status, text = report("plot", folder / file, "--out", folder / "roof")
        expect("a roofline is drawn", status == 0 and "roofline.svg" in text, text)
        picture = tree.parse(folder / "roof" / "roofline.svg").getroot()
        svg = "{http://www.w3.org/2000/svg}"
        expect("two ceilings", len([line for line in picture.iter(svg + "line") if line.get("class") == "ceiling"]) == 2)
        points = list(picture.iter(svg + "circle"))
        expect("a point a row", len(points) == groups, [point.attrib for point in points])
        expect("inside the picture", all(0 < float(point.get("cx")) < 820 and 0 < float(point.get("cy")) < 420 for point in points))
    # A made-up device and kernel: 2 instructions for each of the 2 bytes that it reads and writes, at a quarter of the
    # memory's rate.
    made = {"device": "made", "cpu": "", "copied_bytes_per_second": 1e12, "warp_instructions_per_second": 16e12,
            "rows": [on_gpu["rows"][0] | {"ratio": 1, "instructions_per_byte": 4, "gigabytes_per_second": 125}]}
    report("plot", store("made.json", made), "--out", folder / "made")
    picture = tree.parse(folder / "made" / "roofline.svg").getroot()
    memory, issue = [line for line in picture.iter(svg + "line") if line.get("class") == "ceiling"]
    point = next(picture.iter(svg + "circle"))
    at = {name: float(memory.get(name)) for name in ("x1", "y1", "x2", "y2")}
    share = (float(point.get("cx")) - at["x1"]) / (at["x2"] - at["x1"])
    ceiling_y = at["y1"] + share * (at["y2"] - at["y1"])
    expect("below the ceiling of memory", float(point.get("cy")) > ceiling_y + 5, (point.attrib, memory.attrib))
    expect("the ceilings meet", (memory.get("x2"), memory.get("y2")) == (issue.get("x1"), issue.get("y1")))
    expect("the point says its rate", "500.0" in point[0].text, point[0].text)
print("report.py: compare, gate and plot do what they say")
