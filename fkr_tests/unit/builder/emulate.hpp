// Runs a kernel of the DSL on the emulator, every check on: what it computes, not how it looks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "builder/dsl.hpp"

namespace ptxkit::testing {

// The kernel of `block` threads and `grid` CTAs that `body` writes, given two inputs of one element a thread and one
// output of `out_count` elements (0: one a thread), all u64. Faults and errors are reported as test failures.
using Words = std::vector<uint64_t>;
using InWords = dsl::Span<dsl::read_only, dsl::u64>;
using OutWords = dsl::Span<dsl::global, dsl::u64>;

struct Ran {
  Words out;
  std::string report;  // rendered faults; empty if there are none
  Words debug;         // the debug buffer, in words of 8 bytes, of a debug build
};

struct RunOptions {
  dsl::EmitOptions emit = {};
  uint32_t block = 64;
  uint32_t grid = 1;
  size_t out_count = 0;
};

Ran run(const std::function<void(dsl::Kernel&, const InWords& a, const InWords& b, const OutWords& out)>& body,
        const Words& a, const Words& b, const RunOptions& options = {});

}  // namespace ptxkit::testing
