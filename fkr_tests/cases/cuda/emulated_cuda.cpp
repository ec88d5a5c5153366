// A libcuda.so.1 whose GPU is the emulator. It compiles and runs any PTX. A fault that kills a grid on hardware
// invalidates the context with the same code, and mapped host memory stays readable after that. Optimisations of a
// compiler (such as the removal of dead loads) do not happen.
//
// A kernel that has executed kBusySteps counts as still running: from then on cuStreamQuery reports it as busy.
//
// Tests set the number of devices, which share one memory, and inject a failure into a call that the codec makes
// (fake_cuda.hpp: device_count, failing_*, calls, calls_of).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analyzer/container/fatbin.hpp"
#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/tensor_map.hpp"

namespace {

namespace emulator = ptxkit::emulator;

constexpr int kInvalidValue = 1, kNoBinaryForGpu = 209, kInvalidPtx = 218, kNotFound = 500, kNotReady = 600,
              kIllegalAddress = 700, kTimeout = 702, kMisaligned = 716, kLaunchFailed = 719;
constexpr uint64_t kBusySteps = 5'000'000;
constexpr int kUnsupportedLimit = 215, kLimitPrintFifo = 1, kLimitHeap = 2;
constexpr int kErrorLog = 5, kOptimisationLevel = 7;  // CUjit_option

struct NamedVariable {
  const emulator::Program* program;
  std::string name;
};
struct Gpu {
  emulator::Device device;
  int dead_with = 0;  // every later call fails with this code
  bool is_busy = false;
  size_t print_fifo_bytes = 1u << 20, heap_bytes = 8u << 20;     // cuCtxSetLimit
  std::map<void*, std::pair<emulator::Address, size_t>> mapped;  // host memory, and its address for kernels
  std::map<emulator::Address, NamedVariable> constants;          // by the address that the program received
};
// Locks the GPU: one thread at a time may use it, because a driver accepts calls from any thread.
class Locked {
 public:
  Locked(Gpu& gpu, std::recursive_mutex& mutex) : lock_(mutex), gpu_(&gpu) {}
  Gpu* operator->() const { return gpu_; }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  Gpu* gpu_;
};
Locked gpu() {
  static Gpu* const all = new Gpu;  // never destroyed, as in a driver
  static std::recursive_mutex mutex;
  return {*all, mutex};
}

using Event = std::chrono::steady_clock::time_point;  // the time of the record: every call is complete when it returns
char handle;                                          // the target of all stream handles
char contexts[16];                                    // one for each device
constexpr int kAllDevices = -1;
thread_local int current_device = kAllDevices;
std::map<int, int> sticky_codes;  // by device: every later call fails with it

struct Function {
  const emulator::Program* program;
  emulator::EntryInfo entry;
};
// A .texref or .surfref, and how a texture bound to it is read.
struct Reference {
  const emulator::Program* program;
  std::string name;
  ptxkit::driver::CuTextureDescriptor how;
};
struct Module {
  emulator::Program program;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::unique_ptr<Reference>> references;
};

std::span<const std::byte> bytes(const void* from, size_t count) {
  return {static_cast<const std::byte*>(from), count};
}

int code_of(const emulator::Fault& fault) {
  if (!emulator::stops(fault.kind)) return 0;
  switch (fault.kind) {
    case emulator::FaultKind::misaligned:
      return kMisaligned;
    case emulator::FaultKind::out_of_bounds:
    case emulator::FaultKind::null_address:
    case emulator::FaultKind::use_after_free:
      return kIllegalAddress;
    default:
      return kLaunchFailed;
  }
}

void show_mapped() {
  for (const auto& [host, device] : gpu()->mapped) {
    (void)gpu()->device.read(device.first, {static_cast<std::byte*>(host), device.second});
  }
}

// Copies host writes in mapped memory to the addresses that kernels use.
void take_mapped() {
  for (const auto& [host, device] : gpu()->mapped) (void)gpu()->device.write(device.first, bytes(host, device.second));
}

// PTXKIT_EMULATED_BUG="3,add,sub": at level 3 the compiler replaces the first `add` by `sub`.
std::string miscompiled(std::string text, uintptr_t level) {
  const char* const bug = std::getenv("PTXKIT_EMULATED_BUG");
  char from[32] = {}, to[32] = {};
  unsigned at_level = 0;
  if (bug == nullptr || std::sscanf(bug, "%u,%31[^,],%31s", &at_level, from, to) != 3 || at_level != level) return text;
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, std::strlen(from), to);
}

// Common part of the two calls that make a tensor map; the numbers are those of cuda.h.
emulator::TensorMap tensor_map(int element, unsigned rank, const void* address, const uint64_t* size,
                               const uint64_t* stride_bytes, const uint32_t* element_stride, int interleave,
                               int swizzle, int fill) {
  using ptxkit::ptx::Type;
  static constexpr Type kElements[] = {Type::u8,   Type::u16,   Type::u32,       Type::s32,      Type::u64, Type::s64,
                                       Type::f16,  Type::f32,   Type::f64,       Type::bf16,     Type::f32, Type::tf32,
                                       Type::tf32, Type::b4x16, Type::b4x16_p64, Type::b6x16_p32};
  constexpr int kFlushedF32 = 10, kFlushedTf32 = 12, kChunksOf32Bytes = 4, kWithFlip = 5, kChunksOf64Bytes = 6;
  emulator::TensorMap map;
  map.element = element < static_cast<int>(std::size(kElements)) ? kElements[element] : Type::none;
  map.flushes = element == kFlushedF32 || element == kFlushedTf32;
  map.rank = static_cast<uint8_t>(rank);
  map.address = reinterpret_cast<uint64_t>(address);
  std::copy_n(size, rank, map.size.begin());
  for (unsigned i = 1; i < rank; ++i) map.stride_bytes[i - 1] = stride_bytes[i - 1];
  std::copy_n(element_stride, rank, map.element_stride.begin());
  map.swizzle = static_cast<emulator::TensorSwizzle>(std::min(swizzle, 3));
  map.chunk_bytes = swizzle == kChunksOf64Bytes ? 64 : swizzle == kChunksOf32Bytes || swizzle == kWithFlip ? 32 : 16;
  map.swaps_halves = swizzle == kWithFlip;
  map.interleave_bytes = static_cast<uint8_t>(16 * interleave);
  map.fills_with_nan = fill != 0;
  return map;
}

// A CUDA array: texels without gaps in device memory. The numbers are those of cuda.h.
struct Array {
  emulator::Address texels = 0;
  emulator::ImageDescription description;
};

emulator::TexelFormat texel_format(int format) {
  using enum emulator::TexelFormat;
  return format == 0x01   ? u8
         : format == 0x02 ? u16
         : format == 0x03 ? u32
         : format == 0x08 ? s8
         : format == 0x09 ? s16
         : format == 0x0a ? s32
         : format == 0x10 ? f16
                          : f32;
}

emulator::ImageDescription array_description(const ptxkit::driver::CuArrayDescriptor& array) {
  using emulator::ImageShape;
  constexpr unsigned kLayered = 1, kCubes = 4;
  emulator::ImageDescription out;
  const bool layered = (array.flags & kLayered) != 0;
  out.shape = (array.flags & kCubes) != 0 ? layered ? ImageShape::cube_array : ImageShape::cube
              : array.height == 0         ? layered ? ImageShape::one_dim_array : ImageShape::one_dim
              : layered                   ? ImageShape::two_dim_array
              : array.depth != 0          ? ImageShape::three_dim
                                          : ImageShape::two_dim;
  const auto at_least_one = [](size_t size) { return static_cast<uint32_t>(std::max<size_t>(size, 1)); };
  out.width = at_least_one(array.width);
  out.height = at_least_one(array.height);
  (out.shape == ImageShape::three_dim ? out.depth : out.layers) = at_least_one(array.depth);
  out.format = texel_format(array.format);
  out.channels = array.channels;
  return out;
}

int store_map(void* to, const emulator::TensorMap& map) {
  const auto encoded = emulator::encode(map);
  if (!encoded) return kInvalidValue;
  std::memcpy(to, encoded->data(), encoded->size());
  return 0;
}

// Counts the call; returns the code with which it must fail, or 0.
int enter(const char* name) {
  const Locked held = gpu();
  auto& state = *fake_cuda_state();
  const int call_of_all = ++state.calls[name], call_of_device = ++state.calls_of[current_device][name];
  const bool is_of_all = state.failing_device == kAllDevices;
  if (state.failing_function == name && (is_of_all || state.failing_device == current_device) &&
      state.failing_call == (is_of_all ? call_of_all : call_of_device)) {
    if (state.failing_code >= 700) sticky_codes[state.failing_device] = state.failing_code;
    return state.failing_code;
  }
  return sticky_codes[kAllDevices] != 0 ? sticky_codes[kAllDevices] : sticky_codes[current_device];
}

int done(bool worked) { return gpu()->dead_with != 0 ? gpu()->dead_with : worked ? 0 : kInvalidValue; }

}  // namespace

#define ENTER() \
  if (const int code = enter(__func__); code != 0) return code

extern "C" {

ptxkit::testing::FakeCuda* fake_cuda_state() {
  static ptxkit::testing::FakeCuda state;
  return &state;
}

int cuInit(unsigned) {
  sticky_codes.clear();
  return enter(__func__);
}
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) {
  ENTER();
  return *count = fake_cuda_state()->device_count, 0;
}
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "Emulated GPU");
  return 0;
}
// One multiprocessor of 1 GHz and compute capability 9.0; every other attribute is 0.
int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kClockKilohertz = 13, kMultiprocessorCount = 16, kMajor = 75;
  *value = 0;
  if (attribute == kClockKilohertz) *value = 1'000'000;
  if (attribute == kMultiprocessorCount) *value = 1;
  if (attribute == kMajor) *value = 9;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* total, int) { return *total = size_t{1} << 34, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  return *context = &contexts[device], 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void* context) {
  current_device = static_cast<int>(static_cast<char*>(context) - contexts);
  return 0;
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned option_count, int* options, void** values) {
  ENTER();
  if (gpu()->dead_with != 0) return gpu()->dead_with;
  uintptr_t level = 4;
  for (unsigned i = 0; i < option_count; ++i) {
    if (options[i] == kOptimisationLevel) level = reinterpret_cast<uintptr_t>(values[i]);
  }
  auto program =
      emulator::Program::load_text(gpu()->device, miscompiled(static_cast<const char*>(image), level), "module.ptx");
  if (!program) {
    for (unsigned i = 0; i < option_count; ++i) {
      if (options[i] == kErrorLog)
        std::snprintf(static_cast<char*>(values[i]), 1024, "%s", program.error().message().c_str());
    }
    return kInvalidPtx;
  }
  *module = new Module{std::move(*program), {}, {}};
  return 0;
}
// Compiles the first PTX of PTX text or a fat binary, with or without the C structure around it.
int cuModuleLoadData(void** module, const void* image) {
  namespace container = ptxkit::container;
  constexpr uint32_t kWrapperMagic = 0x466243b1;  // fatbinary_section.h
  struct Wrapper {
    uint32_t magic, version;
    const void* data;
  };
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kWrapperMagic) {
    image = static_cast<const Wrapper*>(image)->data;
    std::memcpy(&magic, image, sizeof magic);
  }
  if (magic != container::kFatbinMagic) return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
  uint64_t size_bytes;
  std::memcpy(&size_bytes, static_cast<const char*>(image) + 8, sizeof size_bytes);
  const auto entries = container::fatbin_entries(
      {static_cast<const char*>(image), static_cast<size_t>(container::kFatbinHeaderBytes + size_bytes)});
  if (!entries) return kInvalidValue;
  for (const container::FatbinEntry& entry : *entries) {
    if (entry.kind != container::FatbinEntry::Kind::ptx) continue;
    const auto text = container::ptx_text(entry);
    return text ? cuModuleLoadDataEx(module, text->c_str(), 0, nullptr, nullptr) : kInvalidValue;
  }
  return kNoBinaryForGpu;
}
int cuModuleLoadFatBinary(void** module, const void* image) { return cuModuleLoadData(module, image); }
// Supports only the functions that the test programs look up.
int cuGetProcAddress_v2(const char* symbol, void** function, int, uint64_t, int*) {
  if (std::strcmp(symbol, "cuModuleLoadData") != 0) return kNotFound;
  return *function = reinterpret_cast<void*>(&cuModuleLoadData), 0;
}
int cuModuleUnload(void* module) {
  const auto* const leaving = static_cast<Module*>(module);
  std::erase_if(gpu()->constants, [&](const auto& each) { return each.second.program == &leaving->program; });
  return delete leaving, done(true);
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  auto& from = *static_cast<Module*>(module);
  auto entry = from.program.entry(name);
  if (!entry) return kNotFound;
  from.functions.push_back(std::make_unique<Function>(Function{&from.program, std::move(*entry)}));
  *function = from.functions.back().get();
  return 0;
}
int cuFuncGetAttribute(int* value, int, void*) { return *value = 0, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }

int cuMemAlloc_v2(uint64_t* pointer, size_t size) {
  ENTER();
  const Locked held = gpu();
  if (size == 0) return kInvalidValue;
  const auto address = held->device.allocate(size, "buffer");
  if (address) *pointer = *address;
  return done(address.has_value());
}
int cuMemFree_v2(uint64_t pointer) { return done(gpu()->device.release(pointer).has_value()); }
int cuMemHostAlloc(void** pointer, size_t size, unsigned) {
  ENTER();
  const Locked held = gpu();
  const auto address = held->device.allocate(size, "mapped memory");
  if (!address) return kInvalidValue;
  *pointer = std::calloc(size, 1);
  held->mapped[*pointer] = {*address, size};
  return done(true);
}
int cuMemFreeHost(void* pointer) {
  const Locked held = gpu();
  held->mapped.erase(pointer);
  std::free(pointer);
  return done(true);
}
int cuMemHostGetDevicePointer_v2(uint64_t* pointer, void* host, unsigned) {
  const Locked held = gpu();
  for (const auto& [first, mapped] : held->mapped) {
    const auto offset = static_cast<size_t>(static_cast<uint8_t*>(host) - static_cast<uint8_t*>(first));
    if (offset >= mapped.second) continue;
    *pointer = mapped.first + offset;
    return done(true);
  }
  return done(false);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t size, void*) {
  ENTER();
  const Locked held = gpu();
  const auto constant = held->constants.find(to);
  if (constant != held->constants.end() && !constant->second.program->write(constant->second.name, bytes(from, size)))
    return kInvalidValue;
  return done(held->device.write(to, bytes(from, size)).has_value());
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t size, void*) {
  ENTER();
  return done(gpu()->dead_with == 0 && gpu()->device.read(from, {static_cast<std::byte*>(to), size}).has_value());
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void*) {
  const Locked held = gpu();
  std::vector<std::byte> between(size);
  return done(held->device.read(from, between) && held->device.write(to, between));
}
int cuMemcpy2DAsync_v2(const ptxkit::driver::CuCopy2d* copy, void*) {
  ENTER();
  const Locked held = gpu();
  bool worked = held->dead_with == 0;
  for (size_t row = 0; worked && row < copy->height; ++row) {
    const auto host_row = [&](const ptxkit::driver::CuCopy2dSide& side) {
      return std::span(static_cast<std::byte*>(side.host) + row * side.pitch_bytes, copy->width_bytes);
    };
    worked = copy->from.host != nullptr
                 ? held->device.write(copy->to.device + row * copy->to.pitch_bytes, host_row(copy->from)).has_value()
                 : held->device.read(copy->from.device + row * copy->from.pitch_bytes, host_row(copy->to)).has_value();
  }
  return done(worked);
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void*) {
  ENTER();
  return done(gpu()->device.fill(to, std::byte{value}, size).has_value());
}

// The stack has a fixed size here; the remaining limits concern features that kernels do not have here.
int cuCtxSetLimit(int limit, size_t value) {
  const Locked held = gpu();
  if (held->dead_with != 0) return held->dead_with;
  if (limit != kLimitPrintFifo && limit != kLimitHeap) return kUnsupportedLimit;
  (limit == kLimitHeap ? held->heap_bytes : held->print_fifo_bytes) = value;
  return done(true);
}
int cuCtxGetLimit(size_t* value, int limit) {
  const Locked held = gpu();
  if (held->dead_with != 0) return held->dead_with;
  if (limit != kLimitPrintFifo && limit != kLimitHeap) return kUnsupportedLimit;
  *value = limit == kLimitHeap ? held->heap_bytes : held->print_fifo_bytes;
  return done(true);
}

int cuStreamCreate(void** stream, unsigned) {
  ENTER();
  return *stream = &handle, done(true);
}
int cuStreamDestroy_v2(void*) { return done(true); }
int cuStreamSynchronize(void*) { return gpu()->is_busy ? kTimeout : done(true); }
int cuStreamQuery(void*) { return gpu()->is_busy ? kNotReady : done(true); }
int cuStreamWaitEvent(void*, void*, unsigned) {
  ENTER();
  return done(true);
}
int cuEventCreate(void** event, unsigned) {
  ENTER();
  return *event = new Event, done(true);
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return done(true);
}
int cuEventRecord(void* event, void*) {
  ENTER();
  return *static_cast<Event*>(event) = std::chrono::steady_clock::now(), done(true);
}
int cuEventSynchronize(void*) {
  ENTER();
  return gpu()->is_busy ? kTimeout : done(true);
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  ENTER();
  const std::chrono::duration<float, std::milli> between = *static_cast<Event*>(end) - *static_cast<Event*>(begin);
  return *milliseconds = between.count(), done(true);
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void*, void** arguments, void**) {
  ENTER();
  const Locked held = gpu();
  if (held->dead_with != 0) return held->dead_with;
  const auto& [program, entry] = *static_cast<Function*>(function);
  std::vector<emulator::Argument> values;
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    const auto view = bytes(arguments[i], entry.parameters[i].size_bytes);
    values.push_back({{view.begin(), view.end()}});
  }
  emulator::LaunchShape shape;
  shape.grid = {grid_x, grid_y, grid_z};
  shape.block = {block_x, block_y, block_z};
  shape.dynamic_shared_bytes = shared_bytes;
  emulator::LaunchOptions options;
  options.checks = emulator::kCheckBounds | emulator::kCheckAlignment;
  options.max_steps = kBusySteps;
  options.heap_bytes = held->heap_bytes;
  options.print_fifo_bytes = held->print_fifo_bytes;
  take_mapped();
  const auto outcome = emulator::launch(*program, entry.name, shape, values, options);
  show_mapped();
  if (!outcome) return kInvalidValue;
  std::fputs(outcome->output.c_str(), stdout);
  for (const emulator::Fault& fault : outcome->faults) {
    const bool never_ends =
        fault.kind == emulator::FaultKind::out_of_steps || fault.kind == emulator::FaultKind::endless_loop;
    if (never_ends) held->is_busy = true;
    if (held->dead_with == 0 && !held->is_busy) held->dead_with = code_of(fault);
  }
  return 0;
}

int cuArray3DCreate_v2(void** made, const ptxkit::driver::CuArrayDescriptor* given) {
  const Locked held = gpu();
  auto array = std::make_unique<Array>();
  array->description = array_description(*given);
  const auto texels = held->device.allocate(array->description.size_bytes(), "CUDA array");
  if (!texels) return kInvalidValue;
  array->texels = *texels;
  *made = array.release();
  return done(true);
}
int cuArrayDestroy(void* array) {
  const std::unique_ptr<Array> dying(static_cast<Array*>(array));
  return done(gpu()->device.release(dying->texels).has_value());
}
// Copies whole arrays from and to the host.
int cuMemcpy3DAsync_v2(const ptxkit::driver::CuCopy3d* copy, void*) {
  const Locked held = gpu();
  if (held->dead_with != 0) return held->dead_with;
  if ((copy->from.array == nullptr) == (copy->to.array == nullptr)) return kInvalidValue;
  const bool to_array = copy->to.array != nullptr;
  const auto& array = *reinterpret_cast<const Array*>(to_array ? copy->to.array : copy->from.array);
  const size_t size = array.description.size_bytes();
  if (copy->width_bytes * copy->height * copy->depth != size) return kInvalidValue;
  if (to_array) return done(held->device.write(array.texels, bytes(copy->from.host, size)).has_value());
  return done(held->device.read(array.texels, {static_cast<std::byte*>(copy->to.host), size}).has_value());
}
int cuTexObjectCreate(uint64_t* made, const ptxkit::driver::CuResourceDescriptor* resource,
                      const ptxkit::driver::CuTextureDescriptor* how, const void*) {
  using emulator::AddressMode;
  const Locked held = gpu();
  constexpr int kArray = 0, kLinear = 2;
  constexpr unsigned kReadsInteger = 1, kNormalised = 2;
  static constexpr AddressMode kModes[] = {AddressMode::wrap, AddressMode::clamp, AddressMode::mirror,
                                           AddressMode::border};
  if (how->address_mode[0] < 0 || how->address_mode[0] > 3) return kInvalidValue;
  emulator::Sampling sampling{.address = kModes[how->address_mode[0]],
                              .linear = how->filter_mode != 0,
                              .normalised = (how->flags & kNormalised) != 0,
                              .reads_integer = (how->flags & kReadsInteger) != 0};
  std::copy_n(how->border, 4, sampling.border.begin());
  Array from;
  if (resource->kind == kArray) {
    from = *reinterpret_cast<const Array*>(resource->array);
  } else if (resource->kind == kLinear) {
    const auto& linear = resource->linear;
    from.texels = linear.pointer;
    from.description = {
        .shape = emulator::ImageShape::buffer, .format = texel_format(linear.format), .channels = linear.channels};
    from.description.width = static_cast<uint32_t>(linear.size_bytes / from.description.texel_bytes());
  } else {
    return kInvalidValue;
  }
  const auto texture = held->device.make_texture(from.texels, from.description, sampling);
  if (texture) *made = *texture;
  return done(texture.has_value());
}
int cuTexObjectDestroy(uint64_t) { return done(true); }
int cuSurfObjectCreate(uint64_t* made, const ptxkit::driver::CuResourceDescriptor* resource) {
  const Locked held = gpu();
  if (resource->kind != 0) return kInvalidValue;
  const auto& array = *reinterpret_cast<const Array*>(resource->array);
  const auto surface = held->device.make_surface(array.texels, array.description);
  if (surface) *made = *surface;
  return done(surface.has_value());
}
int cuSurfObjectDestroy(uint64_t) { return done(true); }

// For a constant returns a copy, which forwards writes.
int cuModuleGetGlobal_v2(uint64_t* address, size_t* size, void* module, const char* name) {
  const Locked held = gpu();
  const emulator::Program& program = static_cast<Module*>(module)->program;
  const auto variable = program.global(name);
  if (!variable) return kNotFound;
  *size = variable->size_bytes;
  std::byte probe;
  if (held->device.read(variable->address, {&probe, 1})) return *address = variable->address, done(true);
  const auto copy = held->device.allocate(*size, name);
  std::vector<std::byte> content(*size);
  if (!copy || !program.read(name, content) || !held->device.write(*copy, content)) return kInvalidValue;
  held->constants[*copy] = {&program, name};
  return *address = *copy, done(true);
}

int cuModuleGetTexRef(void** made, void* module, const char* name) {
  auto& from = *static_cast<Module*>(module);
  if (!from.program.global(name)) return kNotFound;
  from.references.push_back(std::make_unique<Reference>(Reference{&from.program, name, {}}));
  *made = from.references.back().get();
  return done(true);
}
int cuModuleGetSurfRef(void** made, void* module, const char* name) { return cuModuleGetTexRef(made, module, name); }
int cuTexRefSetAddressMode(void* texture, int axis, int mode) {
  return static_cast<Reference*>(texture)->how.address_mode[axis] = mode, done(true);
}
int cuTexRefSetFilterMode(void* texture, int mode) {
  return static_cast<Reference*>(texture)->how.filter_mode = mode, done(true);
}
int cuTexRefSetFlags(void* texture, unsigned flags) {
  return static_cast<Reference*>(texture)->how.flags = flags, done(true);
}
int cuTexRefSetBorderColor(void* texture, float* border) {
  std::copy_n(border, 4, static_cast<Reference*>(texture)->how.border);
  return done(true);
}
int cuTexRefSetArray(void* texture, void* array, unsigned) {
  const auto& to = *static_cast<Reference*>(texture);
  ptxkit::driver::CuResourceDescriptor resource{};
  resource.array = static_cast<ptxkit::driver::CuArray>(array);
  uint64_t object = 0;
  if (const int status = cuTexObjectCreate(&object, &resource, &to.how, nullptr); status != 0) return status;
  return done(to.program->write(to.name, bytes(&object, sizeof object)).has_value());
}
int cuSurfRefSetArray(void* surface, void* array, unsigned) {
  const auto& to = *static_cast<Reference*>(surface);
  ptxkit::driver::CuResourceDescriptor resource{};
  resource.array = static_cast<ptxkit::driver::CuArray>(array);
  uint64_t object = 0;
  if (const int status = cuSurfObjectCreate(&object, &resource); status != 0) return status;
  return done(to.program->write(to.name, bytes(&object, sizeof object)).has_value());
}

int cuTensorMapEncodeTiled(void* to, int element, unsigned rank, void* address, const uint64_t* size,
                           const uint64_t* stride_bytes, const uint32_t* box, const uint32_t* element_stride,
                           int interleave, int swizzle, int, int fill) {
  if (rank < 1 || rank > 5 || interleave < 0 || interleave > 2) return kInvalidValue;
  emulator::TensorMap map =
      tensor_map(element, rank, address, size, stride_bytes, element_stride, interleave, swizzle, fill);
  std::copy_n(box, rank, map.box.begin());
  return store_map(to, map);
}

int cuTensorMapEncodeIm2col(void* to, int element, unsigned rank, void* address, const uint64_t* size,
                            const uint64_t* stride_bytes, const int* lower_corner, const int* upper_corner,
                            uint32_t channels, uint32_t pixels, const uint32_t* element_stride, int interleave,
                            int swizzle, int, int fill) {
  if (rank < 3 || rank > 5 || interleave < 0 || interleave > 2) return kInvalidValue;
  emulator::TensorMap map =
      tensor_map(element, rank, address, size, stride_bytes, element_stride, interleave, swizzle, fill);
  map.is_im2col = true;
  map.box = {static_cast<uint16_t>(channels), static_cast<uint16_t>(pixels)};
  std::copy_n(lower_corner, rank - 2, map.lower_corner.begin());
  std::copy_n(upper_corner, rank - 2, map.upper_corner.begin());
  return store_map(to, map);
}

}  // extern "C"
