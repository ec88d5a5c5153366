"""The wheel of programs and a library that are built already: what pyproject.toml takes from an installation, and
whether the targets that it builds make all of that."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent.parent / "tools" / "python"
# The components and the link are those of the project: runtime/c_api/CMakeLists.txt, cmake/PtxkitPackage.cmake.
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(built NONE)
foreach(target ptxkit_shared ptx-debug ptx-pack program-pages)
  add_custom_target(${target})
endforeach()
install(FILES libptxkit.so.0.1.0 libptxkit.so.1 DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(PROGRAMS ptx-debug ptx-pack DESTINATION bin COMPONENT programs)
install(FILES CMakeLists.txt DESTINATION share/man/man1 COMPONENT programs)
install(FILES CMakeLists.txt DESTINATION include COMPONENT development)
"""


def settings():
    """What pyproject.toml says of scikit-build-core; Python 3.11 reads it."""
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    programs = os.environ.get("PTXKIT_PROGRAMS")
    if not programs or not shutil.which("cmake"):
        pytest.skip("needs run.py --programs FOLDER, and cmake")
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "CMakeLists.txt").write_text(PROJECT)
    shutil.copy(os.environ["PTXKIT_LIBRARY"], folder / "libptxkit.so.0.1.0")
    (folder / "libptxkit.so.1").symlink_to("libptxkit.so.0.1.0")
    for name in ("ptx-debug", "ptx-pack"):
        shutil.copy(pathlib.Path(programs) / name, folder)
    shutil.copytree(PACKAGE, folder / "python")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
        + [f"--config-settings=cmake.source-dir={folder}", "--wheel-dir", folder, folder / "python"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


def test_contents(wheel):
    assert wheel.name.startswith("ptxkit-0.1.0-py3-none-linux_")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = archive.read("ptxkit-0.1.0.dist-info/entry_points.txt").decode().replace(" ", "")
    assert "[pytest11]\nptx-debug=ptxkit.pytest_plugin" in entry_points
    sources = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("ptxkit/**/*.py")} | {"ptxkit/py.typed"}
    built = {"ptxkit/lib/libptxkit.so.1", "ptxkit/bin/ptx-debug", "ptxkit/bin/ptx-pack"}
    assert {name for name in names if not name.startswith("ptxkit-0.1.0.dist-info/")} == sources | built


def test_every_installed_file_is_built():
    """In the build folder of this project: an installed file that no target of the wheel makes stops `pip wheel`."""
    build = pathlib.Path(os.environ.get("PTXKIT_PROGRAMS", "")).parent
    if not (build / "build.ninja").is_file() or not shutil.which("ninja"):
        pytest.skip("needs run.py --programs FOLDER of a build with ninja")

    def ninja(*arguments):
        return subprocess.run(
            ["ninja", "-C", build, "-t", *arguments], capture_output=True, text=True, check=True
        ).stdout

    commands = ninja("commands", *settings()["build"]["targets"])
    outputs = {line.rpartition(":")[0] for line in ninja("targets", "all").splitlines()}  # the rest is there before
    installed = set()
    for script in build.rglob("cmake_install.cmake"):
        for component, body in re.findall(
            r'CMAKE_INSTALL_COMPONENT STREQUAL "(\w+)".*?\n(.*?)\nendif\(\)', script.read_text(), re.DOTALL
        ):
            if component in settings()["install"]["components"]:
                for files in re.findall(r"file\(INSTALL .*?FILES((?:\s+\"[^\"]+\")+)", body, re.DOTALL):
                    installed.update(re.findall(r'"([^"]+)"', files))
    made = {pathlib.Path(path).relative_to(build) for path in installed if path.startswith(f"{build}/")}
    assert {path.name for path in made} >= {"ptx-debug", "ptx-pack", "ptx-debug.1.gz"}
    links = {"libptxkit.so.1"}  # made with what it stands for
    assert not [
        path for path in made if str(path) in outputs and path.name not in links and not is_named(path, commands)
    ]


def is_named(path, commands):
    compressed = path.suffix == ".gz"  # gzip names what it reads
    return str(path.with_suffix("") if compressed else path) in commands


def test_it_needs_glibc_alone():
    """Debian's libfmt and libstdc++ are not on every machine."""
    assert settings()["cmake"]["define"]["PTXKIT_STATIC"] == "ON"


def test_installed(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True, env={**os.environ, "PYTHONPATH": ""})
    bare = {"PATH": "/usr/bin:/bin"}
    program = "import ptxkit as p, ptxkit._c; print(p._c.lib()._name, p.Codec().decode(p.Codec().encode(b'abc')))"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, env=bare, cwd=tmp_path)
    assert done.stdout.endswith("ptxkit/lib/libptxkit.so.1 b'abc'\n"), done.stderr
    for name in ("ptx-debug", "ptx-pack"):
        script = tmp_path / "env" / "bin" / name
        done = subprocess.run([script, "--version"], capture_output=True, text=True, env=bare)
        assert done.returncode == 0 and done.stdout.startswith(f"{name} 0.1.0")
