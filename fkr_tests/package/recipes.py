#!/usr/bin/env python3
"""The recipes of packaging/ say what the sources say: version, licence, programs, and each package that CMake looks for.

usage: recipes.py REPO
"""
import json
import pathlib
import re
import sys

import yaml

REPO = pathlib.Path(sys.argv[1])
# What CMakeLists.txt files and sources ask for -> its name in vcpkg and in conda.
NAMES = {"CLI11": ("cli11", "cli11"), "LLVM": ("llvm", "llvmdev"), "fmt": ("fmt", "fmt"), "lz4": ("lz4", "lz4-c"),
         "nlohmann_json": ("nlohmann-json", "nlohmann_json"), "tl/expected": ("tl-expected", "tl-expected"),
         "xxhash": ("xxhash", "xxhash"), "zstd": ("zstd", "zstd-static"),
         "deflate": ("libdeflate", "libdeflate"), "z": ("zlib", "zlib")}
LEFT_OUT = {"Threads", "MPI", "GTest"}  # of the compiler; for a program that the recipes do not build; for the tests
wrong = []


def require(condition, what):
    if not condition:
        wrong.append(what)


def text(path):
    return (REPO / path).read_text(encoding="utf-8")


version = re.search(r"^project\(ptxkit VERSION (\S+)", text("CMakeLists.txt"), re.M)[1]
asked = set()
for path in [*REPO.glob("*/**/CMakeLists.txt"), *REPO.glob("cmake/*.cmake")]:
    top = path.relative_to(REPO).parts[0]
    if top in ("support", "analyzer", "builder", "kernels", "runtime", "tools", "cmake") and "new_project" not in path.parts:
        listed = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"^\s*find_package\(([A-Za-z]\w*)", listed, re.M))
        asked |= set(re.findall(r"^find_library\(\w+ NAMES lib(\w+)\.a ", listed, re.M))
if "#include <tl/expected.hpp>" in text("support/result.hpp"):
    asked.add("tl/expected")
asked -= LEFT_OUT
require(asked == set(NAMES), f"the build asks for {sorted(asked)}, this test knows {sorted(NAMES)}")

port = json.loads(text("packaging/vcpkg/ptxkit/vcpkg.json"))
conda = yaml.safe_load(text("packaging/conda/recipe.yaml"))
require(port["version"] == version, f"the port has version {port['version']}, the project {version}")
require(conda["context"]["version"] == version, f"the recipe has version {conda['context']['version']}, the project {version}")
require(port["license"] == conda["about"]["license"] == "Apache-2.0", "licence")
ported = {entry if isinstance(entry, str) else entry["name"] for entry in port["dependencies"]} - {"vcpkg-cmake", "vcpkg-cmake-config"}
require(ported == {names[0] for names in NAMES.values()}, f"the port depends on {sorted(ported)}")
hosted = {entry.split()[0] for entry in conda["requirements"]["host"]}
require(hosted == {names[1] for names in NAMES.values()}, f"the recipe depends on {sorted(hosted)}")
llvm = re.search(r"PTXKIT_LLVM_VERSION (\S+) ", text("builder/CMakeLists.txt"))[1]
require(f"llvmdev {llvm}.*" in conda["requirements"]["host"], f"the recipe has another LLVM than {llvm}")
debian = text("cmake/PtxkitDebian.cmake")
for package in ("libexpected-dev", "libfmt-dev", "liblz4-dev", "libxxhash-dev", "libzstd-dev", "libdeflate-dev", "zlib1g-dev", "nlohmann-json3-dev", f"llvm-{llvm.split('.')[0]}-dev"):
    require(package in debian, f"PtxkitDebian.cmake does not name {package}")
for recipe in ("packaging/vcpkg/ptxkit/portfile.cmake", "packaging/conda/recipe.yaml"):
    for option in re.findall(r"-D(PTXKIT_\w+)", text(recipe)):
        require(re.search(rf"^(option|set)\({option} ", text("CMakeLists.txt"), re.M), f"{recipe}: there is no option {option}")

print("\n".join(wrong) or f"the recipes are those of {version}")
sys.exit(bool(wrong))
