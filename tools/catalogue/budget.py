#!/usr/bin/env python3
"""The false-alarm budget of the catalogue, measured: `budget.py PTX_DEBUG FOLDER...`

Runs `ptx-debug analyze --falsify`, without launch files, on every .ptx file below the folders that ptxas accepts. These
files are assumed to be correct. Prints the share of kernels that score 90 or more, the kernels with a critical finding,
and for each rule the share of kernels on which it fires above info, beside the budget: 95 %, none, 1 %.

Authors improve rules by looking at files, so the files are split by the first byte of the SHA-256 of their content. Even
files may be looked at; odd files are held out and give the figures to publish. Both halves are printed; `--held-out`
lists the held-out files.

ptxas's verdicts come from running it, or from a table with the columns path, producer, ptxas and ptxas_c (`--manifest`),
which also gives figures by producer. `--hits` writes every finding above info, for a closer look. With `--check` the exit
code is 1 if the held-out half exceeds the budget.
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

SCORE_OF_GOOD = 90
LEAST_GOOD_PERCENT = 95
MOST_FIRED_PERCENT = 1


def is_held_out(path):
    return hashlib.sha256(path.read_bytes()).digest()[0] % 2 == 1


def is_accepted(path):
    target = re.search(r"^\s*\.target\s+(sm_\w+)", path.read_text(errors="replace"), re.M)
    if not target:
        return False
    return subprocess.run(["ptxas", "-O0", "-c", f"-arch={target.group(1)}", "-o", "/dev/null", str(path)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def analyze(program, path, options, limit):
    try:
        run = subprocess.run([program, "analyze", "--falsify", *options, "--json=-", str(path)],
                             capture_output=True, timeout=limit)
        return json.loads(run.stdout)["files"][0]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError, KeyError):
        return None


class Half:
    def __init__(self, name, counts):
        self.name = name
        self.counts = counts  # whether a finding counts
        self.files = 0
        self.unread = []
        self.kernels = collections.Counter()  # by producer, like all counters here
        self.good = collections.Counter()
        self.critical = collections.Counter()
        self.fired = collections.defaultdict(collections.Counter)

    def add(self, kernel, producer):
        self.kernels[producer] += 1
        self.good[producer] += kernel["score"] >= SCORE_OF_GOOD
        self.critical[producer] += kernel["critical_count"] > 0
        for verdict in kernel["verdicts"]:
            self.fired[verdict["rule"]][producer] += any(map(self.counts, verdict["findings"]))

    def report(self):
        """Prints the figures and returns whether they are within the budget."""
        total = self.kernels.total()
        print(f"== {self.name}: {self.files} files, {total} kernels, {len(self.unread)} files not read")
        for path in self.unread[:10]:
            print(f"  not read: {path}")
        if not total:
            return not self.unread
        good = 100 * self.good.total() / total
        print(f"  score >= {SCORE_OF_GOOD}: {good:.2f} % (aim: {LEAST_GOOD_PERCENT} %)")
        print(f"  kernels with a critical finding: {self.critical.total()} ({100 * self.critical.total() / total:.2f} %)")
        loud = []
        for rule, by in sorted(self.fired.items(), key=lambda item: -item[1].total()):
            percent = 100 * by.total() / total
            if not by.total():
                continue
            if percent > MOST_FIRED_PERCENT:
                loud.append(rule)
            worst = ", ".join(f"{producer} {count}" for producer, count in by.most_common(5) if count)
            print(f"  {rule} {percent:6.2f} %  {by.total():6}  {worst}")
        print(f"  rules that fire above info on more than {MOST_FIRED_PERCENT} %: {', '.join(loud) or 'none'}")
        below = {who: count - self.good[who] for who, count in self.kernels.items() if count > self.good[who]}
        if below:
            print("  below it by producer: " + ", ".join(f"{who} {count}/{self.kernels[who]}" for who, count in
                                                        sorted(below.items(), key=lambda item: -item[1])))
        return good >= LEAST_GOOD_PERCENT and not loud and not self.unread


def accepted_by_manifest(manifest):
    producers = {}
    for row in csv.DictReader(manifest.open(), delimiter="\t"):
        if "ok" in (row["ptxas"], row["ptxas_c"]):
            producers[(manifest.parent / row["path"]).resolve()] = row["producer"]
    return producers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--manifest", type=pathlib.Path, help="which files ptxas accepts, and who made them")
    parser.add_argument("--producers", default="", help="regular expression; files of others are left out")
    parser.add_argument("--every", type=int, default=1, help="only each N-th file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=120, help="seconds for one file")
    parser.add_argument("--hits", type=pathlib.Path)
    parser.add_argument("--held-out", type=pathlib.Path, help="where to list the files that are held out")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--advice", action="store_true", help="count info, too: what raising it would do")
    parser.add_argument("--option", action="append", default=[], help="passed on to ptx-debug")
    arguments = parser.parse_args()

    files = sorted({path.resolve() for folder in arguments.folders for path in folder.rglob("*.ptx")})
    producers = {path: path.parent.name for path in files}
    if arguments.manifest:
        producers = accepted_by_manifest(arguments.manifest)
        files = [path for path in files if path in producers]
    files = [path for path in files if re.search(arguments.producers, producers[path])][::arguments.every]
    if not arguments.manifest:
        files = [path for path in files if is_accepted(path)]
    held_out = {path for path in files if is_held_out(path)}
    if arguments.held_out:
        arguments.held_out.write_text("".join(f"{path}\n" for path in files if path in held_out))

    counts = lambda finding: arguments.advice or finding["severity"] != "info"
    halves = {True: Half("held out", counts), False: Half("looked at while rules were sharpened", counts)}
    hits = arguments.hits.open("w") if arguments.hits else None
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        reports = pool.map(lambda path: analyze(arguments.program, path, arguments.option, arguments.limit), files)
        for path, report in zip(files, reports):
            half = halves[path in held_out]
            if report is None or report["score"] is None or report["diagnostics"]:
                half.unread.append(path)
                continue
            half.files += 1
            for kernel in filter(lambda kernel: kernel["name"], report["kernels"]):
                half.add(kernel, producers[path])
                for verdict in kernel["verdicts"] if hits else ():
                    for finding in verdict["findings"]:
                        if counts(finding):
                            hits.write("\t".join((verdict["rule"], finding["severity"], half.name, producers[path],
                                                  f"{path}:{finding['line']}", f"{kernel['score']:.0f}",
                                                  finding["message"])) + "\n")

    if not any(half.kernels for half in halves.values()):
        sys.exit("budget.py: expected kernels in what ptxas accepts below the folders, found none")
    keeps = [halves[half].report() for half in (True, False)]
    sys.exit(1 if arguments.check and not keeps[0] else 0)


if __name__ == "__main__":
    main()
