#!/usr/bin/env python3
"""Every number of a launch at its extremes: no crash, no sanitizer report, no hang.

extreme_numbers.py PTX-DEBUG

Each number below becomes 0, 1, 2^16, 2^31, 2^32 - 1 and, for 64-bit numbers, 2^63 and 2^64 - 1; then the verbs that
use it run. Failures are an exit code above 128 or below 0 (a signal; 134 is an abort), and `runtime error` (UBSan) or
`AddressSanitizer` in the output."""
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SMALL = [0, 1, 2**16, 2**31, 2**32 - 1]
WIDE = SMALL + [2**63, 2**64 - 1]

KERNEL = """.version 8.0
.target sm_90
.address_size 64
{module}
.visible .entry k(.param .u64 p, .param .u32 n){directives}
{{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  {body}
  .shared .align 4 .b8 tile[{shared}];
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra end;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r6, [%rd3];
  mov.u32 %r7, tile;
  and.b32 %r8, %r2, 31;
  shl.b32 %r9, %r8, 2;
  add.u32 %r10, %r7, %r9;
  st.shared.u32 [%r10], %r6;
  bar.warp.sync 0xffffffff;
  shfl.sync.idx.b32 %r11, %r6, 0, 31, 0xffffffff;
  ld.shared.u32 %r12, [%r10];
  add.u32 %r12, %r12, %r11;
  st.global.u32 [%rd3], %r12;
end:
  ret;
}}
"""


def kernel(directives="", shared=128, module="", body=""):
    return KERNEL.format(directives=directives, shared=shared, module=module, body=body)


def cases():
    """Yields (name, files, commands): the commands run in a folder with the files."""
    analyze = [["analyze", "--no-config", "--falsify", "k.ptx"],
               ["analyze", "--no-config", "--falsify", "--replay", "k.ptx"],
               ["cost", "k.ptx"], ["info", "k.ptx"], ["stats", "k.ptx"], ["print", "k.ptx"]]
    run = [["run", "k.ptx", "--block", "32", "--arg", "zero:128", "--arg", "u32:32", "--deadline", "5"]]
    made = [["gen-fkr", "k.ptx"]]
    for number in SMALL:
        for text in (f".reqntid {number}", f".reqntid 1, {number}", f".reqntid 1, 1, {number}",
                     f".reqntid {number}, {number}, {number}", f".maxntid {number}",
                     f".maxntid {number}, {number}, {number}", f".maxnreg {number}",
                     f".maxntid 128 .minnctapersm {number}", f".reqnctapercluster {number}",
                     f".reqnctapercluster {number}, {number}, {number}", f".maxclusterrank {number}"):
            yield text, {"k.ptx": kernel("\n" + text)}, analyze + run + made
        yield f"shared {number}", {"k.ptx": kernel(shared=number)}, analyze + run + made
        for space in ("global", "const", "shared"):
            module = f".{space} .align 4 .b8 big[{number}];"
            is_huge = space == "global" and number >= 2**31  # allowed on the device, but slow to fill
            verbs = analyze if is_huge else analyze + run + made
            yield f"{space} variable of {number}", {"k.ptx": kernel(module=module)}, verbs
            module = f".{space} .align 4 .b32 big[{number}][{number}];"
            yield f"{space} array of {number} rows", {"k.ptx": kernel(module=module)}, analyze + run
        local = f".local .align 4 .b8 stack[{number}];"
        yield f"local variable of {number}", {"k.ptx": kernel(body=local)}, analyze + run
    for number in WIDE:
        promises = {"block": [number], "grid": [number], "dynamic_shared_bytes": number}
        for key, value in itertools.chain(promises.items(), [("grid", [number] * 3), ("block", [1, 1, number])]):
            launch = json.dumps({"entries": {"k": {key: value}}})
            verbs = [["analyze", "--no-config", "--falsify", "--replay", "--launch", "l.json", "k.ptx"]]
            if key != "grid" or number != 2**16:  # 65,536 blocks are slow under every schedule
                verbs.append(["gen-fkr", "--launch", "l.json", "k.ptx"])
            yield f"launch file {key} {value}", {"k.ptx": kernel(), "l.json": launch}, verbs
        for key in ("align", "bytes", "value", "min", "max"):
            parameter = {"name": "n" if key in ("value", "min", "max") else "p", key: number}
            launch = json.dumps({"entries": {"k": {"block": [32], "grid": [4], "parameters": [parameter]}}})
            yield f"launch file parameter {key} {number}", {"k.ptx": kernel(), "l.json": launch}, [
                ["analyze", "--no-config", "--falsify", "--replay", "--launch", "l.json", "k.ptx"],
                ["gen-fkr", "--launch", "l.json", "k.ptx"]]
        for option in ("--grid", "--block", "--cluster"):
            for shape in (f"{number}", f"1,{number}", f"1,1,{number}", f"{number},{number},{number}"):
                yield f"run {option} {shape}", {"k.ptx": kernel()}, [
                    ["run", "k.ptx", option, shape, "--arg", "zero:128", "--arg", "u32:1", "--max-steps", "20000",
                     "--deadline", "5"]]
        for option in ("--shared", "--threads", "--max-steps", "--max-idle-steps", "--heap", "--printf-fifo",
                       "--deadline"):
            yield f"run {option} {number}", {"k.ptx": kernel()}, [
                ["run", "k.ptx", "--grid", "3", "--block", "32", option, str(number), "--arg", "zero:128", "--arg", "u32:1"]]
        for spec in (f"out:{number}:o.bin", f"uninit:{number}:o.bin", f"zero:{number}", f"tex:1d,{number},u8:one.bin",
                     f"tex:{number}x{number},f32x4:one.bin", f"tex:3d,{number}x{number}x{number},u32x4:one.bin",
                     f"surf:a2d,8x8x{number},u8:one.bin:o.bin", f"tensor:f16,{number}x{number},box8x8:one.bin",
                     f"tensor:f16,64x64,box{number}x{number}:one.bin"):
            if ":4294967295" in spec or ":2147483648" in spec:
                continue  # allowed, but slow
            yield f"run --arg {spec}", {"k.ptx": kernel(), "one.bin": "x"}, [
                ["run", "k.ptx", "--arg", spec, "--arg", "u32:0", "--deadline", "5"]]


def run_case(program, case):
    name, files, commands = case
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            with open(os.path.join(folder, path), "w") as file:
                file.write(text)
        for command in commands:
            words = [program, *command]
            try:
                done = subprocess.run(words, cwd=folder, capture_output=True, timeout=60)
            except subprocess.TimeoutExpired:
                failures.append(f"{name}: {' '.join(command)}: still runs after 60 s")
                continue
            text = (done.stdout + done.stderr).decode(errors="replace")
            bad = [line for line in text.splitlines() if "runtime error" in line or "AddressSanitizer" in line]
            if done.returncode < 0 or done.returncode >= 128 or bad:
                failures.append(f"{name}: {' '.join(command)}: exit {done.returncode} {bad[:1] or text[-200:]}")
    return len(commands), failures


def main():
    program = os.path.abspath(sys.argv[1])
    everything = list(cases())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: run_case(program, case), everything))
    for _, failures in results:
        for failure in failures:
            print(failure)
    bad = sum(bool(failures) for _, failures in results)
    print(f"{len(everything)} places and numbers, {sum(count for count, _ in results)} runs, {bad} failures")
    sys.exit(bad != 0)


main()
