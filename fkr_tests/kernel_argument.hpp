// An argument of a kernel launch in a test: a number, or a buffer of its own.
#pragma once

#include "fkr_tests/corpus.hpp"

namespace ptxkit::testing {

struct KernelArgument {
  static KernelArgument number(uint32_t value) { return {false, {}, 0, value}; }
  static KernelArgument input(Bytes bytes) {
    const size_t size = bytes.size();
    return {true, std::move(bytes), size, 0};
  }
  static KernelArgument output(size_t size_bytes) { return {true, {}, size_bytes, 0}; }  // uninitialised

  bool is_buffer;
  Bytes bytes;  // empty: uninitialised
  size_t size_bytes;
  uint32_t value;
};

}  // namespace ptxkit::testing
