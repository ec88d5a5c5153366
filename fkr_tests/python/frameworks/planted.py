#!/usr/bin/env python3
"""Plants faults in kernels of public packages, and counts what the emulator, the analyzer and other tools find of them.

usage: planted.py --packages FOLDER [--only TEXT] [--json FILE] [--tools TOOL,...]

FOLDER is the site-packages of the environment that fkr_tests/public/run.py --environment makes. Runs in the environment
of run.py --frameworks, with PTXKIT_LIBRARY and PYTHONPATH set. Each run is a process of its own, of at most a minute.
docs/python-testing.md has the table, and says how a row is read.
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "public")]
SECONDS = 60
TOOLS = {
    "emulator": ({}, "planted_triton"),
    "interpreter": ({"TRITON_INTERPRET": "1"}, "planted_triton"),
    "triton-viz": ({"TRITON_INTERPRET": "1"}, "planted_triton"),
    "numba emulator": ({}, "planted_numba"),
    "CUDASIM": ({"NUMBA_ENABLE_CUDASIM": "1"}, "planted_numba"),
}


def in_a_child(work):
    """What work() returned, or how its process ended; and its seconds."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.close(reading)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(SECONDS)
        try:
            answer = work()
        except BaseException as reason:
            answer = {"outcome": "unsupported", "why": f"{type(reason).__name__}: {reason}"[:300]}
        with os.fdopen(writing, "w") as file:
            json.dump(answer, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seconds = time.perf_counter() - began
    if text:
        return {**json.loads(text), "seconds": seconds}
    ended = "timeout" if status == -signal.SIGALRM else "crash"
    return {"outcome": ended, "why": signal.strsignal(-status) if status < 0 else f"exit {status}", "seconds": seconds}


def one_tool(tool, options):
    """Runs every kernel, as it is and with each planted fault, in this process's children. Prints a line a run."""
    environment, module = TOOLS[tool]
    os.environ.update(environment)
    cases = __import__(module)
    for name, plants, run in cases.all_cases(tool, options.packages):
        if options.only and options.only not in name:
            continue
        for plant in [None, *plants]:
            found = in_a_child(lambda: run(plant))
            print(json.dumps({"tool": tool, "kernel": name, "plant": plant, **found}), flush=True)


def table(rows):
    """Prints, for each tool, what it reported, what only showed in a wrong result, and what it missed.

    A plant counts if a tool noticed it that has nothing to say of the kernel without it: others have no effect with the
    case's inputs, or the compiler removes them.
    """
    runs = {(row["tool"], row["kernel"], row["plant"]): row for row in rows}
    for tools in (
        ["emulator", "analyzer", "interpreter", "triton-viz"],
        ["numba emulator", "numba analyzer", "CUDASIM"],
    ):
        kernels = sorted({kernel for tool, kernel, _ in runs if tool == tools[0]})
        plants = sorted({key[1:] for key in runs if key[0] == tools[0] and key[2] is not None})
        if not kernels:
            continue
        base = {(tool, kernel): kind(runs.get((tool, kernel, None), NOT_RUN)) for tool in tools for kernel in kernels}
        clean = {key for key, found in base.items() if found == "missed"}
        seen = [
            (kernel, plant)
            for kernel, plant in plants
            if any((tool, kernel) in clean and noticed(runs.get((tool, kernel, plant), NOT_RUN)) for tool in tools)
        ]
        print(f"{len(kernels)} kernels, {len(plants)} plants, {len(seen)} with an effect")
        for tool in tools:
            counts = collections.defaultdict(collections.Counter)
            for kernel, plant in seen:
                row = runs.get((tool, kernel, plant), NOT_RUN)
                counts[plant][kind(row) if (tool, kernel) in clean else "unsupported"] += 1
            total = sum(counts.values(), collections.Counter())
            wrong = [kernel for kernel in kernels if base[tool, kernel] in ("reported", "wrong result")]
            own = [kernel for kernel in wrong if not is_own_error(runs[tool, kernel, None])]
            seconds = sum(row["seconds"] for key, row in runs.items() if key[0] == tool)
            print(
                f"  {tool}: {dict(total)}; false: {own}; {len(kernels) - sum((tool, k) in clean for k in kernels)} kernels "
                f"unsupported or false; {seconds:.0f} s"
            )
            for plant in sorted(counts):
                print(f"    {plant}: {dict(counts[plant])}")


NOT_RUN = {"outcome": "not run"}


def is_own_error(row):
    """Whether an interpreter raised an exception of its own on a kernel without a fault: it cannot run it."""
    return row["tool"] in ("interpreter", "triton-viz", "CUDASIM") and row["outcome"] in ("fault", "crash")


def kind(row):
    if row["outcome"] in ("fault", "crash"):
        return "reported"
    return {"wrong": "wrong result", "clean": "missed"}.get(row["outcome"], row["outcome"])


def noticed(row):
    return row["outcome"] in ("fault", "crash", "wrong")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--tools", default="emulator,interpreter,numba emulator,CUDASIM")
    parser.add_argument("--table", type=pathlib.Path, nargs="*", help="files of --json: prints their table alone")
    options = parser.parse_args()
    if options.table:
        rows = [json.loads(line) for file in options.table for line in file.read_text().splitlines()]
        return table(rows_with_analyzer(rows))
    tools = options.tools.split(",")
    if len(tools) == 1:
        return one_tool(tools[0], options)
    rows = []
    for tool in tools:
        again = [sys.executable, "-B", __file__, "--tools", tool, "--packages", str(options.packages)]
        again += ["--only", options.only] if options.only else []
        with os.popen(" ".join(f"'{word}'" for word in again)) as lines:
            for line in lines:
                rows.append(json.loads(line))
                if options.json:
                    with options.json.open("a") as file:
                        file.write(line)
    table(rows_with_analyzer(rows))


def rows_with_analyzer(rows):
    """The analyzer ran beside the emulator: its findings are rows of their own."""
    made = list(rows)
    for row in rows:
        if "findings" in row:
            outcome = "fault" if row["findings"] else "clean"
            tool = row["tool"].replace("emulator", "analyzer")
            made.append({**row, "tool": tool, "outcome": outcome, "seconds": row["analysis_seconds"]})
    return made


if __name__ == "__main__":
    main()
