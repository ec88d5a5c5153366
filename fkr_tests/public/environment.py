"""A virtual environment with exactly the packages that a requirements.txt pins, such as compilers and public packages.

It is in the folder that a variable names ($PTXKIT_PUBLIC_ENV), or below the user's cache folder under the hash of
requirements.txt, so that all checkouts share it. Nothing in it needs a GPU or a CUDA toolkit.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys


class Unavailable(Exception):
    """The environment cannot be made here; the message has the reason."""


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def last_lines(text):
    return " | ".join(line.strip() for line in text.strip().splitlines()[-3:])


class Environment:
    def __init__(self, name, requirements, probe):
        """`probe` is the smallest of the packages: whether it can be had decides at once whether there is an index."""
        self.name, self.requirements, self.probe = name, pathlib.Path(requirements), probe

    def digest(self):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return hashlib.sha256(version.encode() + self.requirements.read_bytes()).hexdigest()[:16]

    def folder(self):
        named = os.environ.get(f"PTXKIT_{self.name.upper()}_ENV")
        if named:
            return pathlib.Path(named)
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        return pathlib.Path(cache) / "ptxkit" / f"{self.name}-{self.digest()}"

    def interpreter(self):
        return self.folder() / "bin" / "python3"

    def is_complete(self):
        return (self.folder() / "complete").is_file()

    def reason_file(self):
        return self.folder().with_suffix(".unavailable")

    def why_incomplete(self):
        """The reason why the last make() failed; None if it has not been called or did not fail."""
        return self.reason_file().read_text(encoding="utf-8") if self.reason_file().is_file() else None

    def make(self):
        """Installs the missing packages. Raises Unavailable if there is no venv module or no package index."""
        with locked(self.folder().with_suffix(".lock")):
            if self.is_complete():
                return
            try:
                self.install(self.folder())
            except Unavailable as reason:
                self.reason_file().write_text(str(reason), encoding="utf-8")
                raise
            self.reason_file().unlink(missing_ok=True)

    def install(self, target):
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", target], capture_output=True, text=True)
        if made.returncode:
            raise Unavailable(f"python3 -m venv failed (Debian: apt install python3-venv): {last_lines(made.stdout + made.stderr)}")
        pip = [self.interpreter(), "-m", "pip", "--disable-pip-version-check", "--no-input"]
        # One small package first: without a network pip would try each package for minutes.
        probe = subprocess.run(pip + ["download", "--quiet", "--retries", "1", "--timeout", "15", "--no-deps", "--dest", target / "probe",
                                      self.probe], capture_output=True, text=True)
        if probe.returncode:
            raise Unavailable(f"the package index cannot be reached: {last_lines(probe.stderr)}")
        installed = subprocess.run(pip + ["install", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-compile", "--requirement",
                                          self.requirements], capture_output=True, text=True)
        if installed.returncode:
            raise Unavailable(f"pip install failed: {last_lines(installed.stderr)}")
        (target / "complete").write_text(self.requirements.read_text(encoding="utf-8"), encoding="utf-8")


PUBLIC = Environment("public", pathlib.Path(__file__).with_name("requirements.txt"), "lanczos-triton==0.1.0")
