#!/usr/bin/env python3
"""Runs ptx-pack and ptx-debug for a given time on mixed jobs, under limits and injected faults, and checks every file.

  soak.py PTX_PACK PTX_DEBUG [--seconds N] [--seed N] [--fake-cuda LIBFAKECUDA] [--kernel FILE.ptx]

Each job draws its input, its options and one fault at random: a limit of memory, descriptors, threads or file size, a
full file system, closed standard descriptors, a signal at a random moment, a device that fails at a random driver call,
or none. After each job these must hold:
  - the exit status is a documented one; the status of a signal only if a signal was sent or a limit sends one;
  - the input is unchanged; it may be gone only with --rm, and then the output decodes to its bytes: after exit
    status 0, or after a signal that came later;
  - an output is absent or complete: after exit status 0 it decodes to the input's bytes, after any other it did not
    exist before or is unchanged;
  - no other file is left in the folder, except after SIGKILL;
  - standard error of a failure names the cause.
Exits 1 at the first job that violates one of these, and prints a line that repeats it. Exits 77 if the programs are not
built.
"""
import argparse
import collections
import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MEBI = 1 << 20
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1, signal.SIGKILL]


class Fault(Exception):
    pass


def raw_bytes(draw):
    """Bytes of a random size: text-like, random, zero or mixed."""
    size = draw.choice([0, 1, 100, 5000, 65536, 65537, 300_000, 1_500_000, 5_000_000])
    kind = draw.choice(["words", "random", "zeros", "mixed"])
    if kind == "zeros":
        return bytes(size)
    if kind == "random":
        return draw.randbytes(size)
    words = [draw.randbytes(draw.randint(2, 9)) for _ in range(200)]
    out = bytearray()
    while len(out) < size:
        out += draw.choice(words) if kind == "words" or draw.random() < 0.8 else draw.randbytes(draw.randint(1, 400))
    return bytes(out[:size])


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


class Soak:
    def __init__(self, options):
        self.options = options
        self.counts = collections.Counter()
        listed = subprocess.run([options.ptx_pack, "--list-codecs"], check=True, capture_output=True, text=True).stdout
        self.suffixes = dict(line.split()[:2] for line in listed.splitlines())
        self.raw_total = 0
        self.may_mount, self.may_be_nobody = self.can_mount(), self.can_be_nobody()

    @staticmethod
    def can_mount():
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["mount", "-t", "tmpfs", "none", folder], stderr=subprocess.DEVNULL)
            return done.returncode == 0 and subprocess.run(["umount", folder]).returncode == 0

    def can_be_nobody(self):
        """Whether another user can start the programs; thread limits do not apply to root."""
        try:
            return os.geteuid() == 0 and subprocess.run([self.options.ptx_pack, "--version"], user=65534, stdout=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False

    def limits(self, fault, draw):
        def apply():
            if fault == "memory":
                resource.setrlimit(resource.RLIMIT_AS, (draw_memory, draw_memory))
            elif fault == "descriptors":
                resource.setrlimit(resource.RLIMIT_NOFILE, (draw_descriptors, draw_descriptors))
            elif fault == "file size":
                resource.setrlimit(resource.RLIMIT_FSIZE, (draw_size, draw_size))
            elif fault == "threads":
                resource.setrlimit(resource.RLIMIT_NPROC, (draw_threads, draw_threads))
                os.setuid(65534)  # thread limits do not apply to root
            elif fault == "closed descriptors":
                for descriptor in draw_closed:
                    os.close(descriptor)
        draw_memory = draw.choice([40, 60, 100, 200, 400]) * MEBI
        draw_descriptors = draw.randint(4, 12)  # the loader needs one
        draw_size = draw.choice([0, 10, 4096, 100_000, 1_000_000])
        draw_threads = draw.choice([1, 2, 4, 20])
        draw_closed = draw.sample([0, 1, 2], draw.randint(1, 3))
        return apply

    def run(self, command, fault, draw, folder, environment):
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment, preexec_fn=self.limits(fault, draw))
        sent = None
        if fault == "signal":
            time.sleep(draw.random() ** 3 * 0.3)
            sent = draw.choice(SIGNALS)
            process.send_signal(sent)
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Fault("did not end within 240 s")
        return process.returncode, out, err, sent

    def decode(self, path):
        done = subprocess.run([self.options.ptx_pack, "-dc", "-q", "--backend", "cpu", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout if done.returncode == 0 else None

    def check_status(self, status, sent, fault, err, allowed):
        if status < 0:
            by_limit = fault == "file size" and -status == signal.SIGXFSZ
            if not by_limit and (sent is None or -status != sent):
                raise Fault(f"ended by signal {-status}")
        elif status not in allowed:
            raise Fault(f"exit status {status}, expected one of {sorted(allowed)}")
        elif status != 0 and not err and fault != "closed descriptors" and sent is None:
            raise Fault(f"exit status {status} and nothing on standard error")

    def pack(self, draw, folder):
        raw = raw_bytes(draw)
        self.raw_total += len(raw)
        codec = draw.choice(list(self.suffixes)) if draw.random() < 0.5 else "lz4"
        suffix = self.suffixes[codec]
        action = draw.choice(["compress", "compress", "decompress", "test", "list"])
        source, target = folder / "input.bin", folder / ("input.bin" + suffix)
        source.write_bytes(raw)
        words = []
        if action != "compress":
            made = subprocess.run([self.options.ptx_pack, "-q", "--backend", "cpu", "--codec", codec, source, "-o", target], stderr=subprocess.PIPE)
            if made.returncode:
                raise Fault(f"a plain compression failed: {made.stderr!r}")
            source, target = target, source
            target.unlink()
            words = {"decompress": ["-d"], "test": ["-t"], "list": ["--list"]}[action]
        else:
            words = ["--codec", codec]
            if codec == "lz4":
                words += draw.choice([[], ["-B4"], ["-B7"], ["-BD"], ["-BX", "--content-size"], ["--reproducible"], ["-3"]])
            words += draw.choice([[], ["--verify"]])
        writes = action in ("compress", "decompress")
        if writes:
            words += ["-o", target.name]
            words += draw.choice([[], [], ["--rm"]])
            words += draw.choice([[], ["-f"]])
        words += draw.choice([[], ["--memory", "24M"], ["-T", "1"], ["-T", "3"]])
        environment = dict(os.environ)
        # The fake driver runs only the LZ4 kernels.
        backend = draw.choice(["auto", "cpu", "cpu"] + (["cuda", "auto gpu"] if self.options.fake_cuda and codec == "lz4" else []))
        small = len(raw) <= 65537
        if draw.random() < 0.1 and small and codec == "lz4":
            backend = "emulator"
        words += ["--backend", backend.split()[0]] + (["--policy", "gpu"] if backend == "auto gpu" else [])
        faults = ["none", "memory", "descriptors", "threads", "file size", "signal", "signal", "closed descriptors"]
        if self.may_mount:
            faults.append("full disk")
        if self.options.fake_cuda:
            environment["PTXKIT_LIBCUDA"] = self.options.fake_cuda
            faults += ["device", "device"]
        fault = draw.choice(faults)
        if fault == "threads" and not self.may_be_nobody:
            fault = "none"
        if fault == "device":
            function = draw.choice(["cuMemAlloc_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize",
                                    "cuEventRecord", "cuMemHostAlloc", "cuModuleLoadDataEx", "cuCtxSynchronize", "cuGraphLaunch"])
            environment["PTXKIT_FAKE_CUDA"] = f"{function}:{draw.randint(1, 6)}:{draw.choice([2, 700, 716, 719, 999])}"
        mounted = None
        if fault == "full disk" and writes:
            # The output's folder is a small file system, from which the input is reached.
            mounted = folder / "small"
            mounted.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={draw.choice(['4k', '64k', '1m'])}", "none", mounted], check=True)
            words[words.index("-o") + 1] = "small/" + target.name
            target = mounted / target.name
        before = None
        if writes and "-f" in words and draw.random() < 0.5 and mounted is None:
            target.write_bytes(b"before")
            before = digest(target)
        if fault == "threads":
            for path in [folder, *folder.iterdir()]:
                os.chown(path, 65534, 65534)
            folder.chmod(0o755)
        stored = digest(source)

        def is_whole():
            """Whether the output is in place and decodes to the whole input."""
            return target.exists() and (self.decode(target) if action == "compress" else target.read_bytes()) == raw

        command = [self.options.ptx_pack, *words, source.name]
        self.command = f"{' '.join(map(str, command))}; fault: {fault}"
        try:
            status, _, err, sent = self.run(command, fault, draw, folder, environment)
            self.check_status(status, sent, fault, err, {0, 1})
            self.counts[fault, "done" if status == 0 else "failed"] += 1
            if not source.exists():
                # A signal may come after the input was removed, at a time when its output is already in place.
                if "--rm" not in words or not (status == 0 or (sent and is_whole())):
                    raise Fault(f"the input is gone, exit status {status}")
            elif digest(source) != stored:
                raise Fault("the input has changed")
            if writes:
                if status == 0:
                    if not is_whole():
                        raise Fault("exit status 0, and the output is not that of the input")
                elif digest(target) != before and not (sent and is_whole()):
                    raise Fault(f"exit status {status}, and an output is left")
            if sent != signal.SIGKILL:
                known = {source.name, target.name, "small"}
                left = [path.name for path in folder.rglob("*") if path.name not in known]
                if left:
                    raise Fault(f"left behind: {left}")
        finally:
            if mounted:
                subprocess.run(["umount", mounted], check=True)

    def debug(self, draw, folder):
        kernel = folder / "kernel.ptx"
        text = pathlib.Path(self.options.kernel).read_bytes()
        if draw.random() < 0.5:
            text = bytearray(text)
            for _ in range(draw.randint(1, 20)):
                text[draw.randrange(len(text))] = draw.randrange(256)
        kernel.write_bytes(text)
        report = folder / "report.out"
        words = draw.choice([["analyze", "--falsify", "--html", report.name], ["analyze", "--sarif", report.name], ["analyze", "--json=" + report.name],
                             ["check"], ["stats"], ["info"], ["print"]])
        fault = draw.choice(["none", "memory", "descriptors", "threads", "file size", "signal", "closed descriptors"])
        if fault == "threads":
            if not self.may_be_nobody:
                fault = "none"
            else:
                for path in [folder, kernel]:
                    os.chown(path, 65534, 65534)
        command = [self.options.ptx_debug, *words, kernel.name]
        self.command = f"{' '.join(map(str, command))}; fault: {fault}"
        stored = digest(kernel)
        status, out, err, sent = self.run(command, fault, draw, folder, dict(os.environ))
        # Findings and errors in the text have exit codes of their own; their report is on standard output.
        self.check_status(status, sent, fault, err or out, {0, 1, 2, 3, 10, 11, 12, 130, 143} if sent else {0, 1, 2, 3, 10, 11, 12})
        self.counts["ptx-debug " + fault, "done" if 0 <= status < 10 else "failed"] += 1
        if digest(kernel) != stored:
            raise Fault("the input has changed")
        if sent != signal.SIGKILL:
            left = [path.name for path in folder.rglob("*") if path.name not in {kernel.name, report.name}]
            if left:
                raise Fault(f"left behind: {left}")

    def go(self):
        end, number = time.monotonic() + self.options.seconds, 0
        while time.monotonic() < end:
            seed = f"{self.options.seed}/{number}"
            number += 1
            draw = random.Random(seed)
            folder = pathlib.Path(tempfile.mkdtemp(prefix="ptxkit_soak_"))
            self.command = "before the command"
            try:
                (self.debug if draw.random() < 0.25 else self.pack)(draw, folder)
            except Fault as fault:
                print(f"soak: {fault}\n  job {seed}: {self.command}", file=sys.stderr)
                return 1
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            if self.options.job is not None and number > self.options.job:
                break
        print(f"{number} jobs, {self.raw_total / 1e6:.0f} MB of input")
        for (fault, outcome), count in sorted(self.counts.items()):
            print(f"  {fault:30} {outcome:7} {count:6}")
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptx_pack", type=os.path.abspath)
    parser.add_argument("ptx_debug", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--job", type=int, help="stop after the job of this number")
    parser.add_argument("--fake-cuda", type=os.path.abspath)
    parser.add_argument("--kernel", type=os.path.abspath, required=True)
    options = parser.parse_args()
    if not (os.path.exists(options.ptx_pack) and os.path.exists(options.ptx_debug)):
        print("soak: the programs are not built")
        return 77
    return Soak(options).go()


sys.exit(main())
