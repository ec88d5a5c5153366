// Source of nvcc.ptx: what nvcc makes of templates, unrolled loops, calls, tables and inline assembly.
//   nvcc -ptx -O3 -lineinfo -arch=sm_90 -std=c++17 templates.cu -o nvcc.ptx   (folders taken out of its .file lines)
#include <cstdint>

__constant__ uint32_t kPolynomials[8] = {0xedb88320u, 0x82f63b78u, 0xeb31d82eu, 0xd5828281u, 1u, 2u, 4u, 8u};

template <int kUnroll, typename T>
__device__ __forceinline__ T sum_of_tile(const T* tile, int stride) {
  T sum = 0;
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) sum += tile[i * stride] * static_cast<T>(i + 1);
  return sum;
}

__device__ __noinline__ uint32_t checksum(const uint8_t* bytes, uint32_t count, int table) {
  uint32_t crc = ~0u;
  for (uint32_t i = 0; i < count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (kPolynomials[table] & (0u - (crc & 1u)));
  }
  return ~crc;
}

__device__ __noinline__ float activation(float x, int kind) {
  switch (kind) {
    case 0:
      return fmaxf(x, 0.0f);
    case 1:
      return x / (1.0f + __expf(-x));
    case 2:
      return x * x * 0.5f;
    case 3:
      return rsqrtf(fabsf(x) + 1e-6f);
    case 4:
      return x > 0 ? x : 0.01f * x;
    case 5:
      return __sinf(x);
    default:
      return x;
  }
}

__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

template <int kTile>
__global__ void multiply(const float* __restrict__ a, const float* __restrict__ b, float* c, int n, int kind) {
  __shared__ float left[kTile][kTile + 1], right[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    left[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
    right[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum = fmaf(left[threadIdx.y][i], right[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = activation(sum, kind);
}
template __global__ void multiply<8>(const float*, const float*, float*, int, int);
template __global__ void multiply<32>(const float*, const float*, float*, int, int);

__global__ void reduce(const double* values, double* total, float* warps, unsigned long long* hits, int n) {
  extern __shared__ double staged[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < n ? values[i] : 0.0;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) staged[threadIdx.x] += staged[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *total += staged[0];
    atomicAdd(hits, 1ull);
  }
  const float sum = warp_sum(static_cast<float>(staged[threadIdx.x ^ 1]));
  if (threadIdx.x % 32 == 0) warps[i / 32] = sum;
}

__global__ void digest(const uint8_t* bytes, const uint32_t* offsets, uint32_t* sums, uint64_t* wide, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t sum = checksum(bytes + offsets[i], offsets[i + 1] - offsets[i], i & 7);
  uint32_t folded;
  asm("{\n\t.reg .b32 low, high;\n\tand.b32 low, %1, 0xffff;\n\tshr.u32 high, %1, 16;\n\txor.b32 %0, low, high;\n\t}"
      : "=r"(folded)
      : "r"(sum));
  sums[i] = sum_of_tile<16>(sums, 32) + folded;
  wide[i] = sum_of_tile<24>(wide, 7) ^ __brevll(sum);
}
