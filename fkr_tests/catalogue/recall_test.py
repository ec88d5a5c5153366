#!/usr/bin/env python3
"""tools/catalogue/recall.py: it finds every kind of planted defect in a kernel that is correct without it, raises no alarm
on a correct kernel, and reads the labels of tests as they are meant. Exits 77 without ptxas."""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "tools/catalogue"))
import planting  # noqa: E402
import recall  # noqa: E402

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry reverse(.param .u64 p)
.reqntid 64, 1, 1
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 words[256];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  shl.b32 %r3, %r1, 2;
  mov.u32 %r4, words;
  add.u32 %r5, %r4, %r3;
  st.shared.u32 [%r5], %r2;
  bar.sync 0;
  sub.u32 %r6, %r4, %r3;
  ld.shared.u32 %r7, [%r6+252];
  ld.shared.u32 %r2, [words];
  add.u32 %r7, %r7, %r2;
  st.global.u32 [%rd3], %r7;
  ret;
}
"""

assert recall.defect_of("//pass\n//--blockDim=64\n") is None
assert recall.defect_of("//xfail:NOT_ALL_VERIFIED\n//race\n__shared__ int a;") == "race"
assert recall.defect_of("//xfail:NOT_ALL_VERIFIED\n//race\n") == "race"
assert recall.defect_of("//xfail:NOT_ALL_VERIFIED\n//barrier divergence\n") == "barrier"
assert recall.defect_of("//xfail:BUGLE_ERROR\n") == ["the verifier cannot read it"]
assert recall.dimensions("//--blockDim=[64,64] --gridDim=2", "blockDim") == [64, 64]
assert recall.within_limits([64, 64]) == [32, 32]
for plant, _ in planting.PLANTS:
    assert plant(KERNEL, lambda places: places[0]) != KERNEL, plant.__doc__

# Six times a multiple of 32, and six bytes times eight, are multiples of a word: no defect.
for made_even in ("mul.wide.u32 %rd2, %r1, 4;\n  shl.b64 %rd2, %rd2, 3;", "shl.b32 %r1, %r1, 5;\n  mul.wide.u32 %rd2, %r1, 4;"):
    assert planting.plant_stride(KERNEL.replace("mul.wide.u32 %rd2, %r1, 4;", made_even), lambda places: places[0]) is None

if not shutil.which("ptxas"):
    print("SKIPPED: ptxas is not installed; only labels and places for defects were looked at")
    sys.exit(77)


def report_on(kernel, is_held_out):
    """The output of recall.py for a file with this kernel, in the given half."""
    number = 0
    while hashlib.sha256(f"// {number}\n{kernel}".encode()).digest()[0] % 2 != is_held_out:
        number += 1
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "reverse.ptx").write_text(f"// {number}\n{kernel}")
        half = [] if is_held_out else ["--looked-at"]
        run = subprocess.run([sys.executable, root / "tools/catalogue/recall.py", program, "--good", folder, "--misses", *half],
                             capture_output=True, text=True)
    print(run.stdout, run.stderr)
    assert run.returncode == 0
    return run


# Each thread loads what it has stored itself, so the barrier orders nothing. Without it there is no race to find.
own = report_on(KERNEL.replace("sub.u32 %r6, %r4, %r3;", "mov.u32 %r6, %r5;").replace("[%r6+252]", "[%r6]")
                .replace("ld.shared.u32 %r2, [words];", ""), False)
assert "1 of race: no run shows the defect; found of these: 0" in own.stdout

run = report_on(KERNEL, True)
assert "planted defects: 5 with a defect, 1 without" in run.stdout
assert "all           100.0 %    100.0 %      5      0     0" in run.stdout
