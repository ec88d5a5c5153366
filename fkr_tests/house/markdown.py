#!/usr/bin/env python3
"""Holds the pages to 120 columns. Fenced blocks, tables, headings and what has no place to break are left alone.

usage: markdown.py REPO             names the lines that are longer
       markdown.py --wrap FILE…     wraps the paragraphs that have such lines
"""
import pathlib
import re
import subprocess
import sys

COLUMNS = 120
ITEM = re.compile(r"(\s*)((?:[-*+]|\d+[.)])\s+)?")
# A line of a paragraph must not begin with what Markdown takes for something else.
BEGINS_SOMETHING = re.compile(r"([-+*]|\d+[.)]|#+|>|=+|~~~.*|```.*|\|.*)$")


def pages(repo):
    listed = subprocess.run(["git", "-C", repo, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False)
    names = listed.stdout.split("\n") if listed.returncode == 0 else []
    if not any(names):  # an unpacked archive has no git
        names = [str(path.relative_to(repo)) for path in pathlib.Path(repo).rglob("*.md")]
    for name in sorted(filter(None, names)):
        # `explain` prints docs/rules, isa.md is printed out of the ISA table, and sessions below fkr_tests hold what programs print.
        if re.match(r"[A-Z]+\.md$|docs/(?!rules/|isa\.md)", name) and (pathlib.Path(repo) / name).exists():
            yield name


def kinds(lines):
    """(line, whether it is text that can be wrapped) for each line."""
    fence = None
    for line in lines:
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            yield line, False
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
        elif mark:
            fence = mark[1]
            yield line, False
        else:
            yield line, not re.match(r"\s*\||#|    \S|!\[|<|\[[^]]+\]:|---", line) and bool(line.strip())


def words_of(text):
    """Words, of which code in backticks and the text and target of a link are one as long as they are short."""
    words = []
    for word in re.findall(r"(?:`[^`]{1,60}`|\[[^][]{1,50}\]\([^()\s]*\)|\S)+", text):
        if words and BEGINS_SOMETHING.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def wrapped(first, rest, text):
    """Lines of at most COLUMNS columns; `first` stands before the first one, `rest` before the others."""
    lines, line = [], first
    empty = True
    for word in words_of(text):
        if not empty and len(line) + 1 + len(word) > COLUMNS:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return [*lines, line]


def wrap(text):
    result, paragraph = [], []

    def flush():
        if paragraph:
            if any(len(line) > COLUMNS for line in paragraph):
                indent, bullet = ITEM.match(paragraph[0]).groups(default="")
                body = " ".join(line.strip() for line in paragraph)[len(bullet.strip()):].strip() if bullet else \
                    " ".join(line.strip() for line in paragraph)
                result.extend(wrapped(indent + bullet, indent + " " * len(bullet), body))
            else:
                result.extend(paragraph)
            paragraph.clear()

    for line, can_wrap in kinds(text.split("\n")):
        starts_item = bool(ITEM.match(line)[2])
        if not can_wrap or starts_item:
            # A line of four columns' indent goes on with an item, and is code only behind an empty line.
            if not can_wrap and paragraph and re.match(r"\s+[^\s|]", line) and not re.match(r"\s*(```|~~~)", line):
                paragraph.append(line)
                continue
            flush()
        if can_wrap:
            paragraph.append(line)
        else:
            result.append(line)
    flush()
    return "\n".join(result)


def too_long(text):
    for number, (line, can_wrap) in enumerate(kinds(text.split("\n")), 1):
        if can_wrap and len(line) > COLUMNS and len(words_of(line)) > 1:
            yield number, len(line)


def main():
    if sys.argv[1] == "--wrap":
        for name in sys.argv[2:]:
            path = pathlib.Path(name)
            old = path.read_text(encoding="utf-8")
            new = wrap(old)
            if new != old:
                path.write_text(new, encoding="utf-8")
                print(name)
        return 0
    assert list(too_long("a " * 70)) and not list(too_long("| " + "a " * 70)), "the check notices a long line, and a table is none"
    repo, count, failures = sys.argv[1], 0, 0
    for name in pages(repo):
        count += 1
        for number, columns in too_long((pathlib.Path(repo) / name).read_text(encoding="utf-8")):
            failures += 1
            print(f"{name}:{number}: {columns} columns, expected at most {COLUMNS}: fkr_tests/house/markdown.py --wrap {name}")
    print(f"{count} pages, {failures} lines are too long")
    return 1 if failures or not count else 0


sys.exit(main())
