"""Interrupts (Ctrl-C) and progress of streams: nothing is lost without an error, and no thread stays."""

import io
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import lz4.frame
import ptxkit
import pytest
import tqdm
from conftest import noise

DATA = noise(60_000_000)
INTERRUPTED = """
import sys, threading
import ptxkit
data = bytes(range(256)) * 4_000_000
print("ready", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    print(sum(thread.name.startswith("ptxkit") for thread in threading.enumerate()))
"""


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ptxkit")]


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)  # to the main thread, as a terminal does


class Below(io.BytesIO):
    """A file that gets an interrupt while a stream is half-way."""

    calls = 0

    def count(self):
        self.calls += 1
        if self.calls == 2:
            interrupt()
            time.sleep(0.2)

    def write(self, data):
        self.count()
        return super().write(data)

    def read(self, size=-1):
        self.count()
        return super().read(size)


def test_writing_a_file():
    below = Below()
    with pytest.raises(KeyboardInterrupt), ptxkit.open(below, "wb", codec="lz4") as file:
        file.write(DATA)
    written = below.getvalue()
    assert len(written) < len(DATA) // 2
    with pytest.raises(ptxkit.CorruptInputError, match="truncated"):
        ptxkit.open(io.BytesIO(written)).read()


def test_ending_a_file():
    """The interrupt comes when all is handed over, and close() waits."""
    below = Below()
    below.calls = -2
    file = ptxkit.open(below, "wb", codec="lz4")
    file.write(DATA[:20_000_000])
    with pytest.raises(KeyboardInterrupt):
        file.close()
    assert file.closed
    with pytest.raises(ptxkit.CorruptInputError):
        ptxkit.open(io.BytesIO(below.getvalue())).read()


def test_reading_a_file():
    file = ptxkit.open(Below(lz4.frame.compress(DATA)))
    with pytest.raises(KeyboardInterrupt):
        file.read()
    with pytest.raises(KeyboardInterrupt):  # bytes may be missing, so reading does not go on
        file.read(10)
    file.seek(0)
    assert file.read(100) == DATA[:100]
    file.close()


@pytest.mark.parametrize("compresses", [True, False], ids=["compress", "decompress"])
def test_one_buffer(compresses):
    """At any moment: the call is stopped, or its result is whole."""
    stored = lz4.frame.compress(DATA, content_checksum=True, store_size=False)

    def on_alarm(*_):
        raise InterruptedError("alarm")

    outcomes = []
    before = signal.signal(signal.SIGALRM, on_alarm)
    try:
        for i in range(12):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + i * 0.004)
                if compresses:
                    result = ptxkit.lz4.frame.compress(DATA, content_checksum=True, block_checksum=True)
                else:
                    result = ptxkit.lz4.frame.decompress(stored)
                signal.setitimer(signal.ITIMER_REAL, 0)
                outcomes.append((lz4.frame.decompress(result) if compresses else result) == DATA)
            except InterruptedError:
                outcomes.append("stopped")
            assert not [thread for thread in threading.enumerate() if thread.name.startswith("ptxkit")]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "stopped" in outcomes and False not in outcomes


@pytest.mark.parametrize(
    "call",
    [
        "ptxkit.lz4.frame.compress(data, content_checksum=True)",
        "ptxkit.open('/dev/null', 'wb', codec=ptxkit.Codec('lzr')).write(data)",
        "ptxkit.lz4.frame.LZ4FrameDecompressor().decompress(ptxkit.lz4.frame.compress(data))",
    ],
)
def test_a_process_ends_in_time(call):
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", INTERRUPTED.format(call=call)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "0\n", "")


def test_progress(tmp_path):
    path = tmp_path / "a.lz4"
    with tqdm.tqdm(total=len(DATA), file=io.StringIO()) as bar:
        with ptxkit.open(path, "wb", progress=bar.update) as file:
            for at in range(0, len(DATA), 1_000_000):
                file.write(DATA[at : at + 1_000_000])
                assert bar.n == at + 1_000_000
    with (
        tqdm.tqdm(total=path.stat().st_size, file=io.StringIO()) as bar,
        ptxkit.open(path, progress=bar.update) as file,
    ):
        seen = []
        while file.read(5_000_000):
            seen.append(bar.n)
        assert bar.n == bar.total and seen == sorted(seen) and len(set(seen)) > 3
    counts = []
    with ptxkit.open(path, "wt", progress=counts.append) as file:
        file.write("text")
    assert counts == [4]


def test_progress_that_raises(tmp_path):
    path = tmp_path / "a.lz4"

    def stop(_):
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"), ptxkit.open(path, "wb", progress=stop) as file:
        file.write(b"abc")
    file = ptxkit.open(path, progress=stop)
    for _ in range(2):
        with pytest.raises(StopIteration, match="enough"):
            file.read()
    file.close()
    with pytest.raises(TypeError, match="progress: expected a function"):
        ptxkit.open(pathlib.Path(path), progress=7)
