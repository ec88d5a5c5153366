// Texture and surface instructions, decoded.
#pragma once

#include <cstdint>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/matrix.hpp"
#include "runtime/emulator/core/update.hpp"
#include "runtime/emulator/texture.hpp"

namespace ptxkit::emulator {

// Where an instruction reads a handle: from a register, which may instead hold the address of a .texref variable; from
// such a variable in global memory; or from a parameter of the kernel.
struct HandleOperand {
  enum class From : uint8_t { none, reg, global, param } from = From::none;
  uint32_t ref = 0;     // reg
  uint64_t offset = 0;  // address in global memory, or offset in the parameters
};

enum class OutOfRange : uint8_t { trap, clamp, zero };

struct TextureForm {
  ImageShape shape = ImageShape::two_dim;
  HandleOperand image, sampler;
  RegisterList coordinates, offsets, data;  // without the layer
  uint32_t layer = 0;                       // Ref
  // Refs, if the instruction has them: the mipmap level of integer coordinates or a query, the sample of .2dms.
  uint32_t level = 0xffffffff, sample = 0xffffffff;
  bool integer_coordinates = false;
  ptx::Type type = ptx::Type::none;  // of the data
  uint32_t resident = 0xffffffff;    // Ref: predicate, always true here
  uint8_t channel = 0;               // of tld4
  ptx::Mod query = ptx::Mod::unknown;
  bool of_sampler = false;
  // Surfaces.
  OutOfRange out_of_range = OutOfRange::trap;
  bool formatted = false;  // .p: x counts texels; otherwise bytes
  uint8_t element_bytes = 0;
  uint8_t register_bytes = 0;    // at least element_bytes; a load pads with zeros, a store takes the low bytes
  Update update, signed_update;  // .p uses the one of the format
};

}  // namespace ptxkit::emulator
