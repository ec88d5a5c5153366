// A libcuda.so.1 without a GPU. "Device" memory is host memory. Work on a stream runs only when a caller waits for it,
// so that code that reads results too early sees poison. The scalar references of the LZ4 kernels run in place of the
// kernels, so that whole programs can be tested with it.
//
// Programs are controlled by the environment: PTXKIT_FAKE_CUDA="FUNCTION:CALL:CODE" injects one failure,
// PTXKIT_FAKE_CUDA_VERSION sets the driver's version, PTXKIT_FAKE_CUDA_DEVICES the number of devices, and
// PTXKIT_FAKE_CUDA_DAMAGE makes the compressors write wrong bytes.
#include "fkr_tests/cases/cuda/fake_cuda.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/pages/copy_items_reference.hpp"
#include "kernels/pages/zero_page_reference.hpp"
#include "runtime/driver/driver.hpp"

namespace kernels = ptxkit::kernels;

namespace {

std::recursive_mutex lock_of_everything;
std::map<uintptr_t, size_t> device_memory, pinned_memory;
std::map<uintptr_t, int> device_of;  // by address of device memory
constexpr int kAllDevices = -1;
std::map<int, int> sticky_codes;  // by device
char contexts[64];                // one for each device
thread_local int current_device = kAllDevices;

void die(int device, int code) { sticky_codes[device] = code; }
int sticky_code() {
  const int of_all = sticky_codes[kAllDevices];
  return of_all != 0 ? of_all : sticky_codes[current_device];
}

// A captured graph: the kernel and the work of each launch.
struct Graph {
  std::vector<std::pair<std::string, std::function<int()>>> launches;
  bool is_void = false;  // a call that cannot be captured was made during the capture
};

struct Stream {
  std::deque<std::function<int()>> work;
  std::optional<Graph> capture;  // during a capture, takes the launches; every other call is an error
  size_t done = 0;
  void* context = nullptr;
  size_t put() const { return done + work.size(); }
  // Runs all work, or the work that was put on the stream before `until`.
  int run(size_t until = ~size_t{0}) {
    while (!work.empty() && done < until) {
      const auto step = std::move(work.front());
      work.pop_front();
      ++done;
      if (const int code = step(); code != 0) return die(current_device, code), code;
    }
    return 0;
  }
};
// An event: the work that its stream had when it was recorded.
struct Event {
  Stream* stream = nullptr;
  size_t until = 0;
  int run() const { return stream == nullptr ? 0 : stream->run(until); }
};
// The stream of a handle. Null and 1 are the legacy default stream, 2 is that of the thread; here all threads share it.
Stream* stream_of(void* handle) {
  static Stream legacy, of_thread;
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return number < 2 ? &legacy : number == 2 ? &of_thread : static_cast<Stream*>(handle);
}

struct Module {
  std::string text;
};
struct Function {
  std::string name;
};

void tell(std::function<void(int)> ptxkit::testing::FakeCuda::* hook) {
  std::unique_lock lock(lock_of_everything);
  const std::function<void(int)> told = fake_cuda_state()->*hook;
  lock.unlock();
  if (told) told(current_device);
}

// Counts the call and returns the code with which it must fail.
int enter(const char* name) {
  auto& state = *fake_cuda_state();
  if (state.delay_microseconds != 0) std::this_thread::sleep_for(std::chrono::microseconds(state.delay_microseconds));
  const int call_of_all = ++state.calls[name], call_of_device = ++state.calls_of[current_device][name];
  const bool is_of_all = state.failing_device == kAllDevices;
  if (state.failing_function == name && (is_of_all || state.failing_device == current_device) &&
      state.failing_call == (is_of_all ? call_of_all : call_of_device)) {
    if ((state.failing_code >= 700 && state.failing_code < 720 && state.failing_code != 701) ||
        state.failing_code == 999) {
      die(state.failing_device, state.failing_code);
    }
    return state.failing_code;
  }
  return sticky_code();
}

bool inside(const std::map<uintptr_t, size_t>& memory, uintptr_t begin, size_t size) {
  auto next = memory.upper_bound(begin);
  return next != memory.begin() && (--next, begin + size <= next->first + next->second);
}

template <class T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}
template <class T>
T* pointer(void** arguments, int index) {
  return reinterpret_cast<T*>(argument<uint64_t>(arguments, index));
}

[[maybe_unused]] std::function<int()> compression(void** a, const kernels::Lz4CompressVariant& variant) {
  return [&variant, src = pointer<uint8_t>(a, 0), src_sizes = pointer<uint32_t>(a, 1), dst = pointer<uint8_t>(a, 2),
          dst_sizes = pointer<uint32_t>(a, 3), flags = pointer<uint8_t>(a, 4),
          src_stride = size_t{16} * argument<uint32_t>(a, 5), dst_stride = size_t{16} * argument<uint32_t>(a, 6),
          count = argument<uint32_t>(a, 7), damages = std::getenv("PTXKIT_FAKE_CUDA_DAMAGE") != nullptr] {
    if (!inside(device_memory, reinterpret_cast<uintptr_t>(src), count * src_stride)) return 700;
    for (uint32_t i = 0; i < count; ++i) {
      const auto item = kernels::lz4_compress_reference({src + i * src_stride, src_sizes[i]},
                                                        {dst + i * dst_stride, src_sizes[i]}, variant);
      dst_sizes[i] = item.size_bytes;
      flags[i] = static_cast<uint8_t>(item.flag);
      // Changes a literal of the first block; the block stays valid.
      if (damages && i == 0 && item.size_bytes > 8) dst[2] ^= 1;
    }
    return 0;
  };
}

[[maybe_unused]] std::function<int()> decompression(void** a) {
  return [src = pointer<uint8_t>(a, 0), src_offsets = pointer<uint64_t>(a, 1), src_sizes = pointer<uint32_t>(a, 2),
          dst = pointer<uint8_t>(a, 3), dst_offsets = pointer<uint64_t>(a, 4), capacities = pointer<uint32_t>(a, 5),
          dst_sizes = pointer<uint32_t>(a, 6), statuses = pointer<uint32_t>(a, 7), count = argument<uint32_t>(a, 8)] {
    for (uint32_t i = 0; i < count; ++i) {
      const auto item = kernels::lz4_decompress_reference({src + src_offsets[i], src_sizes[i]},
                                                          {dst + dst_offsets[i], capacities[i]});
      dst_sizes[i] = item.size_bytes;
      statuses[i] = static_cast<uint32_t>(item.status);
    }
    return 0;
  };
}

[[maybe_unused]] std::function<int()> zero_pages(void** a) {
  return [src = pointer<uint8_t>(a, 0), sizes = pointer<uint32_t>(a, 1), flags = pointer<uint8_t>(a, 2),
          stride = size_t{16} * argument<uint32_t>(a, 3), count = argument<uint32_t>(a, 4)] {
    for (uint32_t i = 0; i < count; ++i) {
      flags[i] = static_cast<uint8_t>(kernels::zero_page_reference({src + i * stride, sizes[i]}));
    }
    return 0;
  };
}

[[maybe_unused]] std::function<int()> copied_items(void** a) {
  return [src = pointer<uint8_t>(a, 0), offsets = pointer<uint64_t>(a, 1), sizes = pointer<uint32_t>(a, 2),
          dst = pointer<uint8_t>(a, 3), count = argument<uint32_t>(a, 4)] {
    kernels::copy_items_reference(src, {offsets, count}, {sizes, count}, dst);
    return 0;
  };
}

}  // namespace

#define ENTER()                              \
  std::lock_guard guard(lock_of_everything); \
  if (const int code = enter(__func__); code != 0) return code
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
#define NOT_WHILE_CAPTURING(stream) \
  if (stream_of(stream)->capture) return 900

extern "C" {

ptxkit::testing::FakeCuda* fake_cuda_state() {
  static ptxkit::testing::FakeCuda state;
  return &state;
}

int cuInit(unsigned) {
  std::lock_guard guard(lock_of_everything);
  sticky_codes.clear();
  auto& state = *fake_cuda_state();
  if (const char* version = std::getenv("PTXKIT_FAKE_CUDA_VERSION")) state.driver_version = std::atoi(version);
  if (const char* devices = std::getenv("PTXKIT_FAKE_CUDA_DEVICES")) state.device_count = std::atoi(devices);
  if (const char* failure = std::getenv("PTXKIT_FAKE_CUDA")) {
    char name[64];
    if (std::sscanf(failure, "%63[^:]:%d:%d", name, &state.failing_call, &state.failing_code) == 3)
      state.failing_function = name;
  }
  return enter("cuInit");
}
int cuDriverGetVersion(int* version) {
  ENTER();
  *version = fake_cuda_state()->driver_version;
  return 0;
}
int cuDeviceGetCount(int* count) {
  ENTER();
  *count = fake_cuda_state()->device_count;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int) {
  ENTER();
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER();
  *value = attribute == 75 ? fake_cuda_state()->major : attribute == 76 ? fake_cuda_state()->minor : 4;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER();
  *bytes = size_t{1} << 30;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  ++fake_cuda_state()->contexts;
  *context = &contexts[device];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  std::lock_guard guard(lock_of_everything);
  --fake_cuda_state()->contexts;
  return enter(__func__);
}
int cuCtxSetCurrent(void* context) {
  std::lock_guard guard(lock_of_everything);
  ++fake_cuda_state()->calls[__func__];
  const auto device = static_cast<const char*>(context) - contexts;
  if (device < 0 || device >= static_cast<ptrdiff_t>(sizeof contexts)) return 201;
  current_device = static_cast<int>(device);
  return 0;
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned option_count, int* options, void** values) {
  ENTER();
  const std::string text = static_cast<const char*>(image);
  if (text.find("syntax error") != std::string::npos) {
    for (unsigned i = 0; i < option_count; ++i) {
      if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), "ptxas: line 3: syntax error");
    }
    return 218;
  }
  ++fake_cuda_state()->modules;
  *module = new Module{text};
  return 0;
}
int cuModuleUnload(void* module) {
  std::lock_guard guard(lock_of_everything);
  --fake_cuda_state()->modules;
  delete static_cast<Module*>(module);
  return enter(__func__);
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  if (static_cast<Module*>(module)->text.find(name) == std::string::npos) return 500;
  static std::map<std::string, Function> functions;
  *function = &functions.try_emplace(name, Function{name}).first->second;
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void*) {
  ENTER();
  *value = 10 * (attribute + 1);
  return 0;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  ENTER();
  if (bytes == 0) return 1;
  auto& state = *fake_cuda_state();
  long& device_bytes = state.device_bytes_of[current_device];
  const auto limit = state.memory_limits.find(current_device);
  if (limit != state.memory_limits.end() && device_bytes + static_cast<long>(bytes) > limit->second) return 2;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return 2;
  device_bytes += static_cast<long>(bytes);
  std::memset(memory, 0xdd, bytes);
  *pointer = reinterpret_cast<uintptr_t>(memory);
  device_memory[*pointer] = bytes;
  device_of[*pointer] = current_device;
  state.device_bytes += static_cast<long>(bytes);
  state.peak_device_bytes = std::max(state.peak_device_bytes, state.device_bytes);
  return 0;
}
int cuMemFree_v2(uint64_t pointer) {
  std::lock_guard guard(lock_of_everything);
  fake_cuda_state()->freeing_threads.insert(std::this_thread::get_id());
  const auto found = device_memory.find(pointer);
  if (found == device_memory.end()) return 1;
  fake_cuda_state()->device_bytes -= static_cast<long>(found->second);
  fake_cuda_state()->device_bytes_of[device_of[pointer]] -= static_cast<long>(found->second);
  device_memory.erase(found);
  std::free(reinterpret_cast<void*>(pointer));
  return enter(__func__);
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  ENTER();
  *free_bytes = fake_cuda_state()->free_bytes;
  *total_bytes = size_t{1} << 30;
  return 0;
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  ENTER();
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*pointer == nullptr) return 2;
  // Poisons only the beginning, which is enough to be noticed and much faster for a large batch.
  std::memset(*pointer, 0xee, std::min(bytes, size_t{1} << 20));
  pinned_memory[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  fake_cuda_state()->pinned_bytes += static_cast<long>(bytes);
  return 0;
}
int cuMemFreeHost(void* pointer) {
  std::lock_guard guard(lock_of_everything);
  fake_cuda_state()->freeing_threads.insert(std::this_thread::get_id());
  const auto found = pinned_memory.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == pinned_memory.end()) return 1;
  fake_cuda_state()->pinned_bytes -= static_cast<long>(found->second);
  pinned_memory.erase(found);
  std::free(pointer);
  return enter(__func__);
}
int cuMemHostGetDevicePointer_v2(uint64_t* pointer, void* host, unsigned) {
  ENTER();
  *pointer = reinterpret_cast<uintptr_t>(host);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  if (!inside(device_memory, to, bytes)) return 1;
  fake_cuda_state()->uploaded_bytes += bytes;
  fake_cuda_state()->streams_of[__func__].insert(stream);
  stream_of(stream)->work.push_back([=] { return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0; });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  if (!inside(device_memory, from, bytes)) return 1;
  fake_cuda_state()->downloaded_bytes += bytes;
  fake_cuda_state()->streams_of[__func__].insert(stream);
  stream_of(stream)->work.push_back([=] { return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0; });
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  ENTER();
  if (!inside(device_memory, from, bytes) || !inside(device_memory, to, bytes)) return 1;
  stream_of(stream)->work.push_back(
      [=] { return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes), 0; });
  return 0;
}
int cuMemcpy2DAsync_v2(const ptxkit::driver::CuCopy2d* copy, void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  const auto [from, to, width, height] = *copy;
  constexpr int kHost = 1, kDevice = 2;
  const bool goes_up = from.memory_type == kHost;
  if (from.memory_type != (goes_up ? kHost : kDevice) || to.memory_type != (goes_up ? kDevice : kHost)) return 1;
  if (from.pitch_bytes < width || to.pitch_bytes < width) return 1;
  const auto& device = goes_up ? to : from;
  if (!inside(device_memory, device.device, (height - 1) * device.pitch_bytes + width)) return 1;
  (goes_up ? fake_cuda_state()->uploaded_bytes : fake_cuda_state()->downloaded_bytes) += width * height;
  fake_cuda_state()->streams_of[goes_up ? "cuMemcpy2DAsync_v2, up" : "cuMemcpy2DAsync_v2, down"].insert(stream);
  stream_of(stream)->work.push_back([=] {
    const auto begin_of = [](const auto& side) {
      return side.memory_type == kHost ? static_cast<char*>(side.host) : reinterpret_cast<char*>(side.device);
    };
    for (size_t row = 0; row < height; ++row) {
      std::memcpy(begin_of(to) + row * to.pitch_bytes, begin_of(from) + row * from.pitch_bytes, width);
    }
    return 0;
  });
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  if (!inside(device_memory, to, bytes)) return 1;
  stream_of(stream)->work.push_back([=] { return std::memset(reinterpret_cast<void*>(to), value, bytes), 0; });
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  ENTER();
  if (flags != 1) return 1;  // a stream that synchronises with the default stream is an error here
  ++fake_cuda_state()->streams;
  auto* const made = new Stream;
  made->context = &contexts[std::max(current_device, 0)];
  *stream = made;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  std::lock_guard guard(lock_of_everything);
  --fake_cuda_state()->streams;
  delete static_cast<Stream*>(stream);
  return enter(__func__);
}
int cuStreamSynchronize(void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  return stream_of(stream)->run();
}
int cuStreamGetCtx(void* stream, void** context) {
  ENTER();
  *context = stream_of(stream)->context;
  return 0;
}
int cuStreamQuery(void* stream) {
  ENTER();
  return stream_of(stream)->run();
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  stream_of(stream)->work.push_back([point = *static_cast<Event*>(event)] { return point.run(); });
  return 0;
}
int cuFuncSetAttribute(void*, int, int) {
  ENTER();
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  ENTER();
  ++fake_cuda_state()->events;
  *event = new Event;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  std::lock_guard guard(lock_of_everything);
  --fake_cuda_state()->events;
  delete static_cast<Event*>(event);
  return enter(__func__);
}
int cuEventRecord(void* event, void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  *static_cast<Event*>(event) = {stream_of(stream), stream_of(stream)->put()};
  return 0;
}
int cuEventSynchronize(void* event) {
  tell(&ptxkit::testing::FakeCuda::before_waiting);
  ENTER();
  return static_cast<Event*>(event)->run();
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  ENTER();
  *milliseconds = 2.5f;
  return 0;
}
#ifndef FAKE_CUDA_WITHOUT_LAUNCH
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                   void** arguments, void**) {
  tell(&ptxkit::testing::FakeCuda::before_launch);
  ENTER();
  const std::string& name = static_cast<Function*>(function)->name;
  fake_cuda_state()->streams_of[__func__].insert(stream);
  std::function<int()> work = [] { return 0; };
  if (name == kernels::kLz4CompressPage) work = compression(arguments, kernels::kPageVariant);
  if (name == kernels::kLz4CompressChunk) work = compression(arguments, kernels::kChunkVariant);
  if (name == kernels::kLz4CompressHigh) work = compression(arguments, kernels::kHighVariant);
  if (name == kernels::kZeroPage) work = zero_pages(arguments);
  if (name == kernels::kCopyItems) work = copied_items(arguments);
  if (name == kernels::kLz4Decompress) work = decompression(arguments);
  auto& to = *stream_of(stream);
  if (to.capture) {
    to.capture->launches.emplace_back(name, std::move(work));
  } else {
    to.work.push_back(std::move(work));
  }
  return 0;
}
// The stream that this thread captures: graphs must not be destroyed during the capture.
static thread_local Stream* capturing_here = nullptr;
int cuStreamBeginCapture_v2(void* stream, int mode) {
  ENTER();
  // A global capture would forbid allocations on other threads.
  if (mode != 1 || stream_of(stream)->capture) return 1;
  capturing_here = stream_of(stream);
  capturing_here->capture.emplace();
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  std::lock_guard guard(lock_of_everything);
  auto& capture = stream_of(stream)->capture;
  if (!capture) return 1;
  capturing_here = nullptr;
  const Graph captured = *std::exchange(capture, std::nullopt);
  if (const int code = enter(__func__); code != 0) return code;
  if (captured.is_void) return 901;
  ++fake_cuda_state()->graphs;
  *graph = new Graph(captured);
  return 0;
}
int cuGraphInstantiateWithFlags(void** made, void* graph, unsigned long long) {
  ENTER();
  ++fake_cuda_state()->graphs;
  *made = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
int cuGraphExecUpdate(void* made, void* graph, void**, int*) {
  ENTER();
  auto &launches = static_cast<Graph*>(made)->launches, &wanted = static_cast<Graph*>(graph)->launches;
  const auto same_kernel = [](const auto& one, const auto& other) { return one.first == other.first; };
  if (!std::equal(launches.begin(), launches.end(), wanted.begin(), wanted.end(), same_kernel)) return 910;
  launches = wanted;
  return 0;
}
int cuGraphLaunch(void* made, void* stream) {
  ENTER();
  NOT_WHILE_CAPTURING(stream);
  for (const auto& [name, work] : static_cast<Graph*>(made)->launches) {
    stream_of(stream)->work.push_back(work);
  }
  return 0;
}
int cuGraphDestroy(void* graph) {
  std::lock_guard guard(lock_of_everything);
  --fake_cuda_state()->graphs;
  delete static_cast<Graph*>(graph);
  return enter(__func__);
}
int cuGraphExecDestroy(void* made) {
  std::lock_guard guard(lock_of_everything);
  if (Stream* here = capturing_here) return here->capture->is_void = true, 900;
  --fake_cuda_state()->graphs;
  delete static_cast<Graph*>(made);
  return enter(__func__);
}
int cuLaunchKernelEx(const ptxkit::driver::CuLaunchConfig* config, void*, void**, void**) {
  ENTER();
  const auto& attribute = *config->attributes;
  const bool is_cluster_of_two = config->attribute_count == 1 && attribute.id == 4 && attribute.value[0] == 2;
  return is_cluster_of_two && config->grid[2] == 4 && config->block[0] == 5 ? 0 : 1;
}
#endif

}  // extern "C"
