// An argument of a kernel launch in a test: a number, or a buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"

namespace ptxkit::testing {

// The values as a kernel finds them in memory.
template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

struct KernelArgument {
  static KernelArgument number(uint32_t value) { return {false, {}, 0, value}; }
  static KernelArgument input(Bytes bytes) {
    const size_t size = bytes.size();
    return {true, std::move(bytes), size, 0};
  }
  static KernelArgument output(size_t size_bytes) { return {true, {}, size_bytes, 0}; }  // uninitialised

  static KernelArgument scratch(size_t size_bytes) {  // uninitialised, and not returned
    KernelArgument argument = output(size_bytes);
    argument.is_scratch = true;
    return argument;
  }

  // An array of addresses, each of a buffer of its own. Its content after the launch is theirs, one after another.
  static KernelArgument addresses(std::vector<Bytes> pointees) {
    KernelArgument argument = output(8 * pointees.size());
    argument.pointees = std::move(pointees);
    return argument;
  }

  bool is_buffer;
  Bytes bytes;  // empty: the buffer is uninitialised
  size_t size_bytes;
  uint32_t value;
  bool is_scratch = false;
  std::vector<Bytes> pointees = {};
};

// (kernel, CTAs, threads of a CTA, arguments) -> the buffers after the launch, in order. A failure is reported and
// gives none.
using Launch =
    std::function<std::vector<Bytes>(std::string_view, uint32_t, uint32_t, const std::vector<KernelArgument>&)>;

}  // namespace ptxkit::testing
