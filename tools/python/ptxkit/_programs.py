"""The programs that the wheel holds beside the package."""

from __future__ import annotations

import os
import pathlib
import sys


def _run(name: str) -> None:
    program = pathlib.Path(__file__).parent / "bin" / name
    if not program.is_file():
        sys.exit(f"{name}: expected the program at {program}: it comes with the wheel of ptxkit")
    os.execv(program, [name, *sys.argv[1:]])


def ptx_debug() -> None:
    _run("ptx-debug")


def ptx_pack() -> None:
    _run("ptx-pack")
