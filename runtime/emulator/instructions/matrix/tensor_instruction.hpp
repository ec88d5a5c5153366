// The descriptors of tcgen05.mma other than those of matrices: PTX ISA 9.0, 9.7.16.4.2 and 9.7.16.4.3.
#pragma once

#include <string>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/tensor_memory.hpp"

namespace ptxkit::emulator {

// The instruction descriptor, interpreted by its kind (tables 42 to 44).
struct TensorInstruction {
  uint32_t bits = 0;
  TensorKind kind = TensorKind::f16;

  uint32_t field(unsigned first, unsigned count) const { return bits >> first & ((1u << count) - 1); }
  bool is_scaled() const { return kind >= TensorKind::mxf8f6f4; }
  bool is_packed() const { return kind >= TensorKind::mxf4; }  // two elements of 4 bits in a byte

  bool is_sparse() const { return field(2, 1); }
  bool saturates() const { return kind == TensorKind::i8 && field(3, 1); }
  bool negated() const { return field(13, 1) != field(14, 1); }
  bool a_columns() const { return field(15, 1); }  // M is contiguous
  bool b_columns() const { return field(16, 1); }  // N is contiguous
  unsigned n() const { return field(17, 6) << 3; }
  unsigned m() const { return is_scaled() ? field(27, 2) << 7 : field(24, 5) << 4; }
  unsigned selector() const { return field(0, 2); }    // selects the columns of the metadata of a sparse A
  unsigned a_factors() const { return field(29, 2); }  // the first byte of a word that holds factors
  unsigned b_factors() const { return field(4, 2); }
  bool has_ue8m0() const { return field(23, 1); }  // type of the factors; otherwise ue4m3
  unsigned dense_depth() const;                    // K if A is not sparse

  ptx::Type a() const { return element(field(7, 3)); }
  ptx::Type b() const { return element(is_packed() ? field(10, 2) : field(10, 3)); }
  ptx::Type d() const;

 private:
  ptx::Type element(uint32_t format) const;
};

// Why no tcgen05.mma has this combination of shape, formats and factors (tables 39, 49 and 54); empty if there is one.
std::string instruction_error(const TensorInstruction& is, const TensorForm& form);

// Why this is no matrix descriptor in shared memory (PTX ISA 9.0, 9.7.16.4.1, and tables 51, 54 and 55); empty if it is
// one. For tcgen05.cp the kind does not matter.
std::string matrix_descriptor_error(uint64_t descriptor, TensorKind kind, bool across_k);

// Whether the zero-column descriptor of a .ws product replaces a column of B by zeros.
bool is_zero_column(uint64_t descriptor, unsigned m, unsigned n, unsigned column);
// Columns of B that are skipped, from the first on.
inline unsigned column_shift(uint64_t descriptor) { return descriptor >> 56 & 0x3f; }

}  // namespace ptxkit::emulator
