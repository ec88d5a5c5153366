// Kernel arguments on a command line: `u32:5`, `in:data.bin`, `out:4096:result.bin` and so on, one per parameter.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/object_spec.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

// A scalar holds its own bytes. A buffer is device memory whose address is the argument. An object is passed as a
// handle or as a tensor map.
struct ArgumentSpec {
  bool is_buffer = false;
  bool is_packed = false;             // a struct member that lies at the next byte, unaligned
  bool initialised = true;            // buffers: false for `uninit`
  bool mapped = false;                // buffers: mapped host memory, readable after its context died
  std::vector<std::byte> bytes;       // the scalar's value, or the buffer's initial content and size
  std::optional<ObjectSpec> object;   // its texels or elements are `bytes`; a sampler has no buffer
  std::string output;                 // file that receives the buffer after the run; empty: none; "-": standard output
  std::vector<ArgumentSpec> members;  // of a struct; all other fields are then unused

  // Whether `bytes` is the content of a module variable itself, and not of something that the variable points to.
  bool is_content() const { return !object && members.empty(); }
};

// Calls `visit` for the argument, or for each member of a struct in order: for everything with its own place in memory.
template <class Visit>
void for_each_piece(const ArgumentSpec& argument, const Visit& visit) {
  if (argument.members.empty()) return visit(argument);
  for (const ArgumentSpec& member : argument.members) visit(member);
}

// Returns the parameter's bytes. `value_of` returns the bytes of one piece: a scalar, an address, a handle or a tensor
// map. Struct members follow C layout: each lies at a multiple of its size, and the whole is a multiple of the largest.
// `bytes:` members are packed. Errors: those of `value_of`.
Result<std::vector<std::byte>> argument_bytes(
    const ArgumentSpec& argument, const std::function<Result<std::vector<std::byte>>(const ArgumentSpec&)>& value_of);

// Parses one SPEC and reads the files that it names.
// u8 u16 u32 u64 s8 s16 s32 s64: a decimal number in range, the unsigned ones also 0x; b8 b16 b32 b64: hexadecimal
// digits; f32 f64: a number; in:FILE  inout:FILE:OUT  out:BYTES:OUT (zeroed)  mapped:BYTES:OUT (zeroed)
// uninit:BYTES:OUT  zero:BYTES hex:00ff... ; bytes:00ff..., a parameter of these bytes; struct:SPEC,SPEC,... of the
// above; tex:LIST:FILE surf:LIST:FILE:OUT  sampler:LIST, LIST as parse_image_spec takes it; tensor:LIST:FILE or
// tensor:LIST:FILE:OUT, LIST as parse_tensor_spec takes it. Errors say what was expected.
Result<ArgumentSpec> parse_argument_spec(std::string_view spec);

}  // namespace ptxkit::tools
