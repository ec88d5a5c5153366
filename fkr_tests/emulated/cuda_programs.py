#!/usr/bin/env python3
"""Runs whole CUDA programs on the emulator with all checks, which must find nothing. Needs nvcc.

  cuda_programs.py LIBEMULATEDCUDART [SCRATCH]    LIBEMULATEDCUDART: build/tests/libemulatedcudart.so

Without options it runs cuda/cub_and_groups.cu only. With these it also runs programs that are not part of this repository:
  --cccl CHECKOUT      of github.com/NVIDIA/cccl: the examples of CUB and Thrust
  --samples CHECKOUT   of github.com/NVIDIA/cuda-samples: those of cooperative groups, some with smaller arrays
  --ggml CHECKOUT      of github.com/ggml-org/ggml: cuda/ggml_operations.cu with ggml's own sources

Every program runs once in each schedule, with at most --seconds of processor time. Exit status 1 if a program has a fault
that is not in KNOWN, gives another result than it expects, is not built, or does not end; 77 without nvcc.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCHEDULES = ["in-order", "random:1", "adversarial:1"]
NVCC = ["-arch=compute_80", "-std=c++17", "-w", "--extended-lambda", "-cudart", "none"]
SAMPLES = "Samples/0_Introduction/simpleAWBarrier Samples/0_Introduction/simpleCooperativeGroups Samples/2_Concepts_and_Techniques/shfl_scan " \
          "Samples/2_Concepts_and_Techniques/reductionMultiBlockCG Samples/2_Concepts_and_Techniques/threadFenceReduction " \
          "Samples/3_CUDA_Features/binaryPartitionCG Samples/3_CUDA_Features/warpAggregatedAtomicsCG"
SMALLER = {"NUM_ELEMS             10000000": "NUM_ELEMS             100000"}
ARGUMENTS = {"reductionMultiBlockCG": ["--n=65536"], "threadFenceReduction": ["--n=65536"]}
# Faults that were investigated and are in the source, by rule.
KNOWN = {
    # The last block reads or resets what the others wrote. It learns that it is the last from a relaxed atomicInc that
    # no fence follows.
    "cub_example_device_topk_keys": {"F042"}, "cub_example_device_topk_pairs": {"F042"}, "sample_threadFenceReduction": {"F042"},
    # serial_set_intersection compares keys after its tile, which are not initialised; the result is discarded.
    "thrust_set_operations": {"F060"},
}
TOO_LONG = ["discrete_voronoi", "monte_carlo", "monte_carlo_disjoint_sequences"]
GGML = "argmax argsort binbcast clamp concat conv2d-dw count-equal cpy cross-entropy-loss cumsum diag diagmask getrows im2col mean norm " \
       "pad pool2d roll rope scale set-rows softmax ssm-conv sum sumrows top-k tri unary upscale"


class Program:
    def __init__(self, name, sources, flags, arguments=()):
        self.name, self.sources, self.flags, self.arguments = name, sources, flags, list(arguments)


def programs(options, scratch):
    yield Program("cub_and_groups", [HERE / "cuda/cub_and_groups.cu"], [])
    if options.cccl:
        folders = ["cub", "thrust", "libcudacxx/include", "c2h/include", "thrust/examples/include"]
        flags = [f"-I{HERE / 'cuda'}", *(f"-I{options.cccl / folder}" for folder in folders)]
        # Left out: memory pools, which belong to the driver, and managed memory, which is not emulated.
        for source in sorted([*options.cccl.glob("cub/examples/*/*.cu"), *options.cccl.glob("thrust/examples/*.cu")]):
            if re.search("cuda/memory_pool|universal_vector|cudaMallocManaged", source.read_text()) or source.stem in TOO_LONG:
                continue
            yield Program(f"{source.relative_to(options.cccl).parts[0]}_{source.stem}", [source], flags)
    if options.samples:
        for folder in SAMPLES.split():
            source = options.samples / folder / f"{pathlib.Path(folder).name}.cu"
            text = source.read_text()
            for large, small in SMALLER.items():
                text = text.replace(large, small)
            smaller = scratch / source.name
            smaller.write_text(text)
            yield Program(f"sample_{source.stem}", [smaller], [f"-I{source.parent}", f"-I{options.samples / 'Common'}"],
                          ARGUMENTS.get(source.stem, []))
    if options.ggml:
        cuda = options.ggml / "src/ggml-cuda"
        flags = ["-use_fast_math", *(f"-I{options.ggml / folder}" for folder in ("include", "src", "src/ggml-cuda")),
                 '-DGGML_VERSION="0"', '-DGGML_COMMIT="0"', "-D_GNU_SOURCE"]
        sources = [HERE / "cuda/ggml_operations.cu", HERE / "cuda/no_cublas.c", options.ggml / "src/ggml.c", options.ggml / "src/ggml-quants.c"]
        yield Program("ggml_operations", [*sources, *(cuda / f"{name}.cu" for name in GGML.split())], flags)


def build(program, options, scratch):
    """The error, or None. Sources are compiled one by one: ggml's take minutes, and a second run reuses the objects."""
    target, objects = scratch / program.name, []
    if target.exists():
        return None
    for source in program.sources:
        made = scratch / f"{program.name}.{source.name}.o"
        objects.append(made)
        if made.exists():
            continue
        flags = [flag for flag in NVCC if source.suffix == ".cu" or not flag.startswith(("-std", "--ext"))]
        done = subprocess.run([options.nvcc, *flags, *program.flags, "-c", source, "-o", made], capture_output=True, text=True)
        if done.returncode:
            return next(iter(re.findall(r".*error.*", done.stdout + done.stderr)), "nvcc failed")
    library = options.library
    done = subprocess.run([options.nvcc, "-cudart", "none", *objects, library, "-Xlinker", f"-rpath={library.parent}", "-o", target],
                          capture_output=True, text=True)
    return next(iter(re.findall(r"undefined reference.*", done.stdout + done.stderr)), "nvcc failed") if done.returncode else None


def run(program, schedule, options, scratch):
    """The counts of a run, and its error."""
    report = scratch / f"{program.name}.{schedule.replace(':', '-')}"
    report.unlink(missing_ok=True)
    limit = (options.seconds, options.seconds)
    done = subprocess.run([scratch / program.name, *program.arguments], capture_output=True, text=True, cwd=scratch,
                          env={**os.environ, "EMULATED_SCHEDULE": schedule, "EMULATED_REPORT": str(report)},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit))
    text = report.read_text() if report.exists() else ""
    counts = re.search(r"(\d+) launches, (\d+) thread instructions, (\d+) faults", text)
    if not counts:
        return [0, 0, 0], f"did not end: {text or done.stderr[-300:]}"
    unknown = set(re.findall(r"\[(F\d+)\]:", text)) - KNOWN.get(program.name, set())
    wrong = text if unknown or "refused" in text else done.stdout[-1000:] if done.returncode else ""
    return [int(count) for count in counts.groups()], wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("scratch", nargs="?", type=pathlib.Path)
    for checkout in ("cccl", "samples", "ggml"):
        parser.add_argument(f"--{checkout}", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.library = options.library.resolve()
    options.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(options.nvcc).exists():
        print("NOT RUN: nvcc is not installed")
        sys.exit(77)
    scratch = (options.scratch or pathlib.Path(tempfile.mkdtemp())).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    all_programs = list(programs(options, scratch))
    failures, known, launches, instructions = [], [], 0, 0

    def whole(program):
        error = build(program, options, scratch)
        return error, [] if error else [run(program, schedule, options, scratch) for schedule in SCHEDULES]

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for program, (error, runs) in zip(all_programs, pool.map(whole, all_programs)):
            wrong = f"not built: {error}" if error else "".join(what for _, what in runs)
            counts = [sum(column) for column in zip(*(counts for counts, _ in runs))] or [0, 0, 0]
            print(f"{program.name}: {counts[0]} launches, {counts[1]} thread instructions, {counts[2]} faults {wrong}", flush=True)
            launches, instructions = launches + counts[0], instructions + counts[1]
            failures += [program.name] if wrong else []
            known += [program.name] if counts[2] and not wrong else []
    if not options.scratch:
        shutil.rmtree(scratch)
    print(f"{len(all_programs) - len(failures) - len(known)} of {len(all_programs)} programs without a fault in {len(SCHEDULES)} schedules, "
          f"{launches} launches, {instructions} thread instructions; known faults: {', '.join(known) or 'none'}; "
          f"others: {', '.join(failures) or 'none'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
