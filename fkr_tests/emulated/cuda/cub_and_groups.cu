// Correct kernels of CUB and cooperative groups, whose results are compared on the host. cuda_programs.py runs this
// program on the emulator with all checks, which must find nothing. Exit status 1 if a result is wrong.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <algorithm>
#include <numeric>
#include <vector>

namespace cg = cooperative_groups;
using Words = std::vector<int>;

namespace {

constexpr int kThreads = 128, kItems = 4, kTile = kThreads * kItems, kCount = 5000;
int failures = 0;

struct OnDevice {
  int* words = nullptr;
  explicit OnDevice(const Words& from) {
    cudaMalloc(&words, from.size() * sizeof(int));
    cudaMemcpy(words, from.data(), from.size() * sizeof(int), cudaMemcpyHostToDevice);
  }
  explicit OnDevice(size_t count) { cudaMalloc(&words, count * sizeof(int)); }
  ~OnDevice() { cudaFree(words); }
  Words host(size_t count) const {
    Words to(count);
    cudaMemcpy(to.data(), words, count * sizeof(int), cudaMemcpyDeviceToHost);
    return to;
  }
};

void expect(const char* what, const Words& got, const Words& wanted) {
  const bool same = got == wanted && cudaGetLastError() == cudaSuccess;
  std::printf("%s %s\n", what, same ? "right" : "WRONG");
  failures += !same;
}

Words noise(size_t count, unsigned below) {
  Words words(count);
  unsigned state = 12345;
  for (int& word : words) word = static_cast<int>((state = state * 1664525 + 1013904223) >> 8) % below;
  return words;
}

template <cub::BlockReduceAlgorithm kAlgorithm>
__global__ void block_reduce(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, kThreads, kAlgorithm>;
  __shared__ typename Reduce::TempStorage storage;
  int items[kItems];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * kTile, items);
  const int sum = Reduce(storage).Sum(items);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

template <cub::BlockScanAlgorithm kAlgorithm, cub::BlockLoadAlgorithm kLoad, cub::BlockStoreAlgorithm kStore>
__global__ void block_scan(const int* in, int* out) {
  using Load = cub::BlockLoad<int, kThreads, kItems, kLoad>;
  using Store = cub::BlockStore<int, kThreads, kItems, kStore>;
  using Scan = cub::BlockScan<int, kThreads, kAlgorithm>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  int items[kItems];
  Load(storage.load).Load(in + blockIdx.x * kTile, items);
  __syncthreads();
  Scan(storage.scan).InclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(out + blockIdx.x * kTile, items);
}

__global__ void block_sorts(const int* in, int* radix, int* merge, int* histogram) {
  using Radix = cub::BlockRadixSort<int, kThreads, kItems>;
  using Merge = cub::BlockMergeSort<int, kThreads, kItems>;
  using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, 256>;
  __shared__ union {
    typename Radix::TempStorage radix;
    typename Merge::TempStorage merge;
    typename Histogram::TempStorage histogram;
  } storage;
  __shared__ int bins[256];
  int items[kItems], others[kItems];
  unsigned char bytes[kItems];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * kTile, items);
  for (int i = 0; i < kItems; ++i) others[i] = items[i], bytes[i] = static_cast<unsigned char>(items[i]);
  Radix(storage.radix).Sort(items);
  cub::StoreDirectBlocked(threadIdx.x, radix + blockIdx.x * kTile, items);
  __syncthreads();
  Merge(storage.merge).Sort(others, [](int a, int b) { return a < b; });
  cub::StoreDirectBlocked(threadIdx.x, merge + blockIdx.x * kTile, others);
  __syncthreads();
  Histogram(storage.histogram).Histogram(bytes, bins);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += kThreads) atomicAdd(&histogram[i], bins[i]);
}

__global__ void warp_collectives(const int* in, int* sums, int* scans) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int, 16>;
  __shared__ typename Reduce::TempStorage reduce[kThreads / 32];
  __shared__ typename Scan::TempStorage scan[kThreads / 16];
  const int at = blockIdx.x * kThreads + threadIdx.x;
  const int sum = Reduce(reduce[threadIdx.x / 32]).Sum(in[at]);
  if (threadIdx.x % 32 == 0) sums[at / 32] = sum;
  int before;
  Scan(scan[threadIdx.x / 16]).ExclusiveSum(in[at], before);
  scans[at] = before;
}

// Tiles, the lanes of a branch, labelled partitions, and shared memory between them.
__global__ void groups(const int* in, int* sums, int* counts, int* prefix) {
  __shared__ int shared[kThreads];
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const auto warp = cg::tiled_partition<32>(block);
  const int at = block.group_index().x * kThreads + block.thread_rank(), mine = in[at];
  shared[block.thread_rank()] = mine;
  tile.sync();
  int sum = 0;
  for (unsigned i = 0; i < tile.size(); ++i) sum += shared[tile.meta_group_rank() * tile.size() + i];
  if (tile.thread_rank() == 0) sums[at / 8] = sum + cg::reduce(cg::coalesced_threads(), 0, cg::plus<int>());
  if (mine % 3 == 0) {
    const auto some = cg::coalesced_threads();
    if (some.thread_rank() == 0) atomicAdd(&counts[0], some.size());
  }
  const auto same = cg::labeled_partition(warp, mine % 4);
  if (same.thread_rank() == 0) atomicAdd(&counts[1 + mine % 4], same.size());
  prefix[at] = cg::inclusive_scan(warp, mine);
}

// One grid, with as many phases as it has barriers.
__global__ void grid_barriers(int* data, int count) {
  const cg::grid_group grid = cg::this_grid();
  for (int step = 1; step < count; step *= 2) {
    for (int i = grid.thread_rank(); i < count; i += grid.size())
      if (i % (2 * step) == 0 && i + step < count) data[i] += data[i + step];
    grid.sync();
  }
}

__global__ void staged_copies(const int* in, int* out) {
  __shared__ int stage[2][kThreads];
  const cg::thread_block block = cg::this_thread_block();
  int sum = 0;
  cg::memcpy_async(block, stage[0], in, sizeof stage[0]);
  for (int i = 0; i < kItems; ++i) {
    if (i + 1 < kItems) {
      cg::memcpy_async(block, stage[(i + 1) % 2], in + (i + 1) * kThreads, sizeof stage[0]);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    sum += stage[i % 2][kThreads - 1 - block.thread_rank()];
    block.sync();
  }
  out[block.thread_rank()] = sum;
}

template <class Call>
void with_storage(Call call) {
  size_t bytes = 0;
  call(nullptr, bytes);
  void* storage = nullptr;
  cudaMalloc(&storage, bytes + 1);
  call(storage, bytes);
  cudaFree(storage);
}

Words tile_scan(const Words& in) {
  Words out(in.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] + (i % kTile != 0 ? out[i - 1] : 0);
  return out;
}

template <cub::BlockScanAlgorithm kAlgorithm, cub::BlockLoadAlgorithm kLoad, cub::BlockStoreAlgorithm kStore>
void check_scan(const char* what, const Words& in) {
  const OnDevice from(in), to(in.size());
  block_scan<kAlgorithm, kLoad, kStore><<<in.size() / kTile, kThreads>>>(from.words, to.words);
  expect(what, to.host(in.size()), tile_scan(in));
}

void check_blocks() {
  const Words in = noise(3 * kTile, 1000);
  const OnDevice from(in), sums(3), radix(in.size()), merge(in.size()), bins(Words(256));
  Words wanted(3), sorted = in, counts(256);
  for (size_t i = 0; i < in.size(); ++i) wanted[i / kTile] += in[i], ++counts[in[i] & 255];
  for (int tile = 0; tile < 3; ++tile) std::sort(sorted.begin() + tile * kTile, sorted.begin() + (tile + 1) * kTile);
  block_reduce<cub::BLOCK_REDUCE_RAKING><<<3, kThreads>>>(from.words, sums.words);
  expect("block reduce, raking", sums.host(3), wanted);
  block_reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<3, kThreads>>>(from.words, sums.words);
  expect("block reduce, commutative", sums.host(3), wanted);
  block_reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<3, kThreads>>>(from.words, sums.words);
  expect("block reduce, by warps", sums.host(3), wanted);
  check_scan<cub::BLOCK_SCAN_RAKING, cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>("block scan, raking", in);
  check_scan<cub::BLOCK_SCAN_RAKING_MEMOIZE, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>("block scan, memoised", in);
  check_scan<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>("block scan, by warps", in);
  block_sorts<<<3, kThreads>>>(from.words, radix.words, merge.words, bins.words);
  expect("block radix sort", radix.host(in.size()), sorted);
  expect("block merge sort", merge.host(in.size()), sorted);
  expect("block histogram", bins.host(256), counts);

  const OnDevice warp_sums(in.size() / 32), scans(in.size());
  Words by_warp(in.size() / 32), before(in.size());
  for (size_t i = 0; i < in.size(); ++i) by_warp[i / 32] += in[i], before[i] = i % 16 != 0 ? before[i - 1] + in[i - 1] : 0;
  warp_collectives<<<in.size() / kThreads, kThreads>>>(from.words, warp_sums.words, scans.words);
  expect("warp reduce", warp_sums.host(by_warp.size()), by_warp);
  expect("warp scan", scans.host(in.size()), before);
}

void check_groups() {
  const Words in = noise(4 * kThreads, 1000);
  const OnDevice from(in), sums(in.size() / 8), counts(Words(5)), prefix(in.size()), staged(kThreads);
  Words by_tile(in.size() / 8), counted(5), scanned(in.size()), copied(kThreads);
  for (size_t i = 0; i < in.size(); ++i) {
    by_tile[i / 8] += in[i], counted[0] += in[i] % 3 == 0, ++counted[1 + in[i] % 4];
    scanned[i] = in[i] + (i % 32 != 0 ? scanned[i - 1] : 0);
    copied[i % kThreads] += in[i / kThreads * kThreads + kThreads - 1 - i % kThreads];
  }
  groups<<<4, kThreads>>>(from.words, sums.words, counts.words, prefix.words);
  expect("tiles", sums.host(by_tile.size()), by_tile);
  expect("coalesced and labelled groups", counts.host(5), counted);
  expect("scan of a group", prefix.host(in.size()), scanned);
  staged_copies<<<1, kThreads>>>(from.words, staged.words);
  expect("asynchronous copies", staged.host(kThreads), copied);
  const OnDevice tree(in);
  int count = static_cast<int>(in.size());
  int* data = tree.words;
  void* arguments[] = {&data, &count};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&grid_barriers), dim3(3), dim3(kThreads), arguments, 0, nullptr);
  expect("barriers of a grid", tree.host(1), {std::accumulate(in.begin(), in.end(), 0)});
}

void check_device() {
  const Words in = noise(kCount, 100000);
  const OnDevice from(in), to(kCount), to_count(1);
  Words sorted = in, scanned = in, even;
  std::sort(sorted.begin(), sorted.end());
  std::partial_sum(in.begin(), in.end(), scanned.begin());
  std::copy_if(in.begin(), in.end(), std::back_inserter(even), [](int word) { return word % 2 == 0; });
  with_storage([&](void* s, size_t& b) { cub::DeviceReduce::Sum(s, b, from.words, to.words, kCount); });
  expect("device reduce", to.host(1), {scanned.back()});
  with_storage([&](void* s, size_t& b) { cub::DeviceScan::InclusiveSum(s, b, from.words, to.words, kCount); });
  expect("device scan", to.host(kCount), scanned);
  with_storage([&](void* s, size_t& b) { cub::DeviceRadixSort::SortKeys(s, b, from.words, to.words, kCount); });
  expect("device radix sort", to.host(kCount), sorted);
  with_storage([&](void* s, size_t& b) {
    cub::DeviceSelect::If(s, b, from.words, to.words, to_count.words, kCount, [] __device__(int word) { return word % 2 == 0; });
  });
  expect("device select", to.host(even.size()), even);
}

}  // namespace

int main() {
  check_blocks();
  check_groups();
  check_device();
  return failures != 0;
}
