#!/usr/bin/env python3
"""Tests of the Python package, with pytest and the packages that requirements.txt pins.

usage: run.py --library FILE [--programs FOLDER] [--driver FILE] [--frameworks] [ARGUMENT...]

FOLDER has ptx-debug and ptx-pack, which the test of the wheel needs; --driver is libemulatedcuda.so, a driver whose GPU
is the emulator, for the tests of arrays in device memory. The virtual environment is made on the first run,
below ~/.cache/ptxkit or in $PTXKIT_PYTHON_ENV. Exit code 77: skipped, because it cannot be made here.

--frameworks runs the tests in frameworks/, with the compilers that requirements-frameworks.txt pins: 2.2 GB in
$PTXKIT_FRAMEWORKS_ENV or below ~/.cache/ptxkit, which are installed where $PTXKIT_FRAMEWORKS is 1. Otherwise, and where
they are not there already, the tests are skipped.
"""

import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "public"))
from environment import Environment, Unavailable  # noqa: E402

PYTHON = Environment("python", HERE / "requirements.txt", "toolz==1.2.0")
FRAMEWORKS = Environment("frameworks", HERE / "requirements-frameworks.txt", "execnet==2.1.2")


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--driver", type=pathlib.Path)
    parser.add_argument("--frameworks", action="store_true")
    options, arguments = parser.parse_known_args()
    environment = FRAMEWORKS if options.frameworks else PYTHON
    if options.frameworks and not environment.is_complete() and os.environ.get("PTXKIT_FRAMEWORKS") != "1":
        print(
            f"SKIPPED: Triton, Numba and Warp are not installed in {environment.folder()}; PTXKIT_FRAMEWORKS=1 installs them"
        )
        sys.exit(77)
    try:
        environment.make()
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
    os.chdir(HERE / "frameworks" if options.frameworks else HERE)
    python = environment.interpreter()
    os.execv(python, [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments])


main()
