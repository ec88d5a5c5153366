"""Kernels of flag-gems: PyTorch's operators, in Triton."""
import numpy as np

from cases import In, InOut, Out, case, decode, round_to, rounded

EXTENSION = "flag_gems/utils/triton_lang_extension.py"
LIMITS = "flag_gems/utils/limits.py"
SORT = "import triton.language.core as core\nfrom triton.language.standard import _log2, zeros_like\n"


@case("flag-gems", "mm", file="flag_gems/ops/mm.py", kernel="mm_kernel_general", targets=(80, 90, 100))
def mm(launch):
    """mma.sync, wgmma and tcgen05.mma, by target; ragged in every dimension."""
    rows, columns, inner = 120, 72, 104
    a, b = launch.normal(rows, inner, dtype=np.float16), launch.normal(inner, columns, dtype=np.float16)
    product = a.astype(np.float64) @ b.astype(np.float64)
    launch.triton((2 * 2,), {
        "A": In(a), "B": In(b), "C": Out(product, np.float16, rtol=2e-3, atol=2e-2), "M": rows, "N": columns, "K": inner,
        "stride_am": inner, "stride_ak": 1, "stride_bk": columns, "stride_bn": 1, "stride_cm": columns, "stride_cn": 1},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8}, needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "mm_swizzled", file="flag_gems/ops/mm.py", kernel="mm_kernel_general", targets=(80, 90, 100))
def mm_swizzled(launch):
    """Rows of 128 bytes, so that operands lie swizzled in shared memory; bf16."""
    rows, columns, inner = 128, 128, 256
    a, b = (rounded("bf16", launch.normal(*shape)) for shape in ((rows, inner), (inner, columns)))
    launch.triton((1,), {
        "A": In(a, "bf16"), "B": In(b, "bf16"), "C": Out(a.astype(np.float64) @ b, np.float32, rtol=1e-4, atol=1e-3), "M": rows, "N": columns,
        "K": inner, "stride_am": inner, "stride_ak": 1, "stride_bk": columns, "stride_bn": 1, "stride_cm": columns, "stride_cn": 1},
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "fp8_matmul", file="flag_gems/ops/fp8_matmul.py", kernel="_fp8_matmul_kernel", targets=(89, 90, 100))
def fp8_matmul(launch):
    rows, columns, inner = 64, 64, 256
    a, b = (round_to("fp8e4nv", launch.normal(*shape)).reshape(shape) for shape in ((rows, inner), (columns, inner)))
    a_scale, b_scale = launch.uniform(rows, 2, low=0.5), launch.uniform(1, 2, low=0.5)
    blocks = [(a_scale[:, k, None] * b_scale[0, k]) * (decode("fp8e4nv", a)[:, 128 * k:128 * k + 128].astype(np.float64)
                                                      @ decode("fp8e4nv", b)[:, 128 * k:128 * k + 128].T) for k in range(2)]
    launch.triton((1,), {
        "A": In(a, "fp8e4nv"), "B": In(b, "fp8e4nv"), "C": Out(sum(blocks), kind="bf16", rtol=1e-2, atol=0.1), "As": In(a_scale), "Bs": In(b_scale),
        "M": rows, "N": columns, "K": inner, "stride_am": inner, "stride_ak": 1, "stride_bn": inner, "stride_bk": 1, "stride_cm": columns,
        "stride_cn": 1, "stride_as_m": 2, "stride_as_k": 1, "stride_bs_n": 2, "stride_bs_k": 1},
        {"GROUP_K": 128, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128, "GROUP_SIZE_M": 8}, stages=2)


@case("flag-gems", "radix_histogram", file="flag_gems/ops/sort.py", kernel="compute_global_hist_kernel")
def radix_histogram(launch):
    rows, size, passes = 2, 500, 4
    x = launch.integers(-2 ** 31, 2 ** 31, rows, size)
    keys = x.view(np.uint32) ^ np.uint32(1 << 31)
    counts = np.stack([[np.bincount(row >> np.uint32(8 * p) & np.uint32(255), minlength=256) for p in range(passes)] for row in keys])
    launch.triton((rows * 2,), {
        "arr_ptr": In(x), "out_ptr": InOut(np.zeros_like(counts), counts), "num_passes": passes, "m": rows, "n": size, "tiles_n_per_cta": 2},
        {"TILE_N": 128, "TILE_R": 16, "num_bits_per_pass": 8, "descending": False})


@case("flag-gems", "radix_sweep", file="flag_gems/ops/sort.py", kernel="sweep")
def radix_sweep(launch):
    """A pass of a radix sort: blocks look back at the results that earlier blocks have published."""
    launch.finds("F042", "a status is stored by a weak st.global, which orders nothing for the volatile load of another block")
    size, tile, bits = 600, 128, 4
    x = launch.integers(0, 2 ** 16, size).astype(np.uint32)
    digit = (x >> np.uint32(4)) & np.uint32(15)
    order = np.argsort(digit, kind="stable")
    before = np.zeros((1, 2, 16), np.uint32)
    before[0, 1] = np.concatenate([[0], np.cumsum(np.bincount(digit, minlength=16))[:-1]])
    blocks = -(-size // tile)
    status = np.cumsum(np.stack([np.bincount(digit[i * tile:(i + 1) * tile], minlength=16) for i in range(blocks)], 1), 1)
    launch.triton((blocks, 2), {
        "arr_ptr": In(x), "associate_arr_ptr": In(np.arange(size, dtype=np.int64)), "out_ptr": Out(x[order]), "associate_out_ptr": Out(order),
        "excumsum_bins_ptr": In(before), "status_ptr": InOut(np.zeros((16, blocks), np.uint32), (status | 1 << 31).astype(np.uint32)),
        "n_passes": 2, "pass_id": 1, "bit_offset": 4, "m": 1, "N": size, "OUT_N": blocks},
        {"TILE_N": tile, "TILE_R": 8, "k_bits": bits, "descending": False})


@case("flag-gems", "sort", file="flag_gems/ops/sort.py", kernel="sort_kernel")
def sort(launch):
    x = launch.normal(3, 100)
    order = np.argsort(x, axis=1, kind="stable")
    launch.triton((3,), {"in_ptr": In(x), "out_ptr": Out(np.take_along_axis(x, order, 1)), "out_index_ptr": Out(order)},
                  {"N": 100, "BLOCK_SIZE": 128, "DESCENDING": False, "IS_FLOAT": True}, needs=[EXTENSION, LIMITS, "flag_gems/ops/topk.py"],
                  prelude=SORT, aliases=["tle"])


@case("flag-gems", "topk_stage1", file="flag_gems/ops/topk.py", kernel="topk_stage1_kernel")
def topk_stage1(launch):
    rows, size, chunk, k = 2, 300, 128, 5
    x = launch.normal(rows, size)
    chunks = [x[:, i:i + chunk] for i in range(0, size, chunk)]
    index = np.stack([np.argsort(-c, axis=1, kind="stable")[:, :k] + i * chunk for i, c in enumerate(chunks)], 1)
    launch.triton((rows, len(chunks)), {
        "y_ptr": Out(np.take_along_axis(x[:, None], index, 2)), "index_ptr": Out(index.astype(np.int64)), "x_ptr": In(x), "k": k},
        {"N": size, "CHUNK_SIZE": chunk, "DESCENDING": True}, needs=[EXTENSION, LIMITS], prelude=SORT,
        aliases=["tle"])


@case("flag-gems", "cumsum", file="flag_gems/ops/cumsum.py", kernel="scan_part_sum_kernel")
def cumsum(launch):
    x = launch.integers(-1000, 1000, 900, dtype=np.int64)
    parts = [x[i:i + 256] for i in range(0, 900, 256)]
    launch.triton((4,), {"inp": In(x), "out": Out(np.concatenate([np.cumsum(p) for p in parts])), "partial_sum": Out(np.array([p.sum() for p in parts])),
                         "n_elements": 900, "part_num": 4}, {"BLOCK_SIZE": 256}, needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "cummax", file="flag_gems/ops/cummax.py", kernel="scan_part_max_kernel")
def cummax(launch):
    """An associative scan of pairs; of equal values the last one is taken."""
    x = launch.integers(-50, 50, 500).astype(np.float32)
    parts = [x[i:i + 256] for i in range(0, 500, 256)]
    best = lambda p, base: np.array([base + i - np.argmax(p[i::-1]) for i in range(len(p))])
    index = np.concatenate([best(p, 256 * i) for i, p in enumerate(parts)])
    launch.triton((2,), {
        "inp": In(x), "out": Out(x[index]), "out_indices": Out(index.astype(np.int64)), "partial_max": Out(np.array([p.max() for p in parts])),
        "partial_max_indices": Out(index[[255, 499]].astype(np.int64)), "n_elements": 500},
        {"in_indices": None, "BLOCK_SIZE": 256, "NEED_PARTIAL": True, "USE_OUT_INDICES": False}, needs=[EXTENSION, LIMITS], aliases=["tle"])


@case("flag-gems", "conv2d", file="flag_gems/ops/conv2d.py", kernel="conv2d_forward_kernel", targets=(80, 90))
def conv2d(launch):
    batch, channels, height, width, outputs, size, stride, pad = 2, 20, 9, 7, 24, 3, 2, 1
    x, weight, bias = launch.normal(batch, channels, height, width, dtype=np.float16), launch.normal(outputs, channels, size, size, dtype=np.float16), \
        launch.normal(outputs, dtype=np.float16)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))[:, :, ::stride, ::stride]
    y = np.einsum("nchwij,ocij->nohw", windows, weight.astype(np.float64)) + bias[:, None, None]
    out_height, out_width = y.shape[2:]
    strides = lambda name, array: {f"{name}_{axis}_stride": s // array.itemsize
                                   for axis, s in zip(("n", "c", "height", "width"), array.strides)}
    y = np.ascontiguousarray(y.astype(np.float32))
    launch.triton((-(-batch * out_height * out_width // 32), 1, 1), {
        "input_pointer": In(x), "weight_pointer": In(weight), "output_pointer": Out(y, rtol=1e-3, atol=1e-3), "bias_pointer": In(bias),
        "in_n": batch, "input_height": height, "input_width": width, "out_c": outputs, "out_height": out_height, "out_width": out_width,
        **strides("input", x), **strides("weight", weight), **strides("output", y)},
        {"weight_c": channels, "weight_height": size, "weight_width": size, "stride_height": stride, "stride_width": stride,
         "padding_height": pad, "padding_width": pad, "dilation_height": 1, "dilation_width": 1, "groups": 1, "BLOCK_NI_HO_WO": 32,
         "BLOCK_CI": 32, "BLOCK_CO": 32})


@case("flag-gems", "upsample_bicubic2d", file="flag_gems/ops/upsample_bicubic2d.py", kernel="_upsample_bicubic2d_row_kernel")
def upsample_bicubic2d(launch):
    channels, height, width, out_height, out_width = 2, 6, 7, 9, 15
    x = launch.normal(1, channels, height, width)
    def axis(size, out):
        place = (np.arange(out) + 0.5) * (size / out) - 0.5
        base = np.floor(place).astype(int)
        d = np.abs(place[:, None] - (base[:, None] + np.arange(-1, 3)))
        near, far = 1.25 * d ** 3 - 2.25 * d ** 2 + 1, -0.75 * (d ** 3 - 5 * d ** 2 + 8 * d - 4)
        matrix = np.zeros((out, size))
        np.add.at(matrix, (np.arange(out)[:, None], np.clip(base[:, None] + np.arange(-1, 3), 0, size - 1)), np.where(d <= 1, near, far))
        return matrix
    y = np.einsum("ih,jw,nchw->ncij", axis(height, out_height), axis(width, out_width), x).astype(np.float32)
    launch.triton((channels * out_height,), {
        "in_ptr": In(x), "out_ptr": Out(y, rtol=1e-4, atol=1e-4), "N": 1, "C": channels, "H_in": height, "W_in": width, "H_out": out_height,
        "W_out": out_width, "strideN": channels * height * width, "strideC": height * width, "strideH": width, "strideW": 1,
        "out_strideN": channels * out_height * out_width, "out_strideC": out_height * out_width, "out_strideH": out_width, "out_strideW": 1,
        "scale_h": height / out_height, "scale_w": width / out_width}, {"align_corners": False, "BLOCK_W": 128})


@case("flag-gems", "max_pool2d", file="flag_gems/ops/max_pool2d_with_indices.py", kernel="max_pool2d_forward_kernel")
def max_pool2d(launch):
    channels, height, width = 3, 11, 10
    x = launch.normal(channels, height, width)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    out_height, out_width = windows.shape[1:3]
    flat = windows.reshape(channels, out_height, out_width, 9)
    best = flat.argmax(3)
    row = np.arange(out_height)[:, None] * 2 - 1 + best // 3
    column = np.arange(out_width) * 2 - 1 + best % 3
    launch.triton((channels, -(-out_height // 4) * -(-out_width // 4)), {
        "input_ptr": In(x), "output_ptr": Out(flat.max(3)), "indices_ptr": Out((row * width + column).astype(np.int64)),
        "in_stride_n": channels * height * width, "in_stride_c": height * width, "in_stride_h": width, "in_stride_w": 1, "in_c": channels,
        "in_h": height, "in_w": width, "out_h": out_height, "out_w": out_width},
        {"kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 2, "padding_h": 1, "padding_w": 1, "dilation_h": 1, "dilation_w": 1,
         "BLOCK_H": 4, "BLOCK_W": 4}, needs=[LIMITS])


@case("flag-gems", "isin", file="flag_gems/ops/isin.py", kernel="isin_by_search_kernel")
def isin(launch):
    x, known = launch.integers(0, 400, 500), np.unique(launch.integers(0, 400, 100))
    launch.triton((2,), {"in0_ravel_ptr": In(x), "in1_sorted_ptr": In(known), "out_ptr": Out(np.isin(x, known)), "M": 500, "N": len(known),
                         "tiles_per_cta": 2}, {"log_n": int(len(known)).bit_length(), "BLOCK_M": 128, "invert": False},
                  needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "hadamard", file="flag_gems/ops/hadamard_transform.py", kernel="_fht_kernel_1d_native")
def hadamard(launch):
    size = 512
    x, matrix = launch.normal(3, size), np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    launch.triton((3,), {"X_ptr": In(x), "OUT_ptr": Out((x @ matrix / 8).astype(np.float32), rtol=1e-4, atol=1e-4), "stride_x_row": size,
                         "stride_out_row": size}, {"DIM": size, "LOG_N": 9, "BLOCK_SIZE": size, "SCALE": 0.125})


@case("flag-gems", "var_mean", file="flag_gems/ops/var_mean.py", kernel="var_mean_welford_kernel")
def var_mean(launch):
    launch.finds("F036", "lanes combine means in different order and all of them store theirs to one word")
    x = launch.normal(10, 300)
    launch.triton((3,), {"X": In(x), "Var": Out(x.var(1, ddof=1), rtol=1e-4), "Mean": Out(x.mean(1), atol=1e-5), "M": 10, "N": 300,
                         "correction": 1}, {"BLOCK_M": 4, "BLOCK_N": 128}, needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "argmax", file="flag_gems/ops/argmax.py", kernel="argmax_kernel_inner")
def argmax(launch):
    x = launch.integers(-9, 9, 4, 300)
    launch.triton((4,), {"inp": In(x), "out_index": Out(x.argmax(1).astype(np.int64)), "M": 4, "N": 300},
                  {"TILE_N": 128, "ONE_TILE_PER_CTA": False}, needs=[EXTENSION, LIMITS], aliases=["tle"])


@case("flag-gems", "log_softmax", file="flag_gems/ops/log_softmax.py", kernel="log_softmax_kernel")
def log_softmax(launch):
    x = launch.normal(10, 300)
    y = x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
    launch.triton((2, 1), {"output_ptr": Out(y, np.float32, rtol=1e-5, atol=1e-5), "input_ptr": In(x), "M": 10, "N": 300, "K": 1},
                  {"BLOCK_M": 8, "BLOCK_N": 128}, needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "triu", file="flag_gems/ops/triu.py", kernel="triu_kernel")
def triu(launch):
    x = launch.normal(40, 50, dtype=np.float16)
    launch.triton((5,), {"X": In(x), "Y": Out(np.triu(x, 3)), "M": 40, "N": 50, "diagonal": 3}, {"M_BLOCK_SIZE": 8, "N_BLOCK_SIZE": 32},
                  needs=[EXTENSION], aliases=["tle"])


@case("flag-gems", "bincount", file="flag_gems/fused/bincount.py", kernel="bincount_weights_fp32_kernel")
def bincount(launch):
    x, weights = launch.integers(0, 30, 1000), launch.integers(0, 8, 1000).astype(np.float32)
    counts = np.bincount(x, weights, 30).astype(np.float32)
    launch.triton((4,), {"input_ptr": In(x), "weights_ptr": In(weights), "output_ptr": InOut(np.zeros_like(counts), counts), "n_elements": 1000},
                  {"BLOCK_SIZE": 256})


@case("flag-gems", "max_bincount", file="flag_gems/fused/bincount.py", kernel="fused_max_bincount_kernel")
def max_bincount(launch):
    x = launch.integers(0, 40, 1000)
    launch.triton((4,), {"input_ptr": In(x), "max_ptr": InOut(np.zeros(1, np.int32), x.max(keepdims=True)), "n_elements": 1000, "output_size": 30,
                         "output_ptr": InOut(np.zeros(30, np.int64), np.bincount(x, minlength=40)[:30])}, {"BLOCK_SIZE": 256})


@case("flag-gems", "philox", file="flag_gems/ops/rand.py", kernel="rand_kernel")
def philox(launch):
    """Philox4x32-10 against the published rounds."""
    size, block, seed, offset = 1000, 256, 0x123456789ABCDEF, 5
    counter = [np.arange(block, dtype=np.uint64) + offset] + [np.zeros(block, np.uint64) for _ in range(3)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        low, high = (lambda v: v & np.uint64(0xFFFFFFFF)), (lambda v: v >> np.uint64(32))
        counter = [high(second) ^ counter[1] ^ np.uint64(key[0]), low(second), high(first) ^ counter[3] ^ np.uint64(key[1]), low(first)]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    bits = np.concatenate(counter)[:size].astype(np.uint32).view(np.int32)
    uniform = np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    launch.triton((1,), {"out_ptr": Out(uniform, atol=1e-7), "N": size, "philox_seed": np.int64(seed), "philox_offset": np.int64(offset)},
                  {"BLOCK": block}, prelude="from triton.language.random import uint_to_uniform_float\n")


@case("flag-gems", "digit_histogram", file="flag_gems/ops/randperm.py", kernel="digit_hist_kernel")
def digit_histogram(launch):
    size, block, passes, bins = 500, 128, 2, 16
    key = launch.integers(0, 128, size, dtype=np.int8)
    digits = key.view(np.uint8) ^ np.uint8(128)
    grid = -(-size // block)
    counts = np.zeros((passes, bins + 1, grid), np.int64)
    for p in range(passes):
        for g in range(grid):
            counts[p, 1:, g] = np.bincount((digits[g * block:(g + 1) * block] >> (4 * p)) & 15, minlength=bins)
    launch.triton((grid, 4), {"digit_hist": Out(counts), "key": In(key), "n_elements": size, "bits_per_pass": 4, "bins": bins, "passes": passes,
                              "bit_mask": 15, "bins_segment": 4}, {"BLOCK_SIZE": block})


@case("flag-gems", "mm_tma", file="flag_gems/runtime/backend/_nvidia/hopper/ops/mm.py", kernel="mm_kernel_general", targets=(90, 100))
def mm_tma(launch):
    """Tiles loaded and stored by TMA, through tensor maps that the kernel makes in global memory."""
    rows, columns, inner = 128, 128, 192
    a, b = launch.normal(rows, inner, dtype=np.float16), launch.normal(inner, columns, dtype=np.float16)
    launch.triton((4,), {
        "A": In(a), "B": In(b), "C": Out(a.astype(np.float64) @ b.astype(np.float64), np.float16, rtol=2e-3, atol=3e-2), "M": rows, "N": columns,
        "K": inner, "stride_am": inner, "stride_ak": 1, "stride_bk": columns, "stride_bn": 1, "stride_cm": columns, "stride_cn": 1},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8}, needs=[EXTENSION], aliases=["tle"])
