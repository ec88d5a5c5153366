#!/usr/bin/env python3
"""Tabulates and plots the results of ptx-bench, and compares them with a stored baseline.

  report.py table MEASURED.json                 the rows as a Markdown table, with the shares of memory and issue rate
  report.py compare BASELINE.json NEW.json      rows more than 5 % slower than in the baseline; exit status 1 if any
  report.py plot MEASURED.json... --out FOLDER  throughput.svg over the chunk size, batch.svg over the number of items,
                                                ratio.svg against the ratio

All commands read what `ptx-bench … --json FILE` writes. `compare` also names the rows of the baseline that were not
measured again. Figures of different machines are not comparable: a baseline of another device or processor is an error
(exit status 2).
"""
import argparse
import collections
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

SLOWER = 0.05
COLOURS = ["#1b6ca8", "#c8553d", "#3a7d44", "#8e5ea2", "#b8860b", "#4d4d4d", "#d1495b", "#00798c", "#7a5c3e"]
WIDTH, HEIGHT, MARGIN, LEGEND = 820, 420, 60, 210


def load(path):
    return json.loads(pathlib.Path(path).read_text())


def key(row):
    return row["input"], row["what"], row["chunk_bytes"], row["raw_bytes"]


def name(row):
    return f'{row["input"]}, {row["what"]}, chunks of {row["chunk_bytes"]}, {row["raw_bytes"]} bytes'


def compare(baseline_path, measured_path):
    baseline, measured = load(baseline_path), load(measured_path)
    for where in ("device", "cpu"):
        if baseline[where] != measured[where]:
            print(f'not comparable: the baseline is of {where} "{baseline[where]}", this is "{measured[where]}"', file=sys.stderr)
            return 2
    rows = {key(row): row for row in measured["rows"]}
    slower = missing = 0
    for old in baseline["rows"]:
        new = rows.get(key(old))
        if new is None:
            missing += 1
            print(f"not measured: {name(old)}")
            continue
        change = new["gigabytes_per_second"] / old["gigabytes_per_second"] - 1
        if change < -SLOWER:
            slower += 1
            print(f'{-change:.1%} slower: {name(old)}: {old["gigabytes_per_second"]:.1f} -> {new["gigabytes_per_second"]:.1f} GB/s')
    print(f'{len(baseline["rows"])} rows of the baseline, {slower} more than {SLOWER:.0%} slower, {missing} not measured')
    return 1 if slower else 0


def table(path):
    share = lambda value: f"{value:.0%}" if value else "–"
    print("| input | what | bytes a chunk | chunks | ratio | GB/s | spread | memory | issue |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in load(path)["rows"]:
        chunk = row["chunk_bytes"]
        chunks = -(-row["raw_bytes"] // chunk) if chunk else "–"
        spread = (row["slowest_seconds"] - row["fastest_seconds"]) / row["seconds"]
        print(f'| {row["input"]} | {row["what"]} | {chunk} | {chunks} | {row["ratio"]:.3f} | {row["gigabytes_per_second"]:.1f} | '
              f'{spread:.0%} | {share(row["memory_share"])} | {share(row["issue_share"])} |')
    return 0


def geometric_means(rows, position):
    """{what: [(x, GB/s)]} with the geometric mean over all inputs, where x = position(row)."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["what"], position(row)].append(row["gigabytes_per_second"])
    lines = collections.defaultdict(list)
    for (what, x), values in sorted(groups.items()):
        lines[what].append((x, math.exp(sum(map(math.log, values)) / len(values))))
    return lines


class Chart:
    """Points or lines on logarithmic axes, written as SVG."""

    def __init__(self, title, across, points):
        self.title, self.across = title, across
        xs, ys = [x for x, _ in points], [y for _, y in points]
        self.low = (math.log2(min(xs)), math.log2(min(ys)))
        self.span = tuple(max(math.log2(max(v)) - low, 1e-9) for v, low in zip((xs, ys), self.low))
        self.parts = []

    def place(self, x, y):
        across = (math.log2(x) - self.low[0]) / self.span[0]
        up = (math.log2(y) - self.low[1]) / self.span[1]
        return MARGIN + across * (WIDTH - MARGIN - LEGEND), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    def text(self, x, y, words, more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" {more}>{escape(words)}</text>')

    def series(self, index, label, points, joined):
        colour = COLOURS[index % len(COLOURS)]
        places = [self.place(*point) for point in points]
        if joined:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), (_, value) in zip(places, points):
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{escape(label)}: {value:.1f} GB/s</title></circle>')
        self.text(WIDTH - LEGEND + 14, MARGIN + 16 * index, label, f'fill="{colour}"')

    def ticks(self, xs, ys, x_text):
        last = -math.inf
        for x in xs:
            at, _ = self.place(x, 2**self.low[1])
            if at - last < 26:  # the words would touch
                continue
            last = at
            self.text(at, HEIGHT - MARGIN + 16, x_text(x), 'text-anchor="middle"')
        for y in ys:
            _, at = self.place(2**self.low[0], y)
            self.text(MARGIN - 8, at + 4, f"{y:.0f}", 'text-anchor="end"')

    def save(self, path):
        self.text(MARGIN, 24, self.title, 'font-weight="bold"')
        self.text((WIDTH + MARGIN - LEGEND) / 2, HEIGHT - 14, self.across, 'text-anchor="middle"')
        self.text(8, MARGIN - 16, "GB/s")
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">\n'
                        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
        print(path)


def powers_between(values):
    return [2**p for p in range(math.ceil(math.log2(min(values))), math.floor(math.log2(max(values))) + 1)]


def draw_lines(path, title, across, rows, position):
    lines = geometric_means(rows, position)
    points = [point for line in lines.values() for point in line]
    if len({x for x, _ in points}) < 2:
        return
    chart = Chart(title, across, points)
    for index, (what, line) in enumerate(lines.items()):
        chart.series(index, what, line, joined=True)
    chart.ticks(sorted({x for x, _ in points}), powers_between([y for _, y in points]), str)
    chart.save(path)


def plot(paths, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for path in paths for row in load(path)["rows"] if row["chunk_bytes"]]
    if not rows:
        print("no row with a chunk size", file=sys.stderr)
        return 2
    largest = max(row["raw_bytes"] for row in rows)
    whole = [row for row in rows if row["raw_bytes"] * 2 > largest]
    draw_lines(folder / "throughput.svg", "Throughput over the chunk size", "bytes a chunk", whole, lambda row: row["chunk_bytes"])
    smallest = min(row["chunk_bytes"] for row in rows)
    draw_lines(folder / "batch.svg", f"Throughput over the batch, chunks of {smallest} bytes", "chunks a batch",
               [row for row in rows if row["chunk_bytes"] == smallest], lambda row: -(-row["raw_bytes"] // smallest))
    with_ratio = [row for row in whole if row["ratio"] and "decompress" not in row["what"]]
    if with_ratio:
        points = [(row["ratio"], row["gigabytes_per_second"]) for row in with_ratio]
        chart = Chart("Compression: throughput against ratio", "raw bytes / stored bytes", points)
        groups = collections.defaultdict(list)
        for row, point in zip(with_ratio, points):
            groups[f'{row["what"]}, {row["chunk_bytes"]}'].append(point)
        for index, (label, places) in enumerate(groups.items()):
            chart.series(index, label, places, joined=False)
        chart.ticks(sorted({round(x, 1) for x, _ in points}), powers_between([y for _, y in points]), str)
        chart.save(folder / "ratio.svg")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    shown = verbs.add_parser("table")
    shown.add_argument("measured")
    compared = verbs.add_parser("compare")
    compared.add_argument("baseline")
    compared.add_argument("measured")
    plotted = verbs.add_parser("plot")
    plotted.add_argument("measured", nargs="+")
    plotted.add_argument("--out", type=pathlib.Path, required=True)
    chosen = parser.parse_args()
    if chosen.verb == "table":
        sys.exit(table(chosen.measured))
    sys.exit(compare(chosen.baseline, chosen.measured) if chosen.verb == "compare" else plot(chosen.measured, chosen.out))


if __name__ == "__main__":
    main()
