"""Kernels of spconv-triton, flash-kmeans and triton-csprng: sparse convolution, clustering and ciphers, in Triton."""
import numpy as np

from cases import In, InOut, Out, case

PAIRS = "spconv_triton/pytorch/_impl/pair_kernels.py"
SAMPLING = "triton_csprng/sampling.py"


@case("spconv-triton", "candidates", file=PAIRS, kernel="_candidates_kernel")
def candidates(launch):
    """The output position of each active site for each offset of a strided 3 by 3 kernel, as a linear index."""
    sites, kernel, shape, stride, pad = 60, 9, (9, 8), 2, 1
    index = np.stack([launch.integers(0, 2, sites), launch.integers(0, 17, sites), launch.integers(0, 15, sites)], 1)
    offset = np.stack(np.meshgrid(range(3), range(3), indexing="ij"), 2).reshape(9, 2).astype(np.int32)
    linear, valid = np.broadcast_to(index[:, 0], (kernel, sites)).astype(np.int64), np.ones((kernel, sites), bool)
    for d in range(2):
        o = index[:, d + 1] + pad - offset[:, d, None]
        q = np.where(o >= 0, o // stride, -(-o // stride))
        valid &= (o >= 0) & (o % stride == 0) & (q < shape[d])
        linear = linear * shape[d] + q
    parameters = np.int32([pad, pad, stride, stride, 1, 1, *shape])
    launch.triton((5,), {
        "idx_ptr": In(index), "offs_ptr": In(offset), "params_ptr": In(parameters), "out_lin_ptr": Out(linear.astype(np.int32)),
        "valid_ptr": Out(valid.astype(np.int8)), "N": sites, "KV": kernel, "KV_N": kernel * sites},
        {"NDIM": 2, "IDXW": 3, "TRANSPOSE": False, "STRIDED": True, "BLOCK": 128})


@case("spconv-triton", "mask_pack", file=PAIRS, kernel="_mask_pack_kernel")
def mask_pack(launch):
    pairs = launch.integers(-1, 2, 40, 100)
    bits = (pairs >= 0).astype(np.int64)
    words = np.stack([(bits[:32] << np.arange(32)[:, None]).sum(0), (bits[32:] << np.arange(8)[:, None]).sum(0)], 1)
    launch.triton((2,), {"pair_ptr": In(pairs), "words_ptr": Out(words), "N": 100}, {"KV": 40, "MIC": 2, "BLOCK": 64})


@case("spconv-triton", "membership", file=PAIRS, kernel="_subm_membership_kernel")
def membership(launch):
    """A binary search of each candidate among the sorted sites."""
    sites = launch.random.permutation(500)[:80].astype(np.int32)
    order = np.argsort(sites).astype(np.int32)
    ordered, wanted, valid = sites[order], launch.integers(0, 500, 300), launch.integers(0, 2, 300, dtype=np.int8)
    place = np.searchsorted(ordered, wanted)
    safe = np.minimum(place, 79)
    launch.triton((3,), {
        "out_lin_ptr": In(wanted), "sorted_lin_ptr": In(ordered), "sort_idx_ptr": In(order), "pvalid_ptr": In(valid),
        "out_row_ptr": Out(order[safe]), "valid_ptr": Out(((ordered[safe] == wanted) & (place < 80) & (valid != 0)).astype(np.int8)),
        "N": 80, "KV_N": 300, "steps": 7}, {"BLOCK": 128})


@case("spconv-triton", "max_pool", file="spconv_triton/pytorch/_impl/pool.py", kernel="_maxpool_fwd_kernel")
def max_pool(launch):
    sites, outputs, channels, kernel = 50, 30, 20, 9
    x, pairs = launch.normal(sites, channels, dtype=np.float16), launch.integers(-8, sites, kernel, outputs)
    y = np.where(pairs[..., None] >= 0, x[np.maximum(pairs, 0)], 0).astype(np.float16).max(0)
    launch.triton((2, 1), {"feats_ptr": In(x), "pairs_ptr": In(pairs), "out_ptr": Out(np.maximum(y, 0)), "M": outputs, "s_fr": channels,
                           "s_fc": 1, "s_pk": outputs, "s_pm": 1, "s_or": channels, "s_oc": 1},
                  {"C": channels, "kv": kernel, "ACC_F64": False, "BLOCK_M": 16, "BLOCK_C": 32})


@case("flash-kmeans", "assign", file="flash_kmeans/assign_euclid_triton.py", kernel="_euclid_assign_kernel", targets=(80, 90, 100))
def assign(launch):
    points, clusters, size = 150, 40, 60
    x, c = launch.normal(1, points, size, dtype=np.float16), launch.normal(1, clusters, size, dtype=np.float16)
    x_square, c_square = ((v.astype(np.float32) ** 2).sum(2) for v in (x, c))
    distance = x_square[0, :, None] + c_square[0] - 2 * (x[0].astype(np.float64) @ c[0].T.astype(np.float64))
    launch.triton((3, 1), {"x_ptr": In(x), "c_ptr": In(c), "x_sq_ptr": In(x_square), "c_sq_ptr": In(c_square),
                           "out_ptr": Out(distance.argmin(1).astype(np.int32)[None])},
                  {"B": 1, "N": points, "K": clusters, "D": size, "stride_x_b": points * size, "stride_x_n": size, "stride_x_d": 1,
                   "stride_c_b": clusters * size, "stride_c_k": size, "stride_c_d": 1, "stride_xsq_b": points, "stride_xsq_n": 1,
                   "stride_csq_b": clusters, "stride_csq_k": 1, "stride_out_b": points, "stride_out_n": 1, "BLOCK_N": 64, "BLOCK_K": 32,
                   "D_PAD": 64})


@case("flash-kmeans", "centroid_update", file="flash_kmeans/centroid_update_triton.py", kernel="_centroid_update_kernel")
def centroid_update(launch):
    points, clusters, size = 60, 5, 48
    x, cluster = launch.integers(-9, 9, 1, points, size).astype(np.float32), launch.integers(0, clusters, 1, points)
    sums, counts = np.zeros((1, clusters, size), np.float32), np.bincount(cluster[0], minlength=clusters).astype(np.int32)[None]
    np.add.at(sums[0], cluster[0], x[0])
    launch.triton((points,), {
        "x_ptr": In(x), "cluster_ptr": In(cluster), "sum_ptr": InOut(np.zeros_like(sums), sums), "count_ptr": InOut(np.zeros_like(counts), counts),
        "stride_x_b": points * size, "stride_x_n": size, "stride_x_d": 1, "stride_sum_b": clusters * size, "stride_sum_k": size,
        "stride_sum_d": 1, "stride_count_b": clusters, "stride_count_k": 1}, {"B": 1, "N": points, "D": size, "K": clusters, "BLOCK_D": 32})


def chacha20(state):
    """RFC 8439: blocks of 16 words in their last dimension."""
    x = list(np.moveaxis(state.astype(np.uint32), -1, 0))
    turn = lambda v, n: v << np.uint32(n) | v >> np.uint32(32 - n)
    def quarter(a, b, c, d):
        for first, second, third, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[first] = x[first] + x[second]
            x[third] = turn(x[third] ^ x[first], n)
    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return np.stack(x, -1) + state.astype(np.uint32)


@case("triton-csprng", "chacha20", file="triton_csprng/chacha20.py", kernel="_chacha20_blocks_kernel")
def chacha20_blocks(launch):
    state = launch.random.integers(0, 1 << 32, (100, 16), dtype=np.uint64).astype(np.uint32)
    state[:3, 12] = 0xFFFFFFFE
    after = state.copy()
    after[:, 12] += np.uint32(5)
    after[:, 13] += after[:, 12] < 5
    # The test vector of section 2.3.2 of the RFC validates this reference.
    key = np.frombuffer(bytes(range(32)), "<u4")
    known = np.uint32([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, *key, 1, 0x09000000, 0x4a000000, 0])
    assert chacha20(known)[0] == 0xe4e7f110
    signed = lambda v: v.astype(np.int64)
    launch.triton((1,), {"states": InOut(signed(state), signed(after)), "out": Out(signed(chacha20(state)))},
                  {"n_blocks": 100, "step": 5, "BLOCK": 128})


@case("triton-csprng", "bounded", file=SAMPLING, kernel="_bounded_uint64_kernel")
def bounded(launch):
    """High words of products of 64 by 128 bits."""
    count, each = 200, 10
    words = launch.random.integers(0, 1 << 32, (count, 4), dtype=np.uint64)
    bounds = launch.random.integers(1, 1 << 62, count // each, dtype=np.int64)
    number = [(int(w[2]) << 96) + (int(w[3]) << 64) + (int(w[0]) << 32) + int(w[1]) for w in words]
    launch.triton((2,), {"words": In(words.astype(np.int64)), "bounds": In(bounds),
                         "out": Out(np.int64([int(bounds[i // each]) * n >> 128 for i, n in enumerate(number)])),
                         "n_values": count, "values_per_bound": each}, {"BLOCK": 128})


@case("triton-csprng", "stochastic_round", file=SAMPLING, kernel="_stochastic_round_kernel")
def stochastic_round(launch):
    values, words = launch.normal(300).astype(np.float64) * 50, launch.random.integers(0, 1 << 32, 300, dtype=np.int64)
    whole = np.floor(np.abs(values))
    up = words < ((np.abs(values) - whole) * 2.0 ** 32).astype(np.int64)
    launch.triton((3,), {"values": In(values), "words": In(words), "out": Out((np.where(values < 0, -1, 1) * (whole + up)).astype(np.int64)),
                         "n_values": 300}, {"BLOCK": 128})
