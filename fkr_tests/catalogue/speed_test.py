#!/usr/bin/env python3
"""tools/catalogue/speed.py on kernels of this project: the generated file has the requested size and is PTX, the set has the
lines, the ratios are those of the printed seconds, and analyzed files release the memory of their statements. Times are not
checked here. Exits 77 without ptxas."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
if not shutil.which("ptxas"):
    print("SKIPPED: ptxas is not installed")
    sys.exit(77)
files = [root / f"fkr_tests/golden/{name}.ptx" for name in ("bwt_rank.sm_80", "zero_page.sm_75")]
run = subprocess.run([sys.executable, root / "tools/catalogue/speed.py", program, *files, "--generate", "0.1"],
                     capture_output=True, text=True)
print(run.stdout, run.stderr)
assert run.returncode == 0
rows = {line.split()[-1]: line.split() for line in run.stdout.splitlines() if line.endswith(".ptx")}
assert set(rows) == {*(path.name for path in files), "generated.ptx"}, rows
assert int(rows["generated.ptx"][0]) > 2000, "100 KiB of the larger kernel"
assert re.search(r"^all: .* slower than ptxas on \d+ files$", run.stdout, re.M)


def lines_and_mib(lines):
    # an older bwt_rank, kept because the cost of a line depends on the kernel
    kernel = root / "fkr_tests/speed/inputs/own.ptx"
    told = subprocess.run([sys.executable, root / "tools/catalogue/speed.py", program, kernel, "--total", str(lines)],
                          capture_output=True, text=True).stdout
    total = re.search(r"^(\d+) lines in \d+ files, one call: .* (\d+) MiB$", told, re.M)
    assert total and lines <= int(total[1]) < 1.05 * lines, told
    return int(total[1]), int(total[2])


# A line costs about 110 bytes once its file is done, and 300 if the statements are kept.
(few, few_mib), (many, many_mib) = lines_and_mib(30_000), lines_and_mib(90_000)
assert (many_mib - few_mib) * 2**20 < 200 * (many - few), (few_mib, many_mib)

with tempfile.TemporaryDirectory() as scratch:
    folder, ratios = pathlib.Path(scratch) / "set", pathlib.Path(scratch) / "ratios"
    folder.mkdir()
    for path in files:
        shutil.copy(path, folder)
    (folder / "refused.ptx").write_text(".version 8.0\n.target sm_75\n.address_size 64\n.entry k() { nonsense; }\n")
    run = subprocess.run([sys.executable, root / "tools/catalogue/speed.py", program, "--start", "--set", folder, "--ratios",
                          ratios], capture_output=True, text=True)
    print(run.stdout, run.stderr)
    rows = [line.split("\t") for line in ratios.read_text().splitlines()]
assert run.returncode == 0 and re.search(r"^start: \d+\.\d ms by the clock, median of 101 runs", run.stdout, re.M)
assert "set: 2 files" in run.stdout and "(1 that ptxas refuses)" in run.stdout
assert {row[4] for row in rows} == {path.name for path in files}
assert all(abs(float(row[0]) - float(row[1]) / float(row[2])) < 1e-9 for row in rows), rows
worst = re.search(r"worst (\d+\.\d\d), above 1 in (\d) files", run.stdout)
assert abs(float(worst[1]) - max(float(row[0]) for row in rows)) < 0.006
assert int(worst[2]) == sum(float(row[0]) > 1 for row in rows)
