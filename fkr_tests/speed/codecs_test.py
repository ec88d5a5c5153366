#!/usr/bin/env python3
"""Tests codecs_table.py: a row for each codec, with factors if zstd is there, and without them if no peer is.

usage: codecs_test.py PTX_PACK
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import codecs_table as codecs

SCRIPT = pathlib.Path(codecs.__file__)


def run(*arguments, path=None):
    environment = dict(os.environ, PATH=os.environ.get("PATH", "") if path is None else path)
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True,
                          env=environment)


def require(condition, ran):
    if not condition:
        sys.exit(f"unexpected: exit {ran.returncode}\n{ran.stdout}{ran.stderr}")


def main():
    pack = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="ptxkit-") as scratch:
        folder = pathlib.Path(scratch, "files")
        folder.mkdir()
        ran = run(pack, folder)
        require(ran.returncode == 1 and "no file with bytes" in ran.stderr, ran)

        (folder / "empty").touch()
        (folder / "words").write_bytes(b"".join(b"%d green bottles\n" % i for i in range(500)))
        (folder / "zeros").write_bytes(bytes(20000))
        ran = run(pack, folder, 0)
        require(ran.returncode == 1 and "at least 1" in ran.stderr, ran)

        # Without peers: PATH names a folder without programs.
        alone = pathlib.Path(scratch, "none")
        alone.mkdir()
        ran = run(pack, folder, 1, path=str(alone))
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in ran.stdout.splitlines()[2:]]
        require(ran.returncode == 0 and [row[0] for row in rows] == [f"ptx-pack {codec}" for codec, _ in codecs.ptx_pack_codecs(pack)], ran)
        require(all(len(row) == 7 and float(row[1]) > float(row[2].split()[0]) > 1.5 for row in rows), ran)
        require(all(row[2].endswith("(words)") and row[4] == row[6] == "–" for row in rows), ran)
        require(ran.stderr.count("NOT RUN: ") == 6, ran)

        if shutil.which("zstd"):
            ran = run(pack, folder, 1)
            require(ran.returncode == 0 and "| 1.00 (1.00) |" in ran.stdout and "–" not in ran.stdout, ran)


if __name__ == "__main__":
    main()
