// Decoded matrix instructions: mma, wmma, wgmma, ldmatrix, stmatrix, movmatrix. All lanes of a warp take part.
#pragma once

#include <cstdint>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::emulator {

// Registers of one operand: indices into ProgramImage::refs.
struct RegisterList {
  uint32_t first = 0, count = 0;
};

struct MatrixForm {
  ptx::Shape shape;
  ptx::Type a_type = ptx::Type::none, b_type = ptx::Type::none, c_type = ptx::Type::none, d_type = ptx::Type::none;
  bool a_columns = false, b_columns = false;  // column-major: in memory, and in the registers of m8n8k4
  bool is_wmma = false, is_sparse = false;
  bool saturates = false, transposes = false, by_and = false;
  uint8_t rounding = 0;  // Rounding, of f64
  uint8_t matrix = 0;    // wmma.load and .store: 'a', 'b', 'c', 'd'
  uint32_t stride = 0;   // Ref: elements from one row or column to the next
  bool has_stride = false;
  uint8_t packed_bits = 8;  // ldmatrix of bytes: width of an element in memory
  RegisterList d, a, b, c;
  RegisterList metadata;  // of sparse A: one register
  uint8_t selector = 0;   // the lanes whose metadata is used
  // .kind::f8f6f4 and .kind::mxf8f6f4: elements of 4 and 6 bits occupy bytes; those of 4 bits lie in the middle.
  bool in_bytes = false;
  // .block_scale: number of factors along k for each row of A and column of B, of type ue8m0 or ue4m3.
  uint8_t scale_count = 0;
  bool scales_are_ue4m3 = false;
  RegisterList scales;              // of A, of B
  uint32_t scale_place[2][2] = {};  // Refs, of A and of B: which byte, and which lanes of a quad

  // wgmma: 64-bit descriptors in the lists above describe matrices in shared memory.
  bool a_in_shared = false, a_negated = false, b_negated = false;
  uint32_t use_d = 0, use_d_flip = 0;  // Ref: predicate scale-d
};

}  // namespace ptxkit::emulator
