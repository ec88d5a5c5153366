#!/usr/bin/env python3
"""ptx-pack on a driver whose GPU is the emulator: every policy of every codec gives the same bytes, but kernels of
Zstandard and gzip others than libzstd and libdeflate, --trace is a time line in Chrome's trace event format, -vv says how busy everything was,
and what cannot be done is refused.

usage: schedule.py PTX_PACK LIBCUDA
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

PACK, LIBCUDA = (os.path.abspath(path) for path in sys.argv[1:3])
HOST_SPANS = {"read", "code", "begin", "finish", "write", "wait for a batch", "wait for buffers", "coding"}
DEVICE_SPANS = {"copy up", "kernels", "copy down"}
faults = []


def expect(holds, what):
    if not holds:
        faults.append(what)


def run(*words, code=0):
    environment = dict(os.environ, PTXKIT_LIBCUDA=LIBCUDA, PTXKIT_CALIBRATION="")
    done = subprocess.run([PACK, *words], capture_output=True, env=environment, timeout=280)
    expect(done.returncode == code, f"expected exit {code}, found {done.returncode}: {words}: {done.stderr.decode()}")
    return done.stderr.decode()


def check_trace(path, on_device):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {(e["pid"], e.get("tid"), e["name"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    expect(names[(0, None, "process_name")] == "host", "the first process is the host")
    spans = [e for e in events if e["ph"] == "X"]
    expect(len(spans) + len(names) == len(events), "every event is a name or a span")
    begin = min(e["ts"] for e in spans)
    end = max(e["ts"] + e["dur"] for e in spans)
    expect(begin >= 0 and end < 280e6, "spans lie within the run")
    lines = collections.defaultdict(list)
    for span in spans:
        expect(span["dur"] >= 0, f"a span ends before it begins: {span}")
        expect(span["name"] in (HOST_SPANS if span["pid"] == 0 else DEVICE_SPANS), f"a span without a meaning: {span}")
        expect((span["pid"], span["tid"], "thread_name") in names, f"a span on a line without a name: {span}")
        lines[span["pid"], span["tid"]].append(span)
    # Begin and end are balanced: two spans of a line lie beside each other or one in the other.
    for line in lines.values():
        open_ends = []
        for span in sorted(line, key=lambda e: (e["ts"], -e["dur"])):
            while open_ends and open_ends[-1] <= span["ts"] + 0.002:
                open_ends.pop()
            expect(not open_ends or span["ts"] + span["dur"] <= open_ends[-1] + 0.002, f"spans cross: {span}")
            open_ends.append(span["ts"] + span["dur"])
    found = {span["name"] for span in spans}
    expect({"read", "write", "wait for a batch"} <= found, f"stages are missing: {found}")
    expect(DEVICE_SPANS <= found if on_device else not DEVICE_SPANS & found, f"spans of a device: {found}")
    written = sorted(s["args"]["batch"] for s in spans if s["name"] == "write")
    expect(written == list(range(len(written))) and written, f"batches that were written: {written}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with open("input", "w", encoding="utf-8") as file:
        file.writelines(f"{number}\n" for number in range(1200))
    codecs = subprocess.run([PACK, "--list-codecs"], capture_output=True, check=True).stdout.decode().split("\n")
    for codec, suffix in (line.split()[:2] for line in codecs if line):
        how = ["--codec", codec] + (["--reproducible"] if codec == "lz4" else [])
        run(*how, "--policy", "cpu", "-f", "input", "-o", "expected")
        with open("expected", "rb") as file:
            expected = file.read()
        for policy in ("cpu", "gpu", "mixed", "auto"):
            on_device = policy in ("gpu", "mixed")
            said = run(*how, "--policy", policy, "-fvv", "--trace", "time.json", "input", "-o", "found")
            are_others = codec in ("zstd", "gzip") and on_device
            expect((open("found", "rb").read() == expected) != are_others, f"{codec} --policy {policy}: the bytes")
            expect(("Emulated GPU" in said) == on_device, f"{codec} --policy {policy} says what coded: {said}")
            expect("continuing" not in said, f"{codec} --policy {policy} fell back: {said}")
            check_trace("time.json", on_device)
            expect(("kernels of cuda" in said) == on_device, f"-vv says how busy the device was: {said}")
            expect("threads of the pool" in said or "thread of the pool" in said, f"-vv says how busy the pool was: {said}")
            gap = "longest without a " + ("kernel running: " if on_device else "thread of the pool at work: ")
            expect(gap in said, f"-vv says the longest gap: {said}")
            run("-d", "--policy", policy, "-f", "--trace", "back.json", "found", "-o", "back")
            expect(open("back", "rb").read() == open("input", "rb").read(), f"{codec} --policy {policy} there and back")
            check_trace("back.json", on_device)
        if codec != "lz4":
            run("-d", "--policy", "gpu", "-f", "--range", "10:500", "expected", "-o", "part")
            expect(open("part", "rb").read() == open("input", "rb").read()[10:500], f"a range of {codec}")

    for words, reason in ((["--device", "0", "--policy", "cpu"], "--device is for a GPU"),
                          (["--device", "0", "--backend", "emulator"], "--device is for a GPU"),
                          (["--policy", "gpu", "--backend", "cuda"], "--policy is for --backend auto"),
                          (["--trace", ""], "--trace: expected a file"), (["--trace", "-"], "--trace: expected a file"),
                          (["--trace", "t", "--list"], "--trace is for -z, -d and -t"),
                          (["--measure-rates"], "--measure-rates takes no input")):
        expect(reason in run(*words, "input", code=2), f"{words} should be refused")
    expect("nowhere" in run("--trace", "/nowhere/t", "input", "-o", "none", code=1), "a time line that cannot be written")
    expect(not os.path.exists("none"), "nothing is done where the time line cannot be written")

print("\n".join(faults) or "every policy of every codec is right")
sys.exit(bool(faults))
