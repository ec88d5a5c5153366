#!/usr/bin/env python3
"""The kernels of tutorials.py on a GPU, by PyTorch and Triton, and the same texts on the emulator: outputs side by side.

usage: on_gpu.py        needs a GPU, PyTorch and Triton; exit status 1 if outputs differ beyond the tolerance of a kernel

On the GPU ptxkit.triton.install() analyzes each launch; its findings are listed.
"""

import sys

import numpy as np
import torch
import triton
import tutorials

import ptxkit.triton
from ptxkit import emulator

RNG = np.random.default_rng(0)
HALF = (96, 80, 112)


def inputs():
    """For each kernel its inputs as NumPy arrays."""
    m, n, k = HALF
    return {
        "vector add": [RNG.random(3000, "f4"), RNG.random(3000, "f4")],
        "softmax": [RNG.standard_normal((37, 781)).astype("f4")],
        "matmul": [RNG.standard_normal((m, k)).astype("f2"), RNG.standard_normal((k, n)).astype("f2")],
        "layer norm": [RNG.normal(-2.3, 0.5, (21, 1151)).astype("f2"), RNG.random(1151, "f4"), RNG.random(1151, "f4")],
        "dropout": [RNG.standard_normal(5000).astype("f4")],
        "attention": [RNG.standard_normal((2, 128, 64)).astype("f2") for _ in range(3)],
        "causal attention": [RNG.standard_normal((2, 128, 64)).astype("f2") for _ in range(3)],
    }


# The largest difference that is allowed, of values above 1 relative to them: sums of tensor cores and approximate
# functions are rounded otherwise, by one unit in the last place of float16 at most.
ONE_UNIT = 2**-10
TOLERANCE = {"vector add": 0, "dropout": 0, "softmax": 1e-6}


def run(name, given, empty):
    """Runs a kernel. `given` are its inputs, empty(shape, dtype) makes an output. Returns the outputs."""
    if name == "vector add":
        out = empty(3000, "f4")
        tutorials.add_kernel[(3,)](*given, out, 3000, BLOCK=1024)
        return [out]
    if name == "softmax":
        out = empty((37, 781), "f4")
        tutorials.softmax_kernel[(8,)](out, *given, 781, 781, 37, 781, BLOCK=1024, num_stages=2)
        return [out]
    if name == "matmul":
        m, n, k = HALF
        out = empty((m, n), "f2")
        tutorials.matmul_kernel.fn[(6,)](*given, out, m, n, k, k, 1, n, 1, n, 1, BM=64, BN=32, BK=32, GM=4)
        return [out]
    if name == "layer norm":
        out, mean, rstd = empty((21, 1151), "f2"), empty(21, "f4"), empty(21, "f4")
        values, weight, bias = given
        tutorials.layer_norm_fwd[(21,)](values, out, weight, bias, mean, rstd, 1151, 1151, 1e-5, BLOCK=512)
        return [out, mean, rstd]
    if name == "dropout":
        out = empty(5000, "f4")
        tutorials.dropout[(5,)](*given, out, 5000, 0.5, 123, BLOCK=1024)
        return [out]
    out = empty((2, 128, 64), "f2")
    tutorials.attention[(2, 2)](
        *given, out, 0.125, 128 * 64, 64, 1, 128, BM=64, BN=32, D=64, CAUSAL=name == "causal attention"
    )
    return [out]


def main():
    dtypes = {"f4": torch.float32, "f2": torch.float16}
    sm = 10 * torch.cuda.get_device_capability()[0] + torch.cuda.get_device_capability()[1]
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, PyTorch {torch.__version__}")
    differ = 0
    all_inputs, on_gpu = inputs(), {}
    with ptxkit.triton.install() as watch:
        for name, arrays in all_inputs.items():
            outputs = run(
                name,
                [torch.from_numpy(array).cuda() for array in arrays],
                lambda shape, dtype: torch.empty(shape, dtype=dtypes[dtype], device="cuda"),
            )
            torch.cuda.synchronize()
            on_gpu[name] = [output.cpu().numpy() for output in outputs]
        outcomes, findings = watch.outcomes(), watch.findings()
    print(f"{len(outcomes)} launches analyzed, {sum(bool(each.error) for each in outcomes)} without a verdict")
    for finding in findings:
        print(finding)
    with ptxkit.triton.use_emulator(sm=sm):
        for name, arrays in all_inputs.items():
            outputs = run(name, list(map(emulator.array, arrays)), lambda shape, dtype: emulator.empty(shape, dtype))
            largest = max(
                float((np.abs(mine.numpy() - theirs.astype("f8")) / np.maximum(np.abs(theirs.astype("f8")), 1)).max())
                for mine, theirs in zip(outputs, on_gpu[name])
            )
            bad = not largest <= TOLERANCE.get(name, ONE_UNIT)
            differ += bad
            print(f"{name}: largest difference {largest:.3g}{', too large' if bad else ''}")
    return 1 if differ else 0


sys.exit(main())
