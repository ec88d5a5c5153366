#!/usr/bin/env python3
"""The table of faults in docs/emulator.md has every kind of fault_kinds.def, with its rule and whether it stops the launch.

usage: fault_table.py REPO"""
import re
import sys

REPO = sys.argv[1]


def read(path):
    with open(f"{REPO}/{path}", encoding="utf-8") as file:
        return file.read()


kinds = {name: (rule, stops == "true") for name, rule, stops in
         re.findall(r'^FAULT\((\w+), "(\w*)", (\w+),', read("runtime/emulator/fault_kinds.def"), re.M)}
documented = {}
table = read("docs/emulator.md").split("| kind | rule | stops | means |")[1].split("\n\n")[0]
for row in re.findall(r"^\| ([\w, ]+) \| ([\w, ]*) ?\| (yes|no) \|", table, re.M):
    names, rules = row[0].split(", "), row[1].strip().split(", ")
    for index, name in enumerate(names):
        documented[name] = (rules[min(index, len(rules) - 1)], row[2] == "yes")

wrong = 0
for name in sorted(kinds.keys() | documented.keys()):
    if kinds.get(name) != documented.get(name):
        wrong += 1
        print(f"{name}: {kinds.get(name)} in fault_kinds.def, {documented.get(name)} in docs/emulator.md")
print(f"{len(kinds)} kinds of fault, {wrong} told otherwise")
sys.exit(1 if wrong or not kinds else 0)
