#!/usr/bin/env python3
"""Runs the examples of a document and compares their output with the document.

An example is a fenced block marked `console`. A line that starts with "$ " is a command. The lines up to the next command
are its output (standard output and standard error together). A line that is only "…" stands for any lines, "…" inside a
line for any text. All commands of a document share one shell. Its folder is empty except for a link `repo` to the
checkout; the programs are on PATH.

usage: run_examples.py DOCUMENT REPO BIN_FOLDER
"""
import os
import re
import subprocess
import sys
import tempfile

END = "__example_ends__"


def blocks(text):
    """Yields (first line number, [(command, [expected lines])])."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        if lines[index].strip() == "```console":
            start = index + 1
            index = start
            while lines[index].strip() != "```":
                index += 1
            examples = []
            for number in range(start, index):
                line = lines[number]
                if line.startswith("$ "):
                    examples.append((number + 1, line[2:], []))
                elif examples:
                    examples[-1][2].append(line)
            yield examples
        index += 1


def pattern(expected):
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece) for piece in line.split("…")) + r"\n")
    return re.compile("".join(parts) + r"\Z")


def main():
    document, repo, programs = sys.argv[1:4]
    with open(document, encoding="utf-8") as file:
        text = file.read()
    failures = count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(repo), os.path.join(folder, "repo"))
        environment = dict(os.environ, PATH=os.path.abspath(programs) + os.pathsep + os.environ["PATH"],
                           NO_COLOR="1", LC_ALL="C.UTF-8", COLUMNS="120")
        shell = subprocess.Popen(["bash", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for examples in blocks(text):
            for line, command, expected in examples:
                shell.stdin.write(f"{command}\n__status=$?; echo; echo {END}; (exit $__status)\n")
                shell.stdin.flush()
                output = []
                for got in shell.stdout:
                    if got.rstrip("\n") == END:
                        break
                    output.append(got)
                printed = "".join(output)
                printed = printed[:-1] if printed.endswith("\n") else printed
                if printed and not printed.endswith("\n"):
                    printed += "\n"
                count += 1
                if not pattern(expected).match(printed):
                    failures += 1
                    print(f"{document}:{line}: $ {command}\n--- the document says\n" + "\n".join(expected) +
                          f"\n--- the command prints\n{printed}")
        shell.stdin.close()
        shell.wait()
    print(f"{document}: {count} examples, {failures} differ")
    return 1 if failures or not count else 0


sys.exit(main())
