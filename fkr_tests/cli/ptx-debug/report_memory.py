#!/usr/bin/env python3
"""A file with very many kernels is analyzed and written in parts: twice as many kernels add memory for the text and its
tree, not for the report. The parts together form the whole: every kernel once, in order, with the outcome of all.

usage: report_memory.py PTX_DEBUG [--no-limits]
       report_memory.py PTX_DEBUG --measure COUNT...   time, memory and length of each form, for COUNT kernels; no test"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

PTX_DEBUG = os.path.abspath(sys.argv[1])
KERNELS = 3000
# Such a kernel has 245 bytes of text, 2.3 KB of tree and 13 KB of JSON; a document of it took 80 KB before.
MOST_BYTES_OF_A_KERNEL = 8000


def kernel(i):
    return f""".visible .entry kernel_{i}(.param .u64 .ptr .global .align 4 out)
{{
 .reg .b32 %r<3>;
 .reg .b64 %rd<3>;
 ld.param.u64 %rd1, [out];
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd2, %r1, {2 if i % 1000 == 999 else 4};
 add.s64 %rd1, %rd1, %rd2;
 st.global.u32 [%rd1], %r1;
 ret;
}}
"""


FORMS = {"text": [], "json": ["--json"], "json file": ["--json=r.json"], "sarif": ["--format", "sarif"],
         "html": ["--html", "r.html"], "github": ["--format", "github"]}


def many(count):
    return "".join(map(kernel, range(count)))


def run(folder, count, output, *words, kernels=many):
    """Exit code, the most bytes in memory and the processor's seconds; standard output goes to a file. Nothing is read
    here meanwhile: a process that is started counts what its parent had."""
    with open(f"{folder}/k.ptx", "w", encoding="utf-8") as file:
        file.write(".version 8.0\n.target sm_80\n.address_size 64\n" + kernels(count))
        file.write(f"// ptx-debug: allow F099 -- nothing to say, of {count}\n")
    with open(f"{folder}/{output}", "wb") as said:
        child = subprocess.Popen([PTX_DEBUG, "analyze", "--no-config", *words, "k.ptx"], cwd=folder, stdout=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def measure(counts):
    print("form       kernels  exit  wall, s  processor, s  a kernel, us  peak, MiB  report, MiB")
    for count in counts:
        for form in ("text", "json", "sarif", "html"):
            with tempfile.TemporaryDirectory() as folder:
                begin = time.monotonic()
                code, peak_bytes, seconds = run(folder, count, form, *FORMS[form])
                wall = time.monotonic() - begin
                length = os.path.getsize(f"{folder}/{'r.html' if form == 'html' else form}")
            print(f"{form:<6} {count:>11} {code:>5} {wall:>8.1f} {seconds:>13.1f} {seconds / count * 1e6:>13.0f} "
                  f"{peak_bytes / 2**20:>10.0f} {length / 2**20:>12.1f}", flush=True)


# Kernels that call one function, which has as many findings: the report grows by the square, memory does not.
def calls(count):
    loads = "".join(f"ld.global.u32 %r1, [%rd1+{4 * i + 1}];\n" for i in range(count))
    function = f".func f(.param .u64 a)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [a];\n{loads}ret;\n}}\n"
    return function + "".join(f""".visible .entry caller_{i}(.param .u64 p)
{{
 .reg .b64 %rd<2>;
 .param .u64 a;
 ld.param.u64 %rd1, [p];
 st.param.u64 [a], %rd1;
 call f, (a);
 ret;
}}
""" for i in range(count))


def check_repeated_findings(folder):
    for form, words in FORMS.items():
        (_, first, _), (_, second, _) = (run(folder, n, form, *words, kernels=calls) for n in (75, 225))
        print(f"{form}: {first >> 20} MiB for 75 kernels of 75 findings, {second >> 20} MiB for 225 of 225")
        if "--no-limits" not in sys.argv:
            assert second - first < 32 << 20, form


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_repeated_findings(folder)
    with tempfile.TemporaryDirectory() as folder:
        for form, words in FORMS.items():
            (first_code, first, _), (code, second, _) = (run(folder, n, form, *words) for n in (KERNELS, 2 * KERNELS))
            assert first_code == code == 3, (form, code)
            each = (second - first) / KERNELS
            print(f"{form}: {first >> 20} MiB, {second >> 20} MiB, {each:.0f} bytes a kernel")
            if "--no-limits" not in sys.argv:
                assert each < MOST_BYTES_OF_A_KERNEL, form
        said = {}
        for form in FORMS:
            with open(f"{folder}/{form}", encoding="utf-8") as file:
                said[form] = file.read()
        with open(f"{folder}/r.json", encoding="utf-8") as file:
            report = json.load(file)
        assert report == json.loads(said["json"])
        (entry,) = report["files"]
        names = [f"kernel_{i}" for i in range(2 * KERNELS)]
        assert [each["name"] for each in entry["kernels"]] == names
        critical = sum(each["critical_count"] for each in entry["kernels"])
        assert entry["critical_count"] == critical == 2 * KERNELS // 1000 and entry["exit_code"] == 3, critical
        assert entry["score"] == min(each["score"] for each in entry["kernels"])
        assert re.findall(r"^kernel (\w+): ", said["text"], re.MULTILINE) == names
        assert f"k.ptx: score {entry['score']:.1f}, {critical} critical findings, " in said["text"]
        assert said["text"].count("k.ptx: score ") == said["github"].count("k.ptx: score ") == 1
        assert said["github"].count("::error ") >= critical
        results = json.loads(said["sarif"])["runs"][0]["results"]
        assert sum(each["properties"]["severity"] == "critical" for each in results) == critical
        with open(f"{folder}/r.html", encoding="utf-8") as file:
            page = file.read()
        assert re.findall(r'<section class="kernel" id="k\d+" data-kernel="(\w+)"', page) == names
        assert f"whole and with pictures of the {critical} worst" in page and page.count("<details class=\"code\"") >= critical


if "--measure" in sys.argv:
    measure(map(int, sys.argv[sys.argv.index("--measure") + 1:]))
else:
    main()
