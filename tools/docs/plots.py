#!/usr/bin/env python3
"""Draws the plots of the documents from what was measured: docs/images/performance/*.svg from the tables of
docs/log/performance.md, docs/images/lz4/*.svg from the stored baseline of ptx-bench, by its report.py.

usage: plots.py [--check]      (writes the pictures; --check: compares with what is stored)

Nothing is typed in here: a plot names a section of the log, a table in it by words of its heading, and columns.
"""
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

REPO = pathlib.Path(__file__).resolve().parents[2]
LOG = REPO / "docs" / "log" / "performance.md"
IMAGES = REPO / "docs" / "images"
BENCH = REPO / "tools" / "ptx-bench"
OURS, PEER, CPU = "#1b6ca8", "#c8553d", "#8a8f98"
WIDTH, LABELS, BAR, GAP = 800, 250, 20, 8


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(section, *columns):
    """[{column: cell}] of the only table below the section's heading that has all of these columns."""
    found = []
    lines = LOG.read_text(encoding="utf-8").split("\n")
    start = [i for i, line in enumerate(lines) if line == f"## {section}"]
    if len(start) != 1:
        raise SystemExit(f"plots.py: expected one section '{section}' in {LOG.name}, found {len(start)}")
    at = start[0] + 1
    while at < len(lines) and not lines[at].startswith("## "):
        if lines[at].startswith("|") and at + 1 < len(lines) and re.fullmatch(r"[|:\- ]+", lines[at + 1]):
            head, rows = cells_of(lines[at]), []
            at += 2
            while at < len(lines) and lines[at].startswith("|"):
                rows.append(dict(zip(head, cells_of(lines[at]))))
                at += 1
            if all(column in head for column in columns):
                found.append(rows)
        at += 1
    if len(found) != 1:
        raise SystemExit(f"plots.py: expected one table with {columns} in '{section}', found {len(found)}")
    return found[0]


def mean(values):
    values = list(values)
    return math.exp(sum(math.log(value) for value in values) / len(values))


class Picture:
    """Panels of horizontal bars, one below the other."""

    def __init__(self, title, under):
        self.parts, self.height, self.title = [], 64, title
        self.text(16, 30, title, 'font-size="17" font-weight="bold"')
        self.text(16, 50, under, 'font-size="12" fill="#5b6168"')

    def text(self, x, y, words, more=""):
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(words)}</text>')

    def panel(self, title, rows):
        """rows: [(label, GB/s, colour, remark)]"""
        self.height += 22
        self.text(16, self.height, title, 'font-size="13" font-weight="bold"')
        self.height += 8
        room = WIDTH - LABELS - 190
        most = max(value for _, value, _, _ in rows)
        for label, value, colour, remark in rows:
            self.text(LABELS - 8, self.height + 15, label, 'font-size="13" text-anchor="end"')
            wide = max(value / most * room, 1.5)
            self.parts.append(f'<rect x="{LABELS}" y="{self.height}" width="{wide:.1f}" height="{BAR}" rx="2" fill="{colour}"/>')
            number = f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
            self.text(LABELS + wide + 7, self.height + 15, f"{number} GB/s{remark}", 'font-size="12"')
            self.height += BAR + GAP
        self.height += 6

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height + 8}" width="{WIDTH}" '
                f'height="{self.height + 8}" role="img" aria-label="{escape(self.title)}" '
                'font-family="system-ui,-apple-system,Segoe UI,DejaVu Sans,sans-serif" fill="#16191d">\n'
                '<rect width="100%" height="100%" rx="8" fill="#ffffff" stroke="#d5d9de"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")


class Chart(Picture):
    """Panels side by side, with a point for each row of a table."""

    HIGH, LEFT = 330, 70

    def scatter(self, panels, groups, across, up):
        """panels: [(title, [(x, y, label, group)])]; groups: {group: (colour, how far its labels are moved, across and
        down)}; across, up: the names of the axes. One scale for all panels, x
        logarithmic. A line goes through the points that no other beats on both axes; smaller x and larger y are better."""
        panels = [(title, [(math.log2(x), *rest) for x, *rest in row]) for title, row in panels]
        points = [point for _, row in panels for point in row]
        wide = (WIDTH - self.LEFT - 16) / len(panels) - 54
        spread = lambda values: (min(values) - 0.06 * (max(values) - min(values)), max(values) + 0.06 * (max(values) - min(values)))
        (left, right), (low, high) = (spread([point[axis] for point in points]) for axis in (0, 1))
        top = self.height + 22
        for number, (title, row) in enumerate(panels):
            begin = self.LEFT + number * (wide + 70)
            place = lambda x, y: (begin + (x - left) / (right - left) * wide, top + (high - y) / (high - low) * self.HIGH)
            self.text(begin, top - 10, title, 'font-size="13" font-weight="bold"')
            self.parts.append(f'<rect x="{begin:.1f}" y="{top}" width="{wide:.1f}" height="{self.HIGH}" fill="none" stroke="#d5d9de"/>')
            for part in range(5):
                x, y = left + (right - left) * part / 4, low + (high - low) * part / 4
                self.text(place(x, low)[0], top + self.HIGH + 17, f"{2**x:.2f}", 'font-size="11" fill="#5b6168" text-anchor="middle"')
                self.text(begin - 6, place(left, y)[1] + 4, f"{y:.2f}", 'font-size="11" fill="#5b6168" text-anchor="end"')
            best = sorted(p for p in row if not any(q[0] <= p[0] and q[1] >= p[1] and q[:2] != p[:2] for q in row))
            line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y, _, _ in best)
            self.parts.append(f'<polyline points="{line}" fill="none" stroke="{CPU}" stroke-dasharray="4 3"/>')
            for x, y, label, group in row:
                (at, down), (colour, (right_by, down_by)) = place(x, y), groups[group]
                self.parts.append(f'<circle cx="{at:.1f}" cy="{down:.1f}" r="4" fill="{colour}"/>')
                self.text(at + right_by, down + down_by, label, f'font-size="10" fill="{colour}"')
            for below, (group, (colour, _)) in enumerate(groups.items()):
                y = top + self.HIGH - 14 * (len(groups) - below)
                self.parts.append(f'<circle cx="{begin + wide - 70:.1f}" cy="{y - 4}" r="4" fill="{colour}"/>')
                self.text(begin + wide - 60, y, group, 'font-size="11"')
            self.text(begin + wide / 2, top + self.HIGH + 34, across, 'font-size="12" text-anchor="middle"')
        self.text(16, top - 10, up, 'font-size="12"')
        self.height = top + self.HIGH + 40


def lz4():
    section = "2026-11-22: the LZ4 kernels as they are, beside the peer: one lease, one input"
    rows = table(section, "chunk", "peer, its own", "liblz4, compress, decompress")
    rows = [row for row in rows if row["chunk"] == "64 KiB" and row["ratio"]]
    # The last row of each size is the five files as one input; the five before it are the files.
    rows = rows[:5]
    column = lambda name: mean(float(row[name]) for row in rows)
    pair = lambda name, side: mean(float(row[name].split(",")[side]) for row in rows)
    ratio = lambda name: f", ratio {column(name):.2f}"
    picture = Picture("LZ4 in blocks of 64 KiB on an NVIDIA H200",
                      "Data in the device's memory, 1 GiB of each file; CPU: 256 MiB, 16 threads of the host. Geometric means of five files.")
    picture.panel("Compression", [
        ("ptxkit", column("compress"), OURS, ratio("ratio")),
        ("ptxkit, higher ratio", column("high ratio"), OURS, ratio("its ratio")),
        ("nvCOMP 2.2", column("peer"), PEER, ratio("peer's ratio")),
        ("liblz4 1.9.4, CPU", pair("liblz4, compress, decompress", 0), CPU, ""),
        ("zstd -1, CPU", pair("zstd -1, compress, decompress", 0), CPU, "")])
    picture.panel("Decompression, each of what it made itself", [
        ("ptxkit", column("decompress, own"), OURS, ""),
        ("ptxkit, blocks of liblz4", column("decompress, liblz4's blocks"), OURS, ""),
        ("nvCOMP 2.2", column("peer, its own"), PEER, ""),
        ("liblz4 1.9.4, CPU", pair("liblz4, compress, decompress", 1), CPU, ""),
        ("zstd -1, CPU", pair("zstd -1, compress, decompress", 1), CPU, "")])
    return picture


def host():
    section = "2026-11-22: blocks of `.ptz` in groups"
    rows = {row["GB/s"]: row for row in table(section, "GB/s", "256 MiB", "CPU, 256 MiB")}
    picture = Picture("Heavier codecs, from host memory to host memory",
                      "256 MiB of world192.txt, one H200 beside 16 threads of its host, copies over PCIe included.")
    for side, title in (("encode", "Compression"), ("decode", "Decompression")):
        bars = []
        for codec in ("lzr", "lzf", "deflate-like", "bbw"):
            row = rows[f"{codec} {side}"]
            bars += [(f"{codec}, GPU", float(row["256 MiB"]), OURS, ""),
                     (f"{codec}, CPU", float(row["CPU, 256 MiB"]), CPU, "")]
        picture.panel(title, bars)
    return picture


def rans():
    section = "2026-11-22: rANS beside DietGPU; every coder on every file once more"
    # Two pairs of columns have one name each; a row is read by place.
    line = next(row for row in LOG.read_text(encoding="utf-8").split(f"## {section}\n", 1)[1].split("\n")
                if row.startswith("| geometric mean |"))
    ours, ours_encode, ours_decode, ratio, encode, decode, large, large_encode, large_decode = map(float, cells_of(line)[1:])
    picture = Picture("rANS on an NVIDIA H200, beside DietGPU",
                      "Geometric means of 15 files, each repeated to 256 MiB; data in the device's memory.")
    names = ("ptxkit, streams of 64 KiB", "DietGPU, members of 64 KiB", "DietGPU, members of 1 MiB")
    ratios = [f", ratio {value:.2f}" for value in (ours, ratio, large)]
    for title, values in (("Encoding", (ours_encode, encode, large_encode)), ("Decoding", (ours_decode, decode, large_decode))):
        picture.panel(title, list(zip(names, values, (OURS, PEER, PEER), ratios)))
    return picture


def bwt():
    section = "2026-11-22: `bwt_rank` sorts short groups in registers; beside libcubwt"
    small = {row["file"]: row for row in table(section, "file", "`bwt_rank`", "libsais, 16")}["geometric mean"]
    large = {row["GB/s"]: float(row["mean"]) for row in table(section, "GB/s", "mean", "worst")}
    picture = Picture("Burrows–Wheeler transform on an NVIDIA H200, beside libcubwt",
                      "Geometric means: 15 files in blocks of 64 KiB, five files in blocks of 1 MiB.")
    picture.panel("Forward, blocks of 64 KiB", [
        ("ptxkit", float(small["`bwt_rank`"]), OURS, ""), ("libcubwt, 16 streams", float(small["libcubwt, 16"]), PEER, ""),
        ("libsais, 16 CPU threads", float(small["libsais, 16"]), CPU, "")])
    picture.panel("Forward, blocks of 1 MiB", [
        ("ptxkit", large["`bwt_rank`"], OURS, ""), ("libcubwt, 16 streams", large["libcubwt, 16"], PEER, ""),
        ("libsais, 16 CPU threads", large["libsais, 16 CPU threads"], CPU, "")])
    picture.panel("Inverse, blocks of 1 MiB", [
        ("ptxkit", large["`bwt_inverse`"], OURS, ""), ("libcubwt, 16 streams", large["libcubwt's inverse, 16"], PEER, ""),
        ("libsais, 16 CPU threads", large["libsais's inverse, 16 CPU threads"], CPU, "")])
    return picture


def forms():
    rows = table("2026-11-23: rANS in chunks of `.ptz`", "block", "lanes", "chunk", "ratio")
    cost = "decoder, warp instructions a byte"
    groups = {"warp": ("#16191d", (-10, -8)), "4 lanes": (OURS, (-4, -8)), "8 lanes": ("#2e9e6b", (-4, 16)), "32 lanes": (PEER, (8, 4))}
    panels = []
    for block in dict.fromkeys(row["block"] for row in rows):
        panels.append((f"Blocks of {block}", [
            (float(row[cost]), float(row["ratio"]), row["chunk"].removesuffix("iB"),
             "warp" if row["lanes"] == "`warp`" else f"{row['lanes']} lanes")
            for row in rows if row["block"] == block]))
    picture = Chart("Forms of rANS in lzr: ratio against the cost of decoding on a GPU",
                    "By lanes and chunks; geometric means of five files. Cost: warp instructions of the decoding kernel, counted by the emulator.")
    picture.scatter(panels, groups, "warp instructions per raw byte (less is faster)", "ratio")
    return picture


def pictures():
    """(path, SVG) of each."""
    for draw in (lz4, host, rans, bwt, forms):
        yield IMAGES / "performance" / f"{draw.__name__}.svg", draw().svg()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, BENCH / "report.py", "plot", *sorted((BENCH / "baseline").glob("lz4_*h200.json"), reverse=True),
                        "--out", folder], check=True, stdout=subprocess.DEVNULL)
        for path in sorted(pathlib.Path(folder).glob("*.svg")):
            yield IMAGES / "lz4" / path.name, path.read_text(encoding="utf-8")


def main():
    different = []
    for path, picture in pictures():
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(picture, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != picture:
            different.append(path.relative_to(REPO))
    for path in different:
        print(f"{path} is not what was measured; ./dev docs draws it anew", file=sys.stderr)
    return bool(different)


sys.exit(main())
