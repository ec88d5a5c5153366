#!/usr/bin/env python3
"""A ptx-debug.conf found by the search may come from a stranger: it must start no program, write no file and read none
outside its project. A file that the user does not own is ignored, with one warning and the exit code of a run without
it. A file named by --config may do everything.

usage: foreign_config.py REPO PTX_DEBUG"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
GOOD, BAD = f"{REPO}/fkr_tests/cli/ptx-debug/inputs/good.ptx", f"{REPO}/docs/examples/misaligned_cursor.ptx"
NOBODY = 65534


def analyze(folder, *words):
    done = subprocess.run([PTX_DEBUG, "analyze", "--select", "F051", *words], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Scene:
    """A project with a PTX file, and a folder outside it."""

    def __init__(self, folder):
        self.top = pathlib.Path(folder)
        self.project, self.outside = self.top / "project", self.top / "outside"
        self.below = self.project / "a" / "b"
        self.below.mkdir(parents=True)
        self.outside.mkdir()
        (self.project / ".git").mkdir()
        shutil.copy(BAD, self.project / "k.ptx")
        self.plain = analyze(self.project, "--no-config", "k.ptx")
        assert self.plain[0] == 3 and not self.plain[2], self.plain

    def config(self, text, where=None):
        path = (where or self.project) / "ptx-debug.conf"
        path.write_text(text)
        return path


def refused(scene, why, where=None):
    """The whole file is ignored: one warning, and otherwise the result of a run without it."""
    code, out, err = analyze(where or scene.project, str(scene.project / "k.ptx"))
    assert code == 3 and err.count("\n") == 1 and "ptx-debug.conf is ignored: " in err, (code, err)
    assert re.search(why, err), err
    assert "suppressed" not in out and "exit 3" in out, out


def check_programs_and_outputs(scene):
    ran, report = scene.top / "ran", scene.top / "precious"
    evil = scene.outside / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    report.write_text("precious")
    for option in ("html", "sarif", "write-baseline", "json"):
        scene.config(f"{option} = {report}\nmin-score = 99\n")
        code, out, err = analyze(scene.project, "k.ptx")
        assert report.read_text() == "precious", option
        assert code == 3 and f"without line 1 ({option}): " in err and err.count("\n") == 1, (code, err)
        assert out == scene.plain[1], out
        # Named by --config, the same file has its effect.
        code, _, err = analyze(scene.project, "--config", "ptx-debug.conf", "k.ptx")
        assert code == 3 and report.read_text() != "precious" and not err, (option, err)
        report.write_text("precious")
    scene.config(f"ptxas = {evil}\n")
    code, _, err = analyze(scene.project, "--falsify", "--select", "F092", "k.ptx")
    assert not ran.exists() and "without line 1 (ptxas): " in err, (code, err)
    analyze(scene.project, "--select", "F092", "--config", "ptx-debug.conf", "k.ptx")
    assert ran.exists()
    scene.config("differential = true\nselect = F051\n")
    assert "without line 1 (differential): " in analyze(scene.project, "k.ptx")[2]


def check_reads(scene):
    """Files of the project may be read; files elsewhere, links to them and devices may not."""
    inside, outside = scene.project / "known.json", scene.outside / "known.json"
    assert analyze(scene.project, "--no-config", "--write-baseline", str(inside), "k.ptx")[0] == 3
    shutil.copy(inside, outside)
    (scene.project / "link.json").symlink_to(outside)
    os.mkfifo(scene.project / "pipe.json")
    scene.config("baseline = known.json\n")
    code, out, err = analyze(scene.below, "../../k.ptx")
    assert code == 0 and "suppressed" in out and err == "ptx-debug: options from ../../ptx-debug.conf\n", (code, err)
    for path in ("../outside/known.json", outside, "link.json", "pipe.json", "/dev/zero", "/proc/self/environ"):
        for option in ("baseline", "evidence", "launch", "source-root"):
            scene.config(f"{option} = {path}\n")
            code, _, err = analyze(scene.project, "k.ptx")
            if option == "source-root" and path == "link.json":
                continue
            assert code == 3 and f"without line 1 ({option}): " in err, (option, path, code, err)


def check_place(scene):
    """The search ends at the top of the repository, or at the working directory."""
    scene.config("ignore = F051\n", scene.top)
    (scene.project / "ptx-debug.conf").unlink()
    refused(scene, "it lies above the project ")
    refused(scene, "it lies above the project ", scene.below)
    (scene.top / "ptx-debug.conf").unlink()
    (scene.project / ".git").rmdir()
    scene.config("ignore = F051\n")
    refused(scene, "it lies above the project ", scene.below)
    code, _, err = analyze(scene.project, "k.ptx")
    assert code == 64 and "no rule is left" in err, (code, err)  # used in the working directory itself
    (scene.project / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree or submodule
    assert analyze(scene.below, "../../k.ptx")[0] == 64
    (scene.project / ".git").unlink()
    (scene.project / ".git").mkdir()


def check_owner(scene):
    path = scene.config("baseline = known.json\n")
    for mode, why in ((0o666, "every user may write it"), (0o646, "every user may write it")):
        path.chmod(mode)
        refused(scene, why)
    path.chmod(0o644)
    link = scene.outside / "ptx-debug.conf"
    path.rename(link)
    path.symlink_to(link)
    refused(scene, "it lies outside of the folders that may be read")
    path.unlink()
    path.mkdir()
    refused(scene, "it is no regular file")
    path.rmdir()
    os.mkfifo(path)
    refused(scene, "it is no regular file")
    path.unlink()
    scene.config("#" * (2 << 20))
    refused(scene, "at most 1048576 are read")
    scene.config("baseline = known.json\n")
    if os.geteuid() != 0:
        return "SKIPPED: files of another user; only root can make them"
    os.chown(path, NOBODY, NOBODY)
    refused(scene, f"it belongs to user {NOBODY}, and neither to you \\(user 0\\) nor to root")
    os.chown(path, 0, NOBODY)
    path.chmod(0o664)
    refused(scene, f"its group {NOBODY} may write it")
    path.chmod(0o644)
    assert analyze(scene.project, "k.ptx")[0] == 0
    return "files of another user are not taken"


with tempfile.TemporaryDirectory() as folder:
    scene = Scene(folder)
    check_programs_and_outputs(scene)
    check_reads(scene)
    check_place(scene)
    print("a configuration that is found starts nothing and writes nothing;", check_owner(scene))
