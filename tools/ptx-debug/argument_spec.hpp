// Kernel arguments on a command line: `u32:5`, `in:data.bin`, `out:4096:result.bin` and so on, one for each parameter.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"
#include "tools/ptx-debug/image_spec.hpp"

namespace ptxkit::tools {

// A scalar gives its bytes; a buffer gives device memory whose address is the argument.
struct ArgumentSpec {
  bool is_buffer = false;
  bool initialised = true;       // buffers: false for `uninit`
  bool mapped = false;           // buffers: host memory that a GPU writes to, readable after its context died
  std::vector<std::byte> bytes;  // the scalar, or what the buffer holds at the start; its size is the buffer's
  std::optional<ImageSpec>
      image;           // the buffer's bytes are texels, and its handle is the argument; of a sampler without
  std::string output;  // where to write the buffer afterwards; empty for nowhere, "-" standard output
};

// u8 u16 u32 u64 s8 s16 s32 s64: a decimal or 0x number in range; b8 b16 b32 b64: hexadecimal digits; f32 f64: a
// number; in:FILE  inout:FILE:OUT  out:BYTES:OUT (zeroed)  mapped:BYTES:OUT (zeroed)  uninit:BYTES:OUT  zero:BYTES
// hex:00ff... ; tex:LIST:FILE  surf:LIST:FILE:OUT  sampler:LIST with the words of parse_image_spec. Reads the files
// that it names. Errors say what was expected.
Result<ArgumentSpec> parse_argument_spec(std::string_view spec);

}  // namespace ptxkit::tools
