"""Kernels of rwkv: recurrent language models, in CUDA C++."""
import numpy as np

from cases import In, InOut, Out, case, rounded

OPERATORS = "rwkv/cuda/operators.cu"
HEAD = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\ntypedef unsigned char uint8_t;\n#define MIN_VALUE (-1e38)\n"


@case("rwkv", "wkv_forward", file=OPERATORS, kernel="kernel_wkv_forward<__half>")
def wkv_forward(launch):
    batch, length, channels = 2, 6, 48
    w, u = -launch.uniform(channels, low=0.1, high=2), launch.normal(channels)
    k, v = launch.normal(batch, length, channels, dtype=np.float16), launch.normal(batch, length, channels, dtype=np.float16)
    aa, bb, pp = launch.normal(batch, channels), launch.uniform(batch, channels, low=0.5), launch.normal(batch, channels)
    before, y = (aa, bb, pp), np.empty(k.shape)
    aa, bb, pp = (x.astype(np.float64) for x in before)
    for t in range(length):
        kk, vv = k[:, t].astype(np.float64), v[:, t].astype(np.float64)
        p = np.maximum(pp, u + kk)
        e1, e2 = np.exp(pp - p), np.exp(u + kk - p)
        y[:, t] = (e1 * aa + e2 * vv) / (e1 * bb + e2)
        p = np.maximum(w + pp, kk)
        e1, e2 = np.exp(w + pp - p), np.exp(kk - p)
        aa, bb, pp = e1 * aa + e2 * vv, e1 * bb + e2, p
    state = [InOut(x, after.astype(np.float32), rtol=1e-4, atol=1e-5) for x, after in zip(before, (aa, bb, pp))]
    launch.cuda((3,), (32,), [batch, length, channels, In(w), In(u), In(k), In(v), Out(y, np.float16, rtol=2e-3, atol=1e-3), *state],
                prelude=HEAD, only=["kernel_wkv_forward"])


def mm8(launch, rows, inner, columns):
    x, w = launch.normal(rows, inner), launch.integers(0, 256, inner, columns, dtype=np.uint8)
    mx, rx, my, ry = launch.normal(columns), launch.normal(columns), launch.normal(inner), launch.normal(inner)
    weights = (w + 0.5) * rx * ry[:, None] + mx + my[:, None]
    return x, w, mx, rx, my, ry, (x @ weights).astype(np.float32)


@case("rwkv", "mm_seq_fp32i8", file=OPERATORS, kernel="kernel_mm_seq_fp32i8")
def mm_seq_fp32i8(launch):
    rows, inner, columns = 3, 40, 70
    x, w, mx, rx, my, ry, y = mm8(launch, rows, inner, columns)
    launch.cuda((3, 1), (1, 128), [rows, inner, columns, In(x), inner, In(w), columns, In(mx), In(rx), In(my), In(ry),
                                   Out(y, rtol=1e-4, atol=1e-2), columns], prelude=HEAD, only=["kernel_mm_seq_fp32i8"])


@case("rwkv", "mm_one_fp32i8", file=OPERATORS, kernel="kernel_mm_one_fp32i8")
def mm_one_fp32i8(launch):
    """A vector times a matrix of bytes. Blocks handle parts of the vector and add by atomics."""
    inner, columns = 50, 90
    x, w, mx, rx, my, ry, y = mm8(launch, 1, inner, columns)
    launch.cuda((4, 1), (1, 128), [inner, columns, In(x), In(w), columns, In(mx), In(rx), In(my), In(ry),
                                   InOut(np.zeros_like(y), y, rtol=1e-4, atol=1e-2)],
                prelude=HEAD + "#define MM8_ONE_JSPLIT 4\n", only=["kernel_mm_one_fp32i8"])


@case("rwkv", "rwkv6", file="rwkv/cuda/rwkv6.cu", kernel="kernel_forward<__nv_bfloat16>")
def rwkv6(launch):
    length, heads, size = 5, 2, 32
    r, k, v, u = (rounded("bf16", launch.normal(length, heads, size)) for _ in range(4))
    u = u[0]
    w, state = launch.uniform(length, heads, size), launch.normal(heads, size, size)
    after, y = state.astype(np.float64), np.empty(r.shape)
    for t in range(length):
        kv = v[t, :, :, None] * k[t, :, None, :]
        y[t] = ((u[:, None, :] * kv + after) * r[t, :, None, :]).sum(2)
        after = after * w[t, :, None, :] + kv
    launch.cuda((heads,), (size,), [1, length, heads * size, heads, InOut(state, after, rtol=1e-4, atol=1e-4), In(r, "bf16"), In(k, "bf16"),
                                    In(v, "bf16"), In(w), In(u, "bf16"), Out(y, kind="bf16", rtol=1e-2, atol=1e-2)],
                prelude=HEAD, only=["kernel_forward"], options=[f"-D_N_={size}"])


@case("rwkv", "rwkv7", file="rwkv/cuda/rwkv7.cu", kernel="kernel_forward<float>")
def rwkv7(launch):
    length, heads, size = 5, 2, 64
    r, w, k, v, a, b = (launch.normal(length, heads, size) * np.float32(0.3) for _ in range(6))
    state = launch.normal(heads, size, size)
    after, y = state.astype(np.float64), np.empty(r.shape)
    for t in range(length):
        sa = (after * a[t, :, None, :]).sum(2, keepdims=True)
        after = after * np.exp(-np.exp(w[t]))[:, None, :] + v[t, :, :, None] * k[t, :, None, :] + sa * b[t, :, None, :]
        y[t] = (after * r[t, :, None, :]).sum(2)
    launch.cuda((heads,), (size,), [1, length, heads * size, heads, InOut(state, after, rtol=1e-4, atol=1e-4), *(In(x) for x in (r, w, k, v, a, b)),
                                    Out(y, np.float32, rtol=1e-4, atol=1e-4)], prelude=HEAD, only=["kernel_forward"], options=[f"-D_N_={size}"])
