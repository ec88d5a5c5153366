"""any_python.py on every Python that is there: this one, python3.9 and later on the PATH, and those in
$PTXKIT_PYTHONS, paths between colons."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("any_python.py")


def found():
    names = [f"python3.{minor}{kind}" for minor in range(9, 20) for kind in ("", "t")]
    candidates = [sys.executable, *map(shutil.which, names)]
    candidates += os.environ.get("PTXKIT_PYTHONS", "").split(os.pathsep)
    pythons = {}
    for path in filter(None, candidates):
        asked = "import sys; print(sys.version_info >= (3, 9) and sys.version)"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout != "False\n":  # a shim may stand for nothing
            pythons.setdefault(done.stdout, path)
    return pythons


@pytest.mark.parametrize("version, path", found().items(), ids=lambda text: text.split(" ")[0])
def test_python(version, path):
    done = subprocess.run([path, "-B", "-W", "ignore", PROGRAM], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "interpreters" in done.stdout.split()
    if "free-threading" in version:
        assert "without a GIL" in done.stdout
