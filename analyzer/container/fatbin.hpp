// CUDA's fat binary: machine code and PTX for several targets, in sequence.
//
// NVIDIA publishes the container's first 16 bytes (fatbinary_section.h, fatBinaryCtl.h of CUDA 9: magic 0xba55ed50,
// version, header size, size of the rest). The layout of entries follows public readers
// (n-eiling/cuda-fatbin-decompression, jiegec/fatbinary), checked against the output of nvcc 13.0: a header of at least
// 64 bytes, which states its own size and the padded size of the payload, then the payload. A payload is plain, an LZ4
// block or a Zstandard frame.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::container {

inline constexpr uint32_t kFatbinMagic = 0xba55ed50;
inline constexpr uint64_t kFatbinHeaderBytes = 16;
inline constexpr uint64_t kFatbinEntryBytes = 64;  // least size of an entry's header

// Larger PTX is rejected: offsets into a text have 32 bits, and the size in a header is untrusted.
inline constexpr uint64_t kLargestTextBytes = uint64_t{1} << 30;

enum FatbinFlag : uint64_t {
  kFlagUnknownCompression = 0x1000,  // of toolkits before CUDA 6; undocumented
  kFlagLz4 = 0x2000,
  kFlagZstd = 0x8000,
  kFlagArchitectureSpecific = 0x100000,  // sm_90a
  kFlagFamilySpecific = 0x200000,        // sm_100f
};

struct FatbinEntry {
  enum class Kind : uint16_t { ptx = 1, elf = 2 } kind = Kind::ptx;  // other values are kept as numbers
  std::string target;                                                // "sm_90a"
  uint64_t flags = 0;                                                // FatbinFlag
  std::string_view payload;         // as stored; without padding where it is compressed
  uint64_t uncompressed_bytes = 0;  // 0: the payload is not compressed
};

// The size of the container at the start of `bytes`, header included. Errors: no magic, a size beyond the end.
Result<uint64_t> fatbin_size(std::string_view bytes);

// The entries of one container of exactly fatbin_size bytes; views point into it. Errors name the entry and the byte.
Result<std::vector<FatbinEntry>> fatbin_entries(std::string_view container);

// The PTX text of an entry without its trailing NUL bytes. Errors: damaged or unknown compression.
Result<std::string> ptx_text(const FatbinEntry& entry);

}  // namespace ptxkit::container
