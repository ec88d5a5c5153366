#!/usr/bin/env python3
"""Checks the direction of includes: what a folder may include stands in ALLOWED, from docs/architecture.md.

usage: layers.py REPO
"""
import os
import re
import sys

# folder -> folders whose headers it may include (its own always)
ALLOWED = {
    "support": set(),
    "analyzer": {"support"},
    "builder": {"support"},
    "kernels": {"support", "builder"},
    "runtime": {"support", "analyzer", "kernels"},
    "tools": {"support", "analyzer", "builder", "kernels", "runtime"},
    "fkr_tests": {"support", "analyzer", "builder", "kernels", "runtime", "tools", "fkr_tests"},
}
# Of kernels/, the runtime sees data and references only, never a kernel's source.
RUNTIME_MAY_SEE = re.compile(r"kernels/(images|cost|transform_abi)\.hpp|kernels/\w+/(\w*abi|\w*reference|\w*format|parameters)\.hpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LLVM_FOLDERS = ("builder/", "tools/dsl-lint/")
HEAVY = re.compile(r"^(llvm|clang|nlohmann|CLI)/")


def faults(repo):
    for top in ALLOWED:
        for folder, _, names in os.walk(os.path.join(repo, top)):
            for name in names:
                if not name.endswith((".hpp", ".cpp", ".h")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), repo)
                with open(os.path.join(repo, path), encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        match = INCLUDE.match(line)
                        if not match:
                            continue
                        target = match.group(2)
                        owner = target.split("/")[0]
                        if owner in ALLOWED and owner != top and owner not in ALLOWED[top]:
                            yield f"{path}:{number}: {top}/ may not include {target}"
                        if top == "runtime" and owner == "kernels" and not RUNTIME_MAY_SEE.fullmatch(target):
                            yield f"{path}:{number}: the runtime sees of kernels/ only images, cost, abi and references"
                        if target.startswith("llvm/") and not (path.startswith(LLVM_FOLDERS) and name.endswith(".cpp")):
                            yield f"{path}:{number}: LLVM is included outside builder/*.cpp and tools/dsl-lint/"
                        if HEAVY.match(target) and name.endswith(".hpp"):
                            yield f"{path}:{number}: a header includes the heavy {target}"
                        if target.startswith("CLI/") and not path.startswith("tools/"):
                            yield f"{path}:{number}: CLI11 is for tools/ only"


found = list(faults(sys.argv[1]))
print("\n".join(found) or "every include points the right way")
sys.exit(bool(found))
