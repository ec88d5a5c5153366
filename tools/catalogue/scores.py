#!/usr/bin/env python3
"""Counts what scores 90 or more, and why the rest does not: `scores.py PTX_DEBUG FOLDER...`

For each FOLDER: its .ptx files, those with 90 or more, the same for kernels; kernels with a critical finding; kernels
whose alignment needs a launch fact; accesses that F051 leaves open; accesses of shared and local variables that F054 and
F025 prove inside; verdicts of F070; what the solver proved of each rule; sites of F021, F081 and F082 with another
severity than F051 has there. `--below` lists the kernels under 90 with the rules that cost them points. Beside
NAME.ptx may lie NAME.launch.json, which is used, and NAME.label.json: the file then counts where the label is "clean".
Files that ptx-debug cannot read, and those without a kernel, are left out.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess

GOOD = 90
SITE_RULES = ("F021", "F081", "F082")
SEVERITIES = ("info", "low", "medium", "high", "critical")


def is_clean(path):
    label = path.with_suffix(".label.json")
    return not label.exists() or json.loads(label.read_text())["label"] == "clean"


def report_of(program, path, options):
    launch = path.with_suffix(".launch.json")
    if launch.exists():
        options = [*options, "--launch", str(launch)]
    try:
        run = subprocess.run([program, "analyze", "--no-config", "--falsify", "--no-run", "--json=-", *options, str(path)],
                             capture_output=True, timeout=300)
        return json.loads(run.stdout)["files"][0]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError, KeyError):
        return None


def disagreements(kernel):
    """Sites that are rated otherwise than F051 rates the worst of their accesses."""
    by_rule = {verdict["rule"]: verdict for verdict in kernel["verdicts"]}
    aligned = {}
    for finding in by_rule["F051"]["findings"]:
        severity = SEVERITIES.index(finding["severity"])
        aligned[finding["line"]] = max(aligned.get(finding["line"], 0), severity)
    for rule in SITE_RULES:
        for finding in by_rule[rule]["findings"]:
            lines = [finding["line"]] + ([finding["path"][-1]["line"]] if rule != "F021" and finding["path"] else [])
            if max(aligned.get(line, 0) for line in lines) != SEVERITIES.index(finding["severity"]):
                yield rule, finding["line"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--below", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--options", default="", help="further options of analyze, such as --no-prove")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        paths = [path for path in sorted(folder.rglob("*.ptx")) if is_clean(path)]
        count, costs = collections.Counter(), collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            reports = list(pool.map(lambda path: report_of(arguments.program, path, arguments.options.split()), paths))
        for path, report in zip(paths, reports):
            if report is None or report["error"] or not any(kernel["name"] for kernel in report["kernels"]):
                count["left out"] += 1
                continue
            count["texts"] += 1
            count["texts good"] += min(kernel["score"] for kernel in report["kernels"]) >= GOOD
            for kernel in report["kernels"]:
                count["kernels"] += 1
                count["kernels good"] += kernel["score"] >= GOOD
                count["critical"] += kernel["critical_count"] > 0
                basis = next(v["basis"] for v in kernel["verdicts"] if v["rule"] == "F051")
                count["launch fact"] += basis.startswith("needs a launch fact")
                count["open accesses"] += sum(f["severity"] != "critical" for v in kernel["verdicts"] if v["rule"] == "F051"
                                              for f in v["findings"])
                count["disagreements"] += len(list(disagreements(kernel)))
                for verdict in kernel["verdicts"]:
                    rule, basis = verdict["rule"], verdict["basis"]
                    for number in re.findall(r"Z3 proved (\d+) access|(\d+) of them by Z3", basis):
                        count[f"{rule} accesses by Z3"] += int("".join(number))
                    for all_of, inside in re.findall(r"(\d+) access(?:es)?: (\d+) proved inside", basis):
                        count["F054 accesses"] += int(all_of)
                        count["F054 accesses inside"] += int(inside)
                    for out, all_of in re.findall(r"(\d+) of (\d+) access(?:es)? not proved inside its variable", basis):
                        count["F025 accesses"] += int(all_of)
                        count["F025 accesses inside"] += int(all_of) - int(out)
                    for all_of in re.findall(r"(\d+) access(?:es)? inside its variable", basis):
                        count["F025 accesses"] += int(all_of)
                        count["F025 accesses inside"] += int(all_of)
                    if rule == "F070":
                        count[f"F070 {verdict['verdict']}"] += 1
                if kernel["score"] < GOOD:
                    lost = [f"{v['rule']} {v['verdict']} -{v['lost']}" for v in kernel["verdicts"] if v["lost"]]
                    costs.update(lost)
                    if arguments.below:
                        print(f"  {kernel['score']:.1f} {path.name}: {kernel['name']}: {', '.join(lost)}")
        print(f"{folder.name}: {count['texts good']} of {count['texts']} texts and {count['kernels good']} of {count['kernels']} "
              f"kernels have {GOOD} or more; " + ", ".join(f"{key} {count[key]}" for key in sorted(count) if "good" not in key
                                                           and key not in ("texts", "kernels")))
        if costs:
            print("  points lost below: " + ", ".join(f"{rule} ({n})" for rule, n in costs.most_common(8)))


if __name__ == "__main__":
    main()
