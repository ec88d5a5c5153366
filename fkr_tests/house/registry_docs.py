#!/usr/bin/env python3
"""The documents list everything in the registries: codecs (runtime/codec/format/codecs.def), with their numbers, and kernels
(kernels/kernels.def), each on the page of its room or in the table of docs/kernels.md.

usage: registry_docs.py REPO"""
import os
import re
import sys

REPO = sys.argv[1]


def read(path):
    with open(f"{REPO}/{path}", encoding="utf-8") as file:
        return file.read()


rows = re.findall(r'^PTZ_CODEC\(\w+, (\d+), "([\w-]+)",', read("runtime/codec/format/codecs.def"), re.M)
wrong = []
if not rows:
    wrong.append("codecs.def has no row")
field = ", ".join(f"{number} `{name}`" for number, name in rows)
if f"| codec: {field}; others are refused |" not in read("docs/format.md"):
    wrong.append(f"docs/format.md: expected the field 'codec: {field}; others are refused'")
manual = re.search(r"^\| `--codec` \|(.*)\|$", read("docs/ptx-pack.md"), re.M).group(1)
for _, name in rows:
    if f"`{name}`" not in manual:
        wrong.append(f"docs/ptx-pack.md, --codec: {name} is missing")
kernels = re.findall(r"^KERNEL\((\w+), (\w+)\)", read("kernels/kernels.def"), re.M)
if not kernels or kernels != sorted(kernels):
    wrong.append("kernels.def: the rows are not sorted by name")
for name, room in kernels:
    page = "kernels" if room == "pages" else room
    text = read("docs/kernels.md") + (read(f"docs/{page}.md") if os.path.exists(f"{REPO}/docs/{page}.md") else "")
    if f"`{name}`" not in text:
        wrong.append(f"docs/kernels.md and docs/{page}.md: the kernel {name} is missing")
    if not os.path.isdir(f"{REPO}/kernels/{room}"):
        wrong.append(f"kernels.def: {name}: there is no folder kernels/{room}")
print("\n".join(wrong) or f"{len(rows)} codecs, {len(kernels)} kernels")
sys.exit(bool(wrong))
