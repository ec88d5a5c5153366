#!/usr/bin/env python3
"""Counts the outcomes of `--replay`, and what keeps launches from showing findings: `replays.py PTX_DEBUG FOLDER...`

Runs `ptx-debug analyze --falsify --replay`, without launch files, on every .ptx file below the folders. Counts for each
rule, by findings and by the kernels that contain them, the outcomes of the findings that can be replayed:

  confirmed   the fault appeared; `behind` is the number of these that follow another fault of the launch
  refuted     launches ran without a fault and reached the line as the witness says
  reached, unreached   the line was executed, but not as the witness says; no launch reached it
  not run     the launch cannot be made, or the module cannot be loaded

--planted counts findings on planted defects (planting.py), each in a kernel on which no rule of the defect's class fired
before: correct kernels have few findings, and a plant shows how far launches get into a kernel.
--golden asks `ptx-debug gen-fkr` in how many kernels a launch runs to its end without a fault and with equal results in
two schedules, and counts the other kernels by reason.
--list writes every finding that was not confirmed, or every kernel without a golden launch, for a closer look.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import budget
import planting
import recall

OUTCOMES = ("confirmed", "refuted", "reached", "unreached", "not run")
BEHIND = "past another fault"  # the text of runtime/launch/replay.cpp
GOLDEN = re.compile(r": (\d+) kernels?, (\d+) golden launch")
NONE_GOLDEN = re.compile(r": no golden outputs for (\S+): (.*)")
# The parts of a reason that differ between files, for kernels without golden launches.
OWN = re.compile(r"0x[0-9a-f]+|'[^']*'( \+ \d+)?|%\w+|line \d+ \([^)]*\)|\b\d+\b")


class Tally:
    def __init__(self):
        self.findings = collections.Counter()  # by rule and outcome
        self.kernels = collections.defaultdict(set)
        self.read, self.unread = 0, []
        self.notes = []

    def add(self, path, kernel, rules=None):
        """Counts the findings for a kernel in a report, of some rules or all. Returns how many could be replayed."""
        count = 0
        for verdict in kernel["verdicts"]:
            for finding in verdict["findings"]:
                replay = finding.get("replay")
                if not replay or (rules is not None and verdict["rule"] not in rules):
                    continue
                count += 1
                outcomes = [replay["outcome"], *(["behind"] if BEHIND in replay["what"] else [])]
                for outcome in outcomes if outcomes[0] == "confirmed" else outcomes[:1]:
                    self.findings[verdict["rule"], outcome] += 1
                    self.kernels[verdict["rule"], outcome].add((path, kernel["name"]))
                self.kernels[verdict["rule"], "all"].add((path, kernel["name"]))
                if replay["outcome"] != "confirmed":
                    self.notes.append("\t".join((replay["outcome"], verdict["rule"], f"{path}:{finding['line']}",
                                                 kernel["name"], finding["message"], replay["what"])))
        return count

    def report(self):
        columns = ("confirmed", "behind", *OUTCOMES[1:])
        print("| rule | findings | kernels | " + " | ".join(columns) + " |")
        print("|---" * (len(columns) + 3) + "|")
        rules = sorted({rule for rule, _ in self.findings})
        for rule in (*rules, None):
            of = lambda counts: [sum(counts.get((each, column), 0) for each in ([rule] if rule else rules)) for column in columns]
            findings = of(self.findings)
            kernels = len(set().union(*(self.kernels[each, "all"] for each in ([rule] if rule else rules))))
            print(f"| {rule or 'all'} | {sum(findings) - findings[1]} | {kernels} | " + " | ".join(map(str, findings)) + " |")


def command_of(arguments, *options):
    return [arguments.program, "analyze", "--no-config", "--replay", "--json=-", *options]


def reported(command, limit):
    """The report on a file; None if it takes too long or does not parse."""
    try:
        run = subprocess.run(command, capture_output=True, timeout=limit)
        report = json.loads(run.stdout)["files"][0]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError, KeyError):
        return None
    return None if report["diagnostics"] else report


def count_files(arguments, files, pool):
    tally = Tally()
    commands = [command_of(arguments, "--falsify", str(path)) for path in files]
    for path, report in zip(files, pool.map(lambda command: reported(command, arguments.limit), commands)):
        if report is None:
            tally.unread.append(path)
            continue
        tally.read += 1
        for kernel in filter(lambda kernel: kernel["name"], report["kernels"]):
            tally.add(path, kernel)
    return tally


def count_planted(arguments, files, pool):
    tally, plants = Tally(), collections.Counter()

    def of_file(path):
        text, found, before = path.read_text(errors="replace"), [], None
        for plant, defect, kernel, changed in planting.planted_in(text):
            before = before or recall.fired_on(arguments.program, path)
            if defect in before.get(kernel, ()):
                continue
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as planted:
                planted.write(changed)
                planted.flush()
                options = ["--select", ",".join(recall.CLASSES[defect]), "--kernel", f"^{re.escape(kernel)}$", planted.name]
                found.append((defect, kernel, reported(command_of(arguments, *options), arguments.limit)))
        return found

    for path, found in zip(files, pool.map(of_file, files)):
        tally.read += 1
        for defect, name, report in found:
            plants[defect, "planted"] += 1
            if report is None:
                tally.unread.append(path)
                continue
            for kernel in filter(lambda kernel: kernel["name"] == name, report["kernels"]):
                plants[defect, "with a finding"] += tally.add(f"{path} with {defect} planted", kernel) > 0
    for defect in sorted({defect for defect, _ in plants}):
        print(f"{defect}: {plants[defect, 'planted']} planted, {plants[defect, 'with a finding']} with a finding that can be replayed")
    return tally


def count_golden(arguments, files, pool):
    kernels, launches, why, notes, unread = 0, 0, collections.Counter(), [], []

    def said_of(path):
        try:
            return subprocess.run([arguments.program, "gen-fkr", str(path), "-o", "/dev/null"], capture_output=True, text=True,
                                  timeout=arguments.limit).stderr
        except subprocess.TimeoutExpired:
            return ""

    for path, said in zip(files, pool.map(said_of, files)):
        summary = GOLDEN.search(said)
        if not summary:
            unread.append(path)
            continue
        kernels += int(summary[1])
        launches += int(summary[2])
        for kernel, reason in NONE_GOLDEN.findall(said):
            reason = reason.replace("; describe the launch in a launch file (--launch)", "")
            why[re.sub(OWN, "…", reason)] += 1
            notes.append(f"{path}\t{kernel}\t{reason}")
    print(f"{kernels} kernels, {kernels - why.total()} of them with a golden launch, {launches} golden launches; "
          f"{len(unread)} files not read")
    for reason, count in why.most_common():
        print(f"  {count:5}  {reason}")
    return notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="only each N-th file")
    parser.add_argument("--largest", type=int, default=400_000, help="only files of fewer bytes")
    parser.add_argument("--looked-at", action="store_true", help="only the half that is not held out (budget.py)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=300, help="seconds for one file")
    parser.add_argument("--list", type=pathlib.Path, help="where to write what was not confirmed, or is not golden")
    arguments = parser.parse_args()

    files = sorted({path for folder in arguments.folders for path in folder.rglob("*.ptx")
                    if path.stat().st_size < arguments.largest})
    files = [path for path in files if not (arguments.looked_at and budget.is_held_out(path))][:: arguments.every]
    if not files:
        sys.exit("replays.py: expected .ptx files below the folders, found none")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        if arguments.golden:
            notes = count_golden(arguments, files, pool)
        else:
            tally = (count_planted if arguments.planted else count_files)(arguments, files, pool)
            print(f"{tally.read} files, {len(tally.unread)} reports not read")
            tally.report()
            notes = tally.notes
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.1f} s of the processor")
    if arguments.list:
        arguments.list.write_text("".join(f"{note}\n" for note in notes))


if __name__ == "__main__":
    main()
