// What the tests of the C ABI share: a context, items of many sizes and contents, and a check with the library's text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <ptxkit.h>

#include "fkr_tests/cases/corpus.hpp"

namespace ptxkit::testing {

using Bytes = std::vector<uint8_t>;

#define EXPECT_OK(call) EXPECT_EQ(call, PTXKIT_OK) << ptxkit_last_error()
#define ASSERT_OK(call) ASSERT_EQ(call, PTXKIT_OK) << ptxkit_last_error()

class CApi : public ::testing::Test {
 protected:
  CApi() {
    ptxkit_context_options options = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
    options.policy = PTXKIT_POLICY_CPU;
    options.cpu_threads = 2;
    EXPECT_OK(ptxkit_context_create(&options, &context_));
  }
  ~CApi() override { ptxkit_context_destroy(context_); }

  ptxkit_context* context_ = nullptr;
};

// A string of the library, freed at the end.
class Text {
 public:
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { ptxkit_string_free(text_); }
  operator char**() { return &text_; }
  std::string str() const { return text_ == nullptr ? "" : text_; }

 private:
  char* text_ = nullptr;
};

inline Bytes words(size_t count) {
  Bytes bytes(count);
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    if (i % 7 == 0) state = state * 1664525 + 1013904223;
    bytes[i] = static_cast<uint8_t>("the quick brown fox "[(state >> 28) + i % 5]);
  }
  return bytes;
}

// Sizes around the limits of pages, chunks and pieces; contents that shrink, that do not, and of one byte.
inline std::vector<Bytes> many_items() {
  std::vector<Bytes> items;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4}, size_t{12}, size_t{13}, size_t{15}, size_t{270}, size_t{4096}, size_t{4097},
        size_t{65535}, size_t{65536}, size_t{65537}, (size_t{1} << 20) + 3}) {
    items.push_back(words(size));
    items.push_back(random_bytes(size, 7));
    items.emplace_back(size, uint8_t{0});
    items.emplace_back(size, uint8_t{0xaa});
  }
  return items;
}

// Items beyond a piece of 4 MiB, with zeros and noise between what shrinks.
inline std::vector<Bytes> large_items() {
  Bytes mixed = words((size_t{9} << 20) + 5);
  const Bytes noise = random_bytes(size_t{3} << 20, 3);
  std::copy(noise.begin(), noise.end(), mixed.begin() + (3 << 20));
  std::fill_n(mixed.begin() + (7 << 20), 1 << 20, uint8_t{0});
  return {mixed, Bytes((size_t{4} << 20) + 1), Bytes((size_t{8} << 20) + 2, 0x55),
          random_bytes((size_t{4} << 20) + 9, 5)};
}

inline constexpr uint8_t kGuard = 0xd6;

// A batch: inputs, and outputs with guard bytes behind each.
struct Batch {
  explicit Batch(const std::vector<Bytes>& items, const std::vector<size_t>& rooms)
      : inputs(items), capacities(rooms), sizes(items.size(), 77), statuses(items.size(), 77) {
    for (size_t i = 0; i < items.size(); ++i) {
      outputs.emplace_back(rooms[i] + 16, kGuard);
      input_pointers.push_back(inputs[i].data());
      input_bytes.push_back(inputs[i].size());
    }
    for (Bytes& output : outputs) output_pointers.push_back(output.data());
  }

  // The results; checks that nothing was written behind the outputs.
  std::vector<Bytes> results() const {
    std::vector<Bytes> all;
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (size_t k = 0; k < 16; ++k) EXPECT_EQ(outputs[i][capacities[i] + k], kGuard) << i;
      EXPECT_LE(sizes[i], capacities[i]);
      all.emplace_back(outputs[i].begin(),
                       outputs[i].begin() + static_cast<ptrdiff_t>(std::min(sizes[i], capacities[i])));
    }
    return all;
  }

  std::vector<Bytes> inputs, outputs = {};
  std::vector<const void*> input_pointers = {};
  std::vector<size_t> input_bytes = {};
  std::vector<void*> output_pointers = {};
  std::vector<size_t> capacities, sizes;
  std::vector<ptxkit_status> statuses;

  ptxkit_status compress(ptxkit_context* context, const ptxkit_batch_options* options) {
    return ptxkit_compress_batch(context, options, input_pointers.data(), input_bytes.data(), inputs.size(),
                                 output_pointers.data(), capacities.data(), sizes.data(), statuses.data());
  }
  ptxkit_status decompress(ptxkit_context* context, const ptxkit_batch_options* options) {
    return ptxkit_decompress_batch(context, options, input_pointers.data(), input_bytes.data(), inputs.size(),
                                   output_pointers.data(), capacities.data(), sizes.data(), statuses.data());
  }
};

inline std::vector<size_t> sizes_of(const std::vector<Bytes>& items) {
  std::vector<size_t> sizes;
  for (const Bytes& item : items) sizes.push_back(item.size());
  return sizes;
}

inline std::vector<size_t> bounds_of(const std::vector<Bytes>& items, const ptxkit_batch_options& options) {
  std::vector<size_t> bounds;
  for (const Bytes& item : items) {
    bounds.push_back(0);
    EXPECT_OK(ptxkit_compress_bound(&options, item.size(), &bounds.back()));
  }
  return bounds;
}

}  // namespace ptxkit::testing
