"""Kernels of conch-triton-kernels: serving language models, and vision, in Triton."""
import numpy as np

from cases import In, InOut, Out, case, decode, round_to, rounded

NF4 = np.float32([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                  -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                  0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0])


def boxes_of(launch, count):
    corner, size = launch.uniform(count, 2, high=60), launch.uniform(count, 2, low=5, high=30)
    return np.concatenate([corner, corner + size], 1)


def overlaps(boxes):
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    low, high = np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = np.maximum(high - low, 0).prod(2)
    return both / (area[:, None] + area - both)


@case("conch", "iou_mask", file="conch/kernels/vision/nms.py", kernel="_create_iou_mask_kernel")
def iou_mask(launch):
    boxes = boxes_of(launch, 70)
    before = np.zeros((70, 70), bool)
    launch.triton((70,), {"boxes_ptr": In(boxes), "iou_mask_ptr": InOut(before, np.triu(overlaps(boxes) > 0.3)), "num_boxes": 70,
                          "iou_threshold": 0.3, "boxes_stride": 4, "iou_mask_stride": 70}, {"cxpr_block_size": 32})


@case("conch", "nms", file="conch/kernels/vision/nms.py", kernel="_nms_suppression_kernel")
def nms(launch):
    """Greedy suppression by one block: the result that a step stores affects the next ones."""
    mask = np.triu(overlaps(boxes_of(launch, 100)) > 0.3)
    keep = np.ones(100, bool)
    for i in range(99):
        if keep[i]:
            keep[i + 1:] &= ~mask[i, i + 1:]
    launch.triton((1,), {"iou_mask_ptr": In(mask), "keep_mask_ptr": InOut(np.ones(100, bool), keep), "num_boxes": 100, "iou_mask_stride": 100},
                  {"cxpr_block_size": 128})


@case("conch", "bev_pool", file="conch/kernels/vision/bev_pool.py", kernel="_bev_pool_kernel")
def bev_pool(launch):
    lengths = np.int32([3, 1, 5, 2, 8, 4, 6, 3])
    starts, channels = (np.cumsum(lengths) - lengths).astype(np.int32), 20
    features, cells = launch.normal(int(lengths.sum()), channels), launch.random.permutation(2 * 3 * 4)[:8]
    place = np.stack([cells % 3, cells // 3 % 4, np.zeros(8, int), cells // 12], 1).astype(np.int32)
    before = launch.normal(2, 1, 3, 4, channels)
    after = before.copy()
    for i in range(8):
        x, y, z, b = place[i]
        after[b, z, x, y] = features[starts[i]:starts[i] + lengths[i]].sum(0)
    launch.triton((2,), {
        "output_ptr": InOut(before, after, rtol=1e-5, atol=1e-5), "image_feats_ptr": In(features), "geom_feats_ptr": In(np.repeat(place, lengths, 0)),
        "interval_starts_ptr": In(starts), "interval_lengths_ptr": In(lengths), "num_channels": channels, "num_intervals": 8,
        "image_feats_stride": channels, "geom_feats_stride": 4, "output_batch_stride": 12 * channels, "output_z_stride": 12 * channels,
        "output_x_stride": 4 * channels, "output_y_stride": channels}, {"cxpr_num_channels_padded": 32, "cxpr_block_size": 4})


@case("conch", "dense_voxels", file="conch/kernels/vision/voxelization.py", kernel="generate_dense_voxels_triton_kernel")
def dense_voxels(launch):
    """Points reserve places in their voxels by atomic additions. The number in each voxel does not depend on the order."""
    points = launch.uniform(300, 4, low=-1.2, high=9.2)
    grid = np.floor(points[:, :3] / 2).astype(int)
    inside = ((grid >= 0) & (grid < 4)).all(1)
    flat = (grid[:, 2] * 4 + grid[:, 1]) * 4 + grid[:, 0]
    counts = np.bincount(flat[inside], minlength=64).astype(np.int32)
    launch.triton((3,), {
        "points_ptr": In(points), "num_points": 300, "min_x": 0.0, "min_y": 0.0, "min_z": 0.0, "max_x": 8.0, "max_y": 8.0, "max_z": 8.0,
        "voxel_dim_x": 2.0, "voxel_dim_y": 2.0, "voxel_dim_z": 2.0, "grid_dim_x": 4, "grid_dim_y": 4, "grid_dim_z": 4,
        "max_num_points_per_voxel": 8, "dense_num_points_per_voxel_ptr": InOut(np.zeros(64, np.int32), counts),
        "dense_point_features_ptr": InOut(np.zeros((64, 8, 4), np.float32), np.zeros((64, 8, 4), np.float32), where=False)},
        {"cxpr_block_size": 128})


@case("conch", "gemma_rms_norm", file="conch/kernels/normalization/gemma_rms_norm.py", kernel="_gemma_rms_norm_inplace_kernel")
def gemma_rms_norm(launch):
    x, weight = rounded("bf16", launch.normal(5, 512)), rounded("bf16", launch.normal(512))
    y = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * (1 + weight)
    launch.triton((5,), {"x_ptr": InOut(x, y, kind="bf16", rtol=0.01, atol=1e-3), "weights_ptr": In(weight, "bf16"), "hidden_size": 512,
                         "eps": 1e-6}, {"cxpr_block_size": 512})


@case("conch", "fp8_quantize", file="conch/kernels/quantization/fp8.py", kernel="_static_scaled_fp8_quant_kernel", targets=(90, 100))
def fp8_quantize(launch):
    x, scale = launch.normal(4, 300), np.float32([0.05])
    launch.triton((4,), {"output_ptr": Out(decode("fp8e4nv", round_to("fp8e4nv", x * (1 / scale))).reshape(x.shape), kind="fp8e4nv"),
                         "input_ptr": In(x), "scale_ptr": In(scale), "hidden_size": 300},
                  {"cxpr_hidden_size_padded": 512, "cxpr_block_size": 256, "cxpr_is_rocm": False})


@case("conch", "int8_quantize", file="conch/kernels/quantization/int8.py", kernel="_static_scaled_int8_quant_kernel")
def int8_quantize(launch):
    x, scale = launch.normal(4, 300), np.float32([0.02])
    y = np.clip(x * (np.float32(1) / scale), -128, 127).astype(np.int8)
    launch.triton((4,), {"output_ptr": Out(y), "input_ptr": In(x), "scale_ptr": In(scale), "hidden_size": 300, "int8_min": -128.0,
                         "int8_max": 127.0}, {"cxpr_hidden_size_padded": 512, "cxpr_block_size": 256})


@case("conch", "nf4_quantize", file="conch/kernels/quantization/bitsandbytes/quantize_blockwise.py", kernel="_quantize_blockwise_kernel")
def nf4_quantize(launch):
    x = launch.normal(5, 64)
    absmax = np.abs(x).max(1)
    index = np.searchsorted((NF4[1:] + NF4[:-1]) / 2, x / absmax[:, None])
    launch.triton((5,), {"x_ptr": In(x), "absmax_ptr": Out(absmax), "out_ptr": Out((index[:, ::2] << 4 | index[:, 1::2]).astype(np.uint8)),
                         "input_size": 320}, {"code_ptr": None, "cxpr_blocksize": 64, "cxpr_output_blocksize": 32, "cxpr_quantized_dtype": 1})


@case("conch", "nf4_dequantize", file="conch/kernels/quantization/bitsandbytes/dequantize_blockwise.py", kernel="_dequantize_blockwise_kernel")
def nf4_dequantize(launch):
    packed, absmax = launch.integers(0, 256, 4, 32, dtype=np.uint8), launch.uniform(4, low=0.1, high=3)
    values = NF4[np.stack([packed >> 4, packed & 15], 2).reshape(4, 64)] * absmax[:, None]
    launch.triton((4,), {"x_ptr": In(packed), "absmax_ptr": In(absmax), "out_ptr": Out(values, rtol=1e-6), "output_size": 256},
                  {"code_ptr": None, "cxpr_blocksize": 64, "cxpr_input_blocksize": 32, "cxpr_quantized_dtype": 1})


@case("conch", "gemm_w4a16", file="conch/kernels/quantization/gemm.py", kernel="_gemm_kernel", targets=(80, 90, 100))
def gemm_w4a16(launch):
    """Products of halves with 4-bit weights, which are unpacked on the fly, in groups with one scale each."""
    rows, columns, inner, group = 40, 128, 128, 64
    a, b = launch.normal(rows, inner, dtype=np.float16), launch.integers(0, 16, inner, columns)
    scales = launch.uniform(inner // group, columns, low=0.1, dtype=np.float16)
    weights = ((b - 8).astype(np.float16) * np.repeat(scales, group, 0)).astype(np.float64)
    packed = (b.reshape(inner // 8, 8, columns).astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))[:, None]).sum(1).astype(np.uint32)
    launch.triton((2,), {
        "a_ptr": In(a), "b_ptr": In(packed.view(np.int32)), "c_ptr": Out(a.astype(np.float64) @ weights, np.float16, rtol=2e-3, atol=0.1),
        "scales_ptr": In(scales), "zeros_ptr": In(np.zeros(1, np.int32)), "m_dim": rows, "k_dim": inner, "n_dim": columns,
        "matrix_a_stride_m": inner, "matrix_a_stride_k": 1, "matrix_b_stride_k": columns, "matrix_b_stride_n": 1, "matrix_c_stride_m": columns,
        "matrix_c_stride_n": 1, "meta_stride_g": columns, "meta_stride_n": 1},
        {"scales_a_ptr": None, "cxpr_w_nbits": 4, "cxpr_weight_bias": 8, "cxpr_group_size": group, "cxpr_unpack_mask": 15,
         "cxpr_elements_per_sample": 8, "cxpr_input_dtype": "tl.float16", "cxpr_output_dtype": "tl.float16", "cxpr_acc_dtype": "tl.float32",
         "cxpr_meta_dtype": "tl.float16", "cxpr_channel_scale_mode": 0, "cxpr_w_group_mode": 2, "cxpr_zero_is_scalar": False,
         "cxpr_block_size_m": 64, "cxpr_block_size_n": 64, "cxpr_block_size_k": 64, "cxpr_group_size_m": 8, "cxpr_block_size_scale_a": 1,
         "cxpr_block_size_scale_b": 1, "cxpr_matrix_a_load_order": 2, "cxpr_matrix_a_eviction_policy": "evict_last",
         "cxpr_matrix_b_eviction_policy": "evict_first", "cxpr_meta_eviction_policy": "", "cxpr_data_contiguous": True,
         "cxpr_swizzle_pid": True}, stages=2)


@case("conch", "paged_attention", file="conch/kernels/attention/paged_attention.py", kernel="_paged_attention_compute_splits_kernel")
def paged_attention(launch):
    batch, kv_heads, group, size, block, pages, per_split = 2, 2, 4, 32, 16, 9, 2
    lengths = np.int32([50, 23])
    query = launch.normal(batch, kv_heads * group, size, dtype=np.float16)
    keys, values = launch.normal(pages, block, kv_heads, size, dtype=np.float16), launch.normal(pages, block, kv_heads, size, dtype=np.float16)
    table = launch.random.permutation(pages)[:8].reshape(batch, 4).astype(np.int32)
    splits = 2
    before, sums = np.zeros((batch, splits, kv_heads * group, size), np.float16), np.zeros((batch, splits, kv_heads * group), np.float16)
    out, log_sums = before.astype(np.float64), sums.astype(np.float64)
    for b in range(batch):
        for s in range(splits):
            place = np.arange(s * per_split * block, min((s + 1) * per_split * block, lengths[b]))
            if not len(place):
                continue
            for h in range(kv_heads * group):
                k, v = (array[table[b, place // block], place % block, h // group].astype(np.float64) for array in (keys, values))
                logits = k @ query[b, h].astype(np.float64) * size ** -0.5
                e = np.exp(logits - logits.max())
                out[b, s, h], log_sums[b, s, h] = e @ v / e.sum(), np.log(e.sum()) + logits.max()
    launch.triton((batch, splits, kv_heads), {
        "output_scratchpad_ptr": InOut(before, out, rtol=1e-2, atol=1e-2), "lse_scratchpad_ptr": InOut(sums, log_sums, rtol=1e-2, atol=1e-2),
        "query_ptr": In(query), "key_cache_ptr": In(keys), "value_cache_ptr": In(values), "block_table_ptr": In(table), "seq_lens_ptr": In(lengths),
        "scale": size ** -0.5, "num_cache_blocks_per_split": per_split, "softcap": 0.0, "head_size": size, "query_group_size": group,
        "output_scratchpad_batch_stride": splits * kv_heads * group * size, "output_scratchpad_cache_block_stride": kv_heads * group * size,
        "output_scratchpad_head_stride": size, "lse_scratchpad_batch_stride": splits * kv_heads * group,
        "lse_scratchpad_cache_block_stride": kv_heads * group, "query_batch_stride": kv_heads * group * size, "query_head_stride": size,
        "kv_page_stride": block * kv_heads * size, "kv_cache_block_stride": kv_heads * size, "kv_head_stride": size, "kv_head_element_stride": 1,
        "block_table_batch_stride": 4},
        {"k_scale_ptr": None, "v_scale_ptr": None, "cxpr_cache_block_size": block, "cxpr_head_size_padded": size,
         "cxpr_query_group_size_padded": 16, "cxpr_is_softcap": False, "cxpr_apply_fp8_scaling": False, "cxpr_is_rocm": False})


@case("conch", "paged_attention_reduce", file="conch/kernels/attention/paged_attention.py", kernel="_paged_attention_reduce_splits_kernel")
def paged_attention_reduce(launch):
    batch, heads, size, splits = 2, 3, 24, 4
    lengths = np.int32([100, 40])
    parts, sums = launch.normal(batch, splits, heads, size), launch.normal(batch, splits, heads)
    out = np.empty((batch, heads, size))
    for b in range(batch):
        used = -(-int(lengths[b]) // 32)
        weight = np.exp(sums[b, :used])
        out[b] = (weight[..., None] * parts[b, :used]).sum(0) / weight.sum(0)[:, None]
    launch.triton((batch, heads), {
        "output_ptr": Out(out, np.float32, rtol=1e-4, atol=1e-5), "output_scratchpad_ptr": In(parts), "lse_scratchpad_ptr": In(sums),
        "seq_lens_ptr": In(lengths), "num_cache_blocks_per_split": 2, "head_size": size, "output_batch_stride": heads * size,
        "output_head_stride": size, "output_scratchpad_batch_stride": splits * heads * size, "output_scratchpad_split_stride": heads * size,
        "output_scratchpad_head_stride": size, "lse_scratchpad_batch_stride": splits * heads, "lse_scratchpad_split_stride": heads},
        {"cxpr_cache_block_size": 16, "cxpr_head_size_padded": 32})


@case("conch", "reshape_and_cache", file="conch/kernels/vllm/reshape_and_cache.py", kernel="_reshape_and_cache_kernel")
def reshape_and_cache(launch):
    tokens, heads, size, pages, block = 6, 2, 20, 4, 8
    key, value = launch.normal(tokens, heads, size, dtype=np.float16), launch.normal(tokens, heads, size, dtype=np.float16)
    keys, values = launch.normal(pages, block, heads, size, dtype=np.float16), launch.normal(pages, block, heads, size, dtype=np.float16)
    slots = np.int64([3, 17, -1, 30, 8, 9])
    after = [keys.copy(), values.copy()]
    for t, slot in enumerate(slots):
        if slot >= 0:
            after[0].reshape(-1, heads, size)[slot], after[1].reshape(-1, heads, size)[slot] = key[t], value[t]
    launch.triton((tokens, heads), {
        "key_ptr": In(key), "value_ptr": In(value), "key_cache_ptr": InOut(keys, after[0]), "value_cache_ptr": InOut(values, after[1]),
        "slot_mapping_ptr": In(slots), "head_size": size, "cache_block_size": block, "kv_token_stride": heads * size, "kv_head_stride": size,
        "kv_cache_page_stride": block * heads * size, "kv_cache_block_stride": heads * size, "kv_cache_head_stride": size},
        {"k_scale_ptr": None, "v_scale_ptr": None, "cxpr_head_size_padded": 32, "cxpr_apply_fp8_scaling": False})
