// The descriptors of tcgen05.mma that are no matrices: PTX ISA 9.0, 9.7.16.4.2 and 9.7.16.4.3.
#pragma once

#include <string>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/tensor_memory.hpp"

namespace ptxkit::emulator {

// The instruction descriptor, as its kind has it (tables 42 to 44).
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
  bool b_columns() const { return field(16, 1); }  // N is
  unsigned n() const { return field(17, 6) << 3; }
  unsigned m() const { return is_scaled() ? field(27, 2) << 7 : field(24, 5) << 4; }
  unsigned selector() const { return field(0, 2); }    // which columns the metadata of a sparse A has
  unsigned a_factors() const { return field(29, 2); }  // from which byte of a word on
  unsigned b_factors() const { return field(4, 2); }
  bool has_ue8m0() const { return field(23, 1); }  // the factors; otherwise ue4m3
  unsigned dense_depth() const;                    // K where A is not sparse

  ptx::Type a() const { return element(field(7, 3)); }
  ptx::Type b() const { return element(is_packed() ? field(10, 2) : field(10, 3)); }
  ptx::Type d() const;

 private:
  ptx::Type element(uint32_t format) const;
};

// What of the shapes, formats and factors no tcgen05.mma has: tables 39, 49 and 54. Empty where there is one.
std::string misfit(const TensorInstruction& is, const TensorForm& form);

// What no matrix descriptor in shared memory has: PTX ISA 9.0, 9.7.16.4.1, and tables 51, 54 and 55. Of a tcgen05.cp
// the kind does not matter.
std::string misfit_of_matrix(uint64_t descriptor, TensorKind kind, bool across_k);

// Whether the descriptor of a product whose B stays puts zeros instead of a column of B.
bool is_zero_column(uint64_t descriptor, unsigned m, unsigned n, unsigned column);
// Columns of B that are skipped from the first on.
inline unsigned column_shift(uint64_t descriptor) { return descriptor >> 56 & 0x3f; }

}  // namespace ptxkit::emulator
