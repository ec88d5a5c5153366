#!/usr/bin/env python3
"""Runs kernels of public packages on the emulator and compares their results with NumPy.

usage: run.py --list                                  names of all cases
       run.py --environment                           creates the virtual environment
       run.py [--ptx-debug FILE] [NAME...]            compiles and runs cases, each with --check none and --check all
       run.py ... --device FOLDER                     also writes the launches and a script for a machine with a GPU
       run.py ... --device FOLDER --libcuda FILE      and runs that script on another driver
       run.py ... --schedule S                        in another order of warps and blocks, see docs/emulator.md
       run.py ... --spoil                             with one expected element changed: must fail

Without NAME it runs all cases. PTX is cached in the environment under the hash of its inputs. Exit codes: 0 success;
1 a wrong result, a fault or a kernel that does not compile; 77 skipped, because the environment cannot be created here.
"""
import argparse
import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from environment import PUBLIC as environment, Unavailable

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def listed():
    """Names of the cases, read from the text, since CMake calls this without NumPy."""
    for path in sorted((HERE / "kernels").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for decorator in getattr(node, "decorator_list", []):
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "case":
                    package, name = (ast.literal_eval(a) for a in decorator.args[:2])
                    keywords = {k.arg: k.value for k in decorator.keywords}
                    for target in ast.literal_eval(keywords["targets"]) if "targets" in keywords else (80,):
                        yield f"{package}.{name}" if target == 80 else f"{package}.{name}.sm_{target}"


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(SKIPPED)


def enter_environment():
    """Restarts in the virtual environment's interpreter."""
    if pathlib.Path(sys.prefix) == environment.folder():
        return
    if not environment.is_complete():
        skip(environment.why_incomplete() or f"{environment.folder()} is not made: {HERE / 'run.py'} --environment makes it")
    os.execv(environment.interpreter(), [environment.interpreter(), "-B", *sys.argv])


def scalar_spec(value):
    if isinstance(value, bool):
        return f"u8:{int(value)}"
    if isinstance(value, int):
        return f"s32:{value}"
    if isinstance(value, float):
        return "b32:%x" % int(np.float32(value).view(np.uint32))
    kinds = {np.float32: ("b32", np.uint32), np.float64: ("b64", np.uint64), np.float16: ("b16", np.uint16)}
    if type(value) in kinds:
        spec, bits = kinds[type(value)]
        return f"{spec}:{int(value.view(bits)):x}"
    if isinstance(value, bytes):
        return "bytes:" + value.hex()
    return f"{'s' if value.dtype.kind == 'i' else 'u'}{8 * value.dtype.itemsize}:{int(value)}"


def shortened(text, most=16):
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= most else lines[:most - 1] + [f"... {len(lines) - most} lines more", lines[-1]])


def three(numbers):
    return list(numbers) + [1] * (3 - len(numbers))


class Prepared:
    """A compiled case: its PTX, and its parameters in the order of the entry."""
    def __init__(self, case, cache):
        self.case, self.launch = case, case.launch()
        self.ptx, notes = compilers.compiled(self.launch, cache)
        self.entry = notes["entry"]
        self.grid, self.block = three(self.launch.grid), three(notes.get("block") or self.launch.block)
        self.shared = notes.get("shared", getattr(self.launch, "shared", 0))
        given = self.launch.arguments
        self.arguments = [given[n] for n in notes["order"]] if notes["order"] is not None else list(given)
        # Triton's own parameters: memory for tensor maps that a kernel makes, a fixed size for each block, and its
        # profiler's memory.
        scratch = np.zeros(notes.get("scratch", 0) * int(np.prod(self.grid)), np.uint8)
        hidden = [cases.InOut(scratch, scratch, where=False) if scratch.size else np.uint64(0), np.uint64(0)]
        self.arguments += hidden[:notes["hidden"]]

    def run(self, ptx_debug, schedule, check, folder):
        """(bits of every buffer, faults, text of the report)."""
        command = [ptx_debug, "run", self.ptx, "--entry", self.entry, "--grid", ",".join(map(str, self.grid)),
                   "--block", ",".join(map(str, self.block)), "--shared", str(self.shared), "--check", check, "--schedule", schedule,
                   "--deadline", "120", "--json", folder / "report.json"]
        for number, argument in enumerate(self.arguments):
            if isinstance(argument, cases.Buffer):
                before, after = folder / f"{number}.in", folder / f"{number}.out"
                after.unlink(missing_ok=True)
                argument.bits.tofile(before)
                if isinstance(argument, cases.Out) and check != "none":
                    command += ["--arg", f"uninit:{argument.bits.nbytes}:{after}"]
                else:
                    command += ["--arg", f"inout:{before}:{after}"]
            elif argument is None:
                command += ["--arg", "u64:0"]
            else:
                command += ["--arg", scalar_spec(argument)]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        text = (ran.stdout + ran.stderr).strip()
        if ran.returncode not in (0, 3):
            return None, [text or f"exit {ran.returncode}"], text
        faults = json.loads((folder / "report.json").read_text(encoding="utf-8"))["faults"]
        results = {}
        for number, argument in enumerate(self.arguments):
            after = folder / f"{number}.out"
            if isinstance(argument, cases.Buffer) and after.is_file():
                results[number] = np.fromfile(after, argument.bits.dtype).reshape(argument.bits.shape)
        return results, [f["rule"] or f["kind"] for f in faults], text

    def differences(self, results):
        """The errors in the results, one line for each buffer; and the greatest numerical error of the others."""
        wrong, greatest = [], 0.0
        for number, argument in enumerate(self.arguments):
            if not isinstance(argument, cases.Buffer):
                continue
            line, error = compare.difference(results.get(number), argument.bits, argument.kind, **argument.wanted())
            greatest = max(greatest, error)
            if line:
                wrong.append(f"parameter {number}: {line}")
        return wrong, greatest


def spoil(prepared):
    """Changes one expected element by more than any tolerance."""
    argument = next(a for a in prepared.arguments if hasattr(a, "expected"))
    expected = argument.expected.copy()
    expected.reshape(-1)[-1] = not expected.reshape(-1)[-1] if expected.dtype == bool else expected.reshape(-1)[-1] + 100
    argument.expected = expected


def run_case(case, options, cache):
    """(lines of errors, the greatest numerical error, the Prepared case, results with --check none)."""
    try:
        prepared = Prepared(case, cache)
        if options.spoil:
            spoil(prepared)
    except compilers.CannotCompile as error:
        return [f"does not compile: {error}"], 0.0, None, None
    except Exception:  # a failing case must not keep the others from running
        return [traceback.format_exc(limit=-3)], 0.0, None, None
    problems, greatest, kept = [], 0.0, None
    with tempfile.TemporaryDirectory(prefix="public-") as folder:
        for check in ("none", "all"):
            results, faults, text = prepared.run(options.ptx_debug, options.schedule, check, pathlib.Path(folder))
            expected = prepared.launch.findings if check == "all" else {}
            if set(faults) != set(expected):
                problems.append(f"--check {check}: faults {sorted(set(faults))}, expected {sorted(expected)}\n{shortened(text)}")
            if results is not None:
                wrong, error = prepared.differences(results)
                problems += [f"--check {check}: {line}" for line in wrong]
                greatest = max(greatest, error)
                if check == "none":
                    kept = results
    if problems:
        problems.append(f"PTX: {prepared.ptx}")
    return problems, greatest, prepared, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--environment", action="store_true")
    parser.add_argument("--ptx-debug", type=pathlib.Path, default=HERE.parents[1] / "build" / "bin" / "ptx-debug")
    parser.add_argument("--device", type=pathlib.Path)
    parser.add_argument("--libcuda", type=pathlib.Path)
    parser.add_argument("--schedule", default="in-order")
    parser.add_argument("--spoil", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(listed()))
        return 0
    if options.environment:
        try:
            environment.make()
        except Unavailable as reason:
            skip(reason)
        print(f"{environment.folder()} holds what requirements.txt pins")
        return 0
    enter_environment()

    global np, cases, compare, compilers
    import numpy as np
    import cases
    import compare
    import compilers
    import importlib
    for path in sorted((HERE / "kernels").glob("*.py")):
        importlib.import_module(f"kernels.{path.stem}")
    np.seterr(all="ignore")

    chosen = options.names or list(cases.REGISTERED)
    failed = 0
    folder = device_folder(options.device) if options.device else None
    for name in chosen:
        begin = time.monotonic()
        problems, error, prepared, results = run_case(cases.REGISTERED[name], options, environment.folder() / "ptx")
        print(f"{'FAILED' if problems else 'ok':6} {name:60} error {error:.3g}, {time.monotonic() - begin:.1f} s", flush=True)
        for problem in problems:
            print("  " + problem.replace("\n", "\n  "))
        failed += bool(problems)
        if folder and prepared and results is not None:
            folder.add(prepared, results)
    if folder:
        folder.finish()
        if options.libcuda:
            sys.stdout.flush()  # before the other program's lines
            failed += subprocess.run([sys.executable, "-B", options.device / "replay.py", "--libcuda", options.libcuda]).returncode != 0
    kernels = {(cases.REGISTERED[name].file, cases.REGISTERED[name].kernel.split("<")[0]) for name in chosen}
    print(f"{len(kernels)} kernels in {len(chosen)} cases: {len(chosen) - failed} passed, {failed} failed")
    return int(failed > 0)


def device_folder(path):
    import carry
    return carry.Folder(path)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
