#!/usr/bin/env python3
"""Checks what ptxas's machine code shows about tcgen05 where the ISA's text is silent, and on which the emulator relies.

An additional operand of .kind::i8, a predicate or a number after a mask, changes nothing. A reduction of 16x32bx2 is two
loads, one for each half of the warp into the same registers, and nothing combines their reductions.

Prints every difference; the exit code is then 1. Exits 77 without a ptxas for sm_103a.
"""
import pathlib
import struct
import sys
import tempfile

import judges
import machine_code

SKIPPED = 77  # for ctest
TARGET = "sm_103a"
TEXT = """.version 9.0
.target {}
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b, .param .u32 d, .param .u32 i)
{{
  .reg .b32 %r<16>;
  .reg .b64 %rd<4>;
  .reg .pred %p<4>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u32 %r0, [d];
  ld.param.u32 %r1, [i];
  setp.ne.u32 %p0, %r1, 0;
  setp.gt.u32 %p1, %r1, 5;
  {}
  ret;
}}
"""
INTEGERS = "tcgen05.mma{}.cta_group::{}.kind::i8{} [%r0], {}, %rd2, {}%r1, {}%p0{};"
REDUCTION = ("tcgen05.ld.red.sync.aligned.{}.x2.max.u32 {{%r4, %r5}}, %r6, [%r0]{}; tcgen05.wait::ld.sync.aligned; "
             "st.global.u32 [%rd0], %r4; st.global.u32 [%rd0+4], %r5; st.global.u32 [%rd0+8], %r6;")
LOAD, NOTHING = 0x5EE, 0x918  # operation codes, of 12 bits


def code_of(ptxas, folder, target, body):
    path = folder / "k.ptx"
    path.write_text(TEXT.format(target, body))
    found = machine_code.of(ptxas, path, target, folder / "k.cubin")
    return found and found[".text.k"]


def instructions(code):
    """The lower halves of the instructions, without the scheduling information."""
    words = [low for low, _ in struct.iter_unpack("<QQ", code)]
    return [word for word in words if word & 0xFFF != NOTHING]


def integers(ptxas, folder):
    """Pairs of an instruction and the same with an additional operand, and how many differ."""
    for sparse, metadata in (("", ""), (".sp", "[%r2], ")):
        for group in (1, 2):
            for a, shift in (("%rd1", ""), ("[%r3]", ""), ("[%r3]", ".ashift")):
                mask = "{" + ", ".join(["%r7"] * 4 * group) + "}, "
                for masked, more in ((mask, ", 1"), (mask, ", 7"), ("", ", 1"), ("", ", %p1"), ("", ", !%p1")):
                    if masked and sparse:
                        continue  # ptxas accepts none there
                    texts = [INTEGERS.format(sparse, group, shift, a, metadata, masked, each) for each in ("", more)]
                    codes = [code_of(ptxas, folder, "sm_100a", text) for text in texts]
                    if codes[0] is None or codes[1] is None:
                        yield f"refused: {texts[codes[0] is not None]}"
                    elif codes[0] != codes[1]:
                        yield f"other machine code: {texts[1]}"


def reductions(ptxas, folder):
    whole, halves = (instructions(code_of(ptxas, folder, TARGET, REDUCTION.format(*shape)))
                     for shape in (("32x32b", ""), ("16x32bx2", ", 16")))
    loads = [[word for word in code if word & 0xFFF == LOAD] for code in (whole, halves)]
    others = [[word for word in code if word & 0xFFF != LOAD] for code in (whole, halves)]
    if [len(each) for each in loads] != [1, 2]:
        yield f"{len(loads[0])} loads of 32x32b, {len(loads[1])} of 16x32bx2"
    elif len({word >> 16 & 0xFFFF for each in loads for word in each}) != 1:
        yield "loads into different registers"
    if others[0] != others[1]:
        yield "instructions beside the loads differ"


def main():
    ptxas = judges.find_ptxas()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if ptxas is None or code_of(ptxas, folder, TARGET, "") is None:
            print("no ptxas for " + TARGET)
            sys.exit(SKIPPED)
        wrong = [*integers(ptxas, folder), *reductions(ptxas, folder)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
