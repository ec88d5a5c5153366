// Elements of matrices in registers and their values, shared by mma, wmma and wgmma.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/emulator/core/scalar.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Elements in one register: 2 halves, 8 nibbles, 32 bits, 1 single or double.
inline unsigned per_register(ptx::Type type) { return ptx::bit_width(type) >= 32 ? 1 : 32 / ptx::bit_width(type); }

inline double number(uint32_t word, unsigned element, ptx::Type type) {
  using ptx::Type;
  const unsigned bits = ptx::bit_width(type);
  const uint32_t part = bits >= 32 ? word : word >> element * bits & ((1u << bits) - 1);
  switch (type) {
    case Type::f16:
      return scalar::f16_value(static_cast<uint16_t>(part));
    case Type::bf16:
      return scalar::bf16_value(static_cast<uint16_t>(part));
    case Type::tf32:
      return scalar::to_f32(part & 0xffffe000u);
    case Type::f32:
      return scalar::to_f32(part);
    case Type::e4m3:
      return scalar::widen(part, scalar::kE4m3);
    case Type::e5m2:
      return scalar::widen(part, scalar::kE5m2);
    case Type::s8:
      return static_cast<int8_t>(part);
    case Type::s4:
      return static_cast<int32_t>(part << 28) >> 28;
    case Type::s32:
      return static_cast<int32_t>(part);
    default:
      return part;
  }
}

// The same for a form that keeps narrow elements in bytes.
inline unsigned per_register(ptx::Type type, const MatrixForm& form) {
  return form.in_bytes && ptx::bit_width(type) <= 8 ? 4 : per_register(type);
}
double number(uint32_t word, unsigned element, ptx::Type type, const MatrixForm& form);

struct Position {
  unsigned row = 0, column = 0;
};

struct Matrix {
  unsigned columns;
  std::vector<double> values;
  Matrix(unsigned rows, unsigned column_count) : columns(column_count), values(size_t{rows} * column_count) {}
  double& operator()(Position at) { return values[size_t{at.row} * columns + at.column]; }
  double operator()(unsigned row, unsigned column) const { return values[size_t{row} * columns + column]; }
};

// The bits of one element of D, except f64.
inline uint32_t element_bits(double value, const MatrixForm& form) {
  switch (form.d_type) {
    case ptx::Type::f16:
      return scalar::f16_bits(value);
    case ptx::Type::s32:
      if (form.saturates) value = std::min(std::max(value, -2147483648.0), 2147483647.0);
      return static_cast<uint32_t>(static_cast<int64_t>(value));
    default:
      return scalar::to_bits(scalar::canonical(static_cast<float>(value)));
  }
}

// The value of a .block_scale factor.
inline double factor_value(uint32_t bits, bool is_ue4m3) {
  if (is_ue4m3) return scalar::widen(bits & 0x7f, scalar::kE4m3);
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

// The 4 metadata bits of a chunk of a row of sparse A: which 2 of its 4 parts are stored (tf32: which of 2). `row` is
// one of the 16 rows of a warp. The positions are those of the ISA's figures in 9.7.14.6.2, as an H200 reads them: a
// register holds four chunks of two rows for elements of 16 bits and more, and eight chunks of one row for 8 bits and
// less.
uint32_t chunk_metadata(Warp& warp, const MatrixForm& form, unsigned row, unsigned chunk);

// Sparse A with its zeros; `compressed` has half the columns.
Matrix expand(const Matrix& compressed, Warp& warp, const MatrixForm& form);

// Propagates undefined bits: one undefined bit in the registers of A, B or C makes D undefined.
void propagate_undefined_matrix(Warp& warp, const MatrixForm& form);

}  // namespace ptxkit::emulator
