#!/usr/bin/env python3
"""`.file` may name anything: lines of a file are shown only if it is a regular file of limited size below the folder of
the PTX, the working directory or --source-root, after links are followed. Opening it must never block.

usage: foreign_sources.py REPO PTX_DEBUG"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
SECRET = "do-not-show-this-word"
PTX = open(f"{REPO}/fkr_tests/cli/ptx-debug/inputs/misaligned.ptx", encoding="utf-8").read()


def shown(folder, ptx, *words):
    """Whether the secret appears in a report of any format."""
    page = pathlib.Path(tempfile.gettempdir()) / f"page.{os.getpid()}.html"
    environment = dict(os.environ, LEAKED=SECRET)
    found = False
    for form in ("text", "json", "sarif", "github"):
        done = subprocess.run([PTX_DEBUG, "analyze", "--no-config", "--falsify", "-v", "--format", form, "--html", page,
                               *words, ptx], cwd=folder, capture_output=True, check=False, timeout=20, env=environment)
        assert done.returncode == 3, (done.returncode, done.stderr)
        found = found or SECRET.encode() in done.stdout + page.read_bytes()
        page.unlink()
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        work, home, outside = top / "work", top / "home", top / "outside"
        for each in (work / "deep", work / ".hidden", home, outside):
            each.mkdir(parents=True)
        lines = f"{SECRET}\n" * 30
        for path in (work / "near.cu", work / "deep" / "d.cu", work / ".env", work / ".hidden" / "h.cu", home / "here.cu",
                     outside / "far.cu"):
            path.write_text(lines)
        (work / "large.cu").write_text(lines + "x" * (8 << 20))
        (work / "link.cu").symlink_to(outside / "far.cu")
        (work / "folder").symlink_to(outside)
        (work / "own.cu").symlink_to("deep/d.cu")
        os.mkfifo(work / "pipe.cu")
        # The name of a text in a container begins with the container's file name. A link with the name of the prefix
        # must not make its target a folder from which sources are shown.
        (work / "library.a(").symlink_to("/")

        def named(name, *words, where=home):
            (work / "k.ptx").write_text(PTX.replace("match.cpp", str(name)))
            return shown(where, work / "k.ptx", *words)

        for name in ("near.cu", work / "near.cu", "deep/d.cu", "deep/../near.cu", "own.cu", home / "here.cu", "here.cu"):
            assert named(name), f"{name} is not shown"
        for name in (outside / "far.cu", "../outside/far.cu", "link.cu", "folder/far.cu", work / "folder" / "far.cu",
                     "large.cu", "pipe.cu", ".env", ".hidden/h.cu", work / ".hidden/h.cu", "/proc/self/environ",
                     "/proc/self/../self/environ", "/dev/stdin", "/dev/zero", "/proc/kmsg", "/dev/tty", "/proc/self/mem",
                     "/proc/thread-self/environ", "/sys/kernel/notes", "deep", "/", "", "x" * 5000):
            assert not named(name), f"{name} is shown"
        assert named(outside / "far.cu", "--source-root", outside)
        assert named("far.cu", "--source-root", "../outside")
        assert named("link.cu", "--source-root", outside)
        assert named(".hidden/h.cu", "--source-root", work / ".hidden")
        assert not named("/proc/self/environ", "--source-root", "/")
        assert not named("/proc/self/environ", where="/proc/self")
        # In / everything is below the working directory, so the working directory does not count there.
        assert not named(outside / "far.cu", where="/")

        payload = PTX.replace("match.cpp", str(outside / "far.cu")).encode()
        padded = payload + bytes(-len(payload) % 8)
        entry = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 80, len(padded), len(payload), 64, 0, 8, 75, 0, 0, 0x11, 0,
                            0).ljust(80, b"\0") + padded
        fatbin = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry
        names = b"\0__nv_relfatbin\0.shstrtab\0"
        elf = b"\x7fELF\2\1\1".ljust(18, b"\0") + struct.pack("<HI8x8xQ", 62, 1, 64 + len(fatbin) + len(names))
        elf = elf.ljust(58, b"\0") + struct.pack("<HHH", 64, 3, 2) + fatbin + names + bytes(64)
        elf += struct.pack("<II8x8xQQ", 1, 1, 64, len(fatbin)).ljust(64, b"\0")
        elf += struct.pack("<II8x8xQQ", 16, 1, 64 + len(fatbin), len(names)).ljust(64, b"\0")
        table = b"/etc/k.o/\n"

        def member(header, content):
            return header.ljust(48) + str(len(content)).encode().ljust(10) + b"`\n" + content + b"\n" * (len(content) % 2)

        (work / "library.a").write_bytes(b"!<arch>\n" + member(b"//", table) + member(b"/0", elf))
        assert not shown(home, work / "library.a"), "the name of an archive's member opened a folder"
        assert shown(home, work / "library.a", "--source-root", outside)

        done = subprocess.run([PTX_DEBUG, "analyze", "--no-config", "--source-root", "gone", work / "k.ptx"], cwd=home,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 64 and "--source-root: expected a folder, found 'gone'" in done.stderr, done
        (work / "k.ptx").write_text(PTX.replace("match.cpp", str(outside / "far.cu")))
        done = subprocess.run([PTX_DEBUG, "analyze", "--no-config", "-v", work / "k.ptx"], cwd=home, capture_output=True,
                              text=True, check=False)
        assert "1 source outside of the PTX's folder and the working folder is not shown; --source-root" in done.stderr

        # A link in a searched folder leads outside: its target is not read.
        tree = top / "tree"
        (tree / "sub").mkdir(parents=True)
        shutil.copy(f"{REPO}/fkr_tests/cli/ptx-debug/inputs/good.ptx", tree / "good.ptx")
        (tree / "same.ptx").symlink_to("good.ptx")
        (outside / "secret.ptx").write_text(SECRET)
        (tree / "sub" / "out.ptx").symlink_to(outside / "secret.ptx")
        done = subprocess.run([PTX_DEBUG, "check", tree], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.count(": ok, ") == 2 and SECRET not in done.stdout, done
        assert "2 files with PTX, 1 other skipped" in done.stderr, done
    print("sources are shown from where they may be, and from nowhere else")


main()
