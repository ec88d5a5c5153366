#!/usr/bin/env python3
"""How quiet the catalogue is on correct PTX: `measure_alarms.py PTX_DEBUG FOLDER...`

Runs `ptx-debug analyze --falsify` on every .ptx file below the folders (all of them are taken for correct) and reports,
per rule, the share of kernels on which it fires above info, and the share of kernels that score 90 or more. With
--manifest, a table with the columns path, producer, ptxas and ptxas_c, files that ptxas refuses are left out and the
figures are also given by producer. --hits writes every finding above info, for a closer look.

--ptxas leaves out what ptxas refuses, where there is no manifest to say so.

--half splits the files by the first byte of the SHA-256 of their content: even is `tune`, which may be looked at while
rules are sharpened, odd is `report`, from which published figures come.
"""
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import pathlib
import re
import subprocess
import sys


def analyze(program, path, extra, limit):
    try:
        run = subprocess.run([program, "analyze", "--falsify", *extra, "--json=-", str(path)],
                             capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return path, None
    try:
        return path, json.loads(run.stdout)["files"][0]
    except (json.JSONDecodeError, IndexError, KeyError):
        return path, None


def is_accepted(path):
    target = re.search(r"^\s*\.target\s+(sm_\w+)", path.read_text(errors="replace"), re.M)
    if not target:
        return False
    return subprocess.run(["ptxas", "-O0", "-c", f"-arch={target.group(1)}", "-o", "/dev/null", str(path)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def half_of(path):
    return "report" if hashlib.sha256(path.read_bytes()).digest()[0] % 2 else "tune"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--manifest", type=pathlib.Path)
    parser.add_argument("--ptxas", action="store_true", help="leave out files that ptxas refuses for their own target")
    parser.add_argument("--producers", default="", help="regular expression; other files are left out")
    parser.add_argument("--half", choices=("tune", "report"), help="only the files of this half")
    parser.add_argument("--every", type=int, default=1, help="only each N-th file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=120, help="seconds for one file")
    parser.add_argument("--hits", type=pathlib.Path)
    parser.add_argument("--option", action="append", default=[], help="passed on to ptx-debug")
    arguments = parser.parse_args()

    producer = {}
    if arguments.manifest:
        base = arguments.manifest.parent
        for row in csv.DictReader(arguments.manifest.open(), delimiter="\t"):
            if "ok" in (row["ptxas"], row["ptxas_c"]):
                producer[(base / row["path"]).resolve()] = row["producer"]
    files = sorted({path.resolve() for folder in arguments.folders for path in folder.rglob("*.ptx")})
    if arguments.manifest:
        files = [path for path in files if path in producer]
    files = [path for path in files if re.search(arguments.producers, producer.get(path, path.parent.name))]
    if arguments.half:
        files = [path for path in files if half_of(path) == arguments.half]
    files = files[::arguments.every]
    if arguments.ptxas:
        files = [path for path in files if is_accepted(path)]

    kernels = collections.Counter()
    fired = collections.defaultdict(collections.Counter)
    good = collections.Counter()
    critical = collections.Counter()
    unread = []
    hits = arguments.hits.open("w") if arguments.hits else None
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for path, report in pool.map(lambda path: analyze(arguments.program, path, arguments.option, arguments.limit), files):
            if report is None or report["score"] is None or report["diagnostics"]:
                unread.append(path)
                continue
            who = producer.get(path, path.parent.name)
            for kernel in report["kernels"]:
                if not kernel["name"]:
                    continue
                kernels[who] += 1
                good[who] += kernel["score"] >= 90
                critical[who] += kernel["critical_count"] > 0
                for verdict in kernel["verdicts"]:
                    loud = [finding for finding in verdict["findings"] if finding["severity"] != "info"]
                    fired[verdict["rule"]][who] += bool(loud)
                    if hits:
                        for finding in loud:
                            hits.write("\t".join((verdict["rule"], finding["severity"], who, f"{path}:{finding['line']}",
                                                  f"{kernel['score']:.0f}", finding["message"])) + "\n")

    total = sum(kernels.values())
    if not total:
        sys.exit("no kernel was read")
    print(f"{len(files) - len(unread)} files, {total} kernels; score >= 90: {100 * sum(good.values()) / total:.2f} %; "
          f"critical: {sum(critical.values())} kernels; not read: {len(unread)} files")
    for path in unread[:10]:
        print(f"  not read: {path}")
    for rule, by in sorted(fired.items(), key=lambda item: -sum(item[1].values())):
        count = sum(by.values())
        if count:
            worst = ", ".join(f"{who} {n}" for who, n in by.most_common(5))
            print(f"  {rule} {100 * count / total:6.2f} %  {count:6}  {worst}")
    print("below 90 by producer: " + ", ".join(f"{who} {kernels[who] - good[who]}/{kernels[who]}" for who in
                                               sorted(kernels, key=lambda who: good[who] - kernels[who])
                                               if kernels[who] > good[who]))


if __name__ == "__main__":
    main()
