#!/usr/bin/env python3
"""Provides commands for --peer of acceptance.py from the peers' PTX readers. Their sources are not part of this repository.

  peers.py gpgpu-sim CHECKOUT PROGRAM   builds PROGRAM from a checkout of accel-sim/gpgpu-sim_distribution: its lexer,
                                        grammar, symbol tables and instruction objects without the timing model.
                                        Needs bison, flex, make, g++, zlib and the headers of CUDA (--cuda).
                                        PROGRAM FILE exits with 0 if GPGPU-Sim accepts FILE.
  peers.py openptxas CHECKOUT FILE      exits with 0 if the parser of a checkout of garrick99/openptxas accepts FILE.

    peers.py gpgpu-sim gpgpu-sim_distribution gpgpusim_accepts
    acceptance.py FOLDER --peer GPGPU-Sim=./gpgpusim_accepts --peer 'OpenPTXas=peers.py openptxas openptxas'
"""
import argparse
import concurrent.futures
import contextlib
import io
import os
import pathlib
import subprocess
import sys

SOURCES = """ptx_parser.cc ptx_ir.cc cuda-sim.cc ptx_sim.cc memory.cc ptx-stats.cc cuda_device_runtime.cc instructions.cc
             ../abstract_hardware_model.cc ../option_parser.cc""".split()
# CUDA 12 removed textureReference, of which GPGPU-Sim reads these members.
TEXTURE_REFERENCE = """
#include <driver_types.h>
#include <texture_types.h>
struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  unsigned maxAnisotropy;
};
"""
MAIN = """
#include <cstdio>
#include <cstdlib>
#include "../libcuda/gpgpu_context.h"
extern int ptx_lex_init(void **);
extern void ptx_set_in(FILE *, void *);
extern int ptx_parse(void *, ptx_recognizer *);
void register_ptx_function(const char *, function_info *) {}
struct Core : core_config {
  Core(gpgpu_context *context) : core_config(context) {}
  void init() override {}
};
int main(int, char **argv) {
  gpgpu_context context;
  static Core core(&context);
  core.warp_size = 32;
  context.ptx_parser->set_ptx_warp_size(&core);
  context.init_parser("/dev/null");  // sets up the names of tokens
  context.g_filename = argv[1];
  FILE *in = argv[1] ? fopen(argv[1], "r") : nullptr;
  if (!in) return 2;
  ptx_lex_init(&context.ptx_parser->scanner);
  ptx_set_in(in, context.ptx_parser->scanner);
  const int errors = ptx_parse(context.ptx_parser->scanner, context.ptx_parser);
  fflush(stdout);
  _Exit(errors ? 1 : 0);
}
"""


def build_gpgpu_sim(options):
    checkout, program = pathlib.Path(options.checkout).resolve(), pathlib.Path(options.file).resolve()
    folder, build = checkout / "src" / "cuda-sim", program.parent / (program.name + ".build")
    build.mkdir(parents=True, exist_ok=True)
    (build / "detailed_version").write_text('#define g_gpgpusim_version_string "4"\n#define g_gpgpusim_build_string ""\n')
    (build / "texture_reference.h").write_text(TEXTURE_REFERENCE)
    (build / "accepts.cc").write_text(MAIN)
    # makedepend's result is not needed here.
    depend = build / "makedepend"
    depend.write_text("#!/bin/sh\n")
    depend.chmod(0o755)
    generated = ["ptx.tab.c", "lex.ptx_.c", "instructions.h", "ptx_parser_decode.def"]
    subprocess.run(["make", "-s", "-C", folder, f"OUTPUT_DIR={build}", f"SIM_OBJ_FILES_DIR={build}",
                    f"CUDA_INSTALL_PATH={options.cuda}", "CUDART_VERSION=13000", *(str(build / name) for name in generated)],
                   check=True, env={**os.environ, "PATH": f"{build}:{os.environ['PATH']}"})
    flags = ["-w", "-O1", "-fpermissive", "-DYYDEBUG", "-DCUDART_VERSION=13000", f"-I{build}", f"-I{folder}", f"-I{folder.parent}",
             f"-I{options.cuda}/include", "-include", "texture_reference.h"]
    sources = [build / "accepts.cc", build / "ptx.tab.c", build / "lex.ptx_.c", *(folder / name for name in SOURCES)]

    def compile_one(source):
        target = build / (source.name + ".o")
        subprocess.run(["g++", "-std=c++14", *flags, "-x", "c++", "-c", source, "-o", target], check=True, cwd=folder)
        return target

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        objects = list(pool.map(compile_one, sources))
    # Functions of the timing model are never called.
    subprocess.run(["g++", "-no-pie", *objects, "-Wl,--unresolved-symbols=ignore-all", "-lz", "-o", program], check=True)
    print(f"built {program}")


def judge_by_openptxas(options):
    sys.path.insert(0, options.checkout)
    sys.setrecursionlimit(20000)
    from ptx.parser import parse
    text = pathlib.Path(options.file).read_text(encoding="latin-1")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            parse(text)
    except Exception as refusal:
        sys.exit(f"{options.file}: {type(refusal).__name__}: {refusal}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["gpgpu-sim", "openptxas"])
    parser.add_argument("checkout")
    parser.add_argument("file", help="PROGRAM, or FILE")
    parser.add_argument("--cuda", default="/usr/local/cuda", help="where CUDA's headers are, below include/")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    part = "src/cuda-sim" if options.peer == "gpgpu-sim" else "ptx/parser"
    if not (pathlib.Path(options.checkout) / part).exists() and not (pathlib.Path(options.checkout) / f"{part}.py").exists():
        parser.error(f"{options.checkout} has no {part}: name a checkout of {options.peer}")
    (build_gpgpu_sim if options.peer == "gpgpu-sim" else judge_by_openptxas)(options)


if __name__ == "__main__":
    main()
