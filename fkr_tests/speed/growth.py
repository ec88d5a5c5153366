#!/usr/bin/env python3
"""Processor instructions, counted by valgrind, that a whole analysis spends on kernels that are long in one
respect, compared with a kernel a quarter as long: they may grow as n log n, not as n * n.

usage: growth.py PTX_DEBUG"""
import pathlib
import sys
import tempfile

from counting import instructions, require_valgrind

SHORT, TIMES = 4000, 4  # lines of a body; how many times as many the long one has
LIMIT = 1.25 * TIMES
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
ENTRY = """.visible .entry k(.param .u64 p)
{
.reg .pred %p<3>;
.reg .b32 %r<99999>;
.reg .b64 %rd<99999>;
ld.param.u64 %rd0, [p];
mov.u32 %r0, %tid.x;
"""


def kernel(lines, before=""):
    return HEAD + before + ENTRY + "\n".join(lines) + "\nret;\n}\n"


def loads_of_one_base(n):
    return kernel(f"ld.global.u32 %r{i + 1}, [%rd0+{4 * i}];" for i in range(n))


def calls_in_a_chain(n):
    count = n // 4
    functions = [f".func f{i}() {{ call f{i - 1}; call f{i - 1}; ret; }}\n" for i in range(1, count)]
    return kernel([f"call f{count - 1};"], ".func f0() { ret; }\n" + "".join(functions))


def comments_that_allow(n):
    return kernel(f"ld.global.u32 %r{i % 8}, [%rd0+1]; // ptx-debug: allow F051 -- of a test" for i in range(n))


def comments_before_functions(n):
    functions = "".join(f".func f{i}() {{ ret; }}\n" for i in range(n // 4))
    return kernel(["// ptx-debug: allow F051 -- of a test"] * (n // 2) + ["/* none */"] * (n // 4), functions)


def atomics_and_reads(n):
    return kernel(f"mul.wide.u32 %rd{i + 1}, %r0, {4 * (i % 9 + 1)};\nadd.u64 %rd{i + 1}, %rd{i + 1}, %rd0;\n"
                  f"atom.global.add.u32 %r5, [%rd{i + 1}], 1;\nld.global.u32 %r6, [%rd{i + 1}];" for i in range(n // 4))


def branches_with_one_table(n):
    count = n // 2
    return kernel(["T: .branchtargets " + ", ".join(f"L{i}" for i in range(count)) + ";"] +
                  [f"L{i}:" + ("add.u32 %r1, %r1, 1;\nbrx.idx %r1, T;" if i % 8 == 0 else "") for i in range(count)])


def values_that_move_in_a_loop(n):
    return kernel(["L:"] + [f"mov.u32 %r{i + 1}, %r{i + 2};" for i in range(n)] +
                  [f"mov.u32 %r{n + 1}, %r0;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;"])


SHAPES = [branches_with_one_table, values_that_move_in_a_loop, atomics_and_reads,
          loads_of_one_base, calls_in_a_chain, comments_that_allow, comments_before_functions]
VERDICTS = (0, 1, 2, 3)  # exit codes of a run that came to its end


def of_analysis(program, text, folder):
    path = pathlib.Path(folder, "k.ptx")
    path.write_text(text)
    return instructions([program, "analyze", "--no-config", "--falsify", path], VERDICTS)


def main():
    require_valgrind()
    program, failed = sys.argv[1], False
    with tempfile.TemporaryDirectory(prefix="ptxkit-") as folder:
        start = of_analysis(program, kernel([]), folder)
        for shape in SHAPES:
            short, long = (of_analysis(program, shape(n), folder) - start for n in (SHORT, TIMES * SHORT))
            failed |= long > LIMIT * short
            print(f"{shape.__name__}: {short} instructions, {long / short:.1f} times as many for {TIMES} times the length"
                  f"{f', at most {LIMIT} expected' if long > LIMIT * short else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
