#!/usr/bin/env python3
"""Tests docs/examples/page_cache/nbd_server.cpp with a client of the NBD protocol written here: what is read is what
was written, whatever the alignment; after SIGKILL at any moment, and after a cut or damaged journal, the device is there
again. With qemu-img and nbdinfo, where they are installed, they read it too.

usage: nbd_test.py NBD_SERVER [--seconds N]
"""
import argparse
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

PAGE = 4096
MIB = 1 << 20
READ, WRITE, DISC, FLUSH, TRIM, ZEROES = 0, 1, 2, 3, 4, 6
OK, IO_ERROR, BAD, NO_SPACE = 0, 5, 22, 28
REPLY = 0x3e889045565a9


class Closed(Exception):
    """The server has closed the connection, or was killed."""


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.cookie = 0

    def get(self, count):
        data = b""
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionError:
                piece = b""
            if not piece:
                raise Closed
            data += piece
        return data

    def put(self, data):
        try:
            self.socket.sendall(data)
        except ConnectionError:
            raise Closed from None

    def option(self, number, data=b""):
        """The replies to an option: (type, data) of each."""
        self.put(b"IHAVEOPT" + struct.pack(">II", number, len(data)) + data)
        replies = []
        while not replies or replies[-1][0] not in (1,) and replies[-1][0] < 1 << 31:
            magic, option, kind, size = struct.unpack(">QIII", self.get(20))
            assert (magic, option) == (REPLY, number), (hex(magic), option)
            replies.append((kind, self.get(size)))
        return replies

    def greet(self, flags=3):
        assert self.get(16) == b"NBDMAGICIHAVEOPT"
        assert struct.unpack(">H", self.get(2)) == (3,)
        self.put(struct.pack(">I", flags))

    def go(self):
        """The size and the flags of the export."""
        self.greet()
        replies = self.option(7, struct.pack(">IH", 0, 0))
        assert [kind for kind, _ in replies] == [3, 3, 1], replies
        assert replies[1][1] == struct.pack(">HIII", 3, 1, PAGE, 32 * MIB)
        kind, size, flags = struct.unpack(">HQH", replies[0][1])
        assert kind == 0
        return size, flags

    def send(self, command, offset=0, length=0, data=b"", flags=0, magic=0x25609513):
        self.cookie += 1
        self.put(struct.pack(">IHHQQI", magic, flags, command, self.cookie, offset, length) + data)

    def reply(self, length=0):
        magic, status, cookie = struct.unpack(">IIQ", self.get(16))
        assert magic == 0x67446698 and cookie == self.cookie, (hex(magic), cookie, self.cookie)
        return (status, self.get(length)) if status == 0 else (status, b"")

    def read(self, offset, length):
        self.send(READ, offset, length)
        return self.reply(length)

    def write(self, offset, data, flags=0):
        self.send(WRITE, offset, len(data), data, flags)
        return self.reply()[0]

    def call(self, command, offset=0, length=0, flags=0):
        self.send(command, offset, length, flags=flags)
        return self.reply()[0]


class Server:
    def __init__(self, program, folder, mebibytes=4):
        self.backing, self.socket = os.path.join(folder, "pages"), os.path.join(folder, "socket")
        self.command = [program, self.backing, str(mebibytes), self.socket]
        self.connection = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun = self.process.stdout.readline()
        assert self.begun, self.process.communicate()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self):
        """A connection, after the one before has ended: the server has one client at a time."""
        if self.connection:
            self.connection.socket.close()
        self.connection = Client(self.socket)
        return self.connection

    def client(self):
        client = self.connect()
        client.go()
        return client


def some_bytes(random_source, length):
    kind = random_source.randrange(4)
    if kind == 0:
        return bytes(length)
    if kind == 1:
        return random_source.randbytes(length)
    if kind == 2:
        return bytes([random_source.randrange(256)]) * length
    return (b"%d pages " % random_source.randrange(1000) * (length // 8 + 1))[:length]


def check_protocol(server):
    client = server.connect()
    client.greet()
    assert client.option(3) == [(2, bytes(4)), (1, b"")]
    for number in (5, 8, 9, 77):
        assert client.option(number, b"x" * 10) == [(1 << 31 | 1, b"")], number
    assert client.option(6, b"")[0][0] == 1 << 31 | 3
    assert client.option(6, struct.pack(">IH", 0, 0))[-1][0] == 1
    assert client.option(2) == [(1, b"")]
    try:
        client.get(1)
        raise AssertionError("the connection stands after NBD_OPT_ABORT")
    except Closed:
        pass
    # An old client names the export and gets its size; 124 zeros unless it waived them.
    for flags, zeros in ((1, 124), (3, 0)):
        client = server.connect()
        client.greet(flags)
        client.put(b"IHAVEOPT" + struct.pack(">II", 1, 4) + b"name")
        size, export_flags = struct.unpack(">QH", client.get(10))
        assert (size, export_flags) == (4 * MIB, 109) and client.get(zeros) == bytes(zeros)
        assert client.read(0, 10) == (OK, bytes(10))
    # Requests that must be refused, and requests after them.
    client = server.connect()
    assert client.go() == (4 * MIB, 109)
    assert client.read(4 * MIB - 5, 6)[0] == BAD and client.read((1 << 64) - 1, 1)[0] == BAD
    assert client.read(0, 64 * MIB)[0] == BAD
    assert client.write(4 * MIB - 1, b"ab") == NO_SPACE and client.write(1 << 63, b"ab") == NO_SPACE
    assert client.call(ZEROES, 4 * MIB, 1) == NO_SPACE and client.call(TRIM, 4 * MIB, 1) == BAD
    assert client.call(9) == BAD and client.call(FLUSH) == OK
    assert client.read(4 * MIB, 0) == (OK, b"") and client.write(0, b"") == OK
    # Those after which nothing can be understood end the connection, not the server.
    for wrong in (dict(command=READ, magic=1), dict(command=WRITE, length=64 * MIB), dict(command=DISC)):
        client = server.client()
        client.send(**wrong)
        try:
            client.get(1)
            raise AssertionError(f"the connection stands after {wrong}")
        except Closed:
            pass
    for greeting in (struct.pack(">I", 0), struct.pack(">I", 4), b"\0\0\0\3garbage!" * 20):
        client = server.connect()
        client.put(greeting)
        client.socket.shutdown(socket.SHUT_WR)
        try:
            while True:
                client.get(1)
        except Closed:
            pass
    assert server.client().read(0, 10) == (OK, bytes(10))


def check_model(server, random_source, rounds):
    """Random requests beside a plain array of bytes, with a kill now and then."""
    model = bytearray(4 * MIB)
    client = server.client()
    for number in range(rounds):
        length = random_source.choice((1, 511, PAGE, PAGE + 1, 3 * PAGE, 60000))
        offset = random_source.randrange(0, 4 * MIB - length)
        if random_source.random() < 0.5:
            offset = offset // PAGE * PAGE
        what = random_source.randrange(5)
        if what < 2:
            data = some_bytes(random_source, length)
            assert client.write(offset, data, flags=random_source.randrange(2)) == OK
            model[offset:offset + length] = data
        elif what == 2:
            assert client.call(random_source.choice((TRIM, ZEROES)), offset, length) == OK
            model[offset:offset + length] = bytes(length)
        else:
            assert client.read(offset, length) == (OK, bytes(model[offset:offset + length])), (number, offset, length)
        if number % 100 == 99:
            server.kill()
            server.start()
            client = server.client()
    assert client.read(0, 4 * MIB) == (OK, bytes(model))
    return model


def check_kills(server, random_source, seconds):
    """Kills the server while requests are on their way. A write that was answered is there; one that was not is there,
    or not, page by page."""
    model = bytearray(server.client().read(0, 4 * MIB)[1])
    kills = compactions = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or kills < 10:
        client = server.client()
        size_before = os.path.getsize(server.backing)
        pid = os.fork()
        if pid == 0:
            time.sleep(random_source.random() * 0.05)
            os.kill(server.process.pid, signal.SIGKILL)
            os._exit(0)
        pending = None
        try:
            while True:
                count = random_source.randrange(1, 64)
                first = random_source.randrange(0, 4 * MIB // PAGE - count)
                data = b"".join(some_bytes(random_source, PAGE) for _ in range(count))
                pending = (first, data)
                if client.write(first * PAGE, data) != OK:
                    raise AssertionError("a write failed")
                model[first * PAGE:first * PAGE + len(data)] = data
                compactions += os.path.getsize(server.backing) < size_before
                size_before = os.path.getsize(server.backing)
        except Closed:
            pass
        os.waitpid(pid, 0)
        server.kill()
        server.start()
        kills += 1
        status, found = server.client().read(0, 4 * MIB)
        assert status == OK
        first, data = pending
        for page in range(4 * MIB // PAGE):
            here = found[page * PAGE:(page + 1) * PAGE]
            at = (page - first) * PAGE
            may_be_new = 0 <= at < len(data) and here == data[at:at + PAGE]
            assert here == model[page * PAGE:(page + 1) * PAGE] or may_be_new, f"page {page} after kill {kills}"
        model = bytearray(found)
    assert compactions > 0, "the journal was never written anew"
    return kills, compactions


def check_journal(program, folder):
    """A journal that is cut anywhere, or damaged, gives the writes before that place."""
    server = Server(program, folder, 1)
    client = server.client()
    writes = [bytes([65 + i]) * 100 + os.urandom(300) for i in range(4)]
    sizes = [os.path.getsize(server.backing)]
    for i, data in enumerate(writes):
        assert client.write(i * PAGE, data) == OK
        sizes.append(os.path.getsize(server.backing))
    server.kill()
    with open(server.backing, "rb") as file:
        whole = file.read()

    def pages_with(content, expected_count, note):
        with open(server.backing, "wb") as out:
            out.write(content)
        server.start()
        assert server.begun.startswith(f"{expected_count} pages, "), (note, server.begun)
        for i in range(4):
            expected = writes[i] if i < expected_count else bytes(len(writes[i]))
            assert server.client().read(i * PAGE, len(writes[i])) == (OK, expected), note
        assert os.path.getsize(server.backing) == sizes[expected_count], note
        server.kill()

    for cut in [*range(0, 40), *range(sizes[3] - 3, sizes[4] + 1, 7), *sizes]:
        pages_with(whole[:cut], sum(cut >= size for size in sizes[1:]), f"cut at {cut}")
    for at in range(sizes[2], sizes[3], 11):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        pages_with(bytes(damaged), 2, f"damaged at {at}")
    pages_with(whole, 4, "whole")

    def refused(command, words):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0 and words in done.stderr, (command, done)

    with open(server.backing, "wb") as out:
        out.write(whole)
    other_size = server.command[:2] + ["2"] + server.command[3:]
    refused(other_size, "expected the pages of a device of 2097152 bytes, found another file or size")
    foreign = os.path.join(folder, "foreign")
    for content in (b"short", b"a file of another program"):
        with open(foreign, "wb") as out:
            out.write(content)
        refused([program, foreign, "1", server.socket], "found another file or size")
        with open(foreign, "rb") as kept:
            assert kept.read() == content
    server.start()
    refused(server.command, "in use by another process")
    server.kill()
    refused([program, folder + "/nowhere/x", "1", server.socket], "cannot open: No such file or directory")
    refused([program, server.backing, "1", folder + "/nowhere/x"], "cannot listen")
    refused([program, server.backing, "0", server.socket], "usage: nbd_server")
    # A full disk is an error of the write, and what was there stays.
    limited = subprocess.Popen(["bash", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "bash", *server.command],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert limited.stdout.readline()
    client = server.client()
    assert client.write(10 * PAGE, os.urandom(20 * PAGE)) == IO_ERROR
    assert client.read(0, len(writes[0])) == (OK, writes[0]) and client.read(10 * PAGE, PAGE) == (OK, bytes(PAGE))
    assert client.write(10 * PAGE, b"small") == OK
    limited.kill()
    limited.communicate()
    server.start()
    assert server.client().read(10 * PAGE, 5) == (OK, b"small")
    server.kill()


def check_other_clients(server, model):
    """Programs of others, where they are installed."""
    url = "nbd+unix:///?socket=" + server.socket
    used = []
    if shutil.which("qemu-img"):
        out = server.backing + ".raw"
        subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "raw", url, out], check=True, timeout=120)
        with open(out, "rb") as file:
            assert file.read() == bytes(model)
        used.append("qemu-img")
    if shutil.which("nbdinfo"):
        subprocess.run(["nbdinfo", url], check=True, timeout=120, stdout=subprocess.DEVNULL)
        used.append("nbdinfo")
    return used


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random_source = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        server = Server(arguments.program, folder)
        try:
            check_protocol(server)
            model = check_model(server, random_source, 600)
            used = check_other_clients(server, model)
            kills, compactions = check_kills(server, random_source, arguments.seconds)
        finally:
            server.kill()
        check_journal(arguments.program, other)
    print(f"{kills} kills, the journal written anew {compactions} times; clients: this one, {', '.join(used) or 'no other'}")


main()
