// What a caller can do wrong with batches in device memory: each call is answered with a status, each bad item has one
// of its own, and the good items around it are right.
//   nvcc -std=c++17 -o hostile hostile.cu $(pkg-config --cflags --libs ptxkit) && ./hostile
#include <cuda_runtime.h>
#include <ptxkit.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int failures = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s (%s)\n", what, ptxkit_last_error());
  ++failures;
}
void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
template <class T>
T* to_device(const std::vector<T>& values) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return static_cast<T*>(memory);
}
template <class T>
std::vector<T> to_host(const T* memory, size_t count) {
  std::vector<T> values(count);
  check(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return values;
}

}  // namespace

int main() {
  ptxkit_device* device = nullptr;
  expect(ptxkit_device_create(9999, nullptr, &device) == PTXKIT_NO_DEVICE && device == nullptr, "no device 9999");
  expect(ptxkit_device_create(-1, nullptr, &device) == PTXKIT_NO_DEVICE, "no device -1");
  expect(ptxkit_device_create(0, "/nonexistent/libcuda.so", &device) == PTXKIT_NO_DEVICE, "no such driver");
  if (ptxkit_device_create(0, nullptr, &device) != PTXKIT_OK) return std::puts(ptxkit_last_error()), 1;

  enum { kItem = 4096, kCount = 6 };
  ptxkit_device_requirements needed = {};
  needed.struct_bytes = sizeof needed;
  expect(ptxkit_device_query(nullptr, kItem, kCount, &needed) == PTXKIT_OK, "query");
  expect(ptxkit_device_query(nullptr, size_t{1} << 40, kCount, &needed) == PTXKIT_ITEM_TOO_LARGE, "items too large");
  needed.struct_bytes = 3;
  expect(ptxkit_device_query(nullptr, kItem, kCount, &needed) == PTXKIT_INVALID_VALUE, "another struct");

  std::vector<char> content(kItem * kCount + 16);
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i / 7 * (i / 900));
  char* const raw = to_device(content);
  constexpr size_t kRoom = 8192;
  char* const packed = to_device(std::vector<char>(kCount * kRoom));
  char* const back = to_device(std::vector<char>(kCount * kItem, 0x55));
  // 0 good, 1 null, 2 misaligned, 3 larger than promised, 4 empty, 5 good
  std::vector<const void*> inputs;
  std::vector<void*> rooms, backs;
  for (int i = 0; i < kCount; ++i) {
    inputs.push_back(i == 1 ? nullptr : raw + i * kItem + (i == 2));
    rooms.push_back(packed + i * kRoom);
    backs.push_back(back + i * kItem);
  }
  const std::vector<size_t> input_bytes = {kItem, kItem, kItem - 16, kItem + 1, 0, kItem};
  const auto inputs_there = to_device(inputs);
  const auto rooms_there = to_device(rooms), backs_there = to_device(backs);
  const auto sizes_there = to_device(input_bytes);
  const auto packed_bytes = to_device(std::vector<size_t>(kCount, 1));
  const auto statuses = to_device(std::vector<ptxkit_status>(kCount, -1));
  const auto compress = [&](size_t count, size_t* output_bytes, const ptxkit_batch_options* options, void* stream) {
    return ptxkit_device_compress(device, inputs_there, sizes_there, kItem, count, nullptr, 0, rooms_there, output_bytes,
                                  options, statuses, stream);
  };
  expect(compress(kCount, nullptr, nullptr, nullptr) == PTXKIT_INVALID_VALUE, "sizes have no room");
  expect(compress(0, nullptr, nullptr, nullptr) == PTXKIT_OK, "a batch without items needs nothing");
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options.framing = 77;
  expect(compress(kCount, packed_bytes, &options, nullptr) == PTXKIT_INVALID_VALUE, "no framing 77");
  options.framing = PTXKIT_FRAMING_STORED;
  expect(compress(kCount, packed_bytes, &options, nullptr) == PTXKIT_UNSUPPORTED, "framing stored");
  expect(compress(kCount, packed_bytes, nullptr, nullptr) == PTXKIT_OK, "compress");
  check(cudaDeviceSynchronize(), "compress");
  const std::vector<ptxkit_status> there = {PTXKIT_OK, PTXKIT_INVALID_VALUE, PTXKIT_MISALIGNED, PTXKIT_ITEM_TOO_LARGE,
                                            PTXKIT_OK, PTXKIT_OK};
  expect(to_host(statuses, kCount) == there, "statuses of a compression");

  // 0 good, 1 random bytes, 2 null, 3 too small a room, 4 cut, 5 good
  std::vector<size_t> stored = to_host(packed_bytes, kCount);
  const std::vector<char> good = to_host(packed, stored[0]);
  std::vector<char> noise(kRoom);
  for (char& byte : noise) byte = static_cast<char>(std::rand());
  check(cudaMemcpy(packed + kRoom, noise.data(), kRoom, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(packed + 3 * kRoom, good.data(), good.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(packed + 4 * kRoom, good.data(), good.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  stored = {stored[0], kRoom, stored[0], good.size(), good.size() - 3, stored[5]};
  rooms[2] = nullptr;
  const std::vector<size_t> capacities = {kItem, kItem, kItem, kItem - 1, kItem, kItem};
  const auto back_bytes = to_device(std::vector<size_t>(kCount, 1));
  expect(ptxkit_device_decompress(device, to_device(rooms), to_device(stored), to_device(capacities), back_bytes, kCount,
                                  nullptr, 0, backs_there, nullptr, statuses, nullptr) == PTXKIT_OK,
         "decompress");
  check(cudaDeviceSynchronize(), "decompress");
  const std::vector<ptxkit_status> here = to_host(statuses, kCount);
  expect(here[0] == PTXKIT_OK && here[5] == PTXKIT_OK, "good items of a decompression");
  expect(here[1] != PTXKIT_OK && here[2] == PTXKIT_INVALID_VALUE && here[4] != PTXKIT_OK, "bad items");
  expect(here[3] == PTXKIT_OUTPUT_TOO_SMALL, "too small a room");
  expect(to_host(back_bytes, kCount) == std::vector<size_t>{kItem, 0, 0, 0, 0, kItem}, "sizes");
  const std::vector<char> result = to_host(back, kCount * kItem);
  expect(std::memcmp(result.data(), content.data(), kItem) == 0, "item 0");
  expect(std::memcmp(result.data() + 5 * kItem, content.data() + 5 * kItem, kItem) == 0, "item 5");
  expect(result[4 * kItem - 1] == 0x55, "nothing is written past a room");

  ptxkit_device_destroy(device);
  ptxkit_device_destroy(nullptr);
  if (failures == 0) std::puts("every call was answered");
  return failures != 0;
}
