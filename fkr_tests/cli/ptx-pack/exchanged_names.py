#!/usr/bin/env python3
"""Another user renames files between any two system calls of a run: ptx-pack without -f makes, changes and removes
nothing outside of the folders that it was given, and overwrites nothing in them. Every moment of a run is tried.

usage: exchanged_names.py PTX_PACK EXCHANGE PTX_DEBUG PTX; exits 77 where a process may not be traced"""
import os
import stat
import subprocess
import sys
import tempfile

PTX_PACK, EXCHANGE, PTX_DEBUG, PTX = (os.path.abspath(each) for each in sys.argv[1:])
TEXT, SECRET, PRECIOUS = b"contents\n" * 9, b"a secret that nobody may read\n", b"precious old contents\n"
NOT_TRACED, TOO_FEW_CALLS = 77, 78


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def fill(top):
    """shared/ belongs to the other user, private/ to the victim. The names that change contain `turn`."""
    for folder in ("shared/sub", "shared/deep/sub", "private"):
        os.makedirs(f"{top}/{folder}")
    for name in ("shared/file", "shared/sub/file", "shared/deep/sub/file"):
        write(f"{top}/{name}", TEXT)
    write(f"{top}/private/file", SECRET)
    write(f"{top}/private/victim", PRECIOUS)
    packed = subprocess.run([PTX_PACK, "-c", f"{top}/shared/file"], stdout=subprocess.PIPE, check=True).stdout
    write(f"{top}/shared/turn.lz4", packed)
    os.makedirs(f"{top}/shared/turns")
    write(f"{top}/shared/turns/x.lz4", packed)
    write(f"{top}/shared/kernel.ptx", read(PTX))


def contents(folder):
    found = {}
    for path, folders, names in os.walk(folder):
        for name in folders + names:
            at = os.path.join(path, name)
            info = os.lstat(at)
            is_file = stat.S_ISREG(info.st_mode)
            found[os.path.relpath(at, folder)] = (info.st_mode, info.st_ino, read(at) if is_file else b"")
    return found


def is_pipe(path):
    return stat.S_ISFIFO(os.lstat(path).st_mode)


def link_to(target):
    return lambda path: os.symlink(target, path)


def nothing(_):
    return None


def folder(path):
    os.mkdir(path)
    write(f"{path}/file", TEXT)


def file(path):
    write(path, PRECIOUS)


EVIL, VICTIM, PRIVATE = link_to("../private/evil"), link_to("../private/victim"), link_to("../private")
DECODE = [PTX_PACK, "-qq", "-k", "-T1", "-d", "shared/turn.lz4"]
TREE = [PTX_PACK, "-qq", "-T1", "-r", "--rm", "shared/tree"]
TRACE = [PTX_PACK, "-qq", "-T1", "-t", "--trace", "shared/turn", "shared/turn.lz4"]
# What is done, the names that change, what lies there before, and what is renamed to them.
SCENES = [
    (DECODE, "shared/turn", nothing, EVIL), (DECODE, "shared/turn", EVIL, nothing), (DECODE, "shared/turn", VICTIM, nothing),
    (DECODE, "shared/turn", nothing, VICTIM), (DECODE, "shared/turn", nothing, file),
    (DECODE, "shared/turn", os.mkfifo, VICTIM), (DECODE, "shared/turn", VICTIM, os.mkfifo), (DECODE, "shared/turn", os.mkfifo, EVIL),
    (DECODE, "shared/turn", os.mkfifo, file), (DECODE, "shared/turn", link_to("/dev/null"), VICTIM),
    (DECODE, "shared/turn", link_to("/dev/null"), EVIL),
    ([PTX_PACK, "-qq", "-T1", "-d", "--rm", "shared/turns/x.lz4"], "shared/turns", None, PRIVATE),
    ([PTX_PACK, "-qq", "-T1", "-k", "shared/turns/x.lz4", "-z"], "shared/turns", None, PRIVATE),
    (TREE, "shared/tree/turn", folder, link_to("../../private")), (TREE, "shared/tree/in/turn", folder, link_to("../../../private")),
    (TREE, "shared/tree/turn", file, link_to("../../private/file")), (TREE, "shared/tree/turn", file, os.mkfifo),
    (TREE, "shared/tree/turn.lz4", nothing, link_to("../../private/evil")),
    ([PTX_PACK, "-qq", "-T1", "-r", "shared/tree"], "shared/tree/turn", folder, link_to("../../private")),
    (TRACE, "shared/turn", nothing, EVIL), (TRACE, "shared/turn", EVIL, nothing), (TRACE, "shared/turn", nothing, file),
    (TRACE, "shared/turn", os.mkfifo, VICTIM), (TRACE, "shared/turn", os.mkfifo, file),
]


REPORT = [PTX_DEBUG, "instrument", "-o", "shared/turn", "shared/kernel.ptx"]  # it replaces what links lead to


def play(scene, count, sandbox):
    """Whether the rename came about."""
    command, name, before, after = scene
    with tempfile.TemporaryDirectory() as top:
        fill(top)
        os.makedirs(f"{top}/shared/tree/in")
        write(f"{top}/shared/tree/turn.in", TEXT)
        path, spare = f"{top}/{name}", f"{top}/shared/spare"
        if before:
            before(path)
        after(spare)
        words = {nothing: ["rename", spare, path]}.get(before, ["exchange", spare, path])
        if after is nothing:
            words = ["rename", path, spare]
        pipes = [os.open(each, os.O_RDWR) for each in (path, spare) if os.path.exists(each) and is_pipe(each)]
        victim = os.open(f"{top}/private/victim", os.O_RDONLY)
        kept = contents(f"{top}/private")
        done = subprocess.run([EXCHANGE, str(count), "turn", *words, *command, f"--sandbox={sandbox}"], cwd=top, timeout=30,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode == NOT_TRACED:
            print("SKIPPED: a process may not be traced here")
            sys.exit(77)
        what = (command[1:], name, count, sandbox, done.returncode, done.stderr)
        assert done.returncode in (0, 1, 2, 11, TOO_FEW_CALLS), what  # 11: ptx-debug's error of a file
        assert os.pread(victim, 1000, 0) == PRECIOUS, (*what, "written into")
        assert command is REPORT or contents(f"{top}/private") == kept, (*what, "in the private folder")
        if file in (before, after) and "tree" not in name:
            assert any(os.path.isfile(each) and read(each) == PRECIOUS for each in (path, spare)), (*what, "overwritten")
        for each, (_, _, data) in contents(f"{top}/shared").items():
            assert SECRET not in data, (*what, each, "holds the secret")
        for each in (*pipes, victim):
            os.close(each)
        return done.returncode != TOO_FEW_CALLS


def main():
    plays, failures = 0, 0
    # The sandbox must not be what holds this: it cannot tell an output's folder from another one below it.
    all_scenes = [(each, "off") for each in SCENES] + [(each, "auto") for each in SCENES[::4]]
    all_scenes += [((REPORT, "shared/turn", os.mkfifo, VICTIM), "off"), ((REPORT, "shared/turn", VICTIM, os.mkfifo), "off")]
    for scene, sandbox in all_scenes:
        count = 0
        try:
            while play(scene, count + 1, sandbox):
                count += 1
            assert count > 3, (scene[0], "hardly a moment was tried")
        except (AssertionError, subprocess.TimeoutExpired) as wrong:
            failures += 1
            print("FAILED:", wrong)
        plays += count
    print(f"{plays} moments, {failures} failures")
    return failures != 0


sys.exit(main())
