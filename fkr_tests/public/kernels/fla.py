"""Kernels of fla-core: linear attention in chunks, in Triton."""
import numpy as np

from cases import In, InOut, Out, case

OP = ["fla/ops/utils/op.py"]
HEAD = """import triton.language.extra.libdevice as tldevice
exp = tl.exp
exp2 = tl.math.exp2
make_tensor_descriptor = tl.make_tensor_descriptor
"""


@case("fla-core", "chunk_h", file="fla/ops/common/chunk_h.py", kernel="chunk_fwd_kernel_h", targets=(80, 90, 100))
def chunk_h(launch):
    """The state before each chunk of a gated linear attention, and the last one."""
    batch, length, heads, size, chunk = 1, 150, 2, 64, 64
    chunks = -(-length // chunk)
    k, v = launch.normal(batch, length, heads, size, dtype=np.float16), launch.normal(batch, length, heads, size, dtype=np.float16)
    step = -launch.uniform(batch, length, heads, high=0.05)
    g = np.concatenate([np.cumsum(step[:, i:i + chunk], 1) for i in range(0, length, chunk)], 1)
    states, state = np.empty((batch, chunks, heads, size, size)), np.zeros((batch, heads, size, size))
    for c in range(chunks):
        states[:, c] = state
        part = slice(c * chunk, min((c + 1) * chunk, length))
        last = g[:, part][:, -1]
        weighted = v[:, part] * np.exp2(last[:, None] - g[:, part])[..., None]
        state = state * np.exp2(last)[..., None, None] + np.einsum("bthk,bthv->bhkv", k[:, part].astype(np.float64), weighted)
    launch.triton((1 * 1 * batch * heads,), {
        "k": In(k), "v": In(v), "h": Out(states, np.float32, rtol=1e-2, atol=2e-2), "g": In(g), "ht": Out(state, np.float32, rtol=1e-2, atol=2e-2),
        "T": length},
        {**{n: None for n in ("g_gamma", "gk", "gv", "h0", "cu_seqlens", "split_offsets")}, "H": heads, "K": size, "V": size, "BT": chunk,
         "BS": chunk, "BK": 64, "BV": 64, "USE_G": True, "USE_G_GAMMA": False, "USE_GK": False, "USE_GV": False, "USE_INITIAL_STATE": False,
         "STORE_FINAL_STATE": True, "IS_VARLEN": False, "STATE_V_FIRST": False}, needs=OP, prelude=HEAD, stages=2)


@case("fla-core", "chunk_o", file="fla/ops/common/chunk_o.py", kernel="chunk_fwd_kernel_o", targets=(80, 90, 100))
def chunk_o(launch):
    batch, length, heads, size, chunk = 1, 100, 2, 64, 64
    chunks = -(-length // chunk)
    q, k, v = (launch.normal(batch, length, heads, size, dtype=np.float16) for _ in range(3))
    h, g = launch.normal(batch, chunks, heads, size, size, dtype=np.float16), -launch.uniform(batch, length, heads)
    out = np.empty(q.shape)
    for c in range(chunks):
        part = slice(c * chunk, min((c + 1) * chunk, length))
        a, b, w, s = (x[:, part].astype(np.float64) for x in (q, k, v, g))
        logits = np.einsum("bihk,bjhk->bhij", a, b) * np.exp2(s.transpose(0, 2, 1)[..., None] - s.transpose(0, 2, 1)[:, :, None])
        logits *= np.tri(a.shape[1])
        out[:, part] = (np.einsum("bihk,bhkv->bihv", a, h[:, c].astype(np.float64)) * np.exp2(s)[..., None]
                        + np.einsum("bhij,bjhv->bihv", logits, w)) * 0.125
    launch.triton((chunks, batch * heads), {
        "q": In(q), "k": In(k), "v": In(v), "h": In(h), "g": In(g), "o": Out(out, np.float16, rtol=1e-2, atol=5e-2), "scale": 0.125, "T": length},
        {"g_gamma": None, "cu_seqlens": None, "chunk_indices": None, "H": heads, "HV": heads, "K": size, "V": size, "BT": chunk, "BK": 64, "BV": 64,
         "USE_G": True, "USE_G_GAMMA": False, "STATE_V_FIRST": False, "IS_VARLEN": False}, needs=OP, prelude=HEAD, stages=1)


@case("fla-core", "solve_tril", file="fla/ops/utils/solve_tril.py", kernel="merge_16x16_to_32x32_inverse_kernel", targets=(80, 90))
def solve_tril(launch):
    """The inverse of unit lower triangles, by substitution within 16 rows and products between them."""
    length, heads, size = 64, 2, 32
    a = launch.normal(1, length, heads, size) * np.float32(0.2)
    row = np.arange(length) % size
    a *= (np.arange(size) < row[:, None])[:, None]
    out = np.empty(a.shape)
    for c in range(length // size):
        for h in range(heads):
            out[0, c * size:(c + 1) * size, h] = np.linalg.inv(np.eye(size) + a[0, c * size:(c + 1) * size, h].astype(np.float64))
    strict = (np.arange(size) <= row[:, None])[:, None]  # values above the diagonal of the blocks are not written
    within = (np.arange(size) // 16 <= row[:, None] // 16)[:, None]
    launch.triton((length // size, heads), {
        "A": In(a), "Ai": InOut(np.zeros_like(a), np.where(strict, out, 0).astype(np.float32), rtol=1e-4, atol=1e-4, where=within), "T": length},
        {"cu_seqlens": None, "chunk_indices": None, "H": heads, "BT": size, "USE_TMA": False, "IS_VARLEN": False, "DOT_PRECISION": "ieee"},
        needs=OP, prelude=HEAD)


@case("fla-core", "fused_recurrent", file="fla/ops/common/fused_recurrent.py", kernel="fused_recurrent_fwd_kernel")
def fused_recurrent(launch):
    batch, length, heads, size = 2, 6, 2, 40
    q, k, v = (launch.normal(batch, length, heads, size) for _ in range(3))
    gk, first = -launch.uniform(batch, length, heads, size), launch.normal(batch, heads, size, size)
    state, out = first.astype(np.float64), np.empty(q.shape)
    for t in range(length):
        state = state * np.exp(gk[:, t])[..., None] + k[:, t, :, :, None] * v[:, t, :, None]
        out[:, t] = (state * q[:, t, :, :, None]).sum(2) * 0.25
    launch.triton((2 * 1 * batch * heads,), {
        "q": In(q), "k": In(k), "v": In(v), "gk": In(gk), "o": Out(out, np.float32, rtol=1e-4, atol=1e-4), "h0": In(first),
        "ht": Out(state, np.float32, rtol=1e-4, atol=1e-4), "scale": 0.25, "B": batch, "T": length},
        {"g": None, "g_gamma": None, "gv": None, "cu_seqlens": None, "H": heads, "K": size, "V": size, "BK": 64, "BV": 32, "REVERSE": False,
         "USE_G": False, "USE_G_GAMMA": False, "USE_GK": True, "USE_GV": False, "USE_INITIAL_STATE": True, "STORE_FINAL_STATE": True,
         "IS_VARLEN": False, "STATE_V_FIRST": False}, needs=OP, prelude=HEAD)


@case("fla-core", "chunk_cumsum", file="fla/ops/utils/cumsum.py", kernel="chunk_local_cumsum_vector_kernel")
def chunk_cumsum(launch):
    """Suffix sums of columns."""
    length, heads, size, chunk = 70, 2, 48, 32
    x = launch.normal(1, length, heads, size)
    out = np.concatenate([np.cumsum(x[:, i:i + chunk][:, ::-1].astype(np.float64), 1)[:, ::-1] for i in range(0, length, chunk)], 1) * 0.5
    launch.triton((2 * 3, heads), {"s": In(x), "o": Out(out, np.float32, rtol=1e-5, atol=1e-5), "scale": 0.5, "T": length},
                  {"cu_seqlens": None, "chunk_indices": None, "B": 1, "H": heads, "S": size, "BT": chunk, "BS": 32, "REVERSE": True,
                   "HAS_SCALE": True, "IS_VARLEN": False, "USE_GRAPH": False}, needs=OP, prelude=HEAD)
