#!/usr/bin/env python3
"""Checks that the tests named in docs/promises.md, and in the rows of docs/requirements.md below, exist: a GoogleTest as
Suite.Name, a test of ctest by its name, either with * for any text. They are searched in the sources, so that nothing has
to be built. Each row of both documents names at least one test.

usage: named_tests.py REPO
"""
import fnmatch
import pathlib
import re
import sys

ROWS = [*(f"K{i}" for i in range(5, 16)), *(f"R{i}" for i in range(1, 6))]
GOOGLE_TEST = re.compile(r"^\s*TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
CTEST = re.compile(r"\bNAME\s+([\w.${}-]+)")
LOOP = re.compile(r"foreach\((\w+) ([^)$]+)\)\n\s*add_test\(NAME ([\w.${}-]+)")


def existing_tests(folder):
    names = set()
    for path in folder.rglob("*.cpp"):
        names.update(".".join(pair) for pair in GOOGLE_TEST.findall(path.read_text(encoding="utf-8")))
    for path in folder.rglob("CMakeLists.txt"):
        text = path.read_text(encoding="utf-8")
        # A loop over a list of words names one test for each word. Any other ${variable} stands for any text.
        for variable, words, name in LOOP.findall(text):
            names.update(name.replace(f"${{{variable}}}", word) for word in words.split())
            text = text.replace(f"NAME {name}", "")
        names.update(re.sub(r"\$\{\w+\}", "*", name) for name in CTEST.findall(text))
    # A name that consists of variables only would match everything.
    names = {name for name in names if re.search(r"\w", name)}
    # Sessions are tests named after their documents (cli/CMakeLists.txt).
    names.discard("cli.*.*")
    names.update(f"cli.{path.parent.name}.{path.stem}" for path in (folder / "cli").glob("*/*.md"))
    return names


def promises_of(document):
    """(promise, cell of tests) for every row of its tables."""
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] != "promise" and set(cells[0]) != {"-"}:
            yield cells[0], cells[2]


def rows_of(document):
    """(code of the row, cell of tests): the last two cells of every row of its tables."""
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 5:
            continue
        for name in re.findall(r"[A-Z]\d+(?:–[A-Z]\d+)?", cells[-1]):
            first, _, last = name.partition("–")
            letter, begin, end = first[0], int(first[1:]), int((last or first)[1:])
            for number in range(begin, end + 1):
                yield f"{letter}{number}", cells[-2]


def faults(repo):
    tests = existing_tests(repo / "fkr_tests")
    shown_by = {}
    for row, cell in rows_of((repo / "docs" / "requirements.md").read_text(encoding="utf-8")):
        shown_by.setdefault(row, []).extend(re.findall(r"`([^`]+)`", cell))
    count = 0
    for promise, cell in promises_of((repo / "docs" / "promises.md").read_text(encoding="utf-8")):
        count += 1
        named = re.findall(r"`([^`]+)`", cell)
        if not named:
            yield f"docs/promises.md: '{promise}' names no test"
        for name in named:
            if not any(fnmatch.fnmatchcase(test, name) or fnmatch.fnmatchcase(name, test) for test in tests):
                yield f"docs/promises.md: '{promise}' names {name}, and there is no such test"
    if count < 10:
        yield f"docs/promises.md: expected its tables, found {count} rows"
    for row in ROWS:
        if not shown_by.get(row):
            yield f"docs/requirements.md: row {row} names no test"
        for name in shown_by.get(row, []):
            if not any(fnmatch.fnmatchcase(test, name) or fnmatch.fnmatchcase(name, test) for test in tests):
                yield f"docs/requirements.md: row {row} names {name}, and there is no such test"


found = list(faults(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "every test that is named exists")
sys.exit(bool(found))
