#!/usr/bin/env python3
"""The HTML report in a real browser: the filter in the address hides what it should, a click highlights the lines of
PTX and source that belong together, and printing unfolds everything.

usage: html_browser.py REPO PTX_DEBUG; exits 77 where no Chromium is installed (Debian package chromium)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
if not BROWSER:
    print("SKIPPED: the report was not opened in a browser; the Debian package chromium is not installed")
    sys.exit(77)


def opened(folder, name):
    """The page after its scripts have run."""
    return subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom",
         f"file://{folder}/{name}"], capture_output=True, text=True, timeout=100, check=True).stdout


def findings(folder, fragment):
    """(rule, severity, is hidden) of each finding, and the whole page."""
    page = opened(folder, "report.html" + fragment)
    tags = re.findall(r"<article [^>]*>", page)
    found = [(re.search(r'data-rule="(\w+)"', tag)[1], int(re.search(r'data-severity="(\d)"', tag)[1]),
              re.search(r"\shidden(=|\s|>)", tag) is not None) for tag in tags]
    return found, re.search(r"<output>([^<]*)</output>", page)[1], page


def hidden_kernels(page):
    return {name: bool(hidden) for name, hidden in
            re.findall(r'<section class="kernel" id="\w+" data-kernel="(\w+)"( hidden="")?', page)}


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([PTX_DEBUG, "analyze", "--falsify", f"--html={folder}/report.html",
                        f"{REPO}/docs/examples/misaligned_cursor.ptx",
                        f"{REPO}/fkr_tests/cli/ptx-debug/inputs/banks.ptx"], capture_output=True, check=False)
        everything, said, _ = findings(folder, "")
        assert everything and not any(hidden for _, _, hidden in everything), everything
        assert said == f"{len(everything)} findings", said
        by_rule, said, _ = findings(folder, "#filter&rule=F051")
        assert all(hidden == (rule != "F051") for rule, _, hidden in by_rule), by_rule
        assert said == f"1 of {len(everything)} findings", said
        by_severity, _, _ = findings(folder, "#filter&severity=4")
        assert all(hidden == (severity < 4) for _, severity, hidden in by_severity), by_severity
        by_text, said, _ = findings(folder, "#filter&text=no+such+text")
        assert all(hidden for _, _, hidden in by_text) and said.startswith("0 of "), (by_text, said)
        _, _, page = findings(folder, "#filter&kernel=transpose")
        assert hidden_kernels(page) == {"find_matches": True, "transpose": False}, hidden_kernels(page)
        _, _, page = findings(folder, "#filter&rule=F051")
        assert hidden_kernels(page) == {"find_matches": False, "transpose": True}, hidden_kernels(page)
        # Simulates a reader, with a script at the end of a copy.
        acts = ("document.querySelector('.lines.source [data-source]').click();"
                "window.dispatchEvent(new Event('beforeprint'));")
        with open(f"{folder}/report.html", encoding="utf-8") as file:
            text = file.read()
        with open(f"{folder}/used.html", "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", f"<script>{acts}</script></body>"))
        page = opened(folder, "used.html")
        lit = re.findall(r'<tr id="k0-(p|s)[^>]*data-source="([^"]*)"[^>]*class="[^"]*lit[^>]*>', page)
        assert {panel for panel, _ in lit} == {"p", "s"} and len({source for _, source in lit}) == 1, lit
        folded = [tag for tag in re.findall(r"<details[^>]*>", page) if "open" not in tag]
        assert not folded and '<details class="shared">' in text, folded
    print(f"{len(everything)} findings, filtered by rule, severity, text and kernel")


main()
