// The CUDA driver, opened at run time: builds need no toolkit, and programs run on machines without a GPU.
//
// libcuda.so.1 is loaded with dlopen and its functions are looked up one by one (symbols.def), as in Dr.Jit-Core. One
// message names all that are missing. The declarations are our own and follow the ABI of the driver API, which NVIDIA
// keeps stable behind the version suffixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/driver/error_catalogue.hpp"
#include "support/result.hpp"

namespace ptxkit::driver {

using CuDevice = int;
using CuDevicePointer = uint64_t;
using CuContext = struct CuContextOpaque*;
using CuModule = struct CuModuleOpaque*;
using CuFunction = struct CuFunctionOpaque*;
using CuStream = struct CuStreamOpaque*;
using CuEvent = struct CuEventOpaque*;
using CuGraph = struct CuGraphOpaque*;
using CuGraphExec = struct CuGraphExecOpaque*;
using CuGraphNode = struct CuGraphNodeOpaque*;
using CuArray = struct CuArrayOpaque*;
using CuTextureObject = uint64_t;
using CuSurfaceObject = uint64_t;
using CuTextureReference = struct CuTextureReferenceOpaque*;
using CuSurfaceReference = struct CuSurfaceReferenceOpaque*;

// CUDA_MEMCPY2D of cuda.h: rows of a width at a pitch. Memory types are kHostMemoryType and kDeviceMemoryType.
struct CuCopy2dSide {
  size_t x_bytes, y;
  int memory_type;
  void* host;
  CuDevicePointer device;
  void* array;
  size_t pitch_bytes;
};
struct CuCopy2d {
  CuCopy2dSide from, to;
  size_t width_bytes, height;
};

// CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D, CUDA_RESOURCE_DESC and CUDA_TEXTURE_DESC of cuda.h.
struct CuArrayDescriptor {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
struct CuCopy3dSide {
  size_t x_bytes, y, z, level;
  int memory_type;
  void* host;
  CuDevicePointer device;
  CuArray array;
  void* reserved;
  size_t pitch_bytes, height;
};
struct CuCopy3d {
  CuCopy3dSide from, to;
  size_t width_bytes, height, depth;
};
struct CuLinearMemory {
  CuDevicePointer pointer;
  int format;
  unsigned channels;
  size_t size_bytes;
};
struct CuResourceDescriptor {
  int kind;
  union {
    CuArray array;
    CuLinearMemory linear;
    int reserved[32];
  };
  unsigned flags;
};
struct CuTextureDescriptor {
  int address_mode[3], filter_mode;
  unsigned flags, max_anisotropy;
  int level_filter_mode;
  float level_bias, least_level, last_level, border[4];
  int reserved[12];
};

// CUlaunchAttribute and CUlaunchConfig of cuda.h.
struct CuLaunchAttribute {
  int id;
  alignas(8) uint32_t value[16];
};
struct CuLaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CuStream stream;
  const CuLaunchAttribute* attributes;
  unsigned attribute_count;
};

// One function pointer for each line of symbols.def; optional ones may be null.
struct Api {
#define SYMBOL(need, member, exported, parameters) int(*member) parameters = nullptr;
#include "runtime/driver/symbols.def"
#undef SYMBOL
};

// CUDA 11.0, the first driver that accepts PTX 7.0, the version of our oldest images; 1000 * major + 10 * minor as in
// cuDriverGetVersion.
constexpr int kMinimumDriverVersion = 11000;

// Why there is no driver. not_installed is normal on many machines; broken needs a repair.
enum class Absence : uint8_t { not_installed, broken };
struct DriverAbsent {
  Absence absence = Absence::broken;
  Error error;
};

class Driver {
 public:
  // Opens and initialises `library`; if empty, the one in the environment variable PTXKIT_LIBCUDA, otherwise
  // libcuda.so.1.
  static tl::expected<std::shared_ptr<const Driver>, DriverAbsent> open(std::string library = {});
  // Whether there is such a library to open. Nothing of it runs but what loading runs.
  static bool is_installed(std::string library = {});
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const Api& api() const { return api_; }
  int version() const { return version_; }  // 12040 is 12.4
  int device_count() const { return device_count_; }

  // Turns a status into an error that names `call` and `where`; see driver_error.
  Result<void> check(int status, const char* call, std::string_view where = {}) const;

 private:
  Driver() = default;

  Api api_;
  int version_ = 0;
  int device_count_ = 0;
};

}  // namespace ptxkit::driver
