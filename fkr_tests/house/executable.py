#!/usr/bin/env python3
"""Every file that begins with `#!` may be executed, since scripts and documents call it by its name.

usage: executable.py REPO
"""
import os
import pathlib
import subprocess
import sys

repo = pathlib.Path(sys.argv[1])
listed = subprocess.run(["git", "-C", repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                        capture_output=True, check=False)
names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
if not names:  # an unpacked archive has no git
    names = [path.relative_to(repo) for path in repo.rglob("*") if not path.relative_to(repo).parts[0].startswith("build")]
count, wrong = 0, []
for name in names:
    path = repo / name
    if not path.is_file():
        continue
    with open(path, "rb") as file:
        if file.read(2) != b"#!":
            continue
    count += 1
    if not os.access(path, os.X_OK):
        wrong.append(name)
for name in wrong:
    print(f"{name}: begins with #! and is not executable; chmod +x", file=sys.stderr)
if count == 0:
    print("executable.py: no script was found", file=sys.stderr)
print(f"{count} scripts")
sys.exit(1 if wrong or count == 0 else 0)
