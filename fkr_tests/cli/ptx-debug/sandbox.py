#!/usr/bin/env python3
"""--sandbox: every verb that reads untrusted texts gives the same bytes with it as without; it is in force before the
first byte is read; a kernel without sandbox support is reported, and is an error only where the sandbox is required.

usage: sandbox.py REPO PTX_DEBUG; exits 77 where this kernel has no Landlock or no seccomp"""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kernels_without import LANDLOCK, SECCOMP, without  # pylint: disable=wrong-import-position

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
INPUTS = f"{REPO}/fkr_tests/cli/ptx-debug/inputs"

def run(folder, *words, **more):
    done = subprocess.run([PTX_DEBUG, *map(str, words)], cwd=folder, capture_output=True, check=False, timeout=120,
                          **more)
    return done.returncode, done.stdout, done.stderr


def contents(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return found


def check_same(folder):
    """The outcome of every verb, and the files that it leaves, are the same with and without the sandbox."""
    good, bad, broken = "good.ptx", "misaligned.ptx", "broken.ptx"
    commands = [
        ["analyze", "--falsify", "--replay", "--json=r.json", "--html", "r.html", "--sarif", "r.sarif", "--write-baseline",
         "b.json", good, bad, broken, "-j", "4"],
        ["analyze", "--html", "deep/r.html", bad], ["analyze", "--html", "link.html", bad],
        ["analyze", "--sarif", "/dev/null", bad], ["analyze", "--json", bad], ["analyze", "."], ["analyze", "gone.ptx"],
        ["analyze", "--html", "gone/r.html", good], ["check", good, broken], ["print", good], ["print", "--raw", good],
        ["stats", "--json", good, bad], ["info", good], ["cfg", "--dot", good], ["cost", good], ["diff", good, bad],
        ["run", bad, "--arg", "out:16:o.bin", "--json", "f.json", "--sarif", "f.sarif", "--threads", "4"],
        ["instrument", bad, "-o", "m.ptx", "--markers", "m.json"], ["gen-fkr", bad, "-o", "t.cpp"],
        ["crash-analyze", "--debug-buffer", "o.bin", "--ptx", bad],
    ]
    for words in commands:
        said = []
        for when in ("off", "require"):
            where = f"{folder}/{when}"
            os.makedirs(f"{where}/deep")
            for name in (good, bad, broken, "match.cpp"):
                shutil.copy(f"{INPUTS}/{name}", where)
            open(f"{where}/o.bin", "wb").write(bytes(16 * 65))
            open(f"{where}/deep/there.html", "w", encoding="utf-8").close()
            os.symlink("deep/there.html", f"{where}/link.html")
            outcome = run(where, *words, f"--sandbox={when}")
            said.append((*outcome, {name: data.replace(where.encode(), b"") for name, data in contents(where).items()}))
            shutil.rmtree(where)
        assert said[0] == said[1], (words, said[0][:3], said[1][:3],
                                    [name for name in said[0][3] if said[0][3][name] != said[1][3].get(name)])
    return len(commands)


def check_in_force(folder):
    """/proc shows the sandbox before standard input is read."""
    if platform.machine() != "x86_64":
        return  # read has another number there
    for when, wanted in (("require", ("1", "2")), ("auto", ("1", "2")), ("off", ("0", "0"))):
        for verb in ("check", "analyze", "stats", "diff"):
            words = [verb, "-", f"--sandbox={when}"] + ([f"{INPUTS}/good.ptx"] if verb == "diff" else [])
            with subprocess.Popen([PTX_DEBUG, *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
                for _ in range(500):
                    with open(f"/proc/{child.pid}/syscall", encoding="utf-8") as file:
                        reads = file.read().startswith("0 0x0 ")  # read(0, ...)
                    with open(f"/proc/{child.pid}/status", encoding="utf-8") as file:
                        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
                    if reads:
                        break
                    time.sleep(0.01)
                got = (fields["NoNewPrivs"], fields["Seccomp"])
                child.stdin.close()
                child.wait()
            assert got == wanted, (words, got)


def check_kernels_without(folder):
    for calls, what in (((LANDLOCK, SECCOMP), "no sandbox: the kernel has neither Landlock nor seccomp"),
                        ((LANDLOCK,), "half a sandbox: seccomp, and the kernel has no Landlock"),
                        ((SECCOMP,), "half a sandbox: Landlock ")):
        enter = without(*calls)
        code, out, err = run(folder, "analyze", "-v", f"{INPUTS}/good.ptx", preexec_fn=enter)
        assert code == 0 and out and f"ptx-debug: {what}" in err.decode(), (calls, code, err)
        code, _, err = run(folder, "analyze", f"{INPUTS}/good.ptx", preexec_fn=enter)
        assert code == 0 and not err, (calls, code, err)  # reported with -v only
        for words in (["analyze", f"{INPUTS}/good.ptx"], ["check", f"{INPUTS}/good.ptx"], ["run", f"{INPUTS}/good.ptx"]):
            code, out, err = run(folder, *words, "--sandbox=require", preexec_fn=enter)
            assert code == 11 and not out and f"--sandbox=require: {what}" in err.decode(), (calls, words, code, err)


def check_programs(folder):
    """ptxas runs, because the user named it, but may not write elsewhere; a GPU's driver has no sandbox."""
    escaped = f"{folder}/escaped"
    program = f"{folder}/ptxas"
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n(echo x >{escaped}) 2>/dev/null\n[ \"$1\" = --version ] && exit\n"
                   "echo \"ptxas info    : Compiling entry function 'find_match' for 'sm_75'\"\n"
                   "echo 'ptxas info    : Used 255 registers'\n")
    os.chmod(program, 0o755)
    words = ["analyze", "--select", "F092", "-v", "--ptxas", program, f"{INPUTS}/misaligned.ptx"]
    code, out, err = run(folder, *words, "--sandbox=off")
    assert os.path.exists(escaped) and b"255 registers" in out, (code, out, err)
    os.unlink(escaped)
    environment = dict(os.environ, TMPDIR="/dev/shm")
    confined = run(folder, *words, "--sandbox=require", env=environment)
    assert confined[:2] == (code, out), (code, out, confined)
    assert not os.path.exists(escaped), "the assembler wrote where nothing was named"
    for words in (["analyze", "--differential", f"{INPUTS}/good.ptx"], ["run", "--backend", "cuda", f"{INPUTS}/good.ptx"]):
        code, _, err = run(folder, *words, "--sandbox=require")
        assert code == 11 and b"may use a GPU, whose driver opens files and devices of its own" in err, (words, code, err)
    code, _, err = run(folder, "check", "--sandbox=perhaps", f"{INPUTS}/good.ptx")
    assert code == 64 and b"--sandbox: expected auto, require, off, found 'perhaps'" in err, (code, err)


with tempfile.TemporaryDirectory() as top:
    said = (run(top, "analyze", "-v", f"{INPUTS}/good.ptx")[2] +
            run(top, "check", "--sandbox=require", f"{INPUTS}/good.ptx")[2]).decode()
    if said:
        print(f"SKIPPED: nothing was tried: {said}")
        sys.exit(77)
    count = check_same(top)
    check_in_force(top)
    check_kernels_without(top)
    check_programs(top)
    print(f"{count} commands do the same in the sandbox as without")
