#!/usr/bin/env python3
"""Tabulates and plots the results of ptx-bench, and compares them with a stored baseline.

  report.py table MEASURED.json                 the rows as a Markdown table, with the shares of memory and issue rate
  report.py compare BASELINE.json NEW.json      rows more than 5 % slower than in the baseline; exit status 1 if any
  report.py gate BASELINE.json --bench PROGRAM --inputs FOLDER [--json FILE] [--accept]
                                                measures the GPU rows of a baseline of `ptx-bench lz4` again and compares
  report.py plot MEASURED.json... --out FOLDER  throughput.svg over the chunk size, batch.svg over the number of items,
                                                ratio.svg against the ratio, roofline.svg against the device's ceilings

All commands read what `ptx-bench … --json FILE` writes. `compare` also names the rows of the baseline that were not
measured again. Figures of different machines are not comparable: a baseline of another device or processor is an error
(exit status 2).

`gate` exits 0 if no row is more than 5 % slower, 1 if one is, and 2 if a row could not be compared: another device, an
input that is missing, a row that is measured no longer. FOLDER has the inputs that the baseline names. --accept stores
the new GPU rows as the baseline; rows of the CPU are not measured and not kept.
"""
import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile
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


def is_of_gpu(row):
    return not row["what"].startswith("cpu ")


def compare(baseline_path, measured_path):
    return compare_rows(load(baseline_path), load(measured_path), ("device", "cpu"))[0]


def compare_rows(baseline, measured, machine):
    """The exit status, and the number of rows that were not measured again."""
    for where in machine:
        if baseline[where] != measured[where]:
            print(f'not comparable: the baseline is of {where} "{baseline[where]}", this is "{measured[where]}"', file=sys.stderr)
            return 2, 0
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
    return (1 if slower else 0), missing


def gate(baseline_path, bench, inputs, kept, accept):
    baseline = load(baseline_path)
    rows = [row for row in baseline["rows"] if is_of_gpu(row)]
    if not rows:
        print(f"{baseline_path}: no rows of a GPU", file=sys.stderr)
        return 2
    names = sorted({row["input"] for row in rows} - {"mixed"})
    for name in names:
        if not (inputs / name).is_file():
            print(f"{inputs / name}: no such input; the baseline was measured on it", file=sys.stderr)
            return 2
    size, smallest = max(row["raw_bytes"] for row in rows), min(row["chunk_bytes"] for row in rows)
    chunks = sorted({row["chunk_bytes"] for row in rows if row["raw_bytes"] == size})
    batches = sorted({-(-row["raw_bytes"] // smallest) for row in rows if row["raw_bytes"] != size})
    with tempfile.TemporaryDirectory() as folder:
        path = kept or pathlib.Path(folder) / "rows.json"
        command = [bench, "lz4", "--gpu-only", "--size", str(size), "--runs", str(baseline["runs"]), "--warm-up",
                   str(baseline["warm_up"]), "--chunk", ",".join(map(str, chunks)), "--json", str(path)]
        if batches:
            command += ["--batch", ",".join(map(str, batches))]
        if any(row["input"] == "mixed" for row in rows):
            command.append("--mixed")
        done = subprocess.run([*command, *(str(inputs / name) for name in names)], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"{bench} failed with exit status {done.returncode}", file=sys.stderr)
            return 2
        measured = load(path)
    if accept:
        pathlib.Path(baseline_path).write_text(json.dumps(measured, indent=2) + "\n")
        print(f'{baseline_path}: {len(measured["rows"])} rows of {measured["device"]}')
        return 0
    status, missing = compare_rows(baseline | {"rows": rows}, measured, ("device",))
    return status if status or not missing else 2


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

    def __init__(self, title, across, points, up="GB/s"):
        self.title, self.across, self.up = title, across, up
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
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{escape(label)}: {value:.1f} {self.up}</title></circle>')
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
        self.text(8, MARGIN - 16, self.up)
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">\n'
                        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
        print(path)


    def line(self, begin, end, words):
        """A ceiling, with its words above its beginning."""
        (x1, y1), (x2, y2) = self.place(*begin), self.place(*end)
        self.parts.append(f'<line class="ceiling" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="black" stroke-width="1.5"/>')
        turn = math.degrees(math.atan2(y2 - y1, x2 - x1))
        self.text(x1, y1 - 6, words, f'transform="rotate({turn:.1f} {x1:.1f} {y1:.1f})"')


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


def draw_roofline(path, measured):
    """Each row's instructions for a byte that it reads or writes, and how many it executes a second. A device moves
    bytes at the rate of a copy and issues instructions at the rate of its schedulers. A row may be above the second one,
    because its instructions are those of the PTX, of which the machine needs fewer."""
    bytes_ceiling, issue_ceiling = measured["copied_bytes_per_second"] / 1e9, measured["warp_instructions_per_second"] / 1e9
    rows = [row for row in measured["rows"] if row["instructions_per_byte"] and row["ratio"]]
    if not rows or not bytes_ceiling or not issue_ceiling:
        return
    groups = collections.defaultdict(list)
    for row in rows:
        intensity = row["instructions_per_byte"] / (1 + 1 / row["ratio"])
        groups[f'{row["what"]}, {row["chunk_bytes"]}'].append((intensity, row["instructions_per_byte"] * row["gigabytes_per_second"]))
    points = [point for of in groups.values() for point in of]
    ridge = issue_ceiling / bytes_ceiling
    left, right = min(ridge / 4, min(x for x, _ in points) / 2), max(ridge, max(x for x, _ in points)) * 2
    chart = Chart(f'Roofline on {measured["device"]}', "PTX warp instructions for each byte of memory read or written",
                  [*points, (left, left * bytes_ceiling), (right, issue_ceiling)], "10⁹ warp instructions a second")
    chart.line((left, left * bytes_ceiling), (ridge, issue_ceiling), f"memory: a copy moves {bytes_ceiling:.0f} GB/s")
    chart.line((ridge, issue_ceiling), (right, issue_ceiling), f"issue: {issue_ceiling:.0f}")
    for index, (label, places) in enumerate(groups.items()):
        chart.series(index, label, places, joined=False)
    chart.ticks([2.0**p for p in range(math.ceil(math.log2(left)), math.floor(math.log2(right)) + 1)],
                powers_between([left * bytes_ceiling, issue_ceiling]), lambda x: f"{x:g}")
    chart.save(path)


def plot(paths, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if load(path)["copied_bytes_per_second"]:
            draw_roofline(folder / "roofline.svg", load(path))
            break
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
    gated = verbs.add_parser("gate")
    gated.add_argument("baseline")
    gated.add_argument("--bench", required=True)
    gated.add_argument("--inputs", type=pathlib.Path, required=True)
    gated.add_argument("--json", type=pathlib.Path)
    gated.add_argument("--accept", action="store_true")
    plotted = verbs.add_parser("plot")
    plotted.add_argument("measured", nargs="+")
    plotted.add_argument("--out", type=pathlib.Path, required=True)
    chosen = parser.parse_args()
    if chosen.verb == "table":
        sys.exit(table(chosen.measured))
    if chosen.verb == "gate":
        sys.exit(gate(chosen.baseline, chosen.bench, chosen.inputs, chosen.json, chosen.accept))
    sys.exit(compare(chosen.baseline, chosen.measured) if chosen.verb == "compare" else plot(chosen.measured, chosen.out))


if __name__ == "__main__":
    main()
