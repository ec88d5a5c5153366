#!/usr/bin/env python3
"""tools/catalogue/replays.py: it counts each outcome of a replay correctly, in original kernels and with planted defects, and
kernels without golden launches by reason."""
import pathlib
import subprocess
import sys
import tempfile

program, root = sys.argv[1], pathlib.Path(sys.argv[2])

# A misaligned load: in the open, behind a comparison that no launch satisfies, and behind a load that leaves its
# buffer.
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry shown(.param .u64 p)
.reqntid 1, 1, 1
{
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .align 4 .b8 words[256];
  mov.u32 %r4, words;
  st.shared.u32 [words], 1;
  st.shared.u32 [words+4], 1;
  ld.shared.u32 %r5, [%r4+2];
  ret;
}
.visible .entry hidden(.param .u32 n)
.reqntid 1, 1, 1
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .shared .align 4 .b8 words[256];
  st.shared.u32 [words], 1;
  st.shared.u32 [words+4], 1;
  ld.param.u32 %r1, [n];
  mul.lo.s32 %r1, %r1, %r1;
  setp.ne.u32 %p1, %r1, 305419896;
  @%p1 bra done;
  mov.u32 %r4, words;
  ld.shared.u32 %r5, [%r4+2];
done:
  ret;
}
.visible .entry behind(.param .u64 p)
.reqntid 1, 1, 1
{
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .align 4 .b8 words[256];
  ld.param.u64 %rd1, [p];
  st.shared.u32 [words], 1;
  st.shared.u32 [words+4], 1;
  ld.global.u32 %r1, [%rd1+1073741824];
  mov.u32 %r4, words;
  ld.shared.u32 %r5, [%r4+2];
  ret;
}
"""


def counted(*options):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "kernels.ptx").write_text(KERNEL)
        (pathlib.Path(folder) / "broken.ptx").write_text(".version 8.0\n.target sm_80\nnonsense")
        listed = pathlib.Path(folder) / "listed"
        run = subprocess.run([sys.executable, root / "tools/catalogue/replays.py", program, folder, "--list", listed, *options],
                             capture_output=True, text=True)
        print(run.stdout, run.stderr)
        assert run.returncode == 0
        return run.stdout, listed.read_text()


said, listed = counted()
assert "1 files, 1 reports not read" in said
assert "| F051 | 3 | 3 | 2 | 1 | 0 | 0 | 1 | 0 |" in said
assert listed.count("\n") == 1 and listed.startswith("unreached\tF051\t") and "\thidden\t" in listed

said, listed = counted("--planted")
assert "bounds: 1 planted, 1 with a finding that can be replayed" in said and "| F054 | 1 | 1 | 1 | 0 |" in said

said, listed = counted("--golden")
assert "3 kernels, 1 of them with a golden launch, " in said and "; 1 files not read" in said
assert "    1  …-byte load at … is outside of every object" in said and "\tbehind\t" in listed
