// Correct kernels in which threads work together. The PTX beside this file was made with CUDA 13.0 by
//   nvcc -std=c++17 -arch=sm_90 -ptx patterns.cu -o patterns.ptx
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

// The last block to arrive sums the results of the others, as in the sample threadFenceReduction.
extern "C" __global__ void last_block(const int* in, int* out, unsigned* count) {
  __shared__ int partial[128];
  __shared__ bool last;
  partial[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < 128; ++i) sum += partial[i];
    out[1 + blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(count, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += static_cast<volatile int*>(out)[1 + i];
    out[0] = sum;
    *count = 0;
  }
}

// A prefix sum over blocks by decoupled look-back: a status word of flag and value, read and written relaxed.
extern "C" __global__ void look_back(const unsigned* in, unsigned* out, unsigned long long* status) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ unsigned of_warp[4], before;
  const unsigned i = blockIdx.x * 128 + threadIdx.x;
  unsigned value = cg::inclusive_scan(warp, in[i]);
  if (warp.thread_rank() == 31) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  unsigned total = 0;
  for (unsigned w = 0; w < 4; ++w) {
    if (w < threadIdx.x / 32) value += of_warp[w];
    total += of_warp[w];
  }
  if (threadIdx.x == 0) {
    auto publish = [&](unsigned long long flag, unsigned sum) {
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(status + blockIdx.x), "l"(flag << 32 | sum) : "memory");
    };
    publish(blockIdx.x == 0 ? 2 : 1, total);
    unsigned sum = 0;
    for (int other = static_cast<int>(blockIdx.x) - 1; other >= 0;) {
      unsigned long long seen;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(status + other) : "memory");
      if (seen >> 32 == 0) continue;
      sum += static_cast<unsigned>(seen);
      if (seen >> 32 == 2) break;
      --other;
    }
    publish(2, sum + total);
    before = sum;
  }
  __syncthreads();
  out[i] = value + before;
}

extern "C" __global__ void tiles(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  __shared__ int staged[128];
  const int value = in[threadIdx.x];
  staged[threadIdx.x] = cg::reduce(tile, value, cg::plus<int>()) + cg::inclusive_scan(tile, value);
  tile.sync();
  int result = staged[threadIdx.x ^ 15];
  if (value & 1) result += cg::coalesced_threads().size();
  auto pair = cg::tiled_partition<64>(block);
  pair.sync();
  out[threadIdx.x] = result + staged[(threadIdx.x & 64) + (63 - threadIdx.x % 64)];
}

extern "C" __global__ void pipelined(const int* in, int* out, int rounds) {
  __shared__ int staged[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int round = 0, fetched = 0; round < rounds; ++round) {
    for (; fetched < rounds && fetched < round + 2; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, staged[fetched % 2], in + fetched * 128, sizeof(int) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += staged[round % 2][127 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void arrivals(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int staged[128];
  if (threadIdx.x == 0) init(&barrier, 128);
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < 3; ++round) {
    staged[threadIdx.x] = in[threadIdx.x] * (round + 1);
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
    sum += staged[127 - threadIdx.x];
    barrier.arrive_and_wait();
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void grid_rounds(int* data, int* out) {
  auto grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank()), count = static_cast<int>(grid.size());
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    data[i] = i * (round + 1);
    grid.sync();
    sum += data[count - 1 - i];
    grid.sync();
  }
  out[i] = sum;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbours(const int* in, int* out) {
  __shared__ int staged[128];
  auto cluster = cg::this_cluster();
  staged[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  cluster.sync();
  const int* theirs = cluster.map_shared_rank(staged, cluster.block_rank() ^ 1);
  out[blockIdx.x * 128 + threadIdx.x] = theirs[127 - threadIdx.x];
  cluster.sync();
}

// Softmax of rows, a block each, as in ggml: partial results of warps pass through one shared buffer.
extern "C" __global__ void softmax(const float* x, float* y, int columns) {
  extern __shared__ float buffer[];
  float* values = buffer + 32;
  auto of_block = [&](float value, float neutral, auto combine) {
    for (int offset = 16; offset; offset >>= 1) value = combine(value, __shfl_xor_sync(~0u, value, offset));
    __syncthreads();
    if (threadIdx.x < 32) buffer[threadIdx.x] = neutral;
    __syncthreads();
    if (threadIdx.x % 32 == 0) buffer[threadIdx.x / 32] = value;
    __syncthreads();
    value = buffer[threadIdx.x % 32];
    for (int offset = 16; offset; offset >>= 1) value = combine(value, __shfl_xor_sync(~0u, value, offset));
    return value;
  };
  float most = -INFINITY, sum = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) most = fmaxf(most, values[c] = x[blockIdx.x * columns + c]);
  most = of_block(most, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += values[c] = expf(values[c] - most);
  sum = of_block(sum, 0.0f, [](float a, float b) { return a + b; });
  for (int c = threadIdx.x; c < columns; c += blockDim.x) y[blockIdx.x * columns + c] = values[c] / sum;
}

// Two warps fill a buffer and two read it, synchronised by named barriers; two buffers alternate.
extern "C" __global__ void named_barriers(const int* in, int* out, int rounds) {
  __shared__ int buffers[2][64];
  const int lane = threadIdx.x % 64;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const int which = round % 2, full = 1 + which, empty = 3 + which;
    if (threadIdx.x < 64) {
      if (round >= 2) asm volatile("bar.sync %0, 128;" ::"r"(empty) : "memory");
      buffers[which][lane] = in[round * 64 + lane];
      asm volatile("bar.arrive %0, 128;" ::"r"(full) : "memory");
    } else {
      asm volatile("bar.sync %0, 128;" ::"r"(full) : "memory");
      sum += buffers[which][63 - lane];
      if (round + 2 < rounds) asm volatile("bar.arrive %0, 128;" ::"r"(empty) : "memory");
    }
  }
  if (threadIdx.x >= 64) out[lane] = sum;
}

// Blocks update a word in turn, under a lock.
extern "C" __global__ void locked(int* lock, int* word) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
    __threadfence();
    *word = *word * 3 + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

// Counts of a block in shared memory, added to the counts of the grid.
extern "C" __global__ void histogram(const unsigned char* in, unsigned* counts, int count) {
  __shared__ unsigned own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&counts[i], own[i]);
}
