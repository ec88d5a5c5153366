#!/usr/bin/env python3
"""Compares the emulator's speed with that of another one, and builds that one. Its sources are not part of this repository.

  speeds.py peer CHECKOUT PROGRAM               builds PROGRAM from a checkout of github.com/Poolce/ptx-emulator (cuemu), with
                                                Clang 19, Python and jinja2
  speeds.py rows EMULATOR_SPEED PROGRAM ROWS    runs both in turn on the kernels of speed.ptx and writes the rows of
                                                docs/emulator.md, for figures.py; the machine must be quiet

Figures are thread instructions per second of processor time: medians of --runs runs of one thread on the processor --cpu.
The peer runs one block as its own runtime does without OpenMP, without its log. The emulator counts the instructions.
"""
import argparse
import concurrent.futures
import datetime
import os
import pathlib
import re
import statistics
import subprocess
import sys

KERNELS = pathlib.Path(__file__).resolve().parent / "speed.ptx"
CLANG = ["clang++-19", "-std=c++23", "-O2", "-DNDEBUG", "-w"]
SOURCES = "ptx_asm/function.cpp ptx_asm/module.cpp context/warp_context.cpp context/block_context.cpp context/global_context.cpp " \
          "context/profiler.cpp utils/gpu_config.cpp"
MAIN = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include "global_context.h"
#include "module.h"
using namespace Emulator;
int main(int, char** argv) {
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  auto module = Ptx::Module::Make(text.str());
  void* data = std::aligned_alloc(256, 8192);
  std::memset(data, 1, 8192);
  void* args[] = {&data};
  auto context = std::make_shared<GlobalContext>();
  context->Init(module, dim3(1), dim3(256), args, 49152);
  context->SetEntryFunction(argv[2]);
  const std::clock_t start = std::clock();
  for (auto& block : context->GetBlocks()) {
    for (bool active = true; active;) {
      active = false;
      for (auto warp : block->GetWarps()) {
        for (bool barrier = false; !barrier && warp->isActive();) {
          active = true;
          auto& stack = warp->execution_stack;
          while (!stack.empty() && stack.top().is_convergence && stack.top().pc == warp->pc) {
            warp->execution_mask = stack.top().mask;
            stack.pop();
          }
          auto instruction = context->GetInstruction(warp->pc);
          if (!instruction) return 1;
          barrier = instruction->Name() == "bar";
          instruction->Execute(warp);
        }
      }
    }
  }
  std::printf("%.6f seconds", double(std::clock() - start) / CLOCKS_PER_SEC);
  unsigned long long sum = 0;
  for (int i = 0; i < 2048; ++i) sum = sum * 1000003 + static_cast<unsigned*>(data)[i];
  std::printf(", sum %llx\\n", sum);
}
"""


def build_peer(options):
    app, program = pathlib.Path(options.checkout).resolve() / "app", pathlib.Path(options.program).resolve()
    if not (app / "ptx_asm").is_dir():
        sys.exit(f"speeds.py: {options.checkout} has no app/ptx_asm: name a checkout of github.com/Poolce/ptx-emulator")
    build = program.parent / (program.name + ".build")
    build.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, app / "ptx_asm/codegen/autogen.py", "--out", build], check=True)
    (build / "main.cpp").write_text(MAIN)
    (build / "stdfloat").write_text("")  # a C++23 header that libstdc++ 12 lacks; nothing of it is used
    folders = [build, app.parent, *(app / name for name in "utils context runtime ptx_asm ptx_asm/instruction_executors".split())]
    sources = [build / "main.cpp", build / "instructions.cpp", build / "ptx_types.cpp", *(app / name for name in SOURCES.split())]

    def compile_one(source):
        target = build / (source.name + ".o")
        subprocess.run([*CLANG, *(f"-I{folder}" for folder in folders), "-c", source, "-o", target], check=True)
        return target

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        objects = list(pool.map(compile_one, sources))
    subprocess.run([CLANG[0], *objects, "-o", program], check=True)
    print(f"built {program}")


def rows(options):
    os.sched_setaffinity(0, {options.cpu})

    def output_of(*command):
        return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout

    plain, checked, peer = {}, {}, {}
    for _ in range(options.runs):
        for line in output_of(options.emulator_speed, KERNELS).splitlines()[1:]:
            kernel, without, all_checks, _, instructions = line.split()
            plain.setdefault(kernel, []).append(float(without))
            checked.setdefault(kernel, []).append(float(all_checks))
            seconds = [float(output_of(options.program, KERNELS, kernel).split()[0]) for _ in range(3)]
            peer.setdefault(kernel, []).append(int(instructions) / min(seconds) / 1e6)

    def spread(figures):
        return f"{statistics.median(figures):.0f} ({min(figures):.0f} to {max(figures):.0f})"

    text = ""
    for kernel in plain:
        ratio = statistics.median(a / b for a, b in zip(plain[kernel], checked[kernel]))
        times = statistics.median(plain[kernel]) / statistics.median(peer[kernel])
        text += (f"| {kernel.replace('_', ' ')}: million thread instructions a second of one core, unchecked; with all checks; cuemu | "
                 f"{spread(plain[kernel])}; {spread(checked[kernel])}, 1 / {ratio:.1f}; {spread(peer[kernel])}, 1 / {times:.0f} |\n")
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1).strip()
    text += (f"| speeds of | {model}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; median (least to most) of {options.runs} "
             f"runs in turn; {datetime.date.today()} |\n")
    pathlib.Path(options.rows).write_text(text)
    print(text, end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("peer")
    command.add_argument("checkout")
    command.add_argument("program")
    command.add_argument("--jobs", type=int, default=2)
    command.set_defaults(run=build_peer)
    command = commands.add_parser("rows")
    command.add_argument("emulator_speed")
    command.add_argument("program")
    command.add_argument("rows")
    command.add_argument("--runs", type=int, default=7)
    command.add_argument("--cpu", type=int, default=0)
    command.set_defaults(run=rows)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
