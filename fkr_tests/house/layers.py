#!/usr/bin/env python3
"""Checks the direction of includes. ALLOWED says which room may include which, from docs/architecture.md.

A room is a folder. The files directly in runtime/codec/ and runtime/emulator/ are rooms of their own, named without the
extension, since an interface at the bottom and the code that connects the rooms at the top may share a folder.

usage: layers.py REPO [--plant]    --plant: also checks that an include in the wrong direction is found
"""
import collections
import os
import re
import shutil
import sys
import tempfile

TOPS = ("support", "analyzer", "builder", "kernels", "runtime", "tools", "fkr_tests")
# Folders whose own files are rooms of their own.
FILES_ARE_ROOMS = ("runtime/codec", "runtime/emulator")
# Not this project's code: what `ptx-debug new` writes.
TEMPLATES = ("tools/ptx-debug/new_project",)

# room -> rooms whose headers it may include, besides its own; `x/*` is every room below x
ALLOWED = {
    "support": "",

    "analyzer/ptx": "support",
    "analyzer/container": "support",
    "analyzer/evidence": "support",
    "analyzer/flow": "support analyzer/ptx",
    "analyzer/inspect": "support analyzer/ptx analyzer/flow",
    "analyzer/reduce": "support analyzer/ptx",
    "analyzer/prove": "support analyzer/ptx analyzer/flow",
    "analyzer/rules/engine": "support analyzer/ptx analyzer/flow analyzer/prove",
    "analyzer/rules": "support analyzer/ptx analyzer/flow analyzer/evidence analyzer/rules/engine",
    "analyzer/analyze": "support analyzer/ptx analyzer/rules analyzer/rules/engine",
    "analyzer/report": "support analyzer/evidence analyzer/inspect analyzer/rules analyzer/rules/engine analyzer/analyze",
    "analyzer/instrument": "support analyzer/ptx analyzer/flow analyzer/evidence analyzer/analyze",

    "builder": "support",
    "kernels": "support builder",
    "kernels/pages": "kernels",
    "kernels/lz4": "kernels kernels/pages",
    "kernels/entropy": "kernels",
    "kernels/lz77": "kernels kernels/entropy kernels/lz4",
    "kernels/bwt": "kernels kernels/entropy",
    "kernels/deflate": "kernels kernels/entropy kernels/lz4",
    "kernels/typed": "kernels kernels/entropy kernels/lz4",
    "kernels/zstd": "kernels kernels/entropy kernels/lz4",
    "kernels/probes": "support",

    "runtime/emulator/texture": "support",
    "runtime/emulator/tensor_map": "support analyzer/ptx",
    "runtime/emulator/emulator": "support runtime/emulator/texture",
    "runtime/emulator/watch": "runtime/emulator/emulator",
    "runtime/emulator/core": "support analyzer/ptx runtime/emulator/emulator runtime/emulator/texture runtime/emulator/tensor_map "
                             "runtime/emulator/watch",
    "runtime/emulator/sanitizer": "support analyzer/ptx analyzer/flow runtime/emulator/emulator runtime/emulator/core",
    "runtime/emulator/instructions/arithmetic": "support analyzer/ptx runtime/emulator/core",
    "runtime/emulator/instructions/memory": "support analyzer/ptx runtime/emulator/core runtime/emulator/sanitizer "
                                            "runtime/emulator/tensor_map",
    "runtime/emulator/instructions/matrix": "support analyzer/ptx runtime/emulator/core runtime/emulator/sanitizer "
                                            "runtime/emulator/instructions/memory",
    "runtime/emulator/instructions/texture": "support analyzer/ptx runtime/emulator/core runtime/emulator/sanitizer "
                                             "runtime/emulator/texture runtime/emulator/instructions/memory",
    "runtime/emulator/engine": "support analyzer/ptx runtime/emulator/core runtime/emulator/sanitizer "
                               "runtime/emulator/instructions/memory",
    "runtime/emulator/decode": "support analyzer/ptx analyzer/flow runtime/emulator/core runtime/emulator/sanitizer "
                               "runtime/emulator/instructions/memory runtime/emulator/engine",

    "runtime/driver": "support kernels",
    "runtime/launch": "support analyzer/ptx analyzer/flow analyzer/rules analyzer/rules/engine runtime/driver "
                      "runtime/emulator/emulator runtime/emulator/texture runtime/emulator/tensor_map runtime/emulator/watch",

    "runtime/codec/format": "support",
    "runtime/codec/threads": "support",
    "runtime/codec/coders": "support kernels kernels/*",
    "runtime/codec/backend": "support kernels runtime/codec/format",
    "runtime/codec/forwarding_backend": "runtime/codec/backend",
    "runtime/codec/with_allocator": "support runtime/codec/backend runtime/codec/forwarding_backend",
    "runtime/codec/blocks": "support kernels kernels/* runtime/codec/format runtime/codec/coders runtime/codec/backend",
    "runtime/codec/cpu": "support kernels kernels/* runtime/codec/format runtime/codec/backend runtime/codec/blocks "
                         "runtime/codec/threads",
    "runtime/codec/device": "support kernels kernels/* runtime/driver runtime/emulator/emulator runtime/codec/format "
                            "runtime/codec/backend runtime/codec/blocks runtime/codec/threads",
    "runtime/codec/stream": "support runtime/codec/format runtime/codec/backend runtime/codec/blocks runtime/codec/threads "
                            "runtime/codec/cpu",
    "runtime/codec/policy": "support runtime/codec/format runtime/codec/backend runtime/codec/forwarding_backend "
                            "runtime/codec/blocks runtime/codec/threads runtime/codec/stream",
    "runtime/codec/select_backend": "support kernels kernels/* runtime/codec/backend runtime/codec/with_allocator "
                                    "runtime/codec/blocks runtime/codec/cpu runtime/codec/threads runtime/codec/device "
                                    "runtime/codec/policy",
    "runtime/library": "support kernels kernels/* runtime/driver runtime/codec/backend runtime/codec/select_backend "
                       "runtime/codec/blocks runtime/codec/cpu runtime/codec/stream runtime/codec/threads",
    "runtime/c_api": "support analyzer/* kernels kernels/typed kernels/zstd runtime/driver runtime/launch runtime/emulator/emulator runtime/library "
                     "runtime/codec/*",

    "tools/trace_library": "support",
    "tools/dsl-lint": "support",
    "tools/kernelc": "support analyzer/* builder kernels kernels/*",
    "tools/ptx-bench": "support kernels kernels/* runtime/*",
    "tools/ptx-pack": "support kernels runtime/codec/*",
    "tools/ptx-pack-mpi": "support runtime/codec/* tools/ptx-pack",
    "tools/ptx-debug": "support analyzer/* kernels kernels/probes runtime/driver runtime/launch runtime/emulator/emulator "
                       "runtime/codec/threads runtime/codec/format runtime/codec/device tools/ptx-debug/lsp",
    "tools/ptx-debug/lsp": "support analyzer/ptx analyzer/flow analyzer/rules analyzer/rules/engine analyzer/analyze "
                           "analyzer/report",
}
# The runtime includes data and references of kernels/ only, never a kernel's source.
RUNTIME_MAY_SEE = re.compile(r"kernels/(abi|images|cost|transform_abi)\.hpp|kernels/\w+/(\w*abi|\w*reference|\w*format|parameters)\.hpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LLVM_FOLDERS = ("builder/", "tools/dsl-lint/")
# Headers for sources alone. One of our own is heavy where it is the only one to include such a header.
HEAVY = re.compile(r"^(llvm|clang|nlohmann|CLI)/(?!json_fwd\.hpp)|^support/json\.hpp$")


def room_of(path):
    folder = os.path.dirname(path)
    return os.path.splitext(path)[0] if folder in FILES_ARE_ROOMS else folder


def may_include(room, other):
    for entry in ALLOWED[room].split():
        if entry == other or (entry.endswith("/*") and other.startswith(entry[:-1])):
            return True
    return room == other


def sources(repo):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(repo, top)):
            if os.path.relpath(folder, repo) in TEMPLATES:
                continue
            for name in sorted(names):
                if name.endswith((".hpp", ".cpp", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), repo)


def circle(edges):
    """A cycle of rooms in the graph, as a list; empty if there is none."""
    state, path = {}, []

    def visit(room):
        state[room] = "open"
        path.append(room)
        for other in sorted(edges[room]):
            if state.get(other) == "open":
                return path[path.index(other):] + [other]
            if other not in state and (found := visit(other)):
                return found
        path.pop()
        state[room] = "done"
        return None

    return next((found for room in sorted(edges) if room not in state and (found := visit(room))), None)


def faults(repo):
    edges = collections.defaultdict(set)
    for path in sources(repo):
        top, room = path.split("/")[0], room_of(path)
        if top != "fkr_tests" and room not in ALLOWED:
            yield f"{path}: {room} has no row in ALLOWED of fkr_tests/house/layers.py, which says what a folder may include"
            continue
        with open(os.path.join(repo, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(2)
                owner = target.split("/")[0]
                if owner in TOPS and top != "fkr_tests" and not target.endswith(".def"):
                    other = room_of(target)
                    if not may_include(room, other):
                        yield f"{path}:{number}: {room} may not include {target}"
                    if other != room:
                        edges[room].add(other)
                if top == "runtime" and owner == "kernels" and not RUNTIME_MAY_SEE.fullmatch(target):
                    yield f"{path}:{number}: the runtime sees of kernels/ only images, cost, abi and references"
                if target.startswith("llvm/") and not (path.startswith(LLVM_FOLDERS) and path.endswith(".cpp")):
                    yield f"{path}:{number}: LLVM is included outside builder/*.cpp and tools/dsl-lint/"
                if HEAVY.match(target) and path.endswith(".hpp") and not HEAVY.match(path):
                    yield f"{path}:{number}: a header includes the heavy {target}"
                if target.startswith("CLI/") and top != "tools":
                    yield f"{path}:{number}: CLI11 is for tools/ only"
    if found := circle(edges):
        yield "rooms include each other in a circle: " + " -> ".join(found)


def planted(repo):
    """Adds includes in the wrong direction to a copy, one at a time, and yields those that are not found."""
    cases = (("runtime/codec/threads/executor.hpp", "runtime/codec/stream/stream.hpp"),
             ("runtime/emulator/core/state.hpp", "runtime/emulator/sanitizer/hang.hpp"),
             ("analyzer/rules/engine/context.hpp", "analyzer/rules/table.hpp"),
             ("analyzer/analyze/analysis.hpp", "analyzer/report/json.hpp"),
             ("kernels/entropy/lane_format.hpp", "kernels/bwt/abi.hpp"),
             ("support/result.hpp", "analyzer/ptx/names.hpp"), ("analyzer/report/json.hpp", "support/json.hpp"))
    with tempfile.TemporaryDirectory() as scratch:
        for top in TOPS[:-1]:
            shutil.copytree(os.path.join(repo, top), os.path.join(scratch, top))
        for path, target in cases:
            file = os.path.join(scratch, path)
            with open(file, encoding="utf-8") as handle:
                text = handle.read()
            with open(file, "w", encoding="utf-8") as handle:
                handle.write(f'#include "{target}"\n{text}')
            if not any(fault.startswith(f"{path}:1:") for fault in faults(scratch)):
                yield f"{path}: an include of {target} was not found"
            with open(file, "w", encoding="utf-8") as handle:
                handle.write(text)


found = list(faults(sys.argv[1]))
if "--plant" in sys.argv[2:]:
    found += planted(sys.argv[1])
print("\n".join(found) or "every include points the right way")
sys.exit(bool(found))
