// Kernel arguments on a command line: `u32:5`, `in:data.bin`, `out:4096:result.bin` and so on, one for each parameter.
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

// A scalar gives its bytes; a buffer gives device memory whose address is the argument; an object a handle or map of
// it.
struct ArgumentSpec {
  bool is_buffer = false;
  bool is_packed = false;             // of a struct's member: it lies at the next byte, whatever its size
  bool initialised = true;            // buffers: false for `uninit`
  bool mapped = false;                // buffers: host memory that a GPU writes to, readable after its context died
  std::vector<std::byte> bytes;       // the scalar, or what the buffer holds at the start; its size is the buffer's
  std::optional<ObjectSpec> object;   // the buffer's bytes are its texels or elements; of a sampler without a buffer
  std::string output;                 // where to write the buffer afterwards; empty for nowhere, "-" standard output
  std::vector<ArgumentSpec> members;  // of a struct, and then nothing else of this

  // Whether the bytes are what a variable of the module is to hold, and not something that it points to.
  bool is_content() const { return !object && members.empty(); }
};

// Visits the argument, or the members of a struct in order: all that has a place in memory of its own.
template <class Visit>
void for_each_piece(const ArgumentSpec& argument, const Visit& visit) {
  if (argument.members.empty()) return visit(argument);
  for (const ArgumentSpec& member : argument.members) visit(member);
}

// The parameter's bytes. `value_of` gives those of a piece: a scalar's own, an address, a handle, a map. Members of a
// struct lie where C puts them: each at a multiple of its size, the whole a multiple of the largest.
Result<std::vector<std::byte>> argument_bytes(
    const ArgumentSpec& argument, const std::function<Result<std::vector<std::byte>>(const ArgumentSpec&)>& value_of);

// u8 u16 u32 u64 s8 s16 s32 s64: a decimal or 0x number in range; b8 b16 b32 b64: hexadecimal digits; f32 f64: a
// number; in:FILE  inout:FILE:OUT  out:BYTES:OUT (zeroed)  mapped:BYTES:OUT (zeroed)  uninit:BYTES:OUT  zero:BYTES
// hex:00ff... ; bytes:00ff..., a parameter of these bytes; struct:SPEC,SPEC,... of the ones so far; tex:LIST:FILE
// surf:LIST:FILE:OUT  sampler:LIST with the words of parse_image_spec; tensor:LIST:FILE or tensor:LIST:FILE:OUT with
// those of parse_tensor_spec. Reads the files that it names. Errors say what was expected.
Result<ArgumentSpec> parse_argument_spec(std::string_view spec);

}  // namespace ptxkit::tools
