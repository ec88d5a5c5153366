"""python -m ptxkit."""

import subprocess
import sys

import ptxkit
import pytest
from ptxkit import _bench
from ptxkit.__main__ import main

TEXT = b"".join(b"line %d of a text\n" % i for i in range(8_000))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    return str(path)


def rows(output):
    """What, package, and three numbers."""
    found = [line for line in output.splitlines() if line[45:].replace(".", "").replace(" ", "").isdigit()]
    return [(line[:24].strip(), line[25:45].strip(), *map(float, line[45:].split())) for line in found]


def test_table(file, capsys):
    assert main(["bench", "--seconds", "0.001", file]) == 0
    table = rows(capsys.readouterr().out)
    assert {row[0] for row in table} == {"block, 4 KiB", "block, 64 KiB", "39 pages of 4 KiB", "whole file"}
    assert {row[1] for row in table if row[0] == "block, 4 KiB"} == {
        "ptxkit",
        "python-lz4",
        "numcodecs",
        "zstandard -1",
    }
    assert all(ratio > 1 and there > 0 and back > 0 for _, _, ratio, there, back in table)
    ratios = {(what, package): ratio for what, package, ratio, _, _ in table}
    stored = ptxkit.lz4.block.compress(TEXT[:65536])
    assert ratios["block, 64 KiB", "ptxkit"] == round(65536 / len(stored), 2)


def test_without_other_packages(file, capsys, monkeypatch):
    for name in ("lz4.block", "lz4.frame", "numcodecs", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["bench", "--seconds", "0.001", file]) == 0
    assert {row[1] for row in rows(capsys.readouterr().out)} == {"ptxkit", "ptxkit, all threads"}


def test_wrong_bytes_are_no_figure(file, monkeypatch):
    coder = _bench.Coder("broken", lambda data: data, lambda data, size: data[1:])
    monkeypatch.setattr(_bench, "_coders", lambda: {"block": [coder], "frame": [coder], "pages": []})
    with pytest.raises(RuntimeError, match="broken: what comes back of block, 4 KiB is not what went in"):
        main(["bench", "--seconds", "0.001", file])


def test_errors(tmp_path, capsys):
    assert main(["bench", str(tmp_path / "none")]) == 1
    assert "cannot read" in capsys.readouterr().err
    (tmp_path / "empty").touch()
    assert main(["bench", str(tmp_path / "empty")]) == 1
    assert "is empty" in capsys.readouterr().err
    for arguments in ([], ["bench"], ["bench", "--seconds", "-1", "f"], ["none"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_help_and_info():
    run = [sys.executable, "-B", "-m", "ptxkit"]
    text = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True).stdout
    assert "bench" in text and "info" in text and "ptx-pack" in text
    text = subprocess.run([*run, "info"], capture_output=True, text=True, check=True).stdout
    assert f"ptxkit {ptxkit.__version__}" in text and "libptxkit.so" in text
    for codec in ptxkit.codecs():
        assert f"codec {codec.name}: levels" in text
