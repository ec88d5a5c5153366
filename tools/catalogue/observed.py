#!/usr/bin/env python3
"""Counts what `analyze` finds by reading, by running (--run), and by both: `observed.py PTX_DEBUG ROOT [FOLDER...]`

Without folders: the fixtures of the rules that the emulator has faults for, each by its own rule and its relatives, and the golden
PTX of the kernels, all in the checkout ROOT. A FOLDER holds .ptx files; beside NAME.ptx may lie NAME.launch.json, a launch
file, and NAME.label.json with {"label": "clean", a kind of defect, or null}. Without a label a file counts as clean.

A defect counts as found where a rule has a high or critical finding, and as seen at medium where that is the worst. A
finding is one of running where it has a command that repeats the launch. False alarms are findings of running on clean
files. --half 0 or 1 takes one half of each set, by the SHA-256 of the file's name.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import re
import resource
import subprocess
import sys

FAULT = re.compile(r'^FAULT\(\w+, "(F\d+)"', re.M)
# Rules that name one defect by different signs: a fixture of one is found by any of them.
FAMILIES = (("F036", "F042", "F050", "F102"), ("F037", "F038", "F039", "F041", "F045"), ("F051", "F021", "F081", "F082"), ("F060", "F071"))
SEVERITIES = ("info", "low", "medium", "high", "critical")


class Case:
    def __init__(self, group, path, label, launch=None, rule=None):
        self.group, self.path, self.label, self.launch, self.rule = group, path, label, launch, rule


def fixtures(root):
    rules = set(FAULT.findall((root / "runtime/emulator/fault_kinds.def").read_text()))
    for folder in sorted((root / "fkr_tests/static/fixtures").iterdir()):
        if folder.name not in rules:
            continue
        for path in sorted(folder.glob("*.ptx")):
            kind = path.name.split("_")[0]
            if kind in ("refuted", "survived"):
                yield Case("fixtures", path, "clean" if kind == "survived" else folder.name, rule=folder.name)


def golden(root):
    for path in sorted((root / "fkr_tests/golden").rglob("*.ptx")):
        yield Case("golden", path, "clean")


def of_folder(folder):
    for path in sorted(folder.rglob("*.ptx")):
        label, launch = path.with_suffix(".label.json"), path.with_suffix(".launch.json")
        kind = json.loads(label.read_text())["label"] if label.exists() else "clean"
        if kind is not None:
            yield Case(folder.name, path, kind, launch if launch.exists() else None)


def report_of(arguments, case, option):
    command = [arguments.program, "analyze", "--no-config", "--falsify", "--json=-", option, str(case.path)]
    if case.launch:
        command += ["--launch", str(case.launch)]
    try:
        run = subprocess.run(command, capture_output=True, timeout=arguments.limit)
        return json.loads(run.stdout)["files"][0]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError, KeyError):
        return None


def findings_of(report, rules):
    """(kernel, rule, finding) of a report; of `rules` alone where there are some."""
    for kernel in report.get("kernels", ()):
        for verdict in kernel["verdicts"]:
            if not rules or verdict["rule"] in rules:
                for finding in verdict["findings"]:
                    yield kernel["name"], verdict["rule"], finding


def worst(findings):
    """The worst of the findings: its severity and a line that names it."""
    found = (-1, "")
    for kernel, rule, finding in findings:
        severity = SEVERITIES.index(finding["severity"])
        if severity > found[0]:
            found = (severity, f"{finding['severity']}\t{finding['tier']}\t{rule}\t{kernel}\tline {finding['line']}\t"
                               f"{finding['message']}\t{'; '.join(finding['assumptions'])}")
    return found


def measure(arguments, case):
    read, ran = report_of(arguments, case, "--no-run"), report_of(arguments, case, "--run")
    if read is None or ran is None or read["diagnostics"]:
        return None
    runs = [kernel["run"] for kernel in ran["kernels"] if "run" in kernel]
    executed = sum(run.get("executed", 0) for run in runs)
    total = sum(run.get("instructions", 0) for run in runs)
    rules = next((family for family in FAMILIES if case.rule in family), (case.rule,) if case.rule else ())
    by_reading = list(findings_of(read, rules))
    by_running = [each for each in findings_of(ran, rules) if "command" in each[2]]
    if case.label == "clean":  # what reading says already is no false alarm of running
        known = {(kernel, rule, finding["line"], finding["severity"]) for kernel, rule, finding in by_reading}
        by_running = [(kernel, rule, finding) for kernel, rule, finding in by_running
                      if (kernel, rule, finding["line"], finding["severity"]) not in known]
    return (worst(by_reading), worst(by_running), executed, total,
            sum("not_run" in run for run in runs), len(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=300, help="seconds for one file")
    parser.add_argument("--list", type=pathlib.Path, help="where to write false alarms and what was missed")
    arguments = parser.parse_args()

    cases = [case for folder in arguments.folders for case in of_folder(folder)] if arguments.folders else [
        *fixtures(arguments.root), *golden(arguments.root)]
    if arguments.half is not None:
        cases = [case for case in cases if hashlib.sha256(case.path.name.encode()).digest()[0] % 2 == arguments.half]
    if not cases:
        sys.exit("observed.py: expected .ptx files, found none")
    groups, notes = collections.defaultdict(collections.Counter), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for case, result in zip(cases, pool.map(lambda case: measure(arguments, case), cases)):
            count = groups[case.group, case.label]
            if result is None:
                count["unread"] += 1
                continue
            (read, _), (ran, what), executed, total, not_run, kernels = result
            high, medium = SEVERITIES.index("high"), SEVERITIES.index("medium")
            count["files"] += 1
            count["kernels"] += kernels
            count["not run"] += not_run
            count["executed"] += executed
            count["instructions"] += total
            count["read"] += read >= high
            count["run"] += ran >= high
            count["both"] += read >= high and ran >= high
            count["either"] += read >= high or ran >= high
            count["medium"] += ran in (medium, medium - 1)
            is_clean = case.label == "clean"
            if (is_clean and ran >= medium - 1) or (not is_clean and ran < high):
                notes.append(f"{'false' if is_clean else 'missed'}\t{case.label}\t{case.path}\t{what}")
    print("| set | label | files | by reading, high | by running, high | by both | by either | by running, medium | "
          "instructions executed | kernels not run |")
    print("|---" * 10 + "|")
    for (group, label), count in sorted(groups.items()):
        share = 100 * count["executed"] / count["instructions"] if count["instructions"] else 0
        print(f"| {group} | {label} | {count['files']} | {count['read']} | {count['run']} | {count['both']} | {count['either']} | "
              f"{count['medium']} | {share:.1f} % | {count['not run']} of {count['kernels']} |")
    unread = sum(count["unread"] for count in groups.values())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{unread} files not read; {used.ru_utime + used.ru_stime:.1f} s of the processor for both")
    if arguments.list:
        arguments.list.write_text("".join(f"{note}\n" for note in notes))


if __name__ == "__main__":
    main()
