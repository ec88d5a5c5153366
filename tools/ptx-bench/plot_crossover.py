#!/usr/bin/env python3
"""Plots the results of `ptx-bench crossover --json` or codec_crossover.py: seconds over bytes on logarithmic axes, a
panel for each task. Files are dots in the first panel.

usage: plot_crossover.py FILE.json OUT.svg
"""
import json
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 320, 300, 60, 40, 70
SIDES = {  # row -> colour, dashes, label
    "cpu": ("#1b6ca8", "", "CPU"),
    "gpu": ("#c4451c", "", "GPU, CUDA started"),
    "gpu + start": ("#c4451c", "5,4", "GPU, CUDA to be started"),
    "mixed": ("#3c8c40", "", "both, CUDA started"),
    "auto, CUDA started": ("#222", "1,5", "auto, CUDA started"),
    "mixed + start": ("#3c8c40", "5,4", "both, CUDA to be started"),
    "auto": ("#222", "1,5", "auto"),
}


def human(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:g} {unit}"
        size /= 1024
    return f"{size:g} TiB"


def crossover(sizes, slower, faster):
    """The size, interpolated, from which `faster` stays below `slower`; None if it never does."""
    above = [i for i in range(len(sizes)) if faster[i] >= slower[i]]
    if above and above[-1] == len(sizes) - 1:
        return None
    if not above:
        return sizes[0]
    i = above[-1]
    before, after = math.log(faster[i] / slower[i]), math.log(faster[i + 1] / slower[i + 1])
    return sizes[i] * (sizes[i + 1] / sizes[i]) ** (before / (before - after))


def panel(task, sizes, series, files, low, high, left):
    def x(size):
        return left + WIDTH * math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def y(seconds):
        return TOP + HEIGHT * (1 - math.log(seconds / low) / math.log(high / low))

    yield f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>'
    yield f'<text x="{left + WIDTH / 2}" y="{TOP - 12}" text-anchor="middle" font-weight="bold">{escape(task)}</text>'
    for size in sizes[::2]:
        yield f'<line x1="{x(size):.1f}" y1="{TOP}" x2="{x(size):.1f}" y2="{TOP + HEIGHT}" stroke="#ddd"/>'
        yield f'<text x="{x(size):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{human(size)}</text>'
    for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        at = y(10**power)
        yield f'<line x1="{left}" y1="{at:.1f}" x2="{left + WIDTH}" y2="{at:.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>'
    for side, (colour, dashes, _) in SIDES.items():
        if side not in series:
            continue
        points = " ".join(f"{x(size):.1f},{y(seconds):.1f}" for size, seconds in zip(sizes, series[side]))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dashes}"/>'
    for side, size, seconds in files:
        if side in ("cpu", "gpu", "mixed") and sizes[0] <= size <= sizes[-1]:
            yield f'<circle cx="{x(size):.1f}" cy="{y(seconds):.1f}" r="2.5" fill="{SIDES[side][0]}" fill-opacity="0.6"/>'


def draw(measured):
    start = next((row["seconds"] for row in measured["rows"] if row["what"] == "start"), None)
    tasks = list(dict.fromkeys(row["input"] for row in measured["rows"]
                               if row["input"] not in ("-", "calibration") and not row["input"].startswith("file ")))
    files = [(row["what"], row["raw_bytes"], row["seconds"])
             for row in measured["rows"] if row["input"].startswith("file ")]
    parts, summary = [], []
    all_series = {}
    for task in tasks:
        series = {}
        for row in measured["rows"]:
            if row["input"] == task:
                series.setdefault(row["what"], {})[row["raw_bytes"]] = row["seconds"]
        sizes = sorted(series["cpu"])
        series = {what: [by_size[size] for size in sizes] for what, by_size in series.items() if what in SIDES}
        if start is not None:
            series["gpu + start"] = [start + seconds for seconds in series["gpu"]]
        all_series[task] = (sizes, series)
        for side in [side for side in SIDES if side != "cpu" and not side.startswith("auto") and side in series]:
            at = crossover(sizes, series["cpu"], series[side])
            summary.append(f"{task}: {SIDES[side][2]}: " + ("slower than the CPU up to the largest size" if at is None
                                                        else f"faster than the CPU from {at / 1e6:.2f} MB on"))
    values = [v for _, series in all_series.values() for of_side in series.values() for v in of_side]
    values += [seconds for side, _, seconds in files if side in SIDES]
    low, high = min(values) / 1.3, max(values) * 1.3
    for number, task in enumerate(tasks):
        dots = files if number == 0 else []
        parts += panel(task, *all_series[task], dots, low, high, LEFT + number * (WIDTH + GAP))
    legend_y = TOP + HEIGHT + 44
    drawn = [look for side, look in SIDES.items() if any(side in series for _, series in all_series.values())]
    for number, (colour, dashes, label) in enumerate(drawn):
        at = LEFT + 220 * number
        parts.append(f'<line x1="{at}" y1="{legend_y}" x2="{at + 30}" y2="{legend_y}" stroke="{colour}" '
                     f'stroke-width="1.8" stroke-dasharray="{dashes}"/>')
        parts.append(f'<text x="{at + 36}" y="{legend_y + 4}">{label}</text>')
    parts.append(f'<text x="{LEFT}" y="{legend_y + 26}">{escape(measured["device"])}; {escape(measured["cpu"])}</text>')
    width, height = LEFT + len(tasks) * (WIDTH + GAP), legend_y + 40
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            f'font-size="11"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"), summary


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], encoding="utf-8") as file:
        svg, summary = draw(json.load(file))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(svg)
    print("\n".join(summary))


if __name__ == "__main__":
    main()
