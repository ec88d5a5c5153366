#!/usr/bin/env python3
"""The HTML report in a real browser: its script runs, and the filter in the address hides what it should.

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


def findings(folder, fragment):
    """(rule, severity, is hidden) of each finding, and what the page says of their number."""
    page = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom",
         f"file://{folder}/report.html{fragment}"], capture_output=True, text=True, timeout=100, check=True).stdout
    tags = re.findall(r"<article [^>]*>", page)
    found = [(re.search(r'data-rule="(\w+)"', tag)[1], int(re.search(r'data-severity="(\d)"', tag)[1]),
              re.search(r"\shidden(=|\s|>)", tag) is not None) for tag in tags]
    return found, re.search(r"<output>([^<]*)</output>", page)[1], page


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
        hidden = dict(re.findall(r'<section class="kernel" id="\w+" data-kernel="(\w+)"( hidden="")?', page))
        assert hidden == {"find_matches": ' hidden=""', "transpose": ""}, hidden
    print(f"{len(everything)} findings, filtered by rule, severity, text and kernel")


main()
