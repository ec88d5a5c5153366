"""Arrays and bytes that the tests compress."""

import subprocess
import sys

import numpy as np
import pytest

collect_ignore = ["frameworks"]  # run.py --frameworks runs them, in an environment of their own

DTYPES = ["u1", "<i2", ">i4", "<i8", "<f4", "<f8", "<c16", "?", "S5", "<U3", "<M8[s]"]
SIZES = [0, 1, 7, 1000, 70_000, 1_200_000]  # the last ones are more than one block of 64 KiB, and of 4 MiB


def array_of(dtype, size):
    values = np.random.default_rng(size).integers(0, 50, size)
    return values.astype("i8").astype(dtype)


def noise(size):
    return np.random.default_rng(size).bytes(size)


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture(params=SIZES)
def size(request):
    return request.param


@pytest.fixture
def python():
    """Runs a program in another interpreter and returns what it prints."""

    def run(program, **environment):
        import os

        done = subprocess.run(
            [sys.executable, "-B", "-c", program],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
