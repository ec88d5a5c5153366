// A libcudart whose GPU is the emulator. It runs whole programs that nvcc has built with embedded PTX
// (-arch=compute_XX) and linked with -cudart none and this library. A function that it lacks is an undefined symbol at
// link time.
//
//   EMULATED_CHECK      the checks of the emulator (`all`)
//   EMULATED_SCHEDULE   in-order, random:SEED or adversarial:SEED
//   EMULATED_REPORT     the file to which the process appends its faults and, when it ends, one line of counts
//
// Streams and events do nothing: every call is complete when it returns.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "analyzer/container/fatbin.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/emulator.hpp"

namespace {

namespace emulator = ptxkit::emulator;
namespace container = ptxkit::container;

constexpr int kMultiprocessors = 4, kComputeMajor = 9, kSharedBytes = 48 << 10, kOptInSharedBytes = 227 << 10;

struct Image {
  const void* fatbin = nullptr;
  std::optional<emulator::Program> program;  // loaded when one of its kernels or variables is used
};
struct Function {
  Image* image;
  std::string name;
};
struct Variable {
  Image* image;
  std::string name;
  size_t bytes;
};
struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

struct Runtime {
  emulator::Device device;
  std::vector<std::unique_ptr<Image>> images;
  std::map<const void*, Function> functions;
  std::map<const void*, Variable> variables;
  std::vector<Configuration> configurations;
  emulator::LaunchOptions options;
  cudaError_t last = cudaSuccess, dead_with = cudaSuccess;
  uint64_t launches = 0, instructions = 0, faults = 0;

  Runtime();
  ~Runtime();
  void report(const std::string& text) const;
};

Runtime& runtime() {
  static Runtime all;
  return all;
}

[[noreturn]] void stop(const std::string& why) {
  runtime().report("not run: " + why + "\n");
  fmt::print(stderr, "emulated cudart: {}\n", why);
  std::_Exit(70);
}

Runtime::Runtime() {
  const char* const checks = std::getenv("EMULATED_CHECK");
  const auto parsed = emulator::parse_checks(checks != nullptr ? checks : "standard");
  const char* const given = std::getenv("EMULATED_SCHEDULE");
  const std::string schedule = given != nullptr ? given : "in-order";
  const size_t colon = schedule.find(':');
  options.adversarial = schedule.starts_with("adversarial:");
  if (colon != std::string::npos) {
    std::from_chars(schedule.data() + colon + 1, schedule.data() + schedule.size(), options.schedule_seed);
  }
  const bool seeded = options.schedule_seed != 0 && (options.adversarial || schedule.starts_with("random:"));
  if (!parsed || (!seeded && schedule != "in-order")) {
    fmt::print(stderr,
               "emulated cudart: EMULATED_CHECK is a list of checks, EMULATED_SCHEDULE in-order, random:SEED or "
               "adversarial:SEED\n");
    std::_Exit(64);
  }
  options.checks = *parsed;
  options.max_faults = 1000;  // a program continues after faults
}

Runtime::~Runtime() {
  report(fmt::format("{} launches, {} thread instructions, {} faults\n", launches, instructions, faults));
}

void Runtime::report(const std::string& text) const {
  const char* const path = std::getenv("EMULATED_REPORT");
  std::FILE* const file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  std::fputs(text.c_str(), file);
  std::fclose(file);
}

cudaError_t done(cudaError_t code) {
  if (runtime().dead_with != cudaSuccess) code = runtime().dead_with;
  if (code != cudaSuccess) runtime().last = code;
  return code;
}
cudaError_t done(bool worked) { return done(worked ? cudaSuccess : cudaErrorInvalidValue); }

// The program of a fat binary: its first PTX.
const emulator::Program& program_of(Image& image) {
  if (image.program) return *image.program;
  struct Wrapper {
    uint32_t magic, version;
    const void* data;
  };
  const auto* const data = static_cast<const char*>(static_cast<const Wrapper*>(image.fatbin)->data);
  uint64_t size_bytes;
  std::memcpy(&size_bytes, data + 8, sizeof size_bytes);
  const auto entries =
      container::fatbin_entries({data, static_cast<size_t>(container::kFatbinHeaderBytes + size_bytes)});
  if (!entries) stop("a fat binary that cannot be read: " + entries.error().message());
  for (const container::FatbinEntry& entry : *entries) {
    if (entry.kind != container::FatbinEntry::Kind::ptx) continue;
    const auto text = container::ptx_text(entry);
    if (!text) stop(text.error().message());
    auto program = emulator::Program::load_text(runtime().device, *text, "program.ptx");
    if (!program) stop(program.error().message());
    return image.program.emplace(std::move(*program));
  }
  stop("a fat binary without PTX: build with -arch=compute_XX");
}

const Function* function_of(const void* function) {
  const auto found = runtime().functions.find(function);
  return found == runtime().functions.end() ? nullptr : &found->second;
}

bool is_of_device(const void* pointer) {
  const auto address = reinterpret_cast<emulator::Address>(pointer);
  for (const emulator::Allocation& one : runtime().device.live_allocations()) {
    if (address >= one.address && address < one.address + std::max<uint64_t>(one.size_bytes, 1)) return true;
  }
  return false;
}

bool copy(void* to, const void* from, size_t count) {
  if (count == 0) return true;
  emulator::Device& device = runtime().device;
  const bool is_to = is_of_device(to), is_from = is_of_device(from);
  std::vector<std::byte> between(count);
  if (is_from && !device.read(reinterpret_cast<emulator::Address>(from), between)) return false;
  if (!is_from) std::memcpy(between.data(), from, count);
  if (is_to) return device.write(reinterpret_cast<emulator::Address>(to), between).has_value();
  std::memcpy(to, between.data(), count);
  return true;
}

cudaError_t code_of(const emulator::Fault& fault) {
  switch (fault.kind) {
    case emulator::FaultKind::misaligned:
      return cudaErrorMisalignedAddress;
    case emulator::FaultKind::out_of_bounds:
    case emulator::FaultKind::null_address:
    case emulator::FaultKind::use_after_free:
      return cudaErrorIllegalAddress;
    default:
      return cudaErrorLaunchFailure;
  }
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                   dim3 cluster = {1, 1, 1}) {
  Runtime& here = runtime();
  const Function* const kernel = function_of(function);
  if (kernel == nullptr) return done(cudaErrorInvalidDeviceFunction);
  if (here.dead_with != cudaSuccess) return done(cudaSuccess);
  const emulator::Program& program = program_of(*kernel->image);
  const auto entry = program.entry(kernel->name);
  if (!entry) stop(entry.error().message());
  std::vector<emulator::Argument> values;
  for (size_t i = 0; i < entry->parameters.size(); ++i) {
    const auto* const first = static_cast<const std::byte*>(arguments[i]);
    values.push_back({{first, first + entry->parameters[i].size_bytes}});
  }
  emulator::LaunchShape shape;
  shape.grid = {grid.x, grid.y, grid.z};
  shape.block = {block.x, block.y, block.z};
  shape.cluster = {cluster.x, cluster.y, cluster.z};
  shape.dynamic_shared_bytes = static_cast<uint32_t>(shared_bytes);
  const auto outcome = emulator::launch(program, kernel->name, shape, values, here.options);
  if (!outcome) {
    here.report("launch refused: " + outcome.error().message() + "\n");
    return done(cudaErrorInvalidConfiguration);
  }
  ++here.launches;
  here.instructions += outcome->statistics.thread_instructions;
  here.faults += outcome->faults.size();
  std::fputs(outcome->output.c_str(), stdout);
  for (const emulator::Fault& fault : outcome->faults) {
    here.report(emulator::render(fault, "program.ptx"));
    if (emulator::stops(fault.kind) && here.dead_with == cudaSuccess) here.dead_with = code_of(fault);
  }
  return done(cudaSuccess);
}

int attribute(cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrComputeCapabilityMajor:
      return kComputeMajor;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return kOptInSharedBytes;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return kOptInSharedBytes + 1024;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return 1024;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 65536;
    case cudaDevAttrL2CacheSize:
      return 32 << 20;
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrUnifiedAddressing:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* fatbin) {
  runtime().images.push_back(std::make_unique<Image>(Image{fatbin, {}}));
  return reinterpret_cast<void**>(runtime().images.back().get());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void** image, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                            int*) {
  runtime().functions[host] = {reinterpret_cast<Image*>(image), name};
}
void __cudaRegisterVar(void** image, char* host, char*, const char* name, int, size_t bytes, int, int) {
  runtime().variables[host] = {reinterpret_cast<Image*>(image), name, bytes};
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  runtime().configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, cudaStream_t* stream) {
  if (runtime().configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration last = runtime().configurations.back();
  runtime().configurations.pop_back();
  *grid = last.grid, *block = last.block, *shared_bytes = last.shared_bytes, *stream = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t) {
  return launch(kernel, grid, block, arguments, shared_bytes);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t) {
  return launch(function, grid, block, arguments, shared_bytes);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t) {
  return launch(function, grid, block, arguments, shared_bytes);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* function, void** arguments) {
  dim3 cluster{1, 1, 1};
  for (unsigned i = 0; i < how->numAttrs; ++i) {
    if (how->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    cluster = {how->attrs[i].val.clusterDim.x, how->attrs[i].val.clusterDim.y, how->attrs[i].val.clusterDim.z};
  }
  return launch(function, how->gridDim, how->blockDim, arguments, how->dynamicSmemBytes, cluster);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->maxDynamicSharedSizeBytes = kOptInSharedBytes;
  const Function* const kernel = function_of(function);
  if (kernel == nullptr) return done(cudaErrorInvalidDeviceFunction);
  const emulator::Program& program = program_of(*kernel->image);
  attributes->ptxVersion = attributes->binaryVersion = static_cast<int>(program.module().target_sm);
  if (const auto entry = program.entry(kernel->name)) {
    attributes->sharedSizeBytes = entry->static_shared_bytes;
    attributes->localSizeBytes = entry->local_bytes;
  }
  return done(cudaSuccess);
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return done(cudaSuccess); }
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return done(cudaSuccess); }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void*, int block, size_t,
                                                                   unsigned) {
  *count = std::clamp(2048 / std::max(block, 1), 1, 2);
  return done(cudaSuccess);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void* function, int block,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, block, shared_bytes, 0);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void*, int, int) {
  *bytes = kSharedBytes;
  return done(cudaSuccess);
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  const auto address = runtime().device.allocate(bytes, "buffer");
  if (address) *pointer = bytes != 0 ? reinterpret_cast<void*>(*address) : nullptr;
  return done(address ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) { return cudaMalloc(pointer, bytes); }
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}
cudaError_t cudaFree(void* pointer) {
  return done(pointer == nullptr || runtime().device.release(reinterpret_cast<emulator::Address>(pointer)).has_value());
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return done((*pointer = std::calloc(bytes, 1)) != nullptr); }
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return cudaMallocHost(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return done(cudaSuccess);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = runtime().device.free_bytes();
  *total = *free + runtime().device.used_bytes();
  return done(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  const bool is_device = is_of_device(pointer);
  attributes->type = is_device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  (is_device ? attributes->devicePointer : attributes->hostPointer) = const_cast<void*>(pointer);
  return done(cudaSuccess);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind) { return done(copy(to, from, count)); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind, cudaStream_t) {
  return done(copy(to, from, count));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind) {
  bool worked = true;
  for (size_t row = 0; worked && row < height; ++row) {
    worked = copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  }
  return done(worked);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMemset(void* to, int value, size_t count) {
  const auto address = reinterpret_cast<emulator::Address>(to);
  return done(count == 0 || runtime().device.fill(address, static_cast<std::byte>(value), count).has_value());
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t) { return cudaMemset(to, value, count); }

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  const auto found = runtime().variables.find(symbol);
  if (found == runtime().variables.end()) return done(cudaErrorInvalidSymbol);
  const auto variable = program_of(*found->second.image).global(found->second.name);
  if (variable) *address = reinterpret_cast<void*>(variable->address);
  return done(variable ? cudaSuccess : cudaErrorInvalidSymbol);
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  const auto found = runtime().variables.find(symbol);
  if (found != runtime().variables.end()) *bytes = found->second.bytes;
  return done(found != runtime().variables.end() ? cudaSuccess : cudaErrorInvalidSymbol);
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind) {
  const auto found = runtime().variables.find(symbol);
  if (found == runtime().variables.end()) return done(cudaErrorInvalidSymbol);
  const emulator::Program& program = program_of(*found->second.image);
  std::vector<std::byte> all(found->second.bytes);
  if (offset + count > all.size() || (count != all.size() && !program.read(found->second.name, all)))
    return done(false);
  return done(copy(all.data() + offset, from, count) && program.write(found->second.name, all));
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToSymbol(symbol, from, count, offset, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind) {
  const auto found = runtime().variables.find(symbol);
  if (found == runtime().variables.end()) return done(cudaErrorInvalidSymbol);
  std::vector<std::byte> all(found->second.bytes);
  if (offset + count > all.size() || !program_of(*found->second.image).read(found->second.name, all))
    return done(false);
  return done(copy(to, all.data() + offset, count));
}

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return done(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaSetDeviceFlags(unsigned) { return done(cudaSuccess); }
cudaError_t cudaDeviceSynchronize() { return done(cudaSuccess); }
cudaError_t cudaDeviceReset() { return done(cudaSuccess); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (limit == cudaLimitMallocHeapSize) runtime().options.heap_bytes = value;
  if (limit == cudaLimitPrintfFifoSize) runtime().options.print_fifo_bytes = value;
  return done(cudaSuccess);
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (limit != cudaLimitMallocHeapSize && limit != cudaLimitPrintfFifoSize) return done(cudaErrorUnsupportedLimit);
  *value = limit == cudaLimitMallocHeapSize ? runtime().options.heap_bytes : runtime().options.print_fifo_bytes;
  return done(cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = attribute(which);
  return done(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "Emulated GPU");
  properties->totalGlobalMem = size_t{1} << 34;
  properties->major = kComputeMajor;
  properties->warpSize = 32;
  properties->multiProcessorCount = kMultiprocessors;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  std::copy_n(std::initializer_list<int>{1024, 1024, 64}.begin(), 3, properties->maxThreadsDim);
  std::copy_n(std::initializer_list<int>{0x7fffffff, 65535, 65535}.begin(), 3, properties->maxGridSize);
  properties->sharedMemPerBlock = kSharedBytes;
  properties->sharedMemPerBlockOptin = kOptInSharedBytes;
  properties->sharedMemPerMultiprocessor = kOptInSharedBytes + 1024;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->cooperativeLaunch = properties->unifiedAddressing = properties->concurrentKernels = 1;
  return done(cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, done(cudaSuccess); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return done(cudaSuccess); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return done(cudaSuccess); }
cudaError_t cudaStreamQuery(cudaStream_t) { return done(cudaSuccess); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return done(cudaSuccess); }
cudaError_t cudaStreamGetDevice(cudaStream_t, int* device) { return *device = 0, done(cudaSuccess); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return done(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = nullptr, done(cudaSuccess); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return done(cudaSuccess); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return done(cudaSuccess); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return done(cudaSuccess); }
cudaError_t cudaEventQuery(cudaEvent_t) { return done(cudaSuccess); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  return *milliseconds = 1, done(cudaSuccess);
}

cudaError_t cudaPeekAtLastError() { return runtime().last; }
cudaError_t cudaGetLastError() {
  const cudaError_t last = runtime().last;
  runtime().last = runtime().dead_with;
  return last;
}
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess ? "no error" : "an error of the emulated runtime";
}
const char* cudaGetErrorName(cudaError_t code) { return code == cudaSuccess ? "cudaSuccess" : "cudaError"; }

}  // extern "C"
