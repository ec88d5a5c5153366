// What a kernel says about the block it is launched with, and what follows for the special registers.
#pragma once

#include <optional>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

struct LaunchShape {
  bool is_exact = false;            // .reqntid: every launch has `threads`
  uint32_t threads[3] = {0, 0, 0};  // per dimension; valid where is_exact
  uint32_t max_threads = 1024;      // of a block; .maxntid or the hardware's limit

  static LaunchShape of(const ptx::Function& function);

  uint32_t block_threads() const { return is_exact ? threads[0] * threads[1] * threads[2] : max_threads; }
  // Largest %tid in dimension 0..2.
  uint32_t max_tid(unsigned dimension) const;
};

// Inclusive bounds of a special register's component under `shape`.
struct SpecialRange {
  uint64_t low = 0, high = 0;
};
SpecialRange range_of(ptx::SpecialRegister special, uint8_t component, const LaunchShape& shape);

}  // namespace ptxkit::flow
