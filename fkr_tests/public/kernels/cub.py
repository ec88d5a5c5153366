"""Algorithms of CUB (nvidia-cuda-cccl-cu12), each called by a kernel of a few lines, as its documentation does."""
import numpy as np

from cases import In, InOut, Out, case

STANDARD_HEADERS = {"iterator": "", "type_traits": "", "limits": """#include <cuda/std/limits>
namespace std {
using cuda::std::numeric_limits;
}
"""}
BLOCK = "nvidia/cuda_cccl/include/cub/block/"


@case("cub", "block_radix_sort", file=BLOCK + "block_radix_sort.cuh", kernel="sort")
def block_radix_sort(launch):
    keys = launch.integers(0, 1 << 10, 1024).astype(np.uint32)
    order = np.argsort(keys, kind="stable")
    launch.cuda((1,), (128,), [InOut(keys, keys[order]), Out(order.astype(np.int32))], tail="""
extern "C" __global__ void sort(unsigned* keys, int* places) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 8, int>;
  __shared__ typename Sort::TempStorage storage;
  unsigned key[8];
  int place[8];
  for (int i = 0; i < 8; ++i) key[i] = keys[threadIdx.x * 8 + i], place[i] = threadIdx.x * 8 + i;
  Sort(storage).Sort(key, place, 0, 10);
  for (int i = 0; i < 8; ++i) keys[threadIdx.x * 8 + i] = key[i], places[threadIdx.x * 8 + i] = place[i];
}""")


@case("cub", "block_merge_sort", file=BLOCK + "block_merge_sort.cuh", kernel="sort")
def block_merge_sort(launch):
    x = launch.normal(500).astype(np.float64)
    launch.cuda((1,), (128,), [InOut(x, np.sort(x)), 500], tail="""
struct Less { __device__ bool operator()(double a, double b) const { return a < b; } };
extern "C" __global__ void sort(double* data, int count) {
  using Sort = cub::BlockMergeSort<double, 128, 4>;
  __shared__ typename Sort::TempStorage storage;
  double x[4];
  for (int i = 0; i < 4; ++i) x[i] = threadIdx.x * 4 + i < count ? data[threadIdx.x * 4 + i] : 1e300;
  Sort(storage).StableSort(x, Less(), count, 1e300);
  for (int i = 0; i < 4; ++i) if (threadIdx.x * 4 + i < count) data[threadIdx.x * 4 + i] = x[i];
}""")


@case("cub", "block_scan", file=BLOCK + "block_scan.cuh", kernel="scan<cub::BLOCK_SCAN_RAKING>")
def block_scan(launch):
    x = launch.integers(-99, 99, 3, 160, 4)
    flat = x.reshape(3, -1)
    sums = np.cumsum(flat, 1)
    launch.cuda((3,), (160,), [In(x), Out((sums - flat).reshape(x.shape).astype(np.int32)), Out(sums[:, -1].astype(np.int32))], tail="""
template <cub::BlockScanAlgorithm Algorithm>
__global__ void scan(const int4* in, int4* out, int* totals) {
  using Scan = cub::BlockScan<int, 160, Algorithm>;
  __shared__ typename Scan::TempStorage storage;
  const int place = blockIdx.x * 160 + threadIdx.x;
  int x[4] = {in[place].x, in[place].y, in[place].z, in[place].w}, y[4], total;
  Scan(storage).ExclusiveSum(x, y, total);
  out[place] = make_int4(y[0], y[1], y[2], y[3]);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}""")


@case("cub", "block_reduce", file=BLOCK + "block_reduce.cuh", kernel="reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>")
def block_reduce(launch):
    x = launch.normal(4, 300)
    launch.cuda((4,), (96,), [In(x), Out(x.max(1)), 300], tail="""
struct Greatest { __device__ float operator()(float a, float b) const { return a < b ? b : a; } };
template <cub::BlockReduceAlgorithm Algorithm>
__global__ void reduce(const float* in, float* out, int count) {
  using Reduce = cub::BlockReduce<float, 96, Algorithm>;
  __shared__ typename Reduce::TempStorage storage;
  float x = in[blockIdx.x * count + threadIdx.x];
  for (int i = threadIdx.x + 96; i < count; i += 96) x = Greatest()(x, in[blockIdx.x * count + i]);
  x = Reduce(storage).Reduce(x, Greatest());
  if (threadIdx.x == 0) out[blockIdx.x] = x;
}""")


@case("cub", "block_histogram", file=BLOCK + "block_histogram.cuh", kernel="histogram<cub::BLOCK_HISTO_SORT>")
def block_histogram(launch):
    x = launch.integers(0, 64, 2, 512, dtype=np.uint8)
    launch.cuda((2,), (128,), [In(x), Out(np.stack([np.bincount(row, minlength=64) for row in x]).astype(np.uint32))], tail="""
template <cub::BlockHistogramAlgorithm Algorithm>
__global__ void histogram(const unsigned char* in, unsigned* out) {
  using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 64, Algorithm>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ unsigned bins[64];
  unsigned char x[4];
  for (int i = 0; i < 4; ++i) x[i] = in[blockIdx.x * 512 + threadIdx.x * 4 + i];
  Histogram(storage).Histogram(x, bins);
  __syncthreads();
  if (threadIdx.x < 64) out[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
}""")


@case("cub", "run_length_decode", file=BLOCK + "block_run_length_decode.cuh", kernel="decode")
def run_length_decode(launch):
    values, lengths = launch.integers(0, 1000, 64), launch.integers(1, 9, 64)
    out = np.repeat(values, lengths)
    launch.cuda((1,), (32,), [In(values), In(lengths), Out(out), Out(np.int32([len(out)]))], headers=STANDARD_HEADERS, tail="""
extern "C" __global__ void decode(const int* values, const int* lengths, int* out, int* size) {
  using Decode = cub::BlockRunLengthDecode<int, 32, 2, 4>;
  __shared__ typename Decode::TempStorage storage;
  int value[2], length[2], total = 0;
  for (int i = 0; i < 2; ++i) value[i] = values[threadIdx.x * 2 + i], length[i] = lengths[threadIdx.x * 2 + i];
  Decode decode(storage, value, length, total);
  for (int start = 0; start < total; start += 128) {
    int decoded[4];
    decode.RunLengthDecode(decoded, start);
    for (int i = 0; i < 4; ++i) if (start + threadIdx.x * 4 + i < total) out[start + threadIdx.x * 4 + i] = decoded[i];
  }
  if (threadIdx.x == 0) *size = total;
}""")


@case("cub", "block_transpose", file=BLOCK + "block_exchange.cuh", kernel="transpose<true>")
def block_transpose(launch):
    """Blocked to striped through shared memory, in slices of a warp."""
    x = launch.normal(128 * 6).astype(np.float64)
    launch.cuda((1,), (128,), [In(x), Out(x.reshape(6, 128).T.ravel())], tail="""
template <bool Sliced>
__global__ void transpose(const double* in, double* out) {
  using Exchange = cub::BlockExchange<double, 128, 6, Sliced>;
  __shared__ typename Exchange::TempStorage storage;
  double x[6];
  for (int i = 0; i < 6; ++i) x[i] = in[threadIdx.x * 6 + i];
  Exchange(storage).BlockedToStriped(x, x);
  for (int i = 0; i < 6; ++i) out[threadIdx.x * 6 + i] = x[i];
}""")
