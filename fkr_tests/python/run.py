#!/usr/bin/env python3
"""Tests of the Python package, with pytest and the packages that requirements.txt pins.

usage: run.py --library FILE [ARGUMENT...]      arguments are pytest's

The virtual environment is made on the first run, below ~/.cache/ptxkit or in $PTXKIT_PYTHON_ENV. Exit code 77: skipped,
because it cannot be made here.
"""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "public"))
from environment import Environment, Unavailable  # noqa: E402

ENVIRONMENT = Environment("python", HERE / "requirements.txt", "toolz==1.2.0")


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "--library":
        sys.exit(__doc__)
    try:
        ENVIRONMENT.make()
    except Unavailable as reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    os.environ["PTXKIT_LIBRARY"] = str(pathlib.Path(sys.argv[2]).resolve())
    os.environ["PYTHONPATH"] = str(REPO / "tools" / "python")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(HERE)
    os.execv(
        ENVIRONMENT.interpreter(),
        [ENVIRONMENT.interpreter(), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[3:]],
    )


main()
