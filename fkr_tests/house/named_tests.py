#!/usr/bin/env python3
"""Checks that the tests which docs/requirements.md names in the rows below exist: a GoogleTest as Suite.Name, a test of
ctest by its name, either with * for any text. They are looked for in the sources, so that nothing has to be built.

usage: named_tests.py REPO
"""
import fnmatch
import pathlib
import re
import sys

ROWS = [*(f"K{i}" for i in range(5, 16)), *(f"R{i}" for i in range(1, 6))]
GOOGLE_TEST = re.compile(r"^\s*TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
CTEST = re.compile(r"\bNAME\s+([\w.${}]+)")


def existing_tests(folder):
    names = set()
    for path in folder.rglob("*.cpp"):
        names.update(".".join(pair) for pair in GOOGLE_TEST.findall(path.read_text(encoding="utf-8")))
    for path in folder.rglob("CMakeLists.txt"):
        # ${section} and the like stand for any text
        names.update(re.sub(r"\$\{\w+\}", "*", name) for name in CTEST.findall(path.read_text(encoding="utf-8")))
    return names


def rows_of(document):
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 5:
            continue
        for name in re.findall(r"[A-Z]\d+(?:–[A-Z]\d+)?", cells[0]):
            first, _, last = name.partition("–")
            letter, begin, end = first[0], int(first[1:]), int((last or first)[1:])
            for number in range(begin, end + 1):
                yield f"{letter}{number}", cells[-1]


def faults(repo):
    tests = existing_tests(repo / "fkr_tests")
    shown_by = {}
    for row, cell in rows_of((repo / "docs" / "requirements.md").read_text(encoding="utf-8")):
        shown_by.setdefault(row, []).extend(re.findall(r"`([^`]+)`", cell))
    for row in ROWS:
        if not shown_by.get(row):
            yield f"docs/requirements.md: row {row} names no test"
        for name in shown_by.get(row, []):
            if not any(fnmatch.fnmatchcase(test, name) or fnmatch.fnmatchcase(name, test) for test in tests):
                yield f"docs/requirements.md: row {row} names {name}, and there is no such test"


found = list(faults(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "every test that is named exists")
sys.exit(bool(found))
