#!/usr/bin/env python3
"""Checks that `ptx-debug check` and ptxas accept the same operands: register types, constants, names, parts, lists.

With --recorded, both judge every line of operand_kinds.txt, and the script prints each line on which either differs
from the record.

With --forms COMMAND, both judge each instruction that COMMAND prints in the format of `list_forms`: unchanged, with
additional operands, and with each operand replaced by each kind of operand (KINDS). The script prints each difference:
the side that accepts it, the kind, the instruction. ptxas reads hundreds of instructions per run. One line that is
certainly wrong keeps it from generating code for the others; instructions that it accepts and ptx-debug rejects are
assembled again without that line. --kinds limits the kinds by a regular expression.

The exit code is 1 if anything is printed.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys

import judges

SKIPPED = 77  # for ctest
FOLDER = pathlib.Path(__file__).parent
REGISTERS = {"b8": "b", "b16": "h", "b32": "w", "b64": "l", "b128": "q", "u8": "ub", "u16": "uh", "u32": "u", "u64": "ul",
             "s8": "sb", "s16": "sh", "s32": "s", "s64": "sl", "f16": "x", "f16x2": "y", "f32": "f", "f64": "d", "pred": "p"}
CONSTANTS = "1 -1 70000 5000000000 1.0 0f3F800000 0d3FF0000000000000 WARP_SZ".split()
NAMES = "%tid %tid.x %laneid %clock64 gv gv+4 sv pp tr su END _ %vf %vf.x %vb %vb.x".split()
SHAPES = {"negated": "-{0}", "complement": "!{0}", "sum": "{0}+4", "list of one": "{{{0}}}", "list of two": "{{{0}, {0}}}",
          "brackets": "[{0}]", "pair": "{0}|{0}", "beside _": "{0}|_", "byte": "{0}.b1", "half": "{0}.h1"}
IN_BRACKETS = "16 1.0 gv sv pp tr su END %tid.x %vb.x".split()
KINDS = [*REGISTERS, *CONSTANTS, *NAMES, *SHAPES]
CERTAINLY_WRONG = "add.u32 %w1, %d1, %d2;"


class Module:
    """operand_kinds.ptx for a version and a target. It begins after line 1000, so that its line numbers differ from
    those of the text that ptxas generates for an instruction."""

    def __init__(self, version="9.0", target="sm_90a"):
        text = (FOLDER / "operand_kinds.ptx").read_text()
        text = 1000 * "\n" + re.sub(r"<\d+>", "<300>", text)
        self.text = re.sub(r"\.version .*\n\.target .*", f".version {version}\n.target {target}", text)
        self.first = self.text[:self.text.index("INSTRUCTION")].count("\n") + 1

    def of(self, instructions):
        return self.text.replace("INSTRUCTION", "\n".join(instructions))

    def complaints(self, lines):
        """Indices of the instructions on these lines."""
        return {line - self.first for line in lines if line >= self.first}


def refused_by_ptxas(options, shop, name, module, instructions, whole=False):
    """Indices of the instructions that ptxas refuses."""
    refused, live = set(), list(range(len(instructions)))
    while live:
        text = module.of([instructions[i] for i in live] + ([] if whole else [CERTAINLY_WRONG]))
        path = shop.write(name, text)
        verdict = judges.assemble(options.ptxas, path, judges.target_of(text), options=["-O0"])
        bad = {at for at in module.complaints(verdict.lines) if at < len(live)}
        if verdict.kind == "ok" or (not bad and len(live) in module.complaints(verdict.lines)):
            break
        if not bad and len(live) == 1:
            refused.add(live[0])
            break
        if not bad:  # the error is in text that ptxas generated for an instruction
            half = len(live) // 2
            for part in (live[:half], live[half:]):
                found = refused_by_ptxas(options, shop, name, module, [instructions[i] for i in part], whole)
                refused.update(part[at] for at in found)
            break
        refused.update(live[at] for at in bad)
        live = [i for at, i in enumerate(live) if at not in bad]
    return refused


def refused_by_us(options, shop, name, module, instructions):
    refused, live = set(), list(range(len(instructions)))
    while live:
        path = shop.write(name, module.of([instructions[i] for i in live]))
        verdict = judges.check(options.ptx_debug, [path])[str(path)]
        bad = {at for at in module.complaints(verdict.lines) if at < len(live)}
        refused.update(live[at] for at in bad)
        if not bad:
            break
        live = [i for at, i in enumerate(live) if at not in bad]
    return refused


def variants(instruction, kinds):
    """(kind, instruction): unchanged, with additional operands, and with another kind for each register operand."""
    yield "as it is", instruction
    if not instruction.startswith("call"):
        yield "more operands", instruction[:-1] + ("," if " " in instruction else "") + " %w1, %p1, %w2, {%w1, %w2};"
    for match in re.finditer(r"%([a-z]+)(\d+)", instruction):
        before, token, after = instruction[:match.start()], match[0], instruction[match.end():]
        in_list = before.count("{") > before.count("}")
        if in_list and not before.endswith("{"):
            continue
        in_brackets = before.endswith("[")
        for kind in kinds:
            if kind in REGISTERS:
                other = f"%{REGISTERS[kind]}{match[2]}"
            elif in_brackets:
                other = kind if kind in IN_BRACKETS else None
            else:
                other = SHAPES[kind].format(token) if kind in SHAPES else kind
            if other and other != token:
                yield kind, before + other + after
                if in_list and kind in REGISTERS and "," in after[:after.index("}")]:
                    rest, tail = after.split("}", 1)
                    rest = re.sub(r"%[a-z]+(\d+)", rf"%{REGISTERS[kind]}\1", rest)
                    yield f"list of {kind}", before + other + rest + "}" + tail


def judge_forms(options, kinds):
    """The lines to print."""
    batches = collections.OrderedDict()
    for line in subprocess.run(shlex.split(options.forms), capture_output=True, text=True, check=True).stdout.splitlines():
        _, _, target, instruction = line.split("\t")
        target = "sm_90a" if int(re.search(r"\d+", target)[0]) < 90 else target
        batches.setdefault(target, {}).update({text: kind for kind, text in variants(instruction, kinds)})
    parts = [(target, list(batch.items())[at:at + 500]) for target, batch in batches.items()
             for at in range(0, len(batch), 500)]
    with judges.Workshop() as shop, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def one(numbered):
            number, (target, part) = numbered
            module, texts = Module(target=target), [text for text, _ in part]
            theirs = refused_by_ptxas(options, shop, f"{number}.ptx", module, texts)
            ours = refused_by_us(options, shop, f"{number}.ptx", module, texts)
            strict = [i for i in range(len(texts)) if i in ours and i not in theirs]
            for at in range(0, len(strict), 40):
                some = strict[at:at + 40]
                again = refused_by_ptxas(options, shop, f"{number}.ptx", module, [texts[i] for i in some], whole=True)
                theirs.update(some[i] for i in again)
            return len(texts), [f"only {'we take' if i in theirs else 'ptxas takes'} {part[i][1]}: {text}"
                                for i, text in enumerate(texts) if (i in theirs) != (i in ours)]

        results = list(pool.map(one, enumerate(parts)))
    print(f"{sum(count for count, _ in results)} instructions")
    return [line for _, lines in results for line in lines]


def judge_recorded(options):
    lines = [line for line in (FOLDER / "operand_kinds.txt").read_text().splitlines() if not line.startswith("#")]
    texts, module = [line[2:] for line in lines], Module()
    expected = {i for i, line in enumerate(lines) if line[0] == "-"}
    with judges.Workshop() as shop:
        theirs = refused_by_ptxas(options, shop, "ptxas.ptx", module, texts)
        to_the_end = sorted(expected - theirs)  # ptxas rejects some only when it generates code
        again = refused_by_ptxas(options, shop, "ptxas.ptx", module, [texts[i] for i in to_the_end], whole=True)
        theirs.update(to_the_end[at] for at in again)
        ours = refused_by_us(options, shop, "ours.ptx", module, texts)
    print(f"{len(lines)} instructions")
    return [f"{name} {'takes' if i in expected else 'refuses'} {texts[i]}"
            for name, refused in (("ptxas", theirs), ("ptx-debug", ours)) for i in sorted(expected ^ refused)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptx-debug", default="ptx-debug")
    parser.add_argument("--ptxas", default=judges.find_ptxas(), help="where it is not on PATH")
    parser.add_argument("--recorded", action="store_true", help="judge the lines of operand_kinds.txt")
    parser.add_argument("--forms", help="a command that prints instructions as list_forms does")
    parser.add_argument("--kinds", default=".", help="a regular expression that the kinds contain")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not options.recorded and not options.forms:
        parser.error("--recorded or --forms is needed")
    if not options.ptxas:
        print("NOT RUN: there is no ptxas on PATH")
        return SKIPPED
    differences = judge_recorded(options) if options.recorded else []
    if options.forms:
        differences += judge_forms(options, [kind for kind in KINDS if re.search(options.kinds, kind)])
    for difference in differences:
        print(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
