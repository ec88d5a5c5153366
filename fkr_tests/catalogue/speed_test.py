#!/usr/bin/env python3
"""tools/catalogue/speed.py on kernels of ours: the generated file has the size asked for and is PTX, the set the lines,
nothing takes longer than ptxas, and files that are judged give their statements' memory back. Exits 77 without ptxas."""
import pathlib
import re
import shutil
import subprocess
import sys

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
if not shutil.which("ptxas"):
    print("SKIPPED: ptxas is not installed")
    sys.exit(77)
files = [root / f"fkr_tests/golden/{name}.ptx" for name in ("bwt_rank.sm_80", "zero_page.sm_80")]
run = subprocess.run([sys.executable, root / "tools/catalogue/speed.py", program, *files, "--generate", "0.1", "--total",
                      "60000"], capture_output=True, text=True)
print(run.stdout, run.stderr)
assert run.returncode == 0
rows = {line.split()[-1]: line.split() for line in run.stdout.splitlines() if line.endswith(".ptx")}
assert set(rows) == {*(path.name for path in files), "generated.ptx"}, rows
assert int(rows["generated.ptx"][0]) > 2000, "100 KiB of the larger kernel"
assert float(rows["generated.ptx"][5]) < 1 and "slower than ptxas on 0 files" in run.stdout
total = re.search(r"^6[01]\d{3} lines in \d+ files, one call: .* (\d+) MiB$", run.stdout, re.M)
# 2 MB of text: with their statements they took 32 MiB.
assert total and int(total[1]) < 28, run.stdout
