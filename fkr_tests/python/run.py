#!/usr/bin/env python3
"""Tests of the Python package, with pytest and the packages that requirements.txt pins.

usage: run.py --library FILE [--programs FOLDER] [--driver FILE] [ARGUMENT...]      other arguments are pytest's

FOLDER has ptx-debug and ptx-pack, which the test of the wheel needs; --driver is libemulatedcuda.so, a driver whose GPU
is the emulator, for the tests of arrays in device memory. The virtual environment is made on the first run,
below ~/.cache/ptxkit or in $PTXKIT_PYTHON_ENV. Exit code 77: skipped, because it cannot be made here.
"""

import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "public"))
from environment import Environment, Unavailable  # noqa: E402

ENVIRONMENT = Environment("python", HERE / "requirements.txt", "toolz==1.2.0")


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--driver", type=pathlib.Path)
    options, arguments = parser.parse_known_args()
    try:
        ENVIRONMENT.make()
    except Unavailable as reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    os.environ["PTXKIT_LIBRARY"] = str(options.library.resolve())
    if options.programs:
        os.environ["PTXKIT_PROGRAMS"] = str(options.programs.resolve())
    if options.driver:
        os.environ["PTXKIT_EMULATED_DRIVER"] = str(options.driver.resolve())
    os.environ["PYTHONPATH"] = str(REPO / "tools" / "python")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(HERE)
    python = ENVIRONMENT.interpreter()
    os.execv(python, [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments])


main()
