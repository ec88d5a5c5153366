// Tensor Memory of a CTA, the operand of tcgen05: 128 lanes of 512 columns of 32 bits. PTX ISA 9.0, 9.7.16.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "runtime/emulator/core/async.hpp"

namespace ptxkit::emulator {

inline constexpr unsigned kTensorLanes = 128, kTensorColumns = 512;

// An allocation: all lanes of a range of columns.
struct TensorColumns {
  unsigned begin = 0, count = 0;
  uint32_t pc = 0, warp = 0;  // of tcgen05.alloc
};

// The writer of a column that has not been waited for: 0, or the instruction + 1.
struct PendingColumn {
  uint32_t writer = 0;
  bool is_store = false;  // tcgen05.st: only wait::st completes it
};

struct TensorMemory {
  std::vector<uint32_t> cells = std::vector<uint32_t>(size_t{kTensorLanes} * kTensorColumns);
  std::vector<uint8_t> defined = std::vector<uint8_t>(size_t{kTensorLanes} * kTensorColumns);
  std::vector<TensorColumns> allocations;
  std::array<PendingColumn, kTensorColumns> pending{};
  std::vector<AsyncRange> open;                        // written by mma and cp of this CTA, not committed yet
  std::map<uint32_t, std::vector<AsyncRange>> stores;  // by warp: stores before their wait::st
  // Allocations and deallocations of the other CTA of the pair, for both, in which this CTA has not taken part yet.
  std::deque<TensorColumns> allocated_by_peer, released_by_peer;
  unsigned most_columns = kTensorColumns;  // the largest next allocation
  bool relinquished = false;

  static size_t cell(unsigned lane, unsigned column) { return size_t{lane} * kTensorColumns + column; }
  void mark(const AsyncRange& range, bool is_store) {
    for (uint64_t i = range.begin; i < range.begin + range.size_bytes && i < kTensorColumns; ++i)
      pending[i] = {range.pc + 1, is_store};
  }
  void finish(const AsyncRange& range) {
    for (uint64_t i = range.begin; i < range.begin + range.size_bytes && i < kTensorColumns; ++i)
      if (pending[i].writer == range.pc + 1) pending[i] = {};
  }
};

enum class TensorAction : uint8_t {
  allocate,
  release,
  relinquish,
  load,
  wait_load,
  store,
  wait_store,
  copy,
  shift,
  multiply,
  commit,
};
enum class TensorShape : uint8_t { rows_32, rows_16_by_64, rows_16_by_128, rows_16_by_256, halves };
enum class TensorReduction : uint8_t { none, of_unsigned, of_signed, of_float };
// With scale factors from mxf8f6f4 on
enum class TensorKind : uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

// A tcgen05 instruction, decoded.
struct TensorForm {
  TensorAction action = TensorAction::allocate;
  AddressOperand place;  // where alloc writes its result, or the mbarrier
  AddressOperand d, a;   // in tensor memory
  uint32_t columns = 0;  // Ref
  RegisterList data;     // of ld and st
  TensorShape shape = TensorShape::rows_32;
  bool packs = false;                                 // pack::16b, unpack::16b
  TensorReduction reduction = TensorReduction::none;  // ld.red
  bool to_largest = false, of_magnitudes = false, keeps_nan = false;
  uint64_t split = 0;        // of 16x32bx2, columns
  bool a_in_memory = false;  // mma: A is in tensor memory
  TensorKind kind = TensorKind::f16;
  bool of_pair = false;                       // .cta_group::2
  bool is_sparse = false;                     // A is sparse; `metadata` selects the places of its elements
  bool is_stationary = false;                 // .ws
  AddressOperand metadata, scale_a, scale_b;  // in tensor memory
  unsigned factor_count = 0;                  // for 64, or sparse 128, elements along K; for 96 half as many more
  bool names_factors = false;                 // .scale_vec::NX
  uint32_t a_descriptor = 0, b_descriptor = 0, instruction = 0;  // Refs; a_descriptor also for cp
  uint32_t use_d = 0, use_d_flip = 0;                            // Ref: predicate
  RegisterList disabled;      // lanes that are not written: 4 words for each CTA, or none
  uint32_t zero_columns = 0;  // Ref: the columns of B that are zero, if `is_stationary`; otherwise the zero slot
  uint8_t scale = 0;          // D is multiplied by 2^-scale first
  bool shifts_a = false;      // .ashift: the rows of A are shifted after the product
  uint8_t copy_columns = 8;
  uint8_t packed_bits = 0;                // of cp: elements of 4 or 6 bits are expanded to bytes; 0: copied unchanged
  uint8_t rows_per_warp = 32;             // of cp; 1: each warp takes one of 4 rows, at its own address
  std::array<uint8_t, 4> rows_of_warp{};  // which group of that many rows each warp takes
  bool multicasts = false;
  uint32_t ctas = 0;  // Ref
};

}  // namespace ptxkit::emulator
