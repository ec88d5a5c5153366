"""Kernels of rwkv: a recurrent language model, in CUDA C++."""
import numpy as np

from cases import In, InOut, Out, case

OPERATORS = "rwkv/cuda/operators.cu"
HEAD = "#include <cuda_fp16.h>\ntypedef unsigned char uint8_t;\n"


@case("rwkv", "mm_seq_fp32i8", file=OPERATORS, kernel="kernel_mm_seq_fp32i8")
def mm_seq_fp32i8(launch):
    rows, inner, columns = 3, 40, 70
    x, w = launch.normal(rows, inner), launch.integers(0, 256, inner, columns, dtype=np.uint8)
    mx, rx, my, ry = launch.normal(columns), launch.normal(columns), launch.normal(inner), launch.normal(inner)
    weights = (w + 0.5) * rx * ry[:, None] + mx + my[:, None]
    launch.cuda((3, 1), (1, 128), [rows, inner, columns, In(x), inner, In(w), columns, In(mx), In(rx), In(my), In(ry),
                                   Out((x @ weights).astype(np.float32), rtol=1e-4, atol=1e-2), columns],
                prelude=HEAD, only=["kernel_mm_seq_fp32i8"])
