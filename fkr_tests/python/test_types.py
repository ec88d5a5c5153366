"""mypy --strict over the package, and over a program that uses it."""

import os
import pathlib
import subprocess
import sys

PACKAGE = pathlib.Path(__file__).parent.parent.parent / "tools" / "python"
USER = """
import numpy as np
import ptxkit
from ptxkit import debug
codec = ptxkit.Codec("lz4", level=1)
typed: bytes = ptxkit.Codec("rans", dtype="bfloat16").encode(np.zeros(4))
one: bytes = codec.encode(b"x")
many: list[bytes] = codec.encode([b"x", b"y"])
back: list[bytes] = codec.decode(many, sizes=[1, 1])
frame = ptxkit.lz4.frame.compress(b"x", block_size=ptxkit.lz4.frame.BLOCKSIZE_MAX64KB)
packed: bytes = ptxkit.zstd.compress(b"x", level=3) + ptxkit.gzip.compress(b"x")
with ptxkit.open("a.lz4") as file:
    file.read()
code: int = debug.analyze("").exit_code
kinds: list[str] = [fault.kind for fault in debug.run("", "e", 1, (32, 1), [np.zeros(4)]).faults]
ptxkit.Codec(level="high")  # one error
"""


def mypy(tmp_path, *arguments):
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--cache-dir",
            tmp_path / "cache",
            "--config-file",
            PACKAGE / "pyproject.toml",
            *arguments,
        ],
        capture_output=True,
        text=True,
        cwd=PACKAGE,
        env={**os.environ, "MYPYPATH": str(PACKAGE)},
    )


def test_package(tmp_path):
    done = mypy(tmp_path, "-p", "ptxkit")
    assert done.returncode == 0, done.stdout
    assert (PACKAGE / "ptxkit" / "py.typed").exists()


def test_user(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    done = mypy(tmp_path, str(tmp_path / "user.py"))
    assert done.stdout.count(": error:") == 1 and 'incompatible type "str"; expected "int"' in done.stdout, done.stdout
