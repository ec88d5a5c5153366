// A file as a batch of items in device memory, with the CUDA runtime: compressed and decompressed on the legacy default
// stream, on the per-thread default stream, on a stream of its own, and as a CUDA graph that is launched on new data.
//   nvcc -std=c++17 -o batch batch.cu $(pkg-config --cflags --libs ptxkit)
//   ./batch FILE ITEM_BYTES [REPEATS [FRAMING]]      FRAMING: a number of ptxkit_framing
#include <cuda_runtime.h>
#include <ptxkit.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(1);
}
void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(what, cudaGetErrorString(error));
}
void check(ptxkit_status status, const char* what) {
  if (status != PTXKIT_OK) fail(what, ptxkit_last_error());
}

template <class T>
T* device_array(size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T) + 16), "cudaMalloc");
  return static_cast<T*>(memory);
}
template <class T>
T* to_device(const std::vector<T>& values) {
  T* const memory = device_array<T>(values.size());
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return memory;
}
template <class T>
std::vector<T> to_host(const T* memory, size_t count) {
  std::vector<T> values(count);
  check(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return values;
}

// A batch whose items lie one after the other in `raw`.
struct Batch {
  size_t count, item_bytes, raw_bytes;
  char *raw, *back;
  const void** inputs;
  void** rooms;
  void** backs;
  size_t *input_bytes, *room_bytes, *back_bytes;
  void *temp, *back_temp;
  size_t temp_bytes, back_temp_bytes;
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  ptxkit_status *there, *here;

  Batch(size_t raw_bytes, size_t item_bytes, ptxkit_framing framing) : item_bytes(item_bytes), raw_bytes(raw_bytes) {
    options.framing = framing;
    count = (raw_bytes + item_bytes - 1) / item_bytes;
    ptxkit_device_requirements needed = {};
    needed.struct_bytes = sizeof needed;
    check(ptxkit_device_query(&options, item_bytes, count, &needed), "ptxkit_device_query");
    const size_t room = (needed.output_bytes + 15) / 16 * 16;
    raw = device_array<char>(raw_bytes);
    back = device_array<char>(raw_bytes);
    char* const packed = device_array<char>(count * room);
    temp_bytes = needed.temp_bytes;
    temp = device_array<char>(temp_bytes);
    back_temp_bytes = needed.decompress_temp_bytes;
    back_temp = device_array<char>(back_temp_bytes);
    std::vector<const void*> from;
    std::vector<void*> packed_items, back_items;
    std::vector<size_t> sizes;
    for (size_t i = 0; i < count; ++i) {
      from.push_back(raw + i * item_bytes);
      packed_items.push_back(packed + i * room);
      back_items.push_back(back + i * item_bytes);
      sizes.push_back(i + 1 < count ? item_bytes : raw_bytes - i * item_bytes);
    }
    inputs = to_device(from);
    rooms = to_device(packed_items);
    backs = to_device(back_items);
    input_bytes = to_device(sizes);
    room_bytes = device_array<size_t>(count);
    back_bytes = device_array<size_t>(count);
    there = device_array<ptxkit_status>(count);
    here = device_array<ptxkit_status>(count);
  }

  void compress(ptxkit_device* device, cudaStream_t stream) {
    check(ptxkit_device_compress(device, inputs, input_bytes, item_bytes, count, temp, temp_bytes, rooms, room_bytes,
                                 &options, there, stream),
          "ptxkit_device_compress");
  }
  void decompress(ptxkit_device* device, cudaStream_t stream) {
    check(ptxkit_device_decompress(device, rooms, room_bytes, input_bytes, back_bytes, count, back_temp,
                                   back_temp_bytes, backs, &options, here, stream),
          "ptxkit_device_decompress");
  }
  void clear() { check(cudaMemset(back, 0xa5, raw_bytes), "cudaMemset"); }

  // Compares what came back, and returns the stored bytes.
  size_t expect(const std::vector<char>& content, const char* where) const {
    for (const ptxkit_status* statuses : {there, here}) {
      const std::vector<ptxkit_status> all = to_host(statuses, count);
      for (size_t i = 0; i < count; ++i)
        if (all[i] != PTXKIT_OK) fail(where, ptxkit_status_name(all[i]));
    }
    if (to_host(back, raw_bytes) != content) fail(where, "the bytes differ");
    size_t stored = 0;
    for (const size_t size : to_host(room_bytes, count)) stored += size;
    return stored;
  }
};

// Seconds that `work` takes on a stream, the least of `repeats` times.
template <class Work>
double seconds(int repeats, cudaStream_t stream, Work work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  float least = 1e30f;
  for (int i = 0; i < repeats; ++i) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    work();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (milliseconds < least) least = milliseconds;
  }
  return least / 1e3;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) fail("usage", "batch FILE ITEM_BYTES [REPEATS [FRAMING]]");
  std::ifstream file(arguments[1], std::ios::binary);
  if (!file) fail(arguments[1], "cannot be read");
  const std::vector<char> once((std::istreambuf_iterator<char>(file)), {});
  std::vector<char> content;
  for (int i = 0; i < (count > 3 ? std::atoi(arguments[3]) : 1); ++i)
    content.insert(content.end(), once.begin(), once.end());
  if (content.empty()) fail(arguments[1], "is empty");

  ptxkit_device* device = nullptr;
  check(ptxkit_device_create(0, nullptr, &device), "ptxkit_device_create");
  Batch batch(content.size(), std::strtoull(arguments[2], nullptr, 0),
              count > 4 ? static_cast<ptxkit_framing>(std::atoi(arguments[4])) : ptxkit_framing{PTXKIT_FRAMING_RAW});
  const auto load = [&] {
    check(cudaMemcpy(batch.raw, content.data(), content.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  };

  load();
  cudaStream_t own;
  check(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  size_t stored = 0;
  const struct {
    const char* name;
    cudaStream_t stream;
  } streams[] = {{"null", nullptr}, {"legacy", cudaStreamLegacy}, {"per thread", cudaStreamPerThread}, {"own", own}};
  for (const auto& [name, stream] : streams) {
    batch.clear();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    batch.compress(device, stream);
    batch.decompress(device, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    stored = batch.expect(content, name);
  }

  cudaGraph_t graph;
  cudaGraphExec_t ready;
  check(cudaStreamBeginCapture(own, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  batch.compress(device, own);
  batch.decompress(device, own);
  check(cudaStreamEndCapture(own, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  for (char& byte : content) byte = static_cast<char>(byte + 1);  // other bytes: sizes stay on the device
  load();
  batch.clear();
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaGraphLaunch(ready, own), "cudaGraphLaunch");
  check(cudaStreamSynchronize(own), "cudaStreamSynchronize");
  batch.expect(content, "graph");

  const double there = seconds(10, own, [&] { batch.compress(device, own); });
  const double here = seconds(10, own, [&] { batch.decompress(device, own); });
  const double bytes = static_cast<double>(content.size());
  std::printf("%zu items of %zu bytes, ratio %.3f: compress %.1f GB/s, decompress %.1f GB/s\n", batch.count,
              batch.item_bytes, bytes / static_cast<double>(stored), bytes / there / 1e9, bytes / here / 1e9);
  ptxkit_device_destroy(device);
  return 0;
}
