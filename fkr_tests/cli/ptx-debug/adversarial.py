#!/usr/bin/env python3
"""Texts that try to break a reader: deep nesting, very long lines, names and chains, very many of one thing. Each must
give a verdict or an error in bounded time: no crash, no stack overflow, no endless run. speed.growth measures how the
time grows.

usage: adversarial.py PTX_DEBUG"""
import subprocess
import sys
import tempfile

PTX_DEBUG = sys.argv[1]
SECONDS = 120  # for a busy machine
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
ANSWERS = {"check": (0, 10), "analyze": (0, 1, 2, 3, 10)}


def kernel(body, params="", before="", after=""):
    return (f"{HEAD}{before}.visible .entry k({params})\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n{body}\n"
            f"ret;\n}}\n{after}")


def lines(n, form):
    return "\n".join(form(i) for i in range(n))


DEEP, MANY = 200_000, 50_000
TEXTS = {
    "parentheses": kernel("mov.u32 %r1, " + "(" * DEEP + "1" + ")" * DEEP + ";"),
    "open parentheses": kernel("mov.u32 %r1, " + "(" * DEEP),
    "signs": kernel("mov.u32 %r1, " + "-~!" * DEEP + "1;"),
    "a sum": kernel("mov.u32 %r1, " + "1+" * DEEP + "1;"),
    "conditions": kernel("mov.u32 %r1, " + "1?" * DEEP + "1" + ":1" * DEEP + ";"),
    "scopes": kernel("{" * DEEP + "}" * DEEP),
    "open scopes": kernel("{" * DEEP),
    "an initialiser in braces": f"{HEAD}.global .u32 x[2] = " + "{" * DEEP + "1" + "}" * DEEP + ";\n",
    "comments in comments": HEAD + "/*" * DEEP + "*/" * DEEP,
    "a vector": kernel("ld.v4.u32 {" + "%r1," * DEEP + "%r1}, [%rd1];"),
    "labels": kernel(lines(10 * MANY, lambda i: f"L{i}:")),
    "branches": kernel(lines(MANY, lambda i: f"L{i}: @%p1 bra L{i * 7919 % MANY};")),
    "loops in loops": kernel(lines(500, lambda i: f"L{i}: add.u32 %r1, %r1, 1;") + "\n" +
                             lines(500, lambda i: f"setp.lt.u32 %p1, %r1, %r2; @%p1 bra L{499 - i};")),
    "barriers under branches": kernel(lines(MANY, lambda i: f"@%p1 bra L{i}; bar.sync 0; L{i}:")),
    "parameters": kernel("", params=",\n".join(f".param .u64 p{i}" for i in range(2 * MANY))),
    "registers": kernel(lines(2 * MANY, lambda i: f".reg .b32 %x{i};")),
    "a long initialiser": f"{HEAD}.global .u32 x[{20 * MANY}] = {{" + ",".join(["1"] * 20 * MANY) + "};\n",
    "source files": HEAD + lines(2 * MANY, lambda i: f'.file {i + 1} "a{i}.cu"') + "\n" + kernel("").removeprefix(HEAD),
    "places inlined in each other": HEAD + '.file 1 "a.cu"\n' + kernel(lines(MANY, lambda i: (
        f".loc 1 {i} 1, function_name a, inlined_at 1 {max(i - 1, 0)} 1\nadd.u32 %r1, %r1, 1;"))).removeprefix(HEAD),
    "one line": kernel(" ".join(["add.u32 %r1, %r1, 1;"] * MANY)),
    "one line of mistakes": kernel(" ".join(["bad.u32 %q1;"] * MANY)),
    "a long name": kernel(".reg .b32 " + "a" * 20 * MANY + ";\nmov.u32 " + "a" * 20 * MANY + ", 1;"),
    "a long string": f'{HEAD}.file 1 "' + "a" * 40 * MANY + '"\n',
    "functions that call the next": HEAD + lines(2 * MANY, lambda i: (
        f".func f{i}() {{ {f'call f{i - 1};' if i else ''} ret; }}")) +
        f"\n.visible .entry k() {{ call f{2 * MANY - 1}; ret; }}\n",
    "local memory beyond what can be counted": HEAD + lines(4, lambda i: (
        f".func f{i}() {{ .local .align 1 .b8 x[0x7fffffffffffffff]; {f'call f{i - 1};' if i else ''} ret; }}")) +
        "\n.visible .entry k() { call f3; ret; }\n",
    "kernels": HEAD + lines(2000, lambda i: f".visible .entry k{i}() {{ ret; }}"),
    "comments that allow": kernel(lines(MANY // 2, lambda i: "// ptx-debug: allow F051 -- x"),
                                  after=lines(MANY // 2, lambda i: f".func f{i}() {{ ret; }}")),
}


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/k.ptx"
        for name, text in TEXTS.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            for verb, words in (("check", []), ("analyze", ["--no-config", "--falsify"])):
                try:
                    done = subprocess.run([PTX_DEBUG, verb, *words, path], capture_output=True, check=False, timeout=SECONDS)
                    fault = "" if done.returncode in ANSWERS[verb] else f"exit {done.returncode}: {done.stderr[-200:]!r}"
                except subprocess.TimeoutExpired:
                    fault = f"more than {SECONDS} s"
                if fault:
                    failed += 1
                    print(f"{name}, {verb}: {fault}")
    print(f"{len(TEXTS)} texts, {failed} runs that did not end in an answer")
    return 1 if failed else 0


sys.exit(main())
