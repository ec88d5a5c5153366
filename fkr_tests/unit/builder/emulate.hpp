// Runs a kernel of the DSL on the emulator with every check enabled, to test what it computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "builder/dsl.hpp"

namespace ptxkit::testing {

// Runs the kernel that `body` writes, with `block` threads and `grid` CTAs, on two inputs of one element for each
// thread and one output of `out_count` elements (0: one for each thread), all u64. Faults and errors are reported as
// test failures.
using Words = std::vector<uint64_t>;
using InWords = dsl::Span<dsl::read_only, dsl::u64>;
using OutWords = dsl::Span<dsl::global, dsl::u64>;

struct Ran {
  Words out;
  std::string report;  // rendered faults; empty if there are none
  Words debug;         // the debug buffer of a debug build, in words of 8 bytes
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
