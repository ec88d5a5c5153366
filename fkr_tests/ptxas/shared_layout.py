#!/usr/bin/env python3
"""Compares the emulator's addresses of shared variables with those in ptxas's machine code.

Each kernel stores the addresses of its shared variables, with a mark in their upper bits. They are read from the cubin,
whose code is interpreted for constants, sums and the instruction that adds the CTA's rank, and from the output of
`ptx-debug run`. The kernels are generated: modules with several entries and functions from seeds, and the declarations of
PTX files, with each body replaced by such stores.

  shared_layout.py --ptx-debug PROGRAM [--modules N] [--ptxas PROGRAM] [FOLDER or FILE ...]

Exit 0: all equal; 1: differences; 77: there is no ptxas.
"""

import argparse
import collections
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

import judges
import machine_code

OLD, NEW = ("sm_75", "sm_80", "sm_86", "sm_89"), ("sm_90", "sm_100", "sm_120")
MARK = 0x50000000


class Variable:
    def __init__(self, name, declaration, linkage=""):
        self.name, self.declaration, self.linkage = name, declaration, linkage


class Body:
    def __init__(self, name, is_entry):
        self.name, self.is_entry, self.own, self.named, self.calls = name, is_entry, [], [], []


class Module:
    def __init__(self, name):
        self.name, self.variables, self.bodies, self.is_made = name, [], [], False

    def all_variables(self):
        return self.variables + [v for body in self.bodies for v in body.own]

    def text(self, target):
        numbers = {v.name: i for i, v in enumerate(self.all_variables())}
        lines = [".version 9.0", ".target " + target, ".address_size 64"]
        lines += [f"{v.linkage}{v.declaration};" for v in self.variables]
        for body in self.bodies:
            head = ".visible .entry" if body.is_entry else ".func"
            lines += [f"{head} {body.name}(.param .b64 out)", "{", "  .reg .b32 %r;", "  .reg .b64 %d;"]
            lines += [f"  {v.declaration};" for v in body.own]
            lines.append("  ld.param.b64 %d, [out];")
            for v in body.named:
                i = numbers[v.name]
                lines += [f"  mov.u32 %r, {v.name};", f"  add.u32 %r, %r, {MARK | i << 20:#x};",
                          f"  st.global.u32 [%d+{4 * i}], %r;"]
            for callee in body.calls:
                lines.append(f"  {{ .param .b64 q; st.param.b64 [q], %d; call.uni {callee}, (q); }}")
            lines += ["  ret;", "}"]
        return "\n".join(lines) + "\n"


def random_module(seed):
    rng = random.Random(seed)
    module = Module(f"seed {seed}")
    module.is_made = True
    count = 0

    def variable(scope_is_module):
        nonlocal count
        count += 1
        name = "".join(rng.choice("abcxyz") for _ in range(rng.randint(1, 4))) + f"_{count}"
        kind = rng.random()
        if kind < 0.15:
            declaration = f".shared .{rng.choice(['f64', 'u32', 'v4 .f32', 'u8', 'b16'])} {name}"
        else:
            align = 1 << rng.randint(0, 7 if kind < 0.9 else 10)
            declaration = f".shared .align {align} .b8 {name}[{rng.randint(1, 200)}]"
        return Variable(name, declaration, rng.choice(["", "", ".visible ", ".weak "]) if scope_is_module else "")

    module.variables = [variable(True) for _ in range(rng.randint(0, 6))]
    for i in range(rng.choice([0, 0, 1, 2])):
        align = 1 << rng.randint(0, 8)
        name = f"dynamic_{i}"
        at = rng.randint(0, len(module.variables))
        module.variables.insert(at, Variable(name, f".extern .shared .align {align} .b8 {name}[]"))
    functions = rng.choice([0, 0, 1, 2, 3])
    for i in range(functions + rng.randint(1, 3)):
        body = Body(f"f{i}" if i < functions else f"k{i}", i >= functions)
        body.own = [variable(False) for _ in range(rng.randint(0, 3))]
        body.named = [v for v in module.variables if rng.random() < 0.6] + [v for v in body.own if rng.random() < 0.8]
        rng.shuffle(body.named)
        callees = [b.name for b in module.bodies if not b.is_entry]
        body.calls = [name for name in callees if rng.random() < 0.5]
        module.bodies.append(body)
    return module


def skeleton(path):
    """The shared variables of a file, and the functions that name them."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", path.read_text(errors="replace"), flags=re.S)
    declared = re.compile(r"((?:\.(?:visible|weak|extern|common)\s+)*)(?<!\w)(\.shared\s+\.[^;={}]*?)\s*;")
    module = Module(str(path))
    module.bodies = []

    def variables(part):
        found = []
        for linkage, declaration in declared.findall(part):
            name = re.fullmatch(r"[^,]*?([\w$%]+)\s*(?:\[[^\]]*\]\s*)*", declaration)
            if not name:
                raise ValueError(declaration)  # several names in one declaration, or no PTX
            found.append(Variable(name.group(1), " ".join(declaration.split()), linkage.strip() + " " if linkage else ""))
        return found

    outside, at = "", 0
    for head in re.finditer(r"\.(entry|func)\b([^{;]*)\{", text):
        if head.start() < at:
            continue
        depth, end = 1, head.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        outside += text[at:head.start()]
        at = end
        names = re.findall(r"([A-Za-z_$%][\w$]*)\s*(?:\(|$)", re.sub(r"\([^()]*\)\s*(?=[A-Za-z_$%])", "", head.group(2)))
        if not names:
            continue
        body = Body(names[0], head.group(1) == "entry")
        inside = text[head.end():end - 1]
        body.own = variables(inside)
        body.words = set(re.findall(r"[A-Za-z_$%][\w$]*", declared.sub(" ", inside)))
        module.bodies.append(body)
    module.variables = variables(outside + text[at:])
    taken = set()
    for v in module.all_variables():
        if v.name in taken:
            return None
        taken.add(v.name)
    known = []
    for body in module.bodies:
        body.named = [v for v in module.variables + body.own if v.name in body.words]
        body.calls = [name for name in known if name in body.words]
        if not body.is_entry:
            known.append(body.name)
    entries = [b for b in module.bodies if b.is_entry]
    return module if entries and taken and len(taken) < 200 else None


def marked(code):
    """Marked constants that the code computes, by mark. The CTA's rank counts as 0."""
    found = collections.defaultdict(set)
    plain, uniform = {}, {}
    for at in range(0, len(code), 16):
        low, high = struct.unpack_from("<QQ", code, at)
        op, to, a, b, c, number = low & 0xfff, low >> 16 & 255, low >> 24 & 255, low >> 32 & 255, high & 255, low >> 32
        is_uniform = op in (0x882, 0x890, 0x835, 0x291)
        general = lambda i: 0 if i == 255 else plain.get(i)
        special = lambda i: 0 if i & 63 == 63 else uniform.get(i & 63)
        own = special if is_uniform else general
        parts = [None]
        if op in (0x386, 0x986, 0x944, 0x947, 0x94d, 0x950):  # STG, CALL, BRA, EXIT, RET write no register
            continue
        if op in (0x802, 0x424, 0x882, 0x431, 0x435):  # MOV, IMAD.MOV, UMOV of a number, HFMA2 of the same bits
            parts = [number]
        elif op in (0x810, 0x836, 0x890, 0x835):  # IADD3, VIADD, UIADD3 with a number
            parts = [own(a), number]
        elif op in (0x211, 0x291):  # LEA, ULEA: rank << 24, and the rest
            parts = [own(b)]
        elif op == 0x210:  # IADD3
            parts = [general(a), general(b), general(c)]
        elif op == 0x224:  # IMAD.MOV
            parts = [general(c)]
        elif op in (0xc02, 0xe24, 0xc11, 0xe11):  # MOV, IMAD.U32, LEA of a uniform register
            parts = [special(b)]
        elif op == 0xc10:  # IADD3 with one
            parts = [general(a), special(b), general(c)]
        bank = uniform if is_uniform else plain
        if None in parts:
            bank.pop(to & 63 if is_uniform else to, None)
            continue
        value = sum(parts) & 0xffffffff
        bank[to & 63 if is_uniform else to] = value
        if value >> 28 == MARK >> 28:
            found[value >> 20 & 255].add(value & 0xfffff)
    return found


class Comparison:
    def __init__(self, options):
        self.options = options
        self.kernels, self.addresses, self.unread, self.differences = 0, 0, 0, []

    def compare(self, module, target, folder):
        ptx, cubin_path = folder / "k.ptx", folder / "k.cubin"
        ptx.write_text(module.text(target))
        code = machine_code.of(self.options.ptxas, ptx, target, cubin_path)
        if code is None and module.is_made:
            sys.exit(f"{module.name}: ptxas refuses it for {target}:\n{ptx.read_text()}")
        if code is None:
            return
        variables = module.all_variables()
        for body in module.bodies:
            if not body.is_entry:
                continue
            expected = marked(code[".text." + body.name])
            out = folder / "out.bin"
            out.unlink(missing_ok=True)
            run = subprocess.run([self.options.ptx_debug, "run", ptx, "--entry", body.name, "--shared", "64", "--arg",
                                  f"out:{4 * len(variables)}:{out}"], capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{module.name}, {body.name}: {run.stdout}{run.stderr}")
            words = struct.unpack(f"<{len(variables)}I", out.read_bytes())
            self.kernels += 1
            for i, (variable, word) in enumerate(zip(variables, words)):
                if word >> 28 != MARK >> 28:
                    continue  # not named here
                address = word & 0xfffff
                if i not in expected:
                    self.unread += 1
                elif expected[i] != {address}:
                    self.differences.append(f"{module.name}, {target}, {body.name}: {variable.name} lies at "
                                            f"{address:#x}, of ptxas at {', '.join(map(hex, sorted(expected[i])))}")
                else:
                    self.addresses += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--ptx-debug", default="build/bin/ptx-debug")
    parser.add_argument("--ptxas", default=judges.find_ptxas())
    parser.add_argument("--modules", type=int, default=120)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--least-kernels", type=int, default=200)
    options = parser.parse_args()
    if not options.ptxas:
        print("SKIPPED: there is no ptxas here, the layout of shared memory is compared with nothing")
        return 77
    modules = [random_module(options.first_seed + i) for i in range(options.modules)]
    paths = []
    for path in options.files:
        paths += sorted(path.rglob("*.ptx")) if path.is_dir() else [path]
    seen = set()
    for path in paths:
        try:
            module = skeleton(path)
        except ValueError:
            continue
        if module and module.text("") not in seen:
            seen.add(module.text(""))
            modules.append(module)
    comparison = Comparison(options)
    with tempfile.TemporaryDirectory() as folder:
        for i, module in enumerate(modules):
            for target in (OLD[i % len(OLD)], NEW[i % len(NEW)]):
                comparison.compare(module, target, pathlib.Path(folder))
    for difference in comparison.differences[:20]:
        print(difference)
    print(f"{comparison.kernels} kernels of {len(modules)} modules, {len(seen)} of them from files: "
          f"{comparison.addresses} addresses as ptxas has them, {len(comparison.differences)} others, "
          f"{comparison.unread} not found in the machine code")
    enough = comparison.kernels >= options.least_kernels and comparison.unread * 100 <= 3 * comparison.addresses
    if not enough:
        print(f"expected {options.least_kernels} kernels at least, and three addresses in a hundred unread at most")
    return 0 if enough and not comparison.differences else 1


if __name__ == "__main__":
    sys.exit(main())
