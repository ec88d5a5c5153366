#!/usr/bin/env python3
"""Stamps the files of a new rule, kernel or codec: `./dev new` calls this. docs/extending.md goes on from there.

usage: ./dev new rule NAME          NAME as in UnalignedAccess
       ./dev new kernel ROOM/NAME   ROOM: a folder of kernels/; NAME as in lz4_decompress
       ./dev new codec NAME         NAME as in deflate-like

What is stamped builds. Its tests fail until it is written, except that a new codec is lzr under another number until its
model and coder are changed. Nothing that exists is overwritten.
"""
import os
import re
import sys

REPO = os.getcwd()


def stop(what):
    sys.exit(f"./dev new: {what}")


def read(path):
    with open(os.path.join(REPO, path), encoding="utf-8") as file:
        return file.read()


def create(path, text):
    full = os.path.join(REPO, path)
    if os.path.exists(full):
        stop(f"{path} exists")
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"created  {path}")


def add_row(path, row, end):
    """Puts a row before the line that begins with `end`."""
    text = read(path)
    at = re.search(rf"^{re.escape(end)}", text, re.M).start()
    with open(os.path.join(REPO, path), "w", encoding="utf-8") as file:
        file.write(text[:at] + row + text[at:])
    print(f"a row in {path}")


def words_of(name):
    return re.findall(r"[A-Z][a-z0-9]*", name)


KERNEL_PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;MARK
  ret;
}
"""


def new_rule(name):
    if not re.fullmatch(r"([A-Z][a-z0-9]*){1,6}", name):
        stop(f"expected the name of a rule as in UnalignedAccess, found '{name}'")
    rules = re.findall(r"RULE\(F(\d+), (?:\w+, )?(\w+), \"", read("analyzer/rules/rules.def"))
    if name in [rule for _, rule in rules]:
        stop(f"there is a rule {name}")
    number = f"F{max(int(number) for number, _ in rules) + 1:03}"
    function = "_".join(word.lower() for word in words_of(name))
    if os.path.exists(os.path.join(REPO, f"analyzer/rules/{function}.cpp")):
        stop(f"analyzer/rules/{function}.cpp exists")
    create(f"analyzer/rules/{function}.cpp", f"""// {number} {name}. TODO: what it looks for, in a sentence.
// A rule of a family that has a file moves there.
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {{

// TODO: how it decides. finding_at() makes a finding, conclude() the verdict that follows from the findings;
// not_applicable() is for a kernel without anything to look at, undecided() for one where a fact is missing.
// shift_amount in indices.cpp is a short rule to read; docs/extending.md lists the analyses.
RuleResult {function}(Context&) {{ return undecided("not decided: the rule is not written yet"); }}

}}  // namespace ptxkit::rules
""")
    create(f"docs/rules/{number}.md", f"""# {number} {name}

**What.** TODO: the property, as in rules.def.

**Why.** TODO: what goes wrong without it.

**How it is decided.** TODO.

**Limits.** TODO.

## Example

```ptx refuted
{KERNEL_PTX.replace("MARK", "")}```

```ptx survives
{KERNEL_PTX.replace("MARK", "")}```

**Remedy.** TODO.
""")
    for kind in ("refuted_one", "survived_one"):
        mark = "  //! low" if kind.startswith("refuted") else ""
        create(f"fkr_tests/static/fixtures/{number}/{kind}.ptx",
               f"// TODO: a kernel that {number} {'refutes' if mark else 'lets pass'}.\n"
               + KERNEL_PTX.replace("MARK", mark) + "//! exit 0\n")
    add_row("analyzer/rules/rules.def",
            f'RULE({number}, {function}, {name}, "Performance", 0, low, false,\n     "TODO: what holds when the hypothesis '
            'survives")\n', "\n#undef RULE\n")
    print(f"next: the two programs, category, severity and property of the row, the page, the function; "
          f"then ./dev test '{number}|RuleFixtures|catalogue_test'")


def new_kernel(place):
    found = re.fullmatch(r"([a-z][a-z0-9_]*)/([a-z][a-z0-9_]*)", place)
    if not found:
        stop(f"expected ROOM/NAME as in lz4/lz4_decompress, found '{place}'")
    room, name = found.groups()
    rooms = sorted(folder.name for folder in os.scandir(os.path.join(REPO, "kernels"))
                   if folder.is_dir() and folder.name != "probes" and not folder.name.startswith("__"))
    if room not in rooms:
        stop(f"there is no room kernels/{room}; there are: {', '.join(rooms)}; "
             "docs/extending.md, 'A kernel', says what a new one takes")
    text = read("kernels/kernels.def")
    if re.search(rf"^KERNEL\({name}, ", text, re.M):
        stop(f"there is a kernel {name}")
    create(f"kernels/{room}/{name}.cpp", f"""// TODO: what {name} computes. One thread takes one word.
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {{

using namespace dsl;

KernelDefinition {name}() {{
  return define(
      KernelSpec{{.name = "{name}",
                 .block = 128,
                 .budget = {{.registers = 16}},
                 .cost = {{.threads_per_element = 0.25, .buffers = {{{{"src", N}}, {{"dst", N}}}}, .note = "TODO"}}}},
      [](Kernel& k, Arg<"src", Span<read_only, u32>> src, Arg<"dst", Span<global, u32>> dst) {{
        auto i = k.block() * 128 + k.thread();
        k.if_(i < src.size(), [&] {{ dst.store(i, src.load(i)); }});
      }});
}}

}}  // namespace ptxkit::kernels
""")
    create(f"kernels/{room}/{name}_reference.hpp", f"""// What the kernel `{name}` computes, one item after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace ptxkit::kernels {{

// TODO: shapes, units and alignment of each argument.
inline void {name}_reference(std::span<const uint32_t> src, std::span<uint32_t> dst) {{
  std::ranges::copy(src, dst.begin());
}}

}}  // namespace ptxkit::kernels
""")
    following = next((row for row in re.findall(r"^KERNEL\((\w+),", text, re.M) if row > name), None)
    add_row("kernels/kernels.def", f"KERNEL({name}, {room})\n", f"KERNEL({following}," if following else "#undef KERNEL")
    print(f"next: a row in docs/kernels.md, a launch in fkr_tests/cases/every_kernel.cpp, then ./dev kernel {name} --accept, "
          f"./dev build kernel_counts and fkr_tests/speed/kernel_instructions.py build/tests/kernel_counts --accept")


def new_codec(name):
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        stop(f"expected the name of a codec as in deflate-like, found '{name}'")
    text = read("runtime/codec/format/codecs.def")
    rows = re.findall(r'^PTZ_CODEC\(\w+, (\d+), "([\w-]+)"', text, re.M)
    if name in [row for _, row in rows] + ["lz4"]:
        stop(f"there is a codec {name}")
    number = max(int(number) for number, _ in rows) + 1
    add_row("runtime/codec/format/codecs.def",
            f'PTZ_CODEC({name.replace("-", "_")}, {number}, "{name}", lz77, rans, 18, "TODO")\n', "#undef PTZ_CODEC")
    print("next: model, coder and block size in that row; a new model or coder in runtime/codec/blocks/block_codec.cpp and "
          "runtime/codec/device/; docs/format.md, docs/ptx-pack.md, fkr_tests/cli/ptz_decoder.py; then ./dev test 'Ptz|BlockKernels|ptx_pack|ptz|registry'")


MAKERS = {"rule": new_rule, "kernel": new_kernel, "codec": new_codec}

if __name__ == "__main__":
    usage = __doc__.strip().split("\n\n")[1]
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(usage)
        sys.exit(0)
    if len(sys.argv) != 3 or sys.argv[1] not in MAKERS:
        sys.exit(usage)
    MAKERS[sys.argv[1]](sys.argv[2])
