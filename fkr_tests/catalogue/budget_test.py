#!/usr/bin/env python3
"""tools/catalogue/budget.py on folders with known figures: it counts, splits by content, and --check can fail."""
import hashlib
import pathlib
import subprocess
import sys
import tempfile

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
FIXTURES = root / "fkr_tests/static/fixtures"


def budget(folder, *options):
    manifest = folder / "MANIFEST.tsv"
    rows = "".join(f"{path.name}\tmade\tok\t\n" for path in sorted(folder.glob("*.ptx")))
    manifest.write_text("path\tproducer\tptxas\tptxas_c\n" + rows)
    run = subprocess.run([sys.executable, root / "tools/catalogue/budget.py", program, folder, "--manifest", manifest,
                          "--check", *options], capture_output=True, text=True)
    assert not run.stderr, run.stderr
    return run


def expect(condition, run):
    if not condition:
        sys.exit(f"unexpected report, exit {run.returncode}:\n{run.stdout}")


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    good = (FIXTURES / "F051/survived_masked.ptx").read_text()
    bad = (FIXTURES / "F051/refuted_cursor.ptx").read_text()

    # An additional comment changes the content, and with it the half, until ten files are held out.
    held_out, number = [], 0
    while len(held_out) < 10:
        text = f"// {number}\n{good}"
        (folder / f"{number}.ptx").write_text(text)
        if hashlib.sha256(text.encode()).digest()[0] % 2:
            held_out.append(f"{number}.ptx")
        number += 1
    run = budget(folder, "--held-out", folder / "held_out.txt")
    expect(run.returncode == 0, run)
    expect("== held out: 10 files, 10 kernels, 0 files not read" in run.stdout, run)
    expect(f"{number - 10} files, {number - 10} kernels, 0 files not read" in run.stdout, run)
    expect("score >= 90: 100.00 %" in run.stdout and "more than 1 %: none" in run.stdout, run)
    listed = {pathlib.Path(line).name for line in (folder / "held_out.txt").read_text().splitlines()}
    expect(listed == set(held_out), run)

    # One kernel of eleven is bad. Three points do not bring its score below 90, but it exceeds the budget of critical
    # findings and of rules.
    while True:
        text = f"// {number}\n{bad}"
        number += 1
        if hashlib.sha256(text.encode()).digest()[0] % 2:
            break
    (folder / "bad.ptx").write_text(text)
    run = budget(folder, "--hits", folder / "hits.tsv")
    expect(run.returncode == 1, run)
    expect("score >= 90: 100.00 %" in run.stdout, run)
    expect("kernels with a critical finding: 1 (9.09 %)" in run.stdout, run)
    expect("F051   9.09 %       1  made 1" in run.stdout, run)
    expect(any(line.startswith("F051\tcritical\theld out\tmade\t")
               for line in (folder / "hits.tsv").read_text().splitlines()), run)
