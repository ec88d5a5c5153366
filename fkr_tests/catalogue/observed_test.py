#!/usr/bin/env python3
"""tools/catalogue/observed.py: it counts what is found by reading, by running and by both, and false alarms of running."""
import json
import pathlib
import subprocess
import sys
import tempfile

program, root = sys.argv[1], pathlib.Path(sys.argv[2])

# `by_both` races in shared memory. `by_running` stores another value to one word in every block: no square is 2 or 3
# modulo 4, which the rules do not know.
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BY_BOTH = HEAD + """.visible .entry k(.param .u64 p)
.reqntid 64, 1, 1
{
  .reg .b32 %r<8>; .shared .align 4 .b8 words[256];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, words; add.u32 %r3, %r3, %r2;
  st.shared.u32 [%r3], %r1;
  xor.b32 %r4, %r2, 128; mov.u32 %r5, words; add.u32 %r4, %r5, %r4;
  ld.shared.u32 %r5, [%r4];
  ret;
}
"""
BY_RUNNING = HEAD + """.visible .entry k(.param .u64 p, .param .u64 q)
{
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %ctaid.x;
  ld.global.u32 %r2, [%rd2]; mul.lo.u32 %r2, %r2, %r2; and.b32 %r2, %r2, 2;
  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
CLEAN = HEAD + """.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 7;
  ret;
}
"""

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name) / "kernels"
    folder.mkdir()
    for file, text, label in (("by_both", BY_BOTH, "race"), ("by_running", BY_RUNNING, "race"), ("good", CLEAN, "clean"),
                              ("wrong", BY_RUNNING, "clean"), ("unknown", CLEAN, None)):
        (folder / f"{file}.ptx").write_text(text)
        (folder / f"{file}.label.json").write_text(json.dumps({"label": label}))
    (folder / "by_running.launch.json").write_text(json.dumps({"entries": {"k": {"grid": [4], "block": [64]}}}))
    listed = pathlib.Path(name) / "listed"
    run = subprocess.run([sys.executable, root / "tools/catalogue/observed.py", program, root, folder, "--list", listed],
                         capture_output=True, text=True)
    print(run.stdout, run.stderr)
    assert run.returncode == 0
    assert "| kernels | race | 2 | 1 | 2 | 1 | 2 | 0 | 100.0 % | 0 of 2 |" in run.stdout
    assert "| kernels | clean | 2 | 0 | 1 | 0 | 1 | 0 | 100.0 % | 0 of 2 |" in run.stdout
    assert "0 files not read" in run.stdout
    assert listed.read_text().startswith("false\tclean\t") and "wrong.ptx\thigh\tobserved\tF042\t" in listed.read_text()
    assert listed.read_text().count("\n") == 1
