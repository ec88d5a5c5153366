"""The examples of docs/examples/python run: those whose packages are here, and on a GPU those that need one."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent.parent.parent / "docs" / "examples" / "python"
EXAMPLES = sorted(FOLDER.glob("*.py"))
PAGE = FOLDER.parent.parent / "python.md"


def start(name, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-B", "-W", "ignore", FOLDER / name, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def output_of(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    return out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_says_what_it_is(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    assert ast.get_docstring(tree)
    assert f"[{path.name}](examples/python/{path.name})" in PAGE.read_text(encoding="utf-8")


def test_dask_loses_a_worker(tmp_path):
    pytest.importorskip("distributed")
    lines = output_of(start("dask_store.py", tmp_path, "--workers", 4, "--kill")).splitlines()
    assert lines[0].startswith("256 chunks by ") and lines[0].endswith(" was killed")
    assert lines[1:] == ["256 of 256 chunks are right", "read without ptxkit: the same"]


def test_slurm_tasks(tmp_path):
    tasks = [
        start("slurm_store.py", tmp_path, SLURM_PROCID=str(task), SLURM_NTASKS="3", SLURM_LOCALID=str(task))
        for task in (2, 1, 0)
    ]
    assert sorted(map(output_of, tasks)) == [
        "task 0 of 3: 22 chunks\n",
        "task 1 of 3: 21 chunks\n",
        "task 2 of 3: 21 chunks\n",
    ]
    import numpy as np
    import zarr

    rows, columns = np.ogrid[:1024, :1024]
    array = zarr.open_array(str(tmp_path / "store.zarr"), mode="r")
    assert (array[:] == rows * 7 + columns // 16).all() and not list(tmp_path.glob("*.new"))


def test_ray():
    pytest.importorskip("ray")
    assert "pages" in output_of(start("ray_pages.py", PAGE))


def test_slots_of_a_cache():
    driver = os.environ.get("PTXKIT_EMULATED_DRIVER") or pytest.skip("needs run.py --driver FILE")
    arguments = ["--pages", 8, "--page-bytes", 4096]
    lines = output_of(start("kv_cache.py", *arguments, PTXKIT_LIBCUDA=driver)).splitlines()
    assert lines[-1] == "8 of 8 pages of 4096 bytes fit slots of 2048"


@pytest.mark.parametrize("name", ["torch_checkpoint.py", "cupy_column.py"])
def test_frameworks(name):
    pytest.importorskip(name.partition("_")[0])
    output = output_of(start(name, *(["--mib", 64] if "torch" in name else ["--rows", 100_000])))
    assert "the same" in output and "DIFFERENT" not in output
