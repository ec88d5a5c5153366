#!/usr/bin/env python3
"""Warp instructions that every kernel executes on the emulator, by class, compared with accepted counts. They follow
from PTX and data alone: no clock and no GPU is needed, and two machines give the same. Fails when a kernel's total, or
one of its classes, grows or shrinks by more than the tolerance of the total: growth means a slower kernel, and a
smaller count should be accepted. The same holds for the bytes that threads ask of global memory.

usage: kernel_instructions.py KERNEL_COUNTS [--accept] [--table] [FILE...]

FILE is PTX that is counted in place of the kernel of its name. --table prints every kernel's counts for each raw byte.
"""
import argparse
import json
import pathlib
import subprocess
import sys

TOLERANCE = 0.01
ACCEPTED = pathlib.Path(__file__).with_name("kernel_instructions.json")


def compare(kernel, now, before):
    """What differs, as lines."""
    counts, accepted = now["warp_instructions"], before["warp_instructions"]
    total, accepted_total = sum(counts.values()), sum(accepted.values())
    raw = now["raw_bytes"]
    if raw != before["raw_bytes"]:
        return [f'{kernel}: counted over {raw} raw bytes, accepted over {before["raw_bytes"]}']
    pairs = [("in all", total, accepted_total, accepted_total)]
    pairs += [(name, counts.get(name, 0), accepted.get(name, 0), accepted_total) for name in sorted({*counts, *accepted})]
    lines = [f"{kernel}: {count / raw:.3f} warp instructions a byte {name}, accepted {was / raw:.3f} "
             f"({100 * (count - was) / of:+.1f} % of the kernel's)"
             for name, count, was, of in pairs if abs(count - was) > TOLERANCE * of]
    asked, was = now["global_bytes"], before["global_bytes"]
    if abs(asked - was) > TOLERANCE * was:
        lines.append(f"{kernel}: {asked / raw:.3f} bytes of global memory a byte, accepted {was / raw:.3f}")
    return lines


def table(counts):
    names = sorted({name for of in counts.values() for name in of["warp_instructions"]})
    print("| kernel | in all | " + " | ".join(names) + " | global bytes |\n|---|" + "--:|" * (len(names) + 2))
    for kernel, of in counts.items():
        raw, by_class = of["raw_bytes"], of["warp_instructions"]
        cells = [sum(by_class.values()), *(by_class.get(name, 0) for name in names), of["global_bytes"]]
        print(f"| {kernel} | " + " | ".join(f"{cell / raw:.3f}" if cell else "–" for cell in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if not pathlib.Path(chosen.program).is_file():
        print(f"{chosen.program} is not built: ./dev build kernel_counts", file=sys.stderr)
        return 2
    run = subprocess.run([chosen.program, *chosen.files], capture_output=True, text=True)
    if run.returncode != 0:
        print(run.stdout + run.stderr, file=sys.stderr)
        return 2
    counts = json.loads(run.stdout)
    if chosen.accept:
        ACCEPTED.write_text(json.dumps(counts, indent=2) + "\n")
        return 0
    if chosen.table:
        table(counts)
        return 0
    accepted = json.loads(ACCEPTED.read_text())
    lines = [f"{kernel}: not counted, but accepted" for kernel in accepted if kernel not in counts]
    for kernel, now in counts.items():
        lines += compare(kernel, now, accepted[kernel]) if kernel in accepted else [f"{kernel}: no accepted counts"]
    print("\n".join(lines + [f"{len(counts)} kernels, {len(lines)} differences of more than {TOLERANCE:.0%}"]))
    if lines:
        print(f"if that is meant: {' '.join(sys.argv)} --accept")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
