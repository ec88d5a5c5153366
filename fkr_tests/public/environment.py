"""A virtual environment with exactly the packages pinned in requirements.txt: two compilers and the public packages.

It is in $PTXKIT_PUBLIC_ENV, or below the user's cache folder under the hash of requirements.txt, so that all checkouts share
it. Nothing in it needs a GPU or a CUDA toolkit.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")


class Unavailable(Exception):
    """The environment cannot be made here; the message has the reason."""


def digest():
    interpreter = f"{sys.version_info.major}.{sys.version_info.minor}"
    return hashlib.sha256(interpreter.encode() + REQUIREMENTS.read_bytes()).hexdigest()[:16]


def folder():
    named = os.environ.get("PTXKIT_PUBLIC_ENV")
    if named:
        return pathlib.Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "ptxkit" / f"public-{digest()}"


def interpreter():
    return folder() / "bin" / "python3"


def is_complete():
    return (folder() / "complete").is_file()


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def reason_file():
    return folder().with_suffix(".unavailable")


def why_incomplete():
    """The reason why the last make() failed; None if it has not been called or did not fail."""
    return reason_file().read_text(encoding="utf-8") if reason_file().is_file() else None


def last_lines(text):
    return " | ".join(line.strip() for line in text.strip().splitlines()[-3:])


def make():
    """Installs the missing packages. Raises Unavailable if there is no venv module or no package index."""
    with locked(folder().with_suffix(".lock")):
        if is_complete():
            return
        try:
            install(folder())
        except Unavailable as reason:
            reason_file().write_text(str(reason), encoding="utf-8")
            raise
        reason_file().unlink(missing_ok=True)


def install(target):
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", target], capture_output=True, text=True)
    if made.returncode:
        raise Unavailable(f"python3 -m venv failed (Debian: apt install python3-venv): {last_lines(made.stdout + made.stderr)}")
    pip = [interpreter(), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # One small package first: without a network pip would try each package for minutes.
    probe = subprocess.run(pip + ["download", "--quiet", "--retries", "1", "--timeout", "15", "--no-deps", "--dest", target / "probe",
                                  "lanczos-triton==0.1.0"], capture_output=True, text=True)
    if probe.returncode:
        raise Unavailable(f"the package index cannot be reached: {last_lines(probe.stderr)}")
    installed = subprocess.run(pip + ["install", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-compile", "--requirement",
                                      REQUIREMENTS], capture_output=True, text=True)
    if installed.returncode:
        raise Unavailable(f"pip install failed: {last_lines(installed.stderr)}")
    (target / "complete").write_text(REQUIREMENTS.read_text(encoding="utf-8"), encoding="utf-8")
