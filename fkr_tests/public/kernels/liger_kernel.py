"""Kernels of liger-kernel: training of language models, in Triton."""
import numpy as np

from cases import In, InOut, Out, case, rounded

RSQRT = "from triton.language.extra.libdevice import rsqrt\n"


@case("liger-kernel", "rms_norm_forward", file="liger_kernel/ops/rms_norm.py", kernel="_rms_norm_forward_kernel")
def rms_norm_forward(launch):
    x, weight = launch.normal(6, 200), launch.normal(200)
    scale = 1 / np.sqrt((x * x).mean(1) + 1e-6)
    launch.triton((6,), {
        "Y_ptr": Out(x * scale[:, None] * weight, rtol=1e-5, atol=1e-6), "Y_row_stride": 200, "X_ptr": In(x), "X_row_stride": 200,
        "W_ptr": In(weight), "W_row_stride": 1, "RSTD_ptr": Out(scale, rtol=1e-5), "RSTD_row_stride": 1, "n_cols": 200,
        "eps": 1e-6, "offset": 0.0}, {"casting_mode": 0, "elementwise_affine": True, "BLOCK_SIZE": 256}, prelude=RSQRT)


@case("liger-kernel", "softmax_forward", file="liger_kernel/ops/softmax.py", kernel="_softmax_single_block_forward_kernel")
def softmax_forward(launch):
    x = launch.normal(8, 130)
    e = np.exp(x - x.max(1, keepdims=True))
    launch.triton((8,), {"Y_ptr": Out(e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7), "Y_row_stride": 130, "X_ptr": In(x),
                         "X_row_stride": 130, "n_cols": 130}, {"BLOCK_SIZE": 256})


@case("liger-kernel", "softmax_backward", file="liger_kernel/ops/softmax.py", kernel="_softmax_single_block_backward_kernel")
def softmax_backward(launch):
    y, dy = launch.uniform(5, 200), launch.normal(5, 200)
    y /= y.sum(1, keepdims=True)
    launch.triton((5,), {"dy_ptr": In(dy), "dy_stride": 200, "y_ptr": In(y), "y_stride": 200,
                         "dx_ptr": Out(y * (dy - (y * dy).sum(1, keepdims=True)), rtol=1e-5, atol=1e-7), "dx_stride": 200,
                         "n_cols": 200}, {"BLOCK_SIZE": 256})


@case("liger-kernel", "swiglu_forward", file="liger_kernel/ops/swiglu.py", kernel="_swiglu_forward_kernel", targets=(80, 90, 100))
def swiglu_forward(launch):
    a, b = rounded("bf16", launch.normal(4, 300)), rounded("bf16", launch.normal(4, 300))
    silu = rounded("bf16", a / (1 + np.exp(-a)))
    launch.triton((4,), {"a_ptr": In(a, "bf16"), "b_ptr": In(b, "bf16"),
                         "c_ptr": Out(rounded("bf16", silu * b), kind="bf16", rtol=0.01, atol=1e-6), "stride": 300, "gate_multiplier": 1.0},
                  {"n_cols": 300, "BLOCK_SIZE": 512})


@case("liger-kernel", "geglu_tanh_forward", file="liger_kernel/ops/geglu.py", kernel="_geglu_tanh_forward_kernel")
def geglu_tanh_forward(launch):
    a, b = launch.normal(4, 300), launch.normal(4, 300)
    gelu = 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a ** 3)))
    launch.triton((4,), {"a": In(a), "b": In(b), "c": Out((gelu * b).astype(np.float32), rtol=1e-4, atol=1e-5), "stride": 300},
                  {"n_cols": 300, "BLOCK_SIZE": 512}, prelude="from triton.language.extra.libdevice import tanh\n")


@case("liger-kernel", "layer_norm_forward", file="liger_kernel/ops/layer_norm.py", kernel="_layer_norm_forward_kernel")
def layer_norm_forward(launch):
    x = launch.normal(6, 500, dtype=np.float16)
    weight, bias = launch.normal(500, dtype=np.float16), launch.normal(500, dtype=np.float16)
    wide = x.astype(np.float64)
    mean, scale = wide.mean(1), 1 / np.sqrt(wide.var(1) + 1e-5)
    y = (wide - mean[:, None]) * scale[:, None] * weight + bias
    launch.triton((6,), {
        "Y_ptr": Out(y, np.float16, rtol=2e-3, atol=1e-3), "Y_row_stride": 500, "X_ptr": In(x), "X_row_stride": 500, "W_ptr": In(weight),
        "W_row_stride": 1, "B_ptr": In(bias), "B_row_stride": 1, "Mean_ptr": Out(mean, np.float32, atol=1e-5), "Mean_row_stride": 1,
        "RSTD_ptr": Out(scale, np.float32, rtol=1e-5), "RSTD_row_stride": 1, "n_cols": 500, "eps": 1e-5}, {"BLOCK_SIZE": 512},
        prelude=RSQRT)


@case("liger-kernel", "group_norm_forward", file="liger_kernel/ops/group_norm.py", kernel="_group_norm_forward_kernel")
def group_norm_forward(launch):
    batch, groups, channels, pixels = 2, 3, 4, 50
    size = channels * pixels
    x, weight, bias = launch.normal(batch, groups, size), launch.normal(groups * channels), launch.normal(groups * channels)
    mean, scale = x.mean(2), 1 / np.sqrt(x.var(2) + 1e-5)
    wide = lambda v: np.repeat(v.reshape(groups, channels), pixels, axis=1)
    y = (x - mean[..., None]) * scale[..., None] * wide(weight) + wide(bias)
    launch.triton((batch, groups), {
        "Y_ptr": Out(y, rtol=1e-4, atol=1e-5), "Y_row_stride": groups * size, "Y_col_stride": size, "X_ptr": In(x),
        "X_row_stride": groups * size, "X_col_stride": size, "Mean_ptr": Out(mean, atol=1e-5), "Mean_row_stride": groups, "Mean_col_stride": 1,
        "RSTD_ptr": Out(scale, rtol=1e-4), "RSTD_row_stride": groups, "RSTD_col_stride": 1, "W_ptr": In(weight), "B_ptr": In(bias),
        "hidden_size": size, "channels_per_group": channels, "eps": 1e-5}, {"BLOCK_SIZE": 128}, prelude=RSQRT)


@case("liger-kernel", "rope", file="liger_kernel/ops/rope.py", kernel="_triton_rope")
def rope(launch):
    batch, length, heads, kv_heads, size = 1, 3, 6, 4, 64
    q, k = launch.normal(batch, length, heads, size), launch.normal(batch, length, kv_heads, size)
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(size // 2) / (size // 2))
    cos, sin = (np.tile(f(angle), 2).astype(np.float32) for f in (np.cos, np.sin))
    turn = lambda x: x * cos[:, None] + np.concatenate([-x[..., size // 2:], x[..., :size // 2]], -1) * sin[:, None]
    launch.triton((batch * length,), {
        "q_ptr": InOut(q, turn(q), rtol=1e-5, atol=1e-6), "q_row_stride": heads * size, "k_ptr": InOut(k, turn(k), rtol=1e-5, atol=1e-6),
        "k_row_stride": kv_heads * size, "cos": In(cos), "cos_row_stride": size, "sin": In(sin), "sin_row_stride": size, "sl": length},
        {"bs": batch, "cos_bs": 1, "n_qh": heads, "n_kh": kv_heads, "hd": size, "pad_n_qh": 8, "pad_n_kh": 4, "pad_hd": size, "pad_rd": size,
         "rd": size, "BLOCK_SIZE": 16, "BACKWARD_PASS": False})


@case("liger-kernel", "kl_div_forward", file="liger_kernel/ops/kl_div.py", kernel="_kldiv_kernel_forward")
def kl_div_forward(launch):
    p, q = launch.uniform(4, 300, low=0.1), launch.uniform(4, 300, low=0.1)
    p, logs = p / p.sum(1, keepdims=True), np.log(q / q.sum(1, keepdims=True))
    launch.triton((4,), {"y_ptr": In(logs), "y_stride": 300, "gt_ptr": In(p), "gt_stride": 300,
                         "loss_ptr": Out((p * (np.log(p) - logs)).sum(1), rtol=1e-3, atol=1e-6), "loss_stride": 1, "n_cols": 300, "eps": 1e-10},
                  {"BLOCK_SIZE": 128, "reduction": 1, "log_target": False})


@case("liger-kernel", "kl_div_fused", file="liger_kernel/ops/kl_div.py", kernel="_kldiv_kernel_forward")
def kl_div_fused(launch):
    """By default Triton 3.9 contracts a product into the first step of a butterfly sum. Lanes then hold sums that differ in
    the last bit, and all of them store theirs to one word of shared memory."""
    launch.finds("F036", "lanes store different sums to one word")
    kl_div_forward(launch)
    launch.fusion = True


@case("liger-kernel", "cross_entropy", file="liger_kernel/ops/cross_entropy.py", kernel="liger_cross_entropy_kernel")
def cross_entropy(launch):
    rows, columns = 5, 700
    x, label = launch.normal(rows, columns), launch.integers(0, columns, rows, dtype=np.int64)
    label[3] = -100
    kept = label != -100
    top = x.max(1, keepdims=True)
    log_sum = np.log(np.exp(x - top).sum(1, keepdims=True)) + top
    gradient = np.exp(x - log_sum)
    gradient[kept, label[kept]] -= 1
    gradient = np.where(kept[:, None], gradient, 0) / kept.sum()
    loss = np.where(kept, (log_sum[:, 0] - x[np.arange(rows), label]) / kept.sum(), 0)
    found = np.where(kept, x.argmax(1), -1)
    launch.triton((rows,), {
        "X_ptr": InOut(x, gradient, rtol=1e-4, atol=1e-7), "X_stride": columns, "Y_ptr": In(label), "Y_stride": 1,
        "loss_ptr": InOut(np.zeros(rows, np.float32), loss, rtol=1e-5), "loss_stride": 1, "predicted_tokens_ptr": Out(found.astype(np.int64)),
        "predicted_tokens_stride": 1, "n_cols": columns, "n_non_ignore": int(kept.sum()), "ignore_index": -100},
        {"weight_ptr": None, "z_loss_ptr": None, "token_accuracy_ptr": None, "token_accuracy_stride": 0, "sum_non_ignore_weight": 0.0,
         "weight_sum": 0.0, "lse_square_scale": 0.0, "label_smoothing": 0.0, "reduction": "mean", "softcap": None, "RETURN_Z_LOSS": False,
         "RETURN_TOKEN_ACCURACY": False, "RETURN_PREDICTED_TOKENS": True, "BLOCK_SIZE": 256, "HAS_WEIGHT": False, "HAS_SOFTCAPPING": False,
         "HAS_GRADIENTS": True})


@case("liger-kernel", "jsd", file="liger_kernel/ops/jsd.py", kernel="_jsd_kernel")
def jsd(launch):
    rows, columns, beta = 3, 200, 0.25
    p, q = launch.uniform(rows, columns, low=0.1), launch.uniform(rows, columns, low=0.1)
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    middle = np.log(beta * p + (1 - beta) * q)
    gradient = (1 - beta) * q * (np.log(q) - middle) / rows
    loss = beta * p * (np.log(p) - middle) / rows + gradient
    launch.triton((rows,), {
        "X_ptr": In(np.log(q)), "X_stride": columns, "Y_ptr": In(np.log(p)), "Y_stride": columns, "loss_ptr": Out(loss, atol=1e-8, rtol=1e-3),
        "loss_stride": columns, "dX_ptr": Out(gradient, atol=1e-8, rtol=1e-3), "dX_stride": columns, "label_ptr": In(np.zeros(rows, np.int64)),
        "n_non_ignore": rows, "n_cols": columns}, {"beta": beta, "ignore_index": -100, "BLOCK_SIZE": 256, "HAS_LABEL": False})


@case("liger-kernel", "tv_distance", file="liger_kernel/ops/tvd.py", kernel="_tv_distance_kernel")
def tv_distance(launch):
    p, q = launch.uniform(3, 300), launch.uniform(3, 300)
    launch.triton((3,), {
        "p_ptr": In(p), "p_stride": 300, "q_ptr": In(q), "q_stride": 300, "loss_ptr": Out(0.25 * np.abs(p - q).sum(1) / 2, rtol=1e-5),
        "loss_stride": 1, "grads_ptr": Out(np.sign(p - q) * np.float32(0.125)), "grads_stride": 300,
        "label_ptr": In(np.zeros(3, np.int64)), "n_cols": 300, "scale": 0.25},
        {"ignore_index": -100, "BLOCK_SIZE": 128, "HAS_LABEL": False, "reduction": 1},
        prelude="_REDUCTION_MODE_NONE: tl.constexpr = tl.constexpr(0)\n")


@case("liger-kernel", "sparsemax_forward", file="liger_kernel/ops/sparsemax.py", kernel="_sparsemax_forward_kernel")
def sparsemax_forward(launch):
    x = launch.normal(4, 100)
    ordered = -np.sort(-x, axis=1)
    sums = np.cumsum(ordered, axis=1)
    count = (ordered > (sums - 1) / np.arange(1, 101)).sum(1)
    tau = (sums[np.arange(4), count - 1] - 1) / count
    launch.triton((4,), {"x_ptr": In(x), "x_stride_row": 100, "sorted_x_ptr": In(ordered), "sorted_x_stride_row": 100,
                         "o_ptr": Out(np.maximum(x - tau[:, None], 0).astype(np.float32), atol=1e-6), "o_stride_row": 100, "n_cols": 100},
                  {"BLOCK_SIZE": 128, "num_warps": 4})


@case("liger-kernel", "dyt_backward", file="liger_kernel/ops/dyt.py", kernel="_dyt_bwd_kernel")
def dyt_backward(launch):
    rows, columns, programs = 7, 300, 2
    x, dy, gamma, alpha = launch.normal(rows, columns), launch.normal(rows, columns), launch.normal(columns), np.float32([0.7])
    t = np.tanh(alpha * x)
    each = (1 - t * t) * dy * gamma
    of_program = lambda v: np.stack([v[i::programs].sum(0) for i in range(programs)]).astype(np.float32)
    launch.triton((1, programs), {
        "DY": In(dy), "DX": Out((alpha * each).astype(np.float32), rtol=1e-3, atol=1e-4), "DA": Out(of_program((x * each).sum(1)), rtol=1e-3, atol=1e-2),
        "DG": Out(of_program(dy * t), rtol=1e-3, atol=1e-4), "DB": Out(of_program(dy), atol=1e-5), "X": In(x), "Alpha": In(alpha),
        "Gamma": In(gamma), "M": rows}, {"HAVE_BETA": True, "N": columns, "BLOCK_N": 512},
        prelude="from triton.language.extra.libdevice import tanh\n")


@case("liger-kernel", "embedding_backward", file="liger_kernel/ops/experimental/embedding.py", kernel="embedding_backward_kernel")
def embedding_backward(launch):
    tokens, size, vocabulary = 70, 40, 12
    gradient, index = launch.normal(tokens, size), launch.integers(0, vocabulary, tokens, dtype=np.int64)
    weight = np.zeros((vocabulary, size), np.float32)
    np.add.at(weight, index, gradient)
    launch.triton((3, 2), {"grad_output_ptr": In(gradient), "grad_weight_ptr": InOut(np.zeros_like(weight), weight, rtol=1e-4, atol=1e-5),
                           "indices_ptr": In(index), "n_elements": tokens}, {"embedding_dim": size, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32})
