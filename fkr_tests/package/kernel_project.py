#!/usr/bin/env python3
"""Follows docs/tutorial.md outside of the repository, with an installed package: `ptx-debug new kernel-project`, its
build and tests, the tutorial's kernels, and the faults that the build must stop at. Then the package's components.

usage: kernel_project.py CMAKE BUILD REPO
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CMAKE, BUILD, REPO = sys.argv[1], os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
TUTORIAL = (REPO / "docs/tutorial.md").read_text(encoding="utf-8")
wrong = []


def require(condition, what, output=""):
    if not condition:
        wrong.append(f"{what}\n{output}".rstrip())


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TUTORIAL, re.M | re.S)


def run(*words, folder=None, passes=True):
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    require((done.returncode == 0) == passes, f"{' '.join(map(str, words))}: exit {done.returncode}", done.stdout)
    return done.stdout


def shown(block, output):
    """Whether the lines of a block stand in the output in this order; … stands for any text."""
    lines = [".*?".join(map(re.escape, line.split("…"))) for line in block.splitlines() if line.strip() != "…"]
    return re.search("[^\0]*?".join(f"^{line}$" for line in lines), output, re.M) is not None


def follow_tutorial(folder):
    """Runs the commands, adds the kernels, and breaks them one after the other."""
    output = run("bash", "-ec", "".join(blocks("sh")), folder=folder)
    require("100% tests passed" in output, "the project's tests do not pass", output)
    project = folder / "my_kernels"
    template = (project / "add_one.cpp").read_text()
    sources = {}
    for block in blocks("cpp"):
        if found := re.match(r"PTXKIT_KERNEL\((\w+)\)", block):
            sources[found[1] + ".cpp"] = block
    require(list(sources) == ["add_one.cpp", "count_newlines.cpp", "reverse_tiles.cpp", "hash_words.cpp"], f"kernels: {list(sources)}")
    require(template.endswith(sources["add_one.cpp"]), "the tutorial shows another add_one than the project has")
    head = template[:-len(sources["add_one.cpp"])].split("\n", 1)[1]  # without the comment on add_one
    for name, block in sources.items():
        (project / name).write_text(head + block)
    lists = project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("SOURCES add_one.cpp TARGETS sm_80",
                                               f"SOURCES {' '.join(sources)} TARGETS sm_80 sm_90 VARIANTS release debug"))
    build = [CMAKE, "--build", str(project / "build")]
    run(*build)
    names = {path.name for path in (project / "build/my_kernels/ptx").glob("*.ptx")}
    require(len(names) == 4 * 2 * 2 and "hash_words.sm_90.debug.ptx" in names, f"PTX files: {sorted(names)}")

    texts = blocks("text")
    for what, name, old, new, places in (
            ("a race", "reverse_tiles.cpp", "k.barrier();", "", [texts[2]]),
            ("a misaligned load", "hash_words.cpp", "src.load_unaligned_u32(i)", 'src.load<u32>(assume_multiple<4>(i, "wrong"))',
             ["… critical: 4-byte load at a misaligned address: … [F051 UnalignedMemoryAccess, …]\n  source: hash_words.cpp:10:…\n"
              "kernel hash_words: …"]),
            ("a store out of bounds", "reverse_tiles.cpp", "127 - k.thread()", "128 - k.thread()",
             ["… critical: … [F054 SharedBounds, …]\n  source: reverse_tiles.cpp:…\nkernel reverse_tiles: …"]),
            ("a divergent ballot", "count_newlines.cpp", "found += popc(ballot((byte == '\\n') & (i < text.size())));",
             "k.if_(i < text.size(), [&] {\n  found += popc(ballot(byte == '\\n'));\n});", [texts[1]]),
            ("a name for two", "hash_words.cpp", '.name = "hash_words"', '.name = "add_one"',
             ["my_kernels_compiler: add_one.cpp:…: two kernels are named add_one\n  hash_words.cpp:…: the other one is here"])):
        text = (project / name).read_text()
        if what == "a misaligned load":
            text = text.replace("Span<read_only, u8>>", "Span<read_only, u8, 4>>")
        require(old in text, f"{what}: nothing to break in {name}")
        kept = (project / name).read_text()
        (project / name).write_text(text.replace(old, new))
        output = run(*build, passes=False)
        for place in places:
            require(shown(place, output), f"{what}: the build does not say\n{place}", output)
        (project / name).write_text(kept)
    require(not (project / "build/my_kernels/ptx/verdicts.json").exists(), "a verdict is left of a kernel that was refuted")

    # A kernel that is gone is judged no longer; a launch file is passed on.
    (project / "launch.json").write_text("{")
    lists.write_text(lists.read_text().replace("hash_words.cpp", "").replace("VARIANTS release debug", "LAUNCH launch.json"))
    output = run(*build, passes=False)
    require("launch.json: launch file: the text is no JSON" in output, "a launch file that is wrong", output)
    (project / "launch.json").write_text('{"entries": {}}')
    run(*build)
    header = (project / "build/my_kernels/images.cpp").read_text()
    require(header.count("images::Verdict{") == 3 * 2 and "hash_words" not in header, "the images are those of the kernels that there are")
    run("ctest", "--test-dir", str(project / "build"), "--output-on-failure")


CONSUMER = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
foreach(words "" "cxx" "harness" "builder" "harness;builder" "c" "builder;c" "harness;typo")
  unset(ptxkit_FOUND)
  set(ptxkit_NOT_FOUND_MESSAGE "")
  find_package(ptxkit 0.1 QUIET COMPONENTS ${words})
  message(NOTICE "<${words}> ${ptxkit_FOUND} ${ptxkit_NOT_FOUND_MESSAGE}")
endforeach()
find_package(ptxkit 0.1 REQUIRED COMPONENTS harness OPTIONAL_COMPONENTS builder typo)
message(NOTICE "optional: ${ptxkit_harness_FOUND} ${ptxkit_builder_FOUND} ${ptxkit_typo_FOUND}")
foreach(target driver harness builder)
  if(TARGET ptxkit::${target})
    message(NOTICE "has ${target}")
  endif()
endforeach()
"""


def components(folder, prefix):
    (folder / "CMakeLists.txt").write_text(CONSUMER)

    def configure(name, *options, lines):
        output = run(CMAKE, "-S", str(folder), "-B", str(folder / name), f"-DCMAKE_PREFIX_PATH={prefix}", *options)
        missing = [line for line in lines if not re.search(f"^{re.escape(line)} *$", output, re.M)]
        require(not missing, f"components {name}: expected {missing}", output)
        return output

    no_llvm = "component builder needs LLVM 19.1, which was not found (Debian: llvm-19-dev)"
    output = configure("without LLVM", "-DCMAKE_DISABLE_FIND_PACKAGE_LLVM=TRUE", lines=[
        "<> 1", "<harness> 1", f"<builder> 0 {no_llvm}", f"<harness;builder> 0 {no_llvm}",
        f"<c> 0 component c needs {prefix}/lib/libptxkit.so.1, which does not exist",
        f"<cxx> 0 component cxx needs {prefix}/lib/libptxkit.so.1, which does not exist",
        "<harness;typo> 0 there is no component typo; the components are c, cxx, harness and builder",
        "optional: TRUE FALSE FALSE", "has driver", "has harness"])
    require("has builder" not in output, "there is a builder without LLVM", output)
    configure("with LLVM", lines=[f"<builder;c> 0 component c needs {prefix}/lib/libptxkit.so.1, which does not exist", "<builder> 1", "<harness;builder> 1", "optional: TRUE TRUE FALSE", "has builder"])
    os.rename(prefix / "bin/ptx-debug", prefix / "bin/away")
    configure("with LLVM", lines=[f"<builder> 0 component builder needs {prefix}/bin/ptx-debug, which does not exist"])
    os.rename(prefix / "bin/away", prefix / "bin/ptx-debug")


def wrong_calls(prefix, folder):
    script = folder / "wrong.cmake"
    for call, message in (
            ("(k SOURCES a.cpp)", "SOURCES and TARGETS are required"),
            ("(k TARGETS sm_80)", "SOURCES and TARGETS are required"),
            ("(my-kernels SOURCES a.cpp TARGETS sm_80)", "the target's name becomes a namespace"),
            ("(k SOURCES a.cpp TARGETS sm_70)", "unknown target sm_70; the DSL emits PTX for sm_75, sm_80 and"),
            ("(k SOURCES a.cpp TARGETS sm_80 VARIANTS fast)", "unknown variant fast; there are release, checked and debug"),
            ("(k a.cpp TARGETS sm_80 SOURCES b.cpp)", "unknown argument a.cpp"),
            ("(k SOURCES a.cpp TARGETS sm_80)", "needs find_package(ptxkit COMPONENTS builder)")):
        script.write_text(f'include("{prefix}/lib/cmake/ptxkit/PtxkitKernels.cmake")\nptxkit_add_kernels{call}\n')
        output = run(CMAKE, "-P", str(script), passes=False)
        require(message in re.sub(r"\s+", " ", output), f"ptxkit_add_kernels{call}", output)


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch).resolve()
    prefix = scratch / "a prefix"
    for component in ("development", "programs"):
        run(CMAKE, "--install", BUILD, "--prefix", str(prefix), "--component", component)
    os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
    os.environ["CMAKE_GENERATOR"] = "Ninja"
    for page in ("man/man1/ptx-debug.1.gz", "man/man1/ptx-pack.1.gz", "bash-completion/completions/ptx-debug",
                 "zsh/vendor-completions/_ptx-debug", "fish/vendor_completions.d/ptx-debug.fish", "doc/ptxkit/examples/kernel_tests/saxpy.ptx"):
        require((prefix / "share" / page).is_file() and (prefix / "share" / page).stat().st_size > 100, f"{page} is not installed")
    if not wrong:
        for name in ("work", "consumer"):
            (scratch / name).mkdir()
        follow_tutorial(scratch / "work")
        components(scratch / "consumer", prefix)
        wrong_calls(prefix, scratch)
print("\n\n".join(wrong) or "the tutorial's project builds, passes, and stops at each fault")
sys.exit(bool(wrong))
