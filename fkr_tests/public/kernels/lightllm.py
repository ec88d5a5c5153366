"""Kernels of lightllm: serving language models, in Triton."""
import numpy as np

from cases import In, InOut, Out, case, rounded

LLAMA = "lightllm/models/llama/triton_kernel/"
COMMON = "lightllm/common/basemodel/triton_kernel/"


@case("lightllm", "flash_attention", file=LLAMA + "context_flashattention_nopad.py", kernel="_fwd_kernel_no_prompt_cache",
      targets=(80, 90, 100))
def flash_attention(launch):
    """Causal attention over sequences of different lengths, side by side in one tensor."""
    lengths, heads, kv_heads, size, block = np.int32([70, 33]), 2, 1, 64, 64
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    q, k, v = (launch.normal(int(lengths.sum()), h, size, dtype=np.float16) for h in (heads, kv_heads, kv_heads))
    out = np.empty(q.shape)
    for start, length in zip(starts, lengths):
        for h in range(heads):
            a, b, c = (x[start:start + length, i].astype(np.float64) for x, i in ((q, h), (k, h // 2), (v, h // 2)))
            logits = np.where(np.tri(length, dtype=bool), a @ b.T * size ** -0.5, -np.inf)
            e = np.exp(logits - logits.max(1, keepdims=True))
            out[start:start + length, h] = e @ c / e.sum(1, keepdims=True)
    strides = {f"stride_{n}{s}": v for n, h in (("q", heads), ("k", kv_heads), ("v", kv_heads), ("o", heads))
               for s, v in (("bs", h * size), ("h", size), ("d", 1))}
    launch.triton((2, heads, 2), {
        "Q": In(q), "K": In(k), "V": In(v), "sm_scale": size ** -0.5, "B_Start_Loc": In(starts), "B_Seqlen": In(lengths),
        "Out": Out(out, np.float16, rtol=1e-2, atol=2e-3), **strides, "kv_group_num": heads // kv_heads},
        {"BLOCK_M": block, "BLOCK_DMODEL": size, "BLOCK_N": block}, stages=1)


@case("lightllm", "token_attention", file=LLAMA + "token_attention_nopad_att1.py", kernel="_fwd_kernel_token_att1")
def token_attention(launch):
    lengths, heads, size, pool = np.int32([45, 20]), 2, 32, 80
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    q, k = launch.normal(2, heads, size), launch.normal(pool, heads, size)
    table = np.stack([launch.random.permutation(pool)[:64] for _ in range(3)]).astype(np.int32)
    request = np.int32([2, 0])
    out = np.concatenate([np.einsum("hd,nhd->hn", q[b], k[table[request[b], :lengths[b]]]) for b in range(2)], 1) * np.float32(0.25)
    launch.triton((2, heads, 2), {
        "Q": In(q), "K": In(k), "sm_scale": 0.25, "Req_to_tokens": In(table), "B_req_idx": In(request), "B_Start_Loc": In(starts),
        "B_Seqlen": In(lengths), "Att_Out": Out(out, rtol=1e-4, atol=1e-5), "stride_req_to_tokens_b": 64, "stride_req_to_tokens_s": 1,
        "stride_qbs": heads * size, "stride_qh": size, "stride_qd": 1, "stride_kbs": heads * size, "stride_kh": size, "stride_kd": 1,
        "att_stride_h": int(lengths.sum()), "att_stride_bs": 1, "kv_group_num": 1}, {"BLOCK_DMODEL": size, "BLOCK_N": 32})


@case("lightllm", "softmax_reduce_v", file=LLAMA + "token_attention_softmax_and_reducev.py", kernel="_fwd_kernel")
def softmax_reduce_v(launch):
    lengths, heads, size, pool = np.int32([45, 20]), 2, 32, 80
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    logits, v = launch.normal(heads, int(lengths.sum())), launch.normal(pool, heads, size)
    table = np.stack([launch.random.permutation(pool)[:64] for _ in range(2)]).astype(np.int32)
    out = np.empty((2, heads, size), np.float32)
    for b in range(2):
        e = np.exp(logits[:, starts[b]:starts[b] + lengths[b]])
        out[b] = np.einsum("hn,nhd->hd", e / e.sum(1, keepdims=True), v[table[b, :lengths[b]]])
    launch.triton((2, heads), {
        "Logics": In(logits), "V": In(v), "Out": Out(out, rtol=1e-4, atol=1e-5), "Req_to_tokens": In(table), "B_req_idx": In(np.int32([0, 1])),
        "B_Start_Loc": In(starts), "B_Seqlen": In(lengths), "stride_logic_h": int(lengths.sum()), "stride_logic_bs": 1,
        "stride_vbs": heads * size, "stride_vh": size, "stride_vd": 1, "stride_obs": heads * size, "stride_oh": size, "stride_od": 1,
        "stride_req_to_token_b": 64, "stride_req_to_token_s": 1, "other_kv_index": 3, "kv_group_num": 1}, {"BLOCK_DMODEL": size, "BLOCK_N": 32})


@case("lightllm", "apply_penalty", file=COMMON + "apply_penalty.py", kernel="_fwd_kernel_apply_penalty")
def apply_penalty(launch):
    batch, vocabulary = 2, 100
    logits, used = launch.normal(batch, vocabulary), [launch.random.permutation(vocabulary)[:n] for n in (20, 9)]
    presence, frequency, repetition = launch.uniform(batch), launch.uniform(batch), launch.uniform(batch, low=1, high=2)
    counts = launch.integers(1, 5, 29)
    after, ends = logits.copy(), np.int32([0, 20, 29])
    for b in range(batch):
        x = logits[b, used[b]]
        after[b, used[b]] = np.where(x > 0, x / repetition[b], x * repetition[b]) - counts[ends[b]:ends[b + 1]] * frequency[b] - presence[b]
    launch.triton((batch,), {
        "Logits": InOut(logits, after, rtol=1e-5, atol=1e-5), "presence_penalty": In(presence), "freqency_penalty": In(frequency),
        "repetition_penalty": In(repetition), "p_token_ids": In(np.concatenate(used).astype(np.int32)), "p_token_counts": In(counts),
        "p_cumsum_seq_len": In(ends), "stride_logit_b": vocabulary, "stride_logit_s": 1}, {"BLOCK_P": 512}, warps=8)


@case("lightllm", "quantize_int8_rows", file=COMMON + "quantize_gemm_int8.py", kernel="quantize_int8_perrow_kernel")
def quantize_int8_rows(launch):
    x = launch.normal(32, 100)
    scale = np.abs(x).max(1) / np.float32(127)
    launch.triton((2,), {"fpa_ptr": In(x), "a_ptr": Out((x / scale[:, None]).astype(np.int8), atol=1), "as_ptr": Out(scale, rtol=1e-6), "M": 32, "K": 100,
                         "stride_fpam": 100, "stride_fpak": 1, "stride_am": 100, "stride_ak": 1, "stride_asm": 1},
                  {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_K": 64})


@case("lightllm", "gemm_int8", file=COMMON + "quantize_gemm_int8.py", kernel="matmul_kernel", targets=(80, 90))
def gemm_int8(launch):
    """Integer products, split along K: two blocks add to one tile by atomics."""
    rows, columns, inner = 64, 64, 200
    a, b = launch.integers(-128, 128, rows, inner, dtype=np.int8), launch.integers(-128, 128, columns, inner, dtype=np.int8)
    a_scale, b_scale = launch.uniform(rows, low=0.001, high=0.01), launch.uniform(columns, low=0.001, high=0.01)
    c = (a.astype(np.int64) @ b.T.astype(np.int64)) * a_scale[:, None] * b_scale
    launch.triton((1, 2), {
        "a_ptr": In(a), "as_ptr": In(a_scale), "b_ptr": In(b), "bs_ptr": In(b_scale),
        "c_ptr": InOut(np.zeros((rows, columns), np.float32), c, rtol=1e-5, atol=1e-4), "M": rows, "N": columns, "K": inner, "stride_am": inner,
        "stride_ak": 1, "stride_asm": 1, "stride_bk": 1, "stride_bn": inner, "stride_bsn": 1, "stride_cm": columns, "stride_cn": 1},
        {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "SPLIT_K": 2}, stages=2)


@case("lightllm", "dequantize_int4", file=COMMON + "dequantize_gemm_int4.py", kernel="dequantize_kernel")
def dequantize_int4(launch):
    inner, columns, group = 64, 48, 32
    packed, zeros = launch.integers(-2 ** 31, 2 ** 31, inner // 8, columns), launch.integers(-2 ** 31, 2 ** 31, inner // group, columns // 8)
    scale = launch.uniform(inner // group, columns)
    nibble = lambda words, axis: np.stack([words >> (4 * i) & 15 for i in range(8)], axis + 1)
    b, z = nibble(packed, 0).reshape(inner, columns), nibble(zeros, 1).reshape(inner // group, columns)
    out = (b - np.repeat(z, group, 0)) * np.repeat(scale, group, 0)
    launch.triton((2, 2), {
        "b_ptr": In(packed), "b_scale_ptr": In(scale), "b_zp_ptr": In(zeros), "fpb_ptr": Out(out.astype(np.float32), rtol=1e-6), "K": inner,
        "N": columns, "group_size": group, "stride_bk": columns, "stride_bn": 1, "stride_bsk": columns, "stride_bsn": 1,
        "stride_bzpk": columns // 8, "stride_bzpn": 1, "stride_fpbk": columns, "stride_fpbn": 1}, {"BLOCK_SIZE_K": 32, "BLOCK_SIZE_N": 32})
