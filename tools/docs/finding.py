#!/usr/bin/env python3
"""Draws what `ptx-debug analyze` prints on a terminal about the misaligned example, as SVG.

usage: finding.py PTX_DEBUG [--check]      (writes docs/images/finding.svg; --check: compares with what is stored)
"""
import pathlib
import re
import subprocess
import sys

from terminal import cells, draw

REPO = pathlib.Path(__file__).resolve().parents[2]
PICTURE = REPO / "docs" / "images" / "finding.svg"
COMMAND = ["analyze", "--no-config", "--check", "alignment", "misaligned_cursor.ptx"]
COLUMNS = 108


def wrapped(line):
    """A line in pieces of at most COLUMNS cells, cut at spaces; continuations are indented."""
    indent = len(line) - len("".join(character for character, _ in line).lstrip(" ")) + 2
    pieces, rest = [], line
    while len(rest) > COLUMNS:
        cut = max((i for i in range(indent + 1, COLUMNS + 1) if rest[i][0] == " "), default=COLUMNS)
        pieces.append(rest[:cut])
        rest = [(" ", frozenset())] * indent + rest[cut:][rest[cut][0] == " ":]
    return [*pieces, rest]


def picture_of(output):
    lines = [cells("\x1b[32m$\x1b[0m \x1b[1mptx-debug " + " ".join(COMMAND) + "\x1b[0m")]
    lines += [cells(line) for line in output.rstrip("\n").split("\n")]
    return draw([piece for line in lines for piece in wrapped(line)], COLUMNS, "ptx-debug reports a misaligned load")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    run = subprocess.run([program, *COMMAND, "--color", "always"], cwd=REPO / "docs" / "examples", text=True,
                         stdout=subprocess.PIPE, check=False)
    if run.returncode != 3:
        print(f"finding.py: expected exit status 3 of ptx-debug, found {run.returncode}", file=sys.stderr)
        return 1
    picture = picture_of(run.stdout)
    if "--check" not in sys.argv[2:]:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    # A rule more in the catalogue is no reason to draw it anew.
    total = re.compile(r" of \d+ rules ran")
    if total.sub("", PICTURE.read_text(encoding="utf-8")) == total.sub("", picture):
        print("docs/images/finding.svg shows what ptx-debug prints")
        return 0
    print("docs/images/finding.svg is not what ptx-debug prints now; ./dev docs draws it anew", file=sys.stderr)
    return 1


sys.exit(main())
