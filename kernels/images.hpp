// The kernel images of a program: PTX text, launch facts and the analyzer's verdict, embedded at build time.
//
// A program writes the PTX, `ptx-debug` analyzes it, and a generated source holds both results
// (cmake/PtxkitKernels.cmake). A program that links it needs neither LLVM nor a file beside the binary. A verdict is
// valid only for the text that was analyzed: the loader has to compare its hash, the XXH128 of exactly `ptx`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ptxkit::kernels {

enum class ParameterType : uint8_t { pointer, u32, u64, i32, i64, f32, f64 };

// One .param slot of an entry, in order.
struct KernelParameter {
  std::string_view name;
  ParameterType type;
  uint32_t pointee_alignment_bytes;  // pointers only: what the kernel relies on; 0 otherwise
};

// The result of `ptx-debug analyze --falsify` (FKR, falsification kernel regression) for one PTX text.
struct Verdict {
  std::string_view xxh128_hex;  // of the text, 32 lower-case digits, high half first
  uint32_t score;               // 0..100
  uint32_t critical_count;
  std::string_view tool_version;
};

struct KernelImage {
  std::string_view name;     // the entry, e.g. "lz4_compress_page"
  std::string_view target;   // "sm_75", "sm_80"
  std::string_view variant;  // "release", "checked" or "debug" (with markers)
  std::string_view ptx;      // ends with a NUL that is not part of the view
  uint32_t block_threads;    // .reqntid
  std::span<const KernelParameter> parameters;
  std::optional<Verdict> verdict;  // absent: not analyzed; a loader refuses such an image
};

// The image of `images` that suits a device of compute capability `major.minor` best: the one with the newest target
// that is not newer than the device. nullptr if there is none.
const KernelImage* find_image(std::span<const KernelImage> images, std::string_view name, uint32_t major,
                              uint32_t minor, std::string_view variant = "release");

// The kernels of this project. A library of ptxkit_add_kernels has the same three functions, in its own namespace.

// All images, sorted by name, variant, target.
std::span<const KernelImage> kernel_images();

// The best release image, as find_image() finds it.
const KernelImage* find_kernel_image(std::string_view name, uint32_t major, uint32_t minor);

// The same for the given variant.
const KernelImage* find_kernel_variant(std::string_view name, uint32_t major, uint32_t minor, std::string_view variant);

}  // namespace ptxkit::kernels
