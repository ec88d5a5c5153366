#!/usr/bin/env python3
"""ptx-pack --sandbox: every job does in it what it does without, byte for byte; it is in force in all threads before the
first byte is read; a GPU's driver gets none; where the kernel has none, that is said, and fails only where it was required.

usage: sandbox.py PTX_PACK [FAKE_CUDA]; exits 77 where this kernel has no Landlock or no seccomp"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kernels_without import LANDLOCK, SECCOMP, without  # pylint: disable=wrong-import-position

PTX_PACK = os.path.abspath(sys.argv[1])
FAKE_CUDA = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
TEXT = "".join(f"{i}\n" for i in range(60000)).encode()

# A command of the shell each, where $P is the program with its --sandbox.
JOBS = [
    "$P x", "$P -T4 --codec lzr x; $P -T4 -dc x.ptz", "$P -dc x.in.lz4", "$P -d x.in.lz4 -o deep/y", "$P -t x.in.lz4 z.in.ptz",
    "$P --list x.in.lz4 z.in.ptz", "cat x.in.lz4 | $P -d | cat", "$P -d <x.in.lz4 >y", "$P -d z.in.ptz -o y --range 5:70000",
    "$P --range 5:70000 x.in.lz4", "$P --verify x -o deep/y.lz4", "$P --backend emulator -d small.lz4 -o y",
    "$P --backend emulator --codec lzr small -o y.ptz", "$P --memory 24M -d x.in.lz4 -o y",
    # --rm, of what a link is, and of an input elsewhere than its output
    "$P --rm x", "$P --rm linked -o deep/y.lz4", "$P --rm deep/a -o y.lz4", "$P -d --rm -m x.in.lz4 deep/b.lz4",
    # many outputs in many folders
    "$P -r tree", "$P -r --rm tree", "$P -rd tree", "$P -rt tree", "$P -m x deep/a tree/one/c", "$P -rf tree deep",
    # what is there already: files, links to elsewhere, links to nothing, devices, pipes, descriptors
    "$P -f x -o there", "$P x -o there", "$P -f x -o to_there", "$P -f x -o to_nothing", "$P -f x -o to_other/../linked_out",
    "$P x -f -o /dev/null", "mkfifo p; cat p >q & $P x -f -o p; wait; rm p", "$P x -o /dev/stdout | cat >y",
    "$P x -f -o /dev/stdout >y", "$P x -f -o /dev/fd/5 5>deep/y", "cd deep; $P a", "cd deep; $P -f ../x -o ../there",
    "cd deep; $P -f ../x -o to_there", "cd deep; $P -f ../x -o to_nothing",
    # errors
    "$P gone", "$P x -o gone/y", "$P -d x", "$P -d cut.lz4 -o y", "$P -t cut.lz4", "$P -d --range 5: cut.lz4 -o y", "$P -r gone",
    "$P -r --share-by-rank tree", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 $P -r --share-by-rank tree",
]


def run(folder, *words, **more):
    done = subprocess.run([PTX_PACK, *words], cwd=folder, capture_output=True, check=False, timeout=120, **more)
    return done.returncode, done.stdout, done.stderr


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def fill(folder):
    for each in ("deep", "other", "tree/one/two"):
        os.makedirs(f"{folder}/{each}")
    for name, data in (("x", TEXT), ("small", TEXT[:3000]), ("there", b"old"), ("other/there", b"old"), ("deep/a", TEXT[:5000]),
                       ("tree/c", TEXT[7:]), ("tree/one/c", TEXT[9:]), ("tree/one/two/c", b"")):
        write(f"{folder}/{name}", data)
    for source, target, codec in (("x", "x.in.lz4", "lz4"), ("x", "z.in.ptz", "lzr"), ("small", "small.lz4", "lz4"),
                                  ("deep/a", "deep/b.lz4", "lz4"), ("tree/c", "tree/one/two/d.lz4", "lz4")):
        code, _, err = run(folder, "-q", "--sandbox=off", "--codec", codec, source, "-o", target)
        assert code == 0, err
    with open(f"{folder}/x.in.lz4", "rb") as file:
        write(f"{folder}/cut.lz4", file.read()[:90000])
    for name, target in (("linked", "x"), ("to_there", "other/there"), ("to_nothing", "other/new"), ("to_other", "other"),
                         ("linked_out", "deep/out"), ("deep/to_there", "../other/there"), ("deep/to_nothing", "../other/new")):
        os.symlink(target, f"{folder}/{name}")


def contents(folder):
    found = {}
    for path, folders, names in os.walk(folder):
        for name in names + folders:
            at = os.path.join(path, name)
            key = os.path.relpath(at, folder)
            if os.path.islink(at):
                found[key] = "link to " + os.readlink(at)
            elif os.path.isfile(at):
                with open(at, "rb") as file:
                    found[key] = (os.stat(at).st_mode, file.read())
    return found


def check_same(top):
    for job in JOBS:
        said = []
        for when in ("off", "require"):
            with tempfile.TemporaryDirectory(dir=top) as folder:
                fill(folder)
                done = subprocess.run(["bash", "-c", job], cwd=folder, capture_output=True, check=False, timeout=120,
                                      env=dict(os.environ, P=f"{PTX_PACK} --sandbox={when}"))
                said.append((done.returncode, done.stdout, done.stderr, contents(folder)))
        assert said[0] == said[1], (job, [each[:3] for each in said],
                                    [name for name in {**said[0][3], **said[1][3]} if said[0][3].get(name) != said[1][3].get(name)])


def sandbox_of(folder, *words, **more):
    """(NoNewPrivs, Seccomp) of each thread while the program reads standard input, which has said nothing yet."""
    with subprocess.Popen([PTX_PACK, *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, **more) as child:
        for _ in range(1000):
            tasks = [f"/proc/{child.pid}/task/{each}" for each in os.listdir(f"/proc/{child.pid}/task")]
            if any("pipe" in text(f"{task}/wchan") for task in tasks):
                break
            time.sleep(0.01)
        else:
            raise AssertionError(f"does not read: {words}")
        found = set()
        for task in tasks:
            fields = dict(line.split(":\t", 1) for line in text(f"{task}/status").splitlines() if ":\t" in line)
            found.add((fields["NoNewPrivs"], fields["Seccomp"]))
        child.stdin.close()
    return found


def check_in_force(folder):
    inside, outside = {("1", "2")}, {("0", "0")}
    for job in (["-d", "-c"], ["-t"], ["--list"], ["-z", "-c"], ["-b"], ["--codec", "lzr", "-c"], ["--range", "1:2", "-c"]):
        for words, wanted in (([], inside), (["--sandbox=auto"], inside), (["--sandbox=require"], inside),
                              (["--sandbox=off"], outside)):
            got = sandbox_of(folder, *job, "-T3", *words)
            assert got == wanted, (job, words, got)
    if FAKE_CUDA:
        environment = dict(os.environ, PTXKIT_LIBCUDA=FAKE_CUDA)
        for words, wanted in ((["--backend", "cuda"], outside), (["--policy", "gpu"], outside), (["--policy", "mixed"], outside),
                              (["--policy", "cpu"], inside), ([], inside), (["--backend", "emulator"], inside)):
            got = sandbox_of(folder, "-d", "-c", *words, env=environment)
            assert got == wanted, (words, got)
    environment = dict(os.environ, PTXKIT_LIBCUDA="/nowhere")
    got = sandbox_of(folder, "-d", "-c", "--policy", "gpu", env=environment)
    assert got == inside, ("no driver", got)


def check_refusals(folder):
    for words, what in (
            (["--backend", "cuda"], "--sandbox=require and --backend cuda exclude each other: the driver of a GPU opens what it likes"),
            (["--policy", "gpu"], "--sandbox=require and --policy gpu exclude each other"),
            (["--policy", "mixed"], "--sandbox=require and --policy mixed exclude each other")):
        code, _, err = run(folder, "-t", "x.in.lz4", "--sandbox=require", *words)
        assert code == 2 and what in err.decode(), (words, code, err)
    code, _, err = run(folder, "-t", "x.in.lz4", "--sandbox=perhaps")
    assert code == 2 and b"--sandbox: expected auto, require, off, found 'perhaps'" in err, (code, err)
    for calls, what in (((LANDLOCK, SECCOMP), "no sandbox: the kernel has neither Landlock nor seccomp"),
                        ((LANDLOCK,), "half a sandbox: seccomp, and the kernel has no Landlock"),
                        ((SECCOMP,), "half a sandbox: Landlock ")):
        enter = without(*calls)
        code, _, err = run(folder, "-t", "x.in.lz4", preexec_fn=enter)
        assert code == 0 and not err, (calls, code, err)
        code, _, err = run(folder, "-vvt", "x.in.lz4", preexec_fn=enter)
        assert code == 0 and f"ptx-pack: {what}" in err.decode(), (calls, code, err)
        code, _, err = run(folder, "-t", "x.in.lz4", "--sandbox=require", preexec_fn=enter)
        assert code == 1 and f"--sandbox=require: {what}" in err.decode(), (calls, code, err)


with tempfile.TemporaryDirectory() as scratch:
    fill(scratch)
    missing = (run(scratch, "-vvt", "--backend", "cpu", "x.in.lz4")[2] + run(scratch, "-t", "--sandbox=require", "x.in.lz4")[2])
    if b"sandbox" in missing:
        print(f"SKIPPED: nothing was tried: {missing.decode()}")
        sys.exit(77)
    check_in_force(scratch)
    check_refusals(scratch)
    check_same(scratch)
    print(f"{len(JOBS)} jobs do the same in the sandbox as without")
