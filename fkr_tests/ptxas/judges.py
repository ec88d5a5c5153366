"""Programs that judge PTX text: ptxas and `ptx-debug check`, which give a verdict and the lines of their messages, and other
readers of PTX, which accept a text or refuse it."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

OLDEST_TARGET = 75  # of ptxas 13.0; text for older targets is assembled for this one

# ptxas's messages about text that is valid PTX, but that this ptxas, or a single module, cannot compile.
NOT_ABOUT_THE_TEXT = re.compile(
    r"32-Bit compilation is no longer supported|32-Bit ABI|Unresolved extern|Cannot take address of function|"
    r"requires command line option '--compile-only'|Compile only\(-c\)' requires")
LINKING = re.compile(r"Unresolved extern|Cannot take address of function|requires command line option '--compile-only'")


def find_ptxas():
    found = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    return found if os.access(found, os.X_OK) else None


class Verdict:
    """`kind` is "ok", "fail", or "other" if the message is not about the text; the lines of the messages, in the order in
    which they were printed; the first message."""

    def __init__(self, kind, lines=(), message=""):
        self.kind, self.lines, self.message = kind, list(lines), message


def target_of(text):
    match = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)
    return match[1] if match else "sm_75"


def architecture(target):
    match = re.fullmatch(r"sm_(\d+)([af]?)", target)
    if not match:
        return "sm_75"
    number = {101: 110}.get(int(match[1]), int(match[1]))  # sm_101 was renamed
    return f"sm_{OLDEST_TARGET}" if number < OLDEST_TARGET else f"sm_{number}{match[2]}"


def assemble(ptxas, path, target, output="/dev/null", options=(), timeout=120):
    """ptxas's verdict on one file. A module that only a linker can complete is assembled as a part of a program."""
    command = [ptxas, f"-arch={architecture(target)}", *options, str(path), "-o", str(output)]
    for extra in ([], ["-c"]):
        try:
            run = subprocess.run(command[:1] + extra + command[1:], capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return Verdict("other", (), "timeout")
        said = run.stderr.decode(errors="replace")
        if run.returncode == 0:
            return Verdict("ok")
        if extra or not LINKING.search(said):
            break
    if run.returncode < 0:
        return Verdict("other", (), f"ptxas ended with signal {-run.returncode}")
    complaints = [line for line in said.splitlines() if "error" in line or "fatal" in line]
    complaints = [line for line in complaints if "aborted due to errors" not in line] or ["?"]
    lines = [int(m[1]) for m in (re.search(r", line (\d+); ", line) for line in complaints) if m]
    kind = "other" if NOT_ABOUT_THE_TEXT.search(complaints[0]) and not lines else "fail"
    return Verdict(kind, lines, complaints[0].split(";", 1)[-1].strip())


def check(ptx_debug, paths):
    """Our verdicts on many files, as a dictionary by path."""
    verdicts = {}
    paths = [str(path) for path in paths]
    for start in range(0, len(paths), 200):
        part = paths[start:start + 200]
        run = subprocess.run([ptx_debug, "check", *part], capture_output=True, timeout=600)
        said = run.stdout.decode(errors="replace")
        for path in part:
            verdicts[path] = Verdict("fail", (), "no verdict: " + run.stderr.decode(errors="replace")[:200])
        for line in said.splitlines():
            if match := re.match(r"(.+?): ok, PTX", line):
                verdicts[match[1]] = Verdict("ok")
            elif (match := re.match(r"(.+?):(\d+):\d+: error: (.*)", line)) and match[1] in verdicts:
                verdict = verdicts[match[1]]
                if not verdict.lines:
                    verdict.message = match[3]
                verdict.lines.append(int(match[2]))
    return verdicts


class Peer:
    """Another program that reads PTX, given as NAME=COMMAND: COMMAND FILE exits with 0 if it accepts the file. A program that
    crashes or takes longer than SECONDS does not accept it."""
    SECONDS = 20

    def __init__(self, text):
        self.name, _, command = text.partition("=")
        self.command = shlex.split(command)
        if not self.name or not self.command or not shutil.which(self.command[0]):
            raise argparse.ArgumentTypeError(f"'{text}': expected NAME=COMMAND with a command that can be run")

    def takes(self, path):
        try:
            return subprocess.run([*self.command, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=self.SECONDS).returncode == 0
        except subprocess.TimeoutExpired:
            return False


class Workshop:
    """A folder for texts that are judged once."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ptxkit-"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="latin-1")
        return path
