#!/usr/bin/env python3
"""Draws what `ptx-debug analyze` prints on a terminal about the misaligned example, as SVG.

usage: finding.py PTX_DEBUG [--check]      (writes docs/images/finding.svg; --check: compares with what is stored)
"""
import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import escape

REPO = pathlib.Path(__file__).resolve().parents[2]
PICTURE = REPO / "docs" / "images" / "finding.svg"
COMMAND = ["analyze", "--no-config", "--check", "alignment", "misaligned_cursor.ptx"]
COLUMNS = 108
ADVANCE, LINE, MARGIN, BAR = 7.83, 19, 18, 34  # of a monospaced font of 13 pixels
BACKGROUND, FOREGROUND, FRAME = "#16191d", "#d7dae0", "#2b3036"
COLOURS = {"31": "#ff6b68", "32": "#6ac47e", "33": "#e5c07b", "34": "#61afef", "35": "#c792ea", "36": "#56b6c2"}
ESCAPE = re.compile(r"\x1b\[([\d;]*)m")


def cells(line):
    """[(character, style)] of a line with ANSI escapes; a style is the set of its codes."""
    style, result, at = frozenset(), [], 0
    for match in ESCAPE.finditer(line):
        result += [(character, style) for character in line[at:match.start()]]
        codes = [code for code in match[1].split(";") if code not in ("", "0")]
        style = style | frozenset(codes) if codes else frozenset()
        at = match.end()
    return result + [(character, style) for character in line[at:]]


def wrapped(line):
    """A line in pieces of at most COLUMNS cells, cut at spaces; continuations are indented."""
    indent = len(line) - len("".join(character for character, _ in line).lstrip(" ")) + 2
    pieces, rest = [], line
    while len(rest) > COLUMNS:
        cut = max((i for i in range(indent + 1, COLUMNS + 1) if rest[i][0] == " "), default=COLUMNS)
        pieces.append(rest[:cut])
        rest = [(" ", frozenset())] * indent + rest[cut:][rest[cut][0] == " ":]
    return [*pieces, rest]


def attributes(style):
    words = ['font-weight="bold"'] if "1" in style else []
    words += ['opacity="0.6"'] if "2" in style else []
    words += [f'fill="{COLOURS[code]}"' for code in sorted(style) if code in COLOURS]
    return " ".join(words)


def spans(line):
    """SVG of a line: a tspan for each run of one style, each placed by its column, so that no font shifts it."""
    parts, at = [], 0
    while at < len(line):
        end = at
        while end < len(line) and line[end][1] == line[at][1]:
            end += 1
        text = "".join(character for character, _ in line[at:end])
        if text.strip():
            at += len(text) - len(text.lstrip(" "))
            text = text.strip(" ")
            place = f'x="{MARGIN + at * ADVANCE:.1f}" textLength="{len(text) * ADVANCE:.1f}"'
            parts.append(f'<tspan {place} {attributes(line[at][1])}>{escape(text)}</tspan>'.replace(" >", ">"))
        at = end
    return "".join(parts)


def draw(output):
    lines = [cells("\x1b[32m$\x1b[0m \x1b[1mptx-debug " + " ".join(COMMAND) + "\x1b[0m")]
    lines += [cells(line) for line in output.rstrip("\n").split("\n")]
    lines = [piece for line in lines for piece in wrapped(line)]
    width, height = 2 * MARGIN + COLUMNS * ADVANCE, BAR + len(lines) * LINE + MARGIN
    rows = "\n".join(f'<text xml:space="preserve" y="{BAR + 13 + i * LINE}">{spans(line)}</text>' for i, line in enumerate(lines) if line)
    dots = "".join(f'<circle cx="{18 + 18 * i}" cy="17" r="5.5" fill="{colour}"/>'
                   for i, colour in enumerate(("#ff6b68", "#e5c07b", "#6ac47e")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" role="img" aria-label="ptx-debug reports a misaligned load">\n'
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}" stroke="{FRAME}"/>\n{dots}\n'
            '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="13" '
            f'fill="{FOREGROUND}" style="white-space:pre">\n{rows}\n</g>\n</svg>\n')


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    run = subprocess.run([program, *COMMAND, "--color", "always"], cwd=REPO / "docs" / "examples", text=True,
                         stdout=subprocess.PIPE, check=False)
    if run.returncode != 3:
        print(f"finding.py: expected exit status 3 of ptx-debug, found {run.returncode}", file=sys.stderr)
        return 1
    picture = draw(run.stdout)
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
