#!/usr/bin/env python3
"""The language server of ptx-debug, driven by a small client.

usage: lsp.py REPO PTX_DEBUG [NAME...]      NAME: only these transcripts, such as code_units
"""
import fcntl
import json
import os
import random
import select
import signal
import subprocess
import sys
import time

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
URI = "file:///k.ptx"
WAIT_SECONDS = 60

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.global .align 16 .b8 table[64];
.func (.param .b32 r) twice(.param .b32 x);
.visible .entry k(.param .u64 .ptr .global .align 4 out)
.reqntid 32, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  setp.gt.u32 %p1, %r1, 15;
  @%p1 bra DONE;
  mov.u32 %r3, tile;
  add.s32 %r3, %r3, %r2;
  st.shared.u32 [%r3+64], %r1;
  {
    .reg .b32 %r1;
    mov.u32 %r1, 7;
    st.global.u32 [%rd1], %r1;
  }
DONE:
  ret;
}
.func (.param .b32 r) twice(.param .b32 x)
{
  .reg .b32 %r<2>;
  ld.param.u32 %r1, [x];
  shl.b32 %r1, %r1, 1;
  st.param.b32 [r], %r1;
  ret;
}
"""


class Client:
    """A server and what it said; used with `with`, which checks that it ends in time."""

    def __init__(self, *options, initialize=True, encodings=None):
        self.process = subprocess.Popen([PTX_DEBUG, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.buffer, self.next_id, self.notifications = b"", 0, []
        if initialize:
            general = {"positionEncodings": encodings} if encodings else {}
            self.capabilities = self.ask("initialize", {"capabilities": {"general": general}})["capabilities"]
            self.tell("initialized", {})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def send_bytes(self, content):
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def send(self, message):
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))

    def receive(self):
        """The next message; None at the end of the output."""
        end = time.monotonic() + WAIT_SECONDS
        while True:
            head, mark, rest = self.buffer.partition(b"\r\n\r\n")
            if mark:
                length = int(head.split(b":")[1])
                if len(rest) >= length:
                    self.buffer = rest[length:]
                    return json.loads(rest[:length])
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, "the server does not answer"
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.buffer += more

    def response(self, id_):
        while True:
            message = self.receive()
            assert message is not None, "the server ended"
            if "method" not in message:
                assert message["jsonrpc"] == "2.0" and message["id"] == id_, message
                return message
            self.notifications.append(message)

    def request(self, method, parameters):
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": parameters})
        return self.response(self.next_id)

    def ask(self, method, parameters):
        answer = self.request(method, parameters)
        assert "result" in answer, (method, answer)
        return answer["result"]

    def tell(self, method, parameters):
        self.send({"jsonrpc": "2.0", "method": method, "params": parameters})

    def open(self, text, uri=URI, version=1):
        self.tell("textDocument/didOpen",
                  {"textDocument": {"uri": uri, "languageId": "ptx", "version": version, "text": text}})

    def diagnostics(self, version=1, uri=URI):
        """Those of this version; what was published of others before is dropped."""
        while True:
            message = self.notifications.pop(0) if self.notifications else self.receive()
            assert message["method"] == "textDocument/publishDiagnostics", message
            found = message["params"]
            if found["uri"] == uri and found.get("version") == version:
                return found["diagnostics"]

    def at(self, method, line, character, **more):
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": URI},
                                                   "position": {"line": line, "character": character}, **more})

    def in_lines(self, method, first, last, **more):
        return self.ask(f"textDocument/{method}",
                        {"textDocument": {"uri": URI}, "range": {"start": {"line": first, "character": 0},
                                                                 "end": {"line": last, "character": 0}}, **more})

    def leave(self):
        assert self.ask("shutdown", None) is None
        self.tell("exit", None)
        return self.process.wait(WAIT_SECONDS)


def same(found, expected):
    assert found == expected, f"\nfound    {found!r}\nexpected {expected!r}"


def place_of(text, part, nth=0, within=0):
    """Line and column of the nth occurrence of `part` in ASCII text."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(part, at + 1)
    at += within
    before = text[:at]
    return before.count("\n"), at - (before.rfind("\n") + 1)


def ranges(locations):
    """'line:begin-end' of each, lines from 1, columns from 0."""
    found = []
    for location in locations:
        start, end = location["range"]["start"], location["range"]["end"]
        assert start["line"] == end["line"], location
        found.append(f'{start["line"] + 1}:{start["character"]}-{end["character"]}')
    return found


def labels(items):
    return [item["label"] for item in items]


def session():
    """Every request on one kernel, with exact answers."""
    with Client() as client:
        same(client.capabilities["positionEncoding"], "utf-16")
        same(client.capabilities["textDocumentSync"], {"openClose": True, "change": 2})
        client.open(KERNEL)
        same(client.diagnostics(), [])

        # Two registers of one name in two blocks, and one of another function.
        outer, inner = place_of(KERNEL, "%r1, 2", 0), place_of(KERNEL, "%r1, 7")
        same(ranges(client.at("definition", *outer)), ["10:12-14"])
        same(ranges(client.at("definition", *inner)), ["22:14-17"])
        with_declaration = {"context": {"includeDeclaration": True}}
        same(ranges(client.at("references", *inner, **with_declaration)), ["22:14-17", "23:12-15", "24:26-29"])
        same(ranges(client.at("references", *outer, context={"includeDeclaration": False})),
             ["14:10-13", "15:15-18", "16:19-22", "20:26-29"])
        same(ranges(client.at("references", *place_of(KERNEL, "%p1 bra"))), ["16:14-17", "17:3-6"])
        same(ranges(client.at("definition", *place_of(KERNEL, "DONE;"))), ["26:0-4"])
        same(ranges(client.at("references", *place_of(KERNEL, "DONE:"), **with_declaration)), ["17:11-15", "26:0-4"])
        same(ranges(client.at("definition", *place_of(KERNEL, "tile;"))), ["12:24-28"])
        same(ranges(client.at("definition", *place_of(KERNEL, "twice"))), ["5:22-27", "29:22-27"])
        same(ranges(client.at("definition", *place_of(KERNEL, "out];"))), ["6:52-55"])
        same(client.at("definition", 0, 0), [])

        hover = client.at("hover", *place_of(KERNEL, "st.shared", within=1))
        same(hover["contents"]["kind"], "markdown")
        text = hover["contents"]["value"]
        for part in ("**st** (memory)", "- address: address in brackets, `.shared`", "- source: `.u32` register",
                     "PTX 1.0 and later; sm_10 and later", "[.{global|local|"):
            assert part in text, (part, text)
        text = client.at("hover", *place_of(KERNEL, ".shared.u32", within=2))["contents"]["value"]
        assert text.startswith("`.shared`: state space; one of `.global` `.local`"), text
        text = client.at("hover", *place_of(KERNEL, "%r2, %r1"))["contents"]["value"]
        same(text, "```ptx\n.reg .b32 %r2\n```\n\nwritten at line 15, read at 1 place\n\nbecomes: 0 to 124, a multiple of 4")
        text = client.at("hover", *place_of(KERNEL, "%tid", within=1))["contents"]["value"]
        assert text.startswith("**%tid**: special register, `.u32`, components x, y, z"), text
        text = client.at("hover", *place_of(KERNEL, "tile;"))["contents"]["value"]
        same(text, "```ptx\n.shared .align 16 .b8 tile[512]\n```\n\n512 bytes")
        text = client.at("hover", *place_of(KERNEL, "DONE;"))["contents"]["value"]
        same(text, "label, named at line 17")
        text = client.at("hover", *place_of(KERNEL, "twice"))["contents"]["value"]
        assert text.startswith("```ptx\n.func (.param .b32 r) twice(.param .b32 x)\n```\n\n4 instructions"), text
        same(client.at("hover", 7, 0), None)

        symbols = client.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
        same([(each["name"], each["detail"]) for each in symbols],
             [("table", ".global .b8"), ("twice", ".func"), ("k", ".entry")])
        same([each["name"] for each in symbols[2]["children"]], ["out", "tile", "DONE"])

        hints = client.in_lines("inlayHint", 0, 40)
        same([(hint["position"], hint["label"]) for hint in hints],
             [({"line": 19, "character": 30}, "shared variable 'tile' + 64 to 188, a multiple of 4; aligned to 4"),
              ({"line": 23, "character": 30}, "parameter 'out'; aligned to 4")])
        same(client.in_lines("inlayHint", 21, 23), [])
        same(client.leave(), 0)


def completion():
    """Opcodes, words that may follow, registers by scope, labels, directives; in texts that do not parse."""
    with Client() as client:
        def complete(text):
            """What may stand at the | of a body."""
            head = KERNEL[:KERNEL.index("DONE:")]
            whole = head + text + "\nDONE:\n  ret;\n}\n"
            client.next_id += 1
            client.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "version": client.next_id,
                                                                  "text": whole.replace("|", "")}})
            return client.at("completion", *place_of(whole, "|"))

        items = complete("  mul.|")
        same(labels(items)[:3], ["lo", "hi", "wide"])
        same(items[0]["textEdit"]["newText"], "lo")
        same(items[0]["textEdit"]["range"]["start"]["character"], 6)
        same(labels(complete("  mad.wide.|")), ["u16", "u32", "s16", "s32"])
        same(labels(complete("  add.s32.|")), ["sat", "cc"])
        same(complete("  add.s32.sat.|"), [])
        assert "acquire" in labels(complete("  ld.|")) and "mma_async" not in labels(complete("  wgmma.|"))
        found = labels(complete("  |"))
        assert "ld" in found and "mma" in found and "wgmma" not in found and "%r1" not in found, found
        assert "bra" in labels(complete("  @%p1 b|")) and "bra" in labels(complete("  @!%p1 |"))
        found = labels(complete("  add.s32 %|;"))
        for name in ("%r1", "%r0", "%rd0", "%tid", "tile", "out", "table", "twice", "DONE"):
            assert name in found, (name, found)
        assert "%r5" not in found and "%clusterid" not in found, found
        same(labels(complete("  mov.u32 %r1, %tid.|")), ["x", "y", "z"])
        same(complete("  // add.|"), [])
        found = labels(complete("  .|"))
        assert "reg" in found and "entry" not in found, found
        found = labels(complete("  .reg .|"))
        assert "b32" in found and "pred" in found, found
        # A register of an inner block is not known behind it.
        found = labels(complete("  { .reg .b32 %inside; }\n  add.s32 %|"))
        assert "%inside" not in found, found
        found = labels(complete("  { .reg .b32 %inside;\n  add.s32 %| }"))
        assert "%inside" in found, found


def code_units():
    """Columns in UTF-16 by default and in UTF-8 where the client can; incremental changes in both."""
    text = KERNEL.replace("  mov.u32 %r1, 7;", "  /* ä 𝄞 */ mov.u32 %r1, 7;")
    line = text[:text.index("/* ä")].count("\n")
    for encodings, wanted, column in ((None, "utf-16", 23), (["utf-8", "utf-16"], "utf-8", 26), (["utf-16"], "utf-16", 23)):
        with Client(encodings=encodings) as client:
            same(client.capabilities["positionEncoding"], wanted)
            client.open(text)
            found = client.diagnostics()  # PTX is ASCII, in comments as well
            same({each["code"] for each in found}, {"F009"})
            same(found[0]["range"], {"start": {"line": line, "character": 7},
                                     "end": {"line": line, "character": 8}})
            found = client.at("references", line, column)
            same(found[0]["range"], {"start": {"line": line, "character": column},
                                     "end": {"line": line, "character": column + 3}})
            same(client.at("definition", line, column - 1), [])  # the blank before it
            # Replaces the comment; columns of the second change count in what the first one leaves.
            end = column - 9
            client.tell("textDocument/didChange", {
                "textDocument": {"uri": URI, "version": 2},
                "contentChanges": [{"range": {"start": {"line": line, "character": 4},
                                              "end": {"line": line, "character": end}}, "text": "/*€*/"},
                                   {"range": {"start": {"line": line, "character": 4},
                                              "end": {"line": line, "character": 4}}, "text": ""}]})
            same({each["code"] for each in client.diagnostics(2)}, {"F009"})
            shift = {"utf-16": 0, "utf-8": 2}[wanted]
            same(client.at("definition", line, 18 + shift)[0]["range"]["start"]["line"], line - 1)


MISALIGNED = """.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global .align 4 out)
.reqntid 1, 1, 1
{
    .reg .pred %more;
    .reg .b32 %at, %end, %value, %sum;
    .reg .b64 %out;
    .shared .align 16 .b8 buffer[256];
    mov.u32 %at, buffer;
    add.u32 %end, %at, 192;
    mov.u32 %sum, 0;
next:
    ld.shared.u32 %value, [%at];
    add.u32 %sum, %sum, %value;
    add.u32 %at, %at, 3;
    setp.lt.u32 %more, %at, %end;
    @%more bra next;
    ld.param.u64 %out, [out];
    st.global.u32 [%out], %sum;
    ret;
}
"""


def rules():
    """A finding with its places, its hover, and the comment that accepts it; mistakes of the front end; options."""
    with Client("--select", "F051") as client:
        client.open(MISALIGNED)
        found = client.diagnostics()
        same([(each["code"], each["severity"], each["source"]) for each in found], [("F051", 1, "ptx-debug")])
        same(ranges(found), ["15:4-31"])
        assert found[0]["message"].startswith("4-byte load at a misaligned address: the cursor moves by 3"), found
        assert "(likely)" in found[0]["message"] and "\nwitness: " in found[0]["message"], found
        related = found[0]["relatedInformation"]
        same([each["message"] for each in related], ["the loop that moves the cursor starts here"])
        same((related[0]["location"]["uri"], ranges([related[0]["location"]])), (URI, ["15:4-31"]))

        text = client.at("hover", 14, 5)["contents"]["value"]
        first, second = text.split("\n\n---\n\n")
        assert first.startswith("**ld** (memory)"), text
        assert second.startswith("**F051 UnalignedMemoryAccess**: 4-byte load"), text
        assert "  \nassuming: the loop reaches iteration 1  \nremedy: " in second, text
        assert "\n\n**What.** Every access" in second and "# F051" not in second, text

        same(labels(client.in_lines("inlayHint", 14, 15)), ["shared variable 'buffer' and an unknown offset; not aligned to 4"])
        # Names are no marks of Markdown.
        client.open(MISALIGNED.replace("buffer", "_a_b"), version=7)
        client.diagnostics(7)
        assert "offset from shared variable '\\_a\\_b'" in client.at("hover", 14, 5)["contents"]["value"]
        client.open(MISALIGNED, version=8)
        client.diagnostics(8)
        same(client.in_lines("codeAction", 0, 5, context={"diagnostics": []}), [])
        actions = client.in_lines("codeAction", 14, 15, context={"diagnostics": found})
        same([(each["title"], each["kind"]) for each in actions],
             [("accept F051 here, with a comment that gives the reason", "quickfix")])
        edit = actions[0]["edit"]["changes"][URI][0]
        same(edit["newText"], "    // ptx-debug: allow F051 -- give the reason here\n")
        client.tell("textDocument/didChange",
                    {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": edit["range"], "text": edit["newText"]}]})
        same(client.diagnostics(2), [])
        # A comment that accepts nothing is named.
        client.tell("textDocument/didChange", {
            "textDocument": {"uri": URI, "version": 3},
            "contentChanges": [{"text": KERNEL.replace("  ret;", "  // ptx-debug: allow F051 -- why\n  ret;", 1)}]})
        same([(each["severity"], each["message"]) for each in client.diagnostics(3)],
             [(2, "allow comment: F051 has nothing to suppress here")])

        client.open(KERNEL.replace("shl.b32 %r2, %r1, 2", "shl.b32 %r2, %r9, 2").replace("  ret;", "  rte;", 1), version=4)
        found = client.diagnostics(4)
        same([(each["code"], each["severity"]) for each in found], [("F006", 1), ("F007", 1)])
        same(ranges(found), ["15:15-18", "27:2-5"])
        client.tell("textDocument/didClose", {"textDocument": {"uri": URI}})
        same(client.diagnostics(None), [])
    with Client("--ignore", "F051,F060") as client:
        client.open(MISALIGNED)
        same([each["code"] for each in client.diagnostics()], ["F081"])
    with Client("--falsify") as client:
        client.open(MISALIGNED)
        same({each["code"]: each["severity"] for each in client.diagnostics()},
             {"F051": 1, "F060": 1, "F081": 1, "F096": 4})
    with Client("--seconds", "0") as client:
        client.open(MISALIGNED)
        same([(each["severity"], each["message"]) for each in client.diagnostics()],
             [(3, "not all rules have run: the analysis takes longer than 0 s")])
    done = subprocess.run([PTX_DEBUG, "lsp", "--select", "F051x"], input=b"", capture_output=True, check=False)
    assert done.returncode == 64 and b"F051x" in done.stderr, done


def wrong_messages():
    def code_of(client, method, parameters):
        return client.request(method, parameters)["error"]["code"]

    with Client(initialize=False) as client:
        same(code_of(client, "textDocument/hover", {}), -32002)
        same(code_of(client, "shutdown", None), -32002)
        client.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "text": ""}})  # nothing happens
        same(code_of(client, "initialize", 5), -32602)
        client.ask("initialize", {"capabilities": {}})
        same(code_of(client, "initialize", {"capabilities": {}}), -32600)
        same(code_of(client, "textDocument/rename", {}), -32601)
        same(code_of(client, "$/unknown", {}), -32601)
        same(code_of(client, "textDocument/hover", None), -32602)
        same(code_of(client, "textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}), -32602)
        client.open(KERNEL)
        for position in (None, {"line": -1, "character": 0}, {"line": 0}, {"line": 1 << 40, "character": 0},
                         {"line": 0.5, "character": 0}):
            same(code_of(client, "textDocument/hover", {"textDocument": {"uri": URI}, "position": position}), -32602)
        same(code_of(client, "textDocument/inlayHint", {"textDocument": {"uri": URI}}), -32602)
        same(client.at("hover", 1 << 20, 1 << 20), None)
        client.diagnostics()
        for content, code in ((b"{", -32700), (b"[" * 1000, -32700), (b"\xff", -32700), (b"", -32700), (b"[]", -32600), (b"{}", -32600),
                              (b'{"id": 1, "method": "shutdown"}', -32600),
                              (b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}', -32600)):
            client.send(content)
            same(client.receive()["error"]["code"], code)
        client.send({"jsonrpc": "2.0", "id": 3, "result": None})  # a response to nothing
        client.send({"jsonrpc": "2.0", "id": "word", "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": URI}}})
        same(len(client.response("word")["result"]), 3)
        client.ask("shutdown", None)
        same(code_of(client, "textDocument/hover", {}), -32600)
        client.tell("exit", None)
        same(client.process.wait(WAIT_SECONDS), 0)
    with Client() as client:
        client.tell("exit", None)  # without shutdown
        same(client.process.wait(WAIT_SECONDS), 1)
    for content, said in ((b"", b""), (b"Content-Length: 10\r\n\r\n{", b""),
                          (b"Content-Length: 67108865\r\n\r\n", b"a message has 67108865 bytes"),
                          (b"Content-Length: 99999999999999999999999\r\n\r\n", b"at most 67108864 are read"),
                          (b"Content-Length: -1\r\n\r\n{}", b"found 'Content-Length: -1'"),
                          (b"Content-Type: x\r\n\r\n{}", b"expected 'Content-Length: N'"),
                          (b"x" * 5000, b"expected the header of a message")):
        done = subprocess.run([PTX_DEBUG, "lsp"], input=content, capture_output=True, check=False, timeout=WAIT_SECONDS)
        assert done.returncode == 1 and said in done.stderr and not done.stdout, (content[:50], done)
        same(bool(done.stderr), bool(said))


def sandbox():
    """In force before the first message is read, the thread of the rules included; --sandbox=off is without."""
    for when, wanted in (("require", "2"), ("off", "0")):
        with Client("--sandbox", when, initialize=False) as client:
            client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
            answer = client.receive()
            if answer is None:  # no kernel for it, or a sanitizer's build
                same(client.process.wait(WAIT_SECONDS), 11)
                print(f"sandbox: SKIPPED: {client.process.stderr.read().decode().strip()}")
                return
            tasks = f"/proc/{client.process.pid}/task"
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/status", encoding="utf-8") as file:
                    same([line.split()[1] for line in file if line.startswith("Seccomp:")], [wanted])
            client.tell("initialized", {})
            client.open(MISALIGNED)
            assert client.diagnostics()
    done = subprocess.run([PTX_DEBUG, "lsp", "--sandbox", "perhaps"], input=b"", capture_output=True, check=False)
    assert done.returncode == 64 and b"perhaps" in done.stderr, done


def damaged_messages():
    """A session with bytes of its messages replaced, removed or repeated: it always ends, by itself, with 0 or 1."""
    place = {"textDocument": {"uri": URI}, "position": {"line": 14, "character": 12}}
    area = {"textDocument": {"uri": URI}, "range": {"start": {"line": 0, "character": 0}, "end": {"line": 30, "character": 0}}}
    messages = [("initialize", {"capabilities": {"general": {"positionEncodings": ["utf-8"]}}}),
                ("textDocument/didOpen", {"textDocument": {"uri": URI, "version": 1, "text": MISALIGNED}}),
                ("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [
                    {"range": {"start": {"line": 3, "character": 0}, "end": {"line": 4, "character": 2}}, "text": "ä"},
                    {"text": MISALIGNED}]}),
                *[(f"textDocument/{name}", place) for name in ("hover", "definition", "references", "completion")],
                *[(f"textDocument/{name}", area) for name in ("inlayHint", "codeAction", "documentSymbol")],
                ("shutdown", None), ("exit", None)]
    contents = [json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters,
                            **({} if "/did" in method or method == "exit" else {"id": i})}).encode()
                for i, (method, parameters) in enumerate(messages)]
    source = random.Random(1)
    mutated, batch = 0, 20
    for _ in range(150):
        stream = b""
        for _ in range(batch):
            for content in contents[:-2]:
                damaged = bytearray(content)
                if source.random() < 0.9 and damaged != contents[0]:
                    mutated += 1
                    for _ in range(source.randrange(1, 4)):
                        at = source.randrange(len(damaged) or 1)
                        kind = source.randrange(4)
                        if kind == 0:
                            damaged[at:at + 1] = bytes([source.randrange(256)])
                        elif kind == 1:
                            del damaged[at:at + source.randrange(1, 20)]
                        elif kind == 2:
                            damaged[at:at] = damaged[at:at + 30]
                        else:
                            damaged[at:at + 1] = source.choice([b"-1", b"null", b"{}", b'"', b"4294967296", b";", b"}"])
                stream += b"Content-Length: %d\r\n\r\n%s" % (len(damaged), damaged)
        for content in contents[-2:]:
            stream += b"Content-Length: %d\r\n\r\n%s" % (len(content), content)
        if source.random() < 0.2:  # the framing as well
            at = source.randrange(len(stream))
            stream = stream[:at] + bytes([source.randrange(256)]) + stream[at + 1:]
        done = subprocess.run([PTX_DEBUG, "lsp"], input=stream, capture_output=True, check=False, timeout=WAIT_SECONDS)
        assert done.returncode in (0, 1), (done.returncode, done.stderr[-2000:])
        assert b"AddressSanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr[-2000:]
    assert mutated > 3000, mutated


def many_changes():
    """Of changes that have arrived together only the newest text is examined."""
    with Client("--select", "F051") as client:
        client.open(KERNEL)
        client.diagnostics()
        count = 400
        stream = b""
        for version in range(2, count + 1):
            text = MISALIGNED if version == count else KERNEL + "//" * version
            content = json.dumps({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
                "textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]}}).encode()
            stream += b"Content-Length: %d\r\n\r\n%s" % (len(content), content)
        assert fcntl.fcntl(client.process.stdin, fcntl.F_SETPIPE_SZ, 1 << 20) > len(stream)
        os.kill(client.process.pid, signal.SIGSTOP)
        client.send_bytes(stream)
        os.kill(client.process.pid, signal.SIGCONT)
        message = client.receive()["params"]
        same(message["version"], count)
        same([each["code"] for each in message["diagnostics"]], ["F051"])
        same(client.leave(), 0)


def main():
    transcripts = [session, completion, code_units, rules, wrong_messages, sandbox, damaged_messages, many_changes]
    for transcript in transcripts:
        if len(sys.argv) > 3 and transcript.__name__ not in sys.argv[3:]:
            continue
        begin = time.monotonic()
        transcript()
        print(f"{transcript.__name__}: as expected ({time.monotonic() - begin:.1f} s)")


main()
