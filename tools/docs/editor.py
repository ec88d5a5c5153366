#!/usr/bin/env python3
"""Draws docs/images/editor.svg: Neovim with `ptx-debug lsp` on the misaligned example, as a terminal shows it.

usage: editor.py PTX_DEBUG     (exit 77, and the old picture stays, where there is no Neovim or no tmux)
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from terminal import cells, draw

REPO = pathlib.Path(__file__).resolve().parents[2]
PICTURE = REPO / "docs" / "images" / "editor.svg"
EXAMPLE = "misaligned_cursor.ptx"
COLUMNS, LINES = 118, 28
FINDING = "4-byte load at a mis"
HOVER = "PTX 1.0 and later"
WAIT_SECONDS = 30


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    for name, package in (("nvim", "neovim"), ("tmux", "tmux")):
        if not shutil.which(name):
            print(f"editor.py: SKIPPED: no {name} (Debian: {package}); docs/images/editor.svg stays as it is", file=sys.stderr)
            return 77
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(REPO / "docs" / "examples" / EXAMPLE, folder)
        environment = {**os.environ, "PTX_DEBUG": str(program), "HOME": folder, "XDG_CONFIG_HOME": folder,
                       "XDG_STATE_HOME": folder, "XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder, "LC_ALL": "C.UTF-8"}

        def tmux(*words):
            return subprocess.run(["tmux", "-S", f"{folder}/socket", "-f", "/dev/null", *words], env=environment, cwd=folder,
                                  check=True, stdout=subprocess.PIPE, text=True).stdout

        def wait_for(text):
            end = time.monotonic() + WAIT_SECONDS
            while text not in tmux("capture-pane", "-p"):
                if time.monotonic() > end:
                    raise SystemExit(f"editor.py: Neovim does not show '{text}':\n{tmux('capture-pane', '-p')}")
                time.sleep(0.2)

        tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES),
             f"nvim -u {REPO}/tools/docs/editor.lua -i NONE -n {EXAMPLE}")
        try:
            line = (REPO / "docs" / "examples" / EXAMPLE).read_text(encoding="ascii").split("ld.shared")[0].count("\n") + 1
            tmux("set-option", "-g", "status", "off")
            wait_for(".version")
            tmux("send-keys", f"{line}Gzt6", "C-y", "0w")
            wait_for(FINDING)
            tmux("send-keys", "K")
            wait_for(HOVER)
            time.sleep(0.5)  # the last cells
            screen = tmux("capture-pane", "-p", "-e", "-N")
        finally:
            tmux("kill-server")
    lines, style = [], frozenset()
    for text in screen.rstrip("\n").split("\n"):
        lines.append(cells(text, style))
        style = lines[-1][-1][1] if lines[-1] else style
    PICTURE.write_text(draw(lines, COLUMNS, "Neovim shows a finding of ptx-debug and what the load does"), encoding="utf-8")
    return 0


sys.exit(main())
