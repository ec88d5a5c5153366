#!/usr/bin/env python3
"""Assembles the kernels of a folder with ptxas for five GPUs and compares what they use with the budgets they declare.

usage: ptxas_budget.py FOLDER [KERNEL]

FOLDER is what `kernelc emit` wrote. Exit 0: all within budget, 1: not, 77: there is no ptxas.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

ARCHITECTURES = (75, 80, 90, 100, 120)


def find_ptxas():
    return shutil.which("ptxas") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/ptxas"))), None)


def number(pattern, text):
    match = re.search(pattern, text)
    return int(match.group(1)) if match else 0


def main():
    folder, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    ptxas = find_ptxas()
    if ptxas is None:
        print("no ptxas on this machine: budgets are not checked")
        return 77
    failed = False
    with open(os.path.join(folder, "images.json"), encoding="utf-8") as file:
        images = json.load(file)
    targets = {int(image["target"][len("sm_"):]) for image in images}
    for image in images:
        if wanted and image["name"] != wanted:
            continue
        path = os.path.join(folder, image["file"])
        with open(path[: -len(".ptx")] + ".launch.json", encoding="utf-8") as file:
            budget = json.load(file)["entries"][image["name"]]["budget"]
        target = int(image["target"][len("sm_"):])
        # Each GPU gets the newest PTX that it can take; newer GPUs take the last.
        architectures = [each for each in ARCHITECTURES
                         if target <= each and not any(target < other <= each for other in targets)]
        is_release = image["variant"] == "release"
        # A debug build may take more registers and may spill; it must assemble.
        for architecture in architectures if is_release else architectures[:1]:
            run = subprocess.run([ptxas, "-v", f"-arch=sm_{architecture}", "-o", os.devnull, path],
                                 capture_output=True, text=True)
            text = run.stdout + run.stderr
            if run.returncode != 0:
                print(f"{image['file']}: sm_{architecture}: ptxas refuses it\n{text}")
                failed = True
                continue
            used = {"registers": number(r"Used (\d+) registers", text),
                    "shared_bytes": number(r"(\d+) bytes smem", text),
                    "spill_bytes": number(r"(\d+) bytes spill stores", text) + number(r"(\d+) bytes spill loads", text)}
            over = [key for key in used if used[key] > budget[key]] if is_release else []
            failed = failed or bool(over)
            print(f"{image['file']}: sm_{architecture}: " + ", ".join(
                f"{key} {used[key]} of {budget[key]}" + (" (over)" if key in over else "") for key in used))
    return 1 if failed else 0


sys.exit(main())
