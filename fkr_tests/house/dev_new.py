#!/usr/bin/env python3
"""`./dev new` in a copy of the repository: what it stamps, what it refuses, and that the stamped kernel and rule compile.

usage: dev_new.py REPO BUILD"""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

REPO, BUILD = map(os.path.abspath, sys.argv[1:3])
FOLDERS = ["analyzer", "builder", "docs", "fkr_tests/static", "kernels", "runtime", "support", "tools"]
wrong = []


def require(condition, what):
    if not condition:
        wrong.append(what)


def new(copy, *words):
    return subprocess.run([sys.executable, "tools/new.py", *words], cwd=copy, capture_output=True, text=True)


def compiles(copy, made, target):
    """Compiles a stamped source with the flags of its target, without writing an object."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        entry = next(entry for entry in json.load(file) if f"/{target}.dir/" in entry["command"])
    words = [word for word in shlex.split(entry["command"]) if "ccache" not in word]
    words = [word.replace(f"-I{REPO}", f"-I{copy}") for word in words[:words.index("-o")]]
    done = subprocess.run([*words, "-fsyntax-only", os.path.join(copy, made)], cwd=entry["directory"], capture_output=True, text=True)
    require(done.returncode == 0, f"{made} does not compile: {done.stderr}")


with tempfile.TemporaryDirectory() as copy:
    for folder in FOLDERS:
        shutil.copytree(os.path.join(REPO, folder), os.path.join(copy, folder), ignore=shutil.ignore_patterns("__pycache__"))
    for words, message in (((), "usage: ./dev new rule NAME"), (("rule",), "usage:"), (("rule", "lower"), "expected the name of a rule"),
                           (("rule", "UnalignedMemoryAccess"), "there is a rule UnalignedMemoryAccess"),
                           (("kernel", "copy"), "expected ROOM/NAME as in lz4/lz4_decompress, found 'copy'"), (("kernel", "none/copy"), "there is no room kernels/none; there are: bwt"),
                           (("kernel", "lz4/lz4_decompress"), "there is a kernel lz4_decompress"),
                           (("codec", "Big"), "expected the name of a codec"), (("codec", "lzr"), "there is a codec lzr"),
                           (("house", "x"), "usage:")):
        done = new(copy, *words)
        require(done.returncode == 1 and message in done.stderr, f"{words}: exit {done.returncode}: {done.stderr}")

    for words in (("--help",), ("rule", "--help")):
        done = new(copy, *words)
        require(done.returncode == 0 and done.stdout.startswith("usage: ./dev new rule NAME"), f"{words}: {done.stdout}{done.stderr}")

    done = new(copy, "rule", "NarrowStore")
    require(done.returncode == 0 and "analyzer/rules/narrow_store.cpp" in done.stdout, f"rule: {done.stdout}{done.stderr}")
    compiles(copy, "analyzer/rules/narrow_store.cpp", "ptxkit_rules")
    compiles(copy, "analyzer/rules/table.cpp", "ptxkit_rules")
    require(new(copy, "rule", "NarrowStore").returncode == 1, "a rule was stamped twice")

    done = new(copy, "kernel", "pages/copy_words")
    require(done.returncode == 0 and "kernels/pages/copy_words_reference.hpp" in done.stdout, f"kernel: {done.stdout}{done.stderr}")
    compiles(copy, "kernels/pages/copy_words.cpp", "ptxkit_kernels")
    compiles(copy, "kernels/pages/copy_words_reference.hpp", "ptxkit_references")
    require(new(copy, "kernel", "pages/copy_words").returncode == 1, "a kernel was stamped twice")

    os.mkdir(os.path.join(copy, "kernels/arrays"))
    done = new(copy, "kernel", "arrays/copy_bytes")
    require(done.returncode == 0 and "kernels/arrays/copy_bytes.cpp" in done.stdout, f"a new room: {done.stdout}{done.stderr}")

    done = new(copy, "codec", "lz-two")
    require(done.returncode == 0, f"codec: {done.stdout}{done.stderr}")
    compiles(copy, "runtime/codec/format/codecs.cpp", "ptxkit_format")
    registries = subprocess.run([sys.executable, os.path.join(REPO, "fkr_tests/house/registry_docs.py"), copy], capture_output=True, text=True)
    require(registries.returncode == 1 and "lz-two" in registries.stdout and "copy_words" in registries.stdout,
            f"the documents should lack what was stamped: {registries.stdout}")

print("\n".join(wrong) or "rule, kernel, codec")
sys.exit(bool(wrong))
