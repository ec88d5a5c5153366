// Operations of ggml's CUDA backend, each on a small tensor, without its scheduler. cuda_programs.py builds this with
// ggml's own sources and runs it on the emulator with all checks. Results that a line of host code can compute are
// compared. Exit status 1 if a result is wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

#include "argmax.cuh"
#include "argsort.cuh"
#include "binbcast.cuh"
#include "clamp.cuh"
#include "common.cuh"
#include "concat.cuh"
#include "conv2d-dw.cuh"
#include "conv2d-transpose.cuh"
#include "count-equal.cuh"
#include "cpy.cuh"
#include "cross-entropy-loss.cuh"
#include "cumsum.cuh"
#include "diag.cuh"
#include "diagmask.cuh"
#include "getrows.cuh"
#include "ggml.h"
#include "im2col.cuh"
#include "mean.cuh"
#include "norm.cuh"
#include "pad.cuh"
#include "pool2d.cuh"
#include "roll.cuh"
#include "rope.cuh"
#include "scale.cuh"
#include "set-rows.cuh"
#include "softmax.cuh"
#include "ssm-conv.cuh"
#include "sum.cuh"
#include "sumrows.cuh"
#include "top-k.cuh"
#include "tri.cuh"
#include "unary.cuh"
#include "upscale.cuh"

// Definitions that ggml-cuda.cu and ggml's backends provide otherwise.
namespace {
struct Pool : ggml_cuda_pool {
  void* alloc(size_t size, size_t* actual) override {
    void* pointer = nullptr;
    CUDA_CHECK(cudaMalloc(&pointer, size + 1));
    return *actual = size, pointer;
  }
  void free(void* pointer, size_t) override { CUDA_CHECK(cudaFree(pointer)); }
};
}  // namespace
std::unique_ptr<ggml_cuda_pool> ggml_backend_cuda_context::new_pool_for_device(int, int) { return std::make_unique<Pool>(); }
ggml_backend_cuda_context::~ggml_backend_cuda_context() = default;
int ggml_cuda_get_device() { return 0; }
void ggml_cuda_set_device(int) {}
void ggml_cuda_error(const char* what, const char*, const char* file, int line, const char*) {
  std::printf("%s:%d: %s\n", file, line, what);
  std::exit(1);
}
const ggml_cuda_device_info& ggml_cuda_info() {
  static ggml_cuda_device_info info = [] {
    ggml_cuda_device_info made{};
    made.device_count = made.physical_device_count = 1;
    made.devices[0].cc = 800, made.devices[0].nsm = 4, made.devices[0].smpb = 48 << 10, made.devices[0].smpbo = 160 << 10;
    made.devices[0].warp_size = 32, made.devices[0].supports_cooperative_launch = true;
    return made;
  }();
  return info;
}
extern "C" {
void ggml_critical_section_start() {}
void ggml_critical_section_end() {}
ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t) { return GGML_BACKEND_BUFFER_USAGE_ANY; }
void ggml_backend_tensor_set(ggml_tensor*, const void*, size_t, size_t) {}
void ggml_backend_tensor_memset(ggml_tensor*, uint8_t, size_t, size_t) {}
}

namespace {

using Floats = std::vector<float>;
int failures = 0, operations = 0;
ggml_context* tensors;
ggml_backend_cuda_context* gpu;

// A tensor in device memory: a view if it has a source, otherwise with a buffer of its own.
ggml_tensor* placed(ggml_tensor* tensor) {
  if (tensor->data != nullptr) return tensor;
  if (tensor->view_src != nullptr)
    tensor->data = static_cast<char*>(placed(tensor->view_src)->data) + tensor->view_offs;
  else
    CUDA_CHECK(cudaMalloc(&tensor->data, ggml_nbytes(tensor)));
  return tensor;
}

template <class T>
ggml_tensor* of(ggml_type type, std::vector<T> values, int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) {
  ggml_tensor* tensor = placed(ggml_new_tensor_4d(tensors, type, a, b, c, d));
  CUDA_CHECK(cudaMemcpy(tensor->data, values.data(), ggml_nbytes(tensor), cudaMemcpyHostToDevice));
  return tensor;
}

Floats noise(int64_t count) {
  Floats values(count);
  unsigned state = 7;
  for (float& value : values) value = static_cast<float>((state = state * 1664525 + 1013904223) >> 16) / 8192 - 4;
  return values;
}
ggml_tensor* floats(int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) { return of(GGML_TYPE_F32, noise(a * b * c * d), a, b, c, d); }
std::vector<int> numbers(int64_t count, int below) {
  std::vector<int> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int>(i * 7 % below);
  return values;
}

using Operation = std::function<void(ggml_backend_cuda_context&, ggml_tensor*)>;
ggml_tensor* run(const char* what, const Operation& operation, ggml_tensor* result) {
  operation(*gpu, placed(result));
  ++operations;
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) std::printf("%s: error %d\n", what, status), ++failures;
  return result;
}

template <class T = float>
void expect(const char* what, const ggml_tensor* tensor, const std::vector<T>& wanted) {
  std::vector<T> got(wanted.size());
  CUDA_CHECK(cudaMemcpy(got.data(), tensor->data, got.size() * sizeof(T), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - wanted[i]) <= 1e-3 * std::max(1.0, std::abs(static_cast<double>(wanted[i])))) continue;
    std::printf("%s: %g at %zu is WRONG, expected %g\n", what, static_cast<double>(got[i]), i, static_cast<double>(wanted[i]));
    ++failures;
    return;
  }
}

// Applies the computation of one row of `width` elements to each row.
template <class T>
std::vector<T> by_rows(const Floats& in, int64_t width, const std::function<void(const float*, std::vector<T>&)>& row) {
  std::vector<T> out;
  for (size_t at = 0; at < in.size(); at += width) row(&in[at], out);
  return out;
}

void reductions(int64_t width, int64_t rows) {
  const Floats in = noise(width * rows);
  const auto x = [&] { return floats(width, rows); };
  const auto sum_of = [width](const float* row) { return std::accumulate(row, row + width, 0.0); };
  expect<int>("argmax", run("argmax", ggml_cuda_argmax, ggml_argmax(tensors, x())),
              by_rows<int>(in, width, [&](const float* row, auto& out) { out.push_back(std::max_element(row, row + width) - row); }));
  expect("sum_rows", run("sum_rows", ggml_cuda_op_sum_rows, ggml_sum_rows(tensors, x())),
         by_rows<float>(in, width, [&](const float* row, auto& out) { out.push_back(sum_of(row)); }));
  expect("mean", run("mean", ggml_cuda_op_mean, ggml_mean(tensors, x())),
         by_rows<float>(in, width, [&](const float* row, auto& out) { out.push_back(sum_of(row) / width); }));
  expect("sum", run("sum", ggml_cuda_op_sum, ggml_sum(tensors, x())), {static_cast<float>(std::accumulate(in.begin(), in.end(), 0.0))});
  expect("cumsum", run("cumsum", ggml_cuda_op_cumsum, ggml_cumsum(tensors, x())),
         by_rows<float>(in, width, [&](const float* row, auto& out) {
           double sum = 0;
           for (int64_t i = 0; i < width; ++i) out.push_back(sum += row[i]);
         }));
  const auto rms = by_rows<float>(in, width, [&](const float* row, auto& out) {
    const double squares = std::inner_product(row, row + width, row, 0.0);
    for (int64_t i = 0; i < width; ++i) out.push_back(row[i] / std::sqrt(squares / width + 1e-5));
  });
  expect("rms_norm", run("rms_norm", ggml_cuda_op_rms_norm, ggml_rms_norm(tensors, x(), 1e-5f)), rms);
  expect("norm", run("norm", ggml_cuda_op_norm, ggml_norm(tensors, x(), 1e-5f)), by_rows<float>(in, width, [&](const float* row, auto& out) {
           const double mean = sum_of(row) / width, squares = std::inner_product(row, row + width, row, 0.0) / width;
           for (int64_t i = 0; i < width; ++i) out.push_back((row[i] - mean) / std::sqrt(squares - mean * mean + 1e-5));
         }));
  run("l2_norm", ggml_cuda_op_l2_norm, ggml_l2_norm(tensors, x(), 1e-5f));
  run("group_norm", ggml_cuda_op_group_norm, ggml_group_norm(tensors, floats(width, 2, 4), 2, 1e-5f));
  const auto soft = by_rows<float>(in, width, [&](const float* row, auto& out) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += std::exp(row[i]);
    for (int64_t i = 0; i < width; ++i) out.push_back(std::exp(row[i]) / sum);
  });
  expect("soft_max", run("soft_max", ggml_cuda_op_soft_max, ggml_soft_max(tensors, x())), soft);
  run("soft_max_ext", ggml_cuda_op_soft_max, ggml_soft_max_ext(tensors, x(), floats(width, rows), 0.5f, 2.0f));
  run("soft_max_back", ggml_cuda_op_soft_max_back, ggml_soft_max_ext_back(tensors, x(), x(), 1.0f, 0.0f));
  run("rms_norm_back", ggml_cuda_op_rms_norm_back, ggml_rms_norm_back(tensors, x(), x(), 1e-5f));
  run("cross_entropy", ggml_cuda_cross_entropy_loss, ggml_cross_entropy_loss(tensors, x(), x()));
}

void orders(int64_t width) {
  const Floats in = noise(width * 3);
  const auto order = by_rows<int>(in, width, [&](const float* row, auto& out) {
    std::vector<int> at(width);
    std::iota(at.begin(), at.end(), 0);
    std::stable_sort(at.begin(), at.end(), [&](int a, int b) { return row[a] < row[b]; });
    out.insert(out.end(), at.begin(), at.end());
  });
  ggml_tensor* sorted = run("argsort", ggml_cuda_op_argsort, ggml_argsort(tensors, floats(width, 3), GGML_SORT_ORDER_ASC));
  std::vector<int> got(order.size());
  CUDA_CHECK(cudaMemcpy(got.data(), sorted->data, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < got.size(); ++i)  // equal values in any order
    if (in[i / width * width + got[i]] != in[i / width * width + order[i]]) {
      std::printf("argsort: place %zu is WRONG\n", i);
      ++failures;
      break;
    }
  run("argsort, descending", ggml_cuda_op_argsort, ggml_argsort(tensors, floats(width, 3), GGML_SORT_ORDER_DESC));
  run("top_k", ggml_cuda_op_top_k, ggml_top_k(tensors, floats(width, 3), 5));
}

void elementwise() {
  const auto x = [] { return floats(70, 5, 3); };
  const Floats in = noise(70 * 5 * 3);
  Floats twice = in, clamped = in;
  for (float& value : twice) value = 2 * value + 1;
  for (float& value : clamped) value = std::clamp(value, -1.0f, 1.0f);
  expect("scale", run("scale", ggml_cuda_op_scale, ggml_scale_bias(tensors, x(), 2, 1)), twice);
  expect("clamp", run("clamp", ggml_cuda_op_clamp, ggml_clamp(tensors, x(), -1, 1)), clamped);
  run("gelu", ggml_cuda_op_gelu, ggml_gelu(tensors, x()));
  run("silu", ggml_cuda_op_silu, ggml_silu(tensors, x()));
  run("tanh", ggml_cuda_op_tanh, ggml_tanh(tensors, x()));
  run("swiglu", ggml_cuda_op_swiglu, ggml_swiglu(tensors, x()));
  run("add", ggml_cuda_op_add, ggml_add(tensors, x(), floats(70, 1, 3)));
  run("mul", ggml_cuda_op_mul, ggml_mul(tensors, x(), floats(70)));
  run("repeat", ggml_cuda_op_repeat, ggml_repeat(tensors, floats(7, 2), floats(21, 4)));
  run("diag_mask_inf", ggml_cuda_op_diag_mask_inf, ggml_diag_mask_inf(tensors, x(), 2));
  run("tri", ggml_cuda_op_tri, ggml_tri(tensors, floats(33, 33), GGML_TRI_TYPE_LOWER));
  run("diag", ggml_cuda_op_diag, ggml_diag(tensors, floats(33, 1, 2)));
  run("concat", ggml_cuda_op_concat, ggml_concat(tensors, x(), x(), 1));
  run("pad", ggml_cuda_op_pad, ggml_pad(tensors, x(), 3, 1, 0, 0));
  run("roll", ggml_cuda_op_roll, ggml_roll(tensors, x(), 3, 1, 0, 0));
  run("rope", ggml_cuda_op_rope, ggml_rope(tensors, floats(64, 4, 3), of(GGML_TYPE_I32, numbers(3, 100), 3), 64, 0));
  run("rope, neox", ggml_cuda_op_rope, ggml_rope(tensors, floats(64, 4, 3), of(GGML_TYPE_I32, numbers(3, 100), 3), 32, 2));
  run("count_equal", ggml_cuda_count_equal,
      ggml_count_equal(tensors, of(GGML_TYPE_I32, numbers(700, 9), 700), of(GGML_TYPE_I32, numbers(700, 5), 700)));
}

void moves() {
  const Floats in = noise(40 * 9);
  const std::vector<int> rows = numbers(6, 9);
  Floats taken;
  for (const int row : rows) taken.insert(taken.end(), &in[row * 40], &in[row * 40] + 40);
  expect("get_rows", run("get_rows", ggml_cuda_op_get_rows, ggml_get_rows(tensors, floats(40, 9), of(GGML_TYPE_I32, rows, 6))), taken);
  std::vector<int64_t> places{5, 0, 3};
  run("set_rows", ggml_cuda_op_set_rows, ggml_set_rows(tensors, floats(40, 9), floats(40, 3), of(GGML_TYPE_I64, places, 3)));
  const auto copied = [](ggml_backend_cuda_context& context, ggml_tensor* result) { ggml_cuda_cpy(context, result->src[0], result->src[1]); };
  Floats turned;
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 9; ++j) turned.push_back(in[j * 40 + i]);
  ggml_tensor* const transposed = placed(ggml_transpose(tensors, floats(40, 9)));
  expect("copy, transposed", run("copy, transposed", copied, ggml_cpy(tensors, transposed, placed(ggml_new_tensor_2d(tensors, GGML_TYPE_F32, 9, 40)))), turned);
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL}) {
    ggml_tensor* const packed = placed(ggml_new_tensor_2d(tensors, type, 64, 6));
    run("copy to another type", copied, ggml_cpy(tensors, floats(64, 6), packed));
    if (type != GGML_TYPE_IQ4_NL)
      run("rows of another type", ggml_cuda_op_get_rows, ggml_get_rows(tensors, packed, of(GGML_TYPE_I32, numbers(4, 6), 4)));
  }
  run("im2col", ggml_cuda_op_im2col, ggml_im2col(tensors, floats(3, 3, 2, 4), floats(12, 10, 2), 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F32));
  run("pool_2d", ggml_cuda_op_pool2d, ggml_pool_2d(tensors, floats(12, 10, 2), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0));
  run("upscale", ggml_cuda_op_upscale, ggml_upscale(tensors, floats(12, 10, 2), 2, GGML_SCALE_MODE_BILINEAR));
  run("conv_2d_dw", ggml_cuda_op_conv2d_dw, ggml_conv_2d_dw_direct(tensors, floats(3, 3, 1, 4), floats(12, 10, 4), 1, 1, 1, 1, 1, 1));
  run("ssm_conv", [](auto& context, ggml_tensor* result) { ggml_cuda_op_ssm_conv(context, result); },
      ggml_ssm_conv(tensors, floats(4 - 1 + 8, 256), floats(4, 256)));
}

}  // namespace

int main() {
  tensors = ggml_init({16 << 20, nullptr, true});
  ggml_backend_cuda_context context(0);
  gpu = &context;
  for (const int64_t width : {7, 64, 300, 1100, 5000}) reductions(width, 5);
  for (const int64_t width : {6, 100, 1000, 3000}) orders(width);
  elementwise();
  moves();
  std::printf("%d operations, %d wrong\n", operations, failures);
  return failures != 0;
}
