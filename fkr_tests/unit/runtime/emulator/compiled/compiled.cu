// Kernels as nvcc compiles them. The PTX beside this file was made with CUDA 13.0 by
//   nvcc -arch=sm_75 -ptx compiled.cu -o optimised.ptx
//   nvcc -arch=sm_75 -Xcicc -O0 -ptx compiled.cu -o plain.ptx
#include "functions.hpp"

// Each lane calls another function: every path of the switch runs in one warp.
extern "C" __global__ void functions_of_lanes(const uint64_t* a, const uint64_t* b, uint64_t* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = functions::call(i % functions::kCount, a[i], b[i]);
}

extern "C" __global__ void sum(const uint32_t* in, uint32_t* out, int count) {
  __shared__ uint32_t partial[256];
  const int thread = threadIdx.x;
  uint32_t value = 0;
  for (int i = blockIdx.x * 256 + thread; i < count; i += gridDim.x * 256) value += in[i];
  partial[thread] = value;
  __syncthreads();
  for (int distance = 128; distance >= 32; distance >>= 1) {
    if (thread < distance) partial[thread] += partial[thread + distance];
    __syncthreads();
  }
  if (thread < 32) {
    value = partial[thread];
    for (int distance = 16; distance; distance >>= 1) value += __shfl_down_sync(~0u, value, distance);
    if (thread == 0) atomicAdd(out, value);
  }
}

extern "C" __global__ void prefix_sum(uint32_t* data) {
  __shared__ uint32_t of_warp[32];
  const int thread = threadIdx.x, lane = thread & 31;
  uint32_t value = data[thread];
  for (int k = 1; k < 32; k <<= 1) {
    const uint32_t other = __shfl_up_sync(~0u, value, k);
    if (lane >= k) value += other;
  }
  if (lane == 31) of_warp[thread >> 5] = value;
  __syncthreads();
  if (thread < 32) {
    uint32_t total = thread < blockDim.x / 32 ? of_warp[thread] : 0;
    for (int k = 1; k < 32; k <<= 1) {
      const uint32_t other = __shfl_up_sync(~0u, total, k);
      if (lane >= k) total += other;
    }
    of_warp[thread] = total;
  }
  __syncthreads();
  if (thread >= 32) value += of_warp[(thread >> 5) - 1];
  data[thread] = value;
}

// One lock for all threads of all blocks.
extern "C" __global__ void locked_counter(int* lock, int* counter) {
  for (;;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      const int value = *reinterpret_cast<volatile int*>(counter);
      *reinterpret_cast<volatile int*>(counter) = value + 1;
      __threadfence();
      atomicExch(lock, 0);
      break;
    }
  }
}
