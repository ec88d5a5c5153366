"""The examples of docs/python-testing.md run, and print what the page shows."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "python-testing.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def fences(section, language):
    return re.findall(rf"```{language}\n(.*?)```", SECTIONS[section], re.DOTALL)


def run(folder, program, name):
    (folder / name).write_text(program, encoding="utf-8")
    environment = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1"}
    return subprocess.run(
        [sys.executable, "-B", name], capture_output=True, text=True, timeout=120, cwd=folder, env=environment
    )


def without_numbers_of_memory(text):
    return re.sub(r"0x[0-9a-f]+|PTX line .*|/\S*/(?=add\.py|axpy\.py|array\.h)", "", text)


@pytest.mark.parametrize(
    "section, name",
    [
        ("Triton on the emulator", "add.py"),
        ("Numba on the emulator", "axpy.py"),
        ("Warp on the emulator", "axpy.py"),
    ],
)
def test_on_the_emulator(tmp_path, section, name):
    (program,), (shown,) = fences(section, "python"), fences(section, "text")
    done = run(tmp_path, program, name)
    assert done.returncode == 1
    said = done.stderr[done.stderr.index("ptxkit.emulator.LaunchFaults: ") + len("ptxkit.emulator.LaunchFaults: ") :]
    assert without_numbers_of_memory(said) == without_numbers_of_memory(shown)


def test_triton_under_the_analyzer(tmp_path):
    first, second = fences("Triton on the emulator", "python")[0], fences("Triton under the analyzer", "python")[0]
    done = run(tmp_path, first[: first.rindex("add_kernel[")] + second, "add.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
