// Test cases of the BWT kernels against their references. Emulator and GPU tests pass their own `launch`.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/kernel_argument.hpp"
#include "kernels/bwt/bwt_reference.hpp"
#include "kernels/bwt/mtf_reference.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"

namespace ptxkit::testing {

// The reason why `order` is not the order of the suffixes of `text`; empty if it is. The order is right if it has every
// suffix once, the first bytes ascend, and for equal first bytes the suffixes one position later ascend too: S.
// Burkhardt, J. Kärkkäinen, "Fast Lightweight Suffix Array Construction and Checking", CPM 2003.
inline std::string check_suffix_order(const Bytes& text, const std::vector<uint32_t>& order) {
  const size_t n = text.size();
  if (order.size() != n) return std::to_string(order.size()) + " suffixes of " + std::to_string(n);
  std::vector<size_t> rank(n + 1);  // 0 for the empty suffix, from 1 on for the others
  for (size_t row = 0; row < n; ++row) {
    if (order[row] >= n) return "row " + std::to_string(row) + " is no suffix";
    if (rank[order[row]] != 0) return "the suffix of row " + std::to_string(row) + " stands twice";
    rank[order[row]] = row + 1;
  }
  for (size_t row = 1; row < n; ++row) {
    const uint32_t a = order[row - 1], b = order[row];
    if (text[a] > text[b] || (text[a] == text[b] && rank[a + 1] > rank[b + 1]))
      return "rows " + std::to_string(row - 1) + " and " + std::to_string(row) + " are not in order";
  }
  return {};
}

// Hard inputs for a suffix sort: lengths around every limit, one symbol, periods, noise, and repeats.
inline std::vector<Bytes> bwt_inputs(const std::vector<size_t>& sizes) {
  std::vector<Bytes> inputs;
  for (const size_t size : sizes) {
    const auto seed = static_cast<uint32_t>(size);
    Bytes period_2(size), period_7(size);
    for (size_t i = 0; i < size; ++i) {
      period_2[i] = i % 2 == 0 ? 'b' : 'a';
      period_7[i] = static_cast<uint8_t>(i % 7 * 40);
    }
    inputs.insert(inputs.end(), {Bytes(size, 0), Bytes(size, 255), period_2, period_7, random_bytes(size, seed),
                                 matchable_bytes(size, seed), fibonacci_bytes(size)});
  }
  return inputs;
}

// Words of twelve bytes, each `copies` times, in random order and with random bytes between them. Until eight bytes
// have been compared, their suffixes are in groups of `copies`.
inline Bytes grouped_bytes(size_t words, size_t copies) {
  std::mt19937 random(static_cast<uint32_t>(copies));
  const Bytes letters = random_bytes(words * 12, 1);
  std::vector<size_t> order(words * copies);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i % words;
  std::shuffle(order.begin(), order.end(), random);
  Bytes bytes;
  for (const size_t word : order) {
    const auto begin = letters.begin() + static_cast<ptrdiff_t>(word * 12);
    bytes.insert(bytes.end(), begin, begin + 12);
    bytes.push_back(static_cast<uint8_t>(random()));
  }
  return bytes;
}
// Groups around the length that a warp sorts at once, in lists longer than one iteration of each warp.
inline std::vector<Bytes> grouped_inputs() {
  std::vector<Bytes> inputs;
  for (const size_t copies : {2u, 16u, 31u, 32u, 33u, 34u, 64u, 65u, 100u})
    inputs.push_back(grouped_bytes(1000 / copies, copies));
  inputs.push_back(grouped_bytes(31, 32));
  inputs.back().insert(inputs.back().end(), inputs.front().begin(), inputs.front().begin() + 3000);
  return inputs;
}

inline Bytes bwt_block(const Bytes& raw) {
  Bytes block(kernels::bwt_block_bytes(static_cast<uint32_t>(raw.size())));
  EXPECT_EQ(kernels::bwt_reference(raw, block).status, kernels::StreamStatus::ok);
  return block;
}

// Blocks of texts of these sizes with one defect: cut, longer, another size, another row, another byte.
inline std::vector<Bytes> damaged_bwt_blocks(const std::vector<size_t>& sizes, std::mt19937& random) {
  std::vector<Bytes> blocks;
  for (const Bytes& raw : bwt_inputs(sizes)) {
    const Bytes good = bwt_block(raw);
    const auto end = good.begin() + static_cast<ptrdiff_t>(random() % good.size());
    blocks.emplace_back(good.begin(), end);
    blocks.push_back(good);
    blocks.back().push_back(0);
    const size_t column_at = kernels::bwt_column_at(static_cast<uint32_t>(raw.size()));
    for (const auto& [begin, size] : {std::pair<size_t, size_t>{0, 4}, {4, column_at - 4}, {column_at, raw.size()}}) {
      for (int i = 0; i < 3 && size != 0; ++i) {
        blocks.push_back(good);
        blocks.back()[begin + random() % size] ^= static_cast<uint8_t>(1u << random() % 8);
      }
    }
    blocks.push_back(good);  // the same bytes in another order
    std::shuffle(blocks.back().begin() + static_cast<ptrdiff_t>(column_at), blocks.back().end(), random);
  }
  return blocks;
}

// A kernel of the family, with its reference.
struct BwtKernel {
  std::string_view name;
  uint32_t threads;
  uint64_t (*scratch_words)(uint64_t item_bytes);  // nullptr: the kernel has neither a scratch nor a largest item
  kernels::TransformOutcome (*reference)(std::span<const uint8_t>, std::span<uint8_t>);
  bool leaves_order = false;  // in its scratch
  bool is_transform = false;  // its parameters are kernels::TransformParameters
};
inline BwtKernel bwt_radix() {
  return {kernels::kBwtRadix, kernels::kBwtSortThreads, kernels::bwt_radix_scratch_words, kernels::bwt_reference, true};
}
inline BwtKernel bwt_rank() {
  return {kernels::kBwtRank, kernels::kBwtRankThreads, kernels::bwt_rank_scratch_words, kernels::bwt_reference, true};
}
inline BwtKernel bwt_bitonic() {
  return {kernels::kBwtBitonic, kernels::kBwtSortThreads, nullptr, [](auto src, auto dst) {
            if (src.size() <= kernels::kMaxBitonicBytes) return kernels::bwt_reference(src, dst);
            return kernels::TransformOutcome{kernels::StreamStatus::item_too_large, 0};
          }};
}
inline std::vector<BwtKernel> bwt_sorts() { return {bwt_rank(), bwt_radix(), bwt_bitonic()}; }
inline BwtKernel bwt_inverse() {
  return {kernels::kBwtInverse, kernels::kBwtInverseThreads, kernels::bwt_inverse_scratch_words,
          kernels::bwt_inverse_reference};
}
inline BwtKernel mtf_encode() {
  return {kernels::kMtfEncode, kernels::kColumnThreads, nullptr, kernels::mtf_encode_reference, false, true};
}
inline BwtKernel mtf_decode() {
  return {kernels::kMtfDecode, kernels::kColumnThreads, nullptr, kernels::mtf_decode_reference, false, true};
}
inline BwtKernel zero_runs_encode() {
  return {kernels::kZeroRunsEncode, kernels::kColumnThreads, nullptr, kernels::zero_runs_encode_reference, false, true};
}
inline BwtKernel zero_runs_decode() {
  return {kernels::kZeroRunsDecode, kernels::kColumnThreads, nullptr, kernels::zero_runs_decode_reference, false, true};
}

inline uint32_t longest_of(const std::vector<Bytes>& items) {
  size_t longest = 0;
  for (const Bytes& item : items) longest = std::max(longest, item.size());
  return static_cast<uint32_t>(longest);
}

// The results of one launch over `items`, each with room for `room_bytes` (rounded up to 16).
struct BwtRun {
  std::vector<uint32_t> sizes, statuses;
  std::vector<Bytes> rooms;
  Bytes scratch;  // of kernels that leave an order in it

  Bytes result(size_t i) const {
    return {rooms[i].begin(), rooms[i].begin() + static_cast<ptrdiff_t>(std::min<size_t>(sizes[i], rooms[i].size()))};
  }
};
inline constexpr uint8_t kRoomPattern = 0xa5;
template <class Value>
KernelArgument array_argument(const std::vector<Value>& values) {
  Bytes bytes(values.size() * sizeof(Value));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return KernelArgument::input(std::move(bytes));
}

inline BwtRun run_bwt_kernel(const Launch& launch, const BwtKernel& kernel, const std::vector<Bytes>& items,
                             uint32_t item_bytes, uint32_t room_bytes) {
  // Items of a transform are contiguous, at addresses of any alignment.
  const size_t unit = kernel.is_transform ? 1 : 16;
  const size_t src_stride = (longest_of(items) + unit - 1) / unit * unit, dst_stride = (room_bytes + 15) / 16 * 16;
  const size_t count = items.size();
  Bytes src(count * src_stride, kRoomPattern);
  std::vector<uint32_t> sizes, rooms(count, static_cast<uint32_t>(dst_stride));
  std::vector<uint64_t> src_offsets, dst_offsets;
  for (size_t i = 0; i < count; ++i) {
    std::copy(items[i].begin(), items[i].end(), src.begin() + static_cast<ptrdiff_t>(i * src_stride));
    sizes.push_back(static_cast<uint32_t>(items[i].size()));
    src_offsets.push_back(i * src_stride);
    dst_offsets.push_back(i * dst_stride);
  }
  const auto number = [](size_t value) { return KernelArgument::number(static_cast<uint32_t>(value)); };
  const auto room = KernelArgument::input(Bytes(count * dst_stride, kRoomPattern));
  const auto words = KernelArgument::output(4 * count);
  std::vector<KernelArgument> arguments;
  if (kernel.is_transform) {
    arguments = {KernelArgument::input(std::move(src)),
                 array_argument(src_offsets),
                 array_argument(sizes),
                 room,
                 array_argument(dst_offsets),
                 array_argument(rooms),
                 words,
                 words,
                 number(count)};
  } else {
    arguments = {KernelArgument::input(std::move(src)), array_argument(sizes), room, words, words};
    if (kernel.scratch_words != nullptr) {
      const size_t scratch_bytes = 4 * count * kernel.scratch_words(item_bytes);
      arguments.push_back(kernel.leaves_order ? KernelArgument::output(scratch_bytes)
                                              : KernelArgument::scratch(scratch_bytes));
    }
    arguments.push_back(number(src_stride / 16));
    arguments.push_back(number(dst_stride / 16));
    if (kernel.scratch_words != nullptr) arguments.push_back(number(item_bytes));
  }
  auto buffers = launch(kernel.name, static_cast<uint32_t>(count), kernel.threads, arguments);
  BwtRun run;
  if (buffers.empty()) return run;
  const size_t dst_at = kernel.is_transform ? 3 : 2, sizes_at = kernel.is_transform ? 6 : 3;
  run.sizes.resize(count);
  run.statuses.resize(count);
  std::memcpy(run.sizes.data(), buffers[sizes_at].data(), 4 * count);
  std::memcpy(run.statuses.data(), buffers[sizes_at + 1].data(), 4 * count);
  for (size_t i = 0; i < count; ++i) {
    const auto begin = buffers[dst_at].begin() + static_cast<ptrdiff_t>(i * dst_stride);
    run.rooms.emplace_back(begin, begin + static_cast<ptrdiff_t>(dst_stride));
  }
  if (kernel.leaves_order) run.scratch = std::move(buffers[5]);
  return run;
}

// Expects the statuses, lengths and bytes of the reference, and no change outside the results. Returns the results.
inline std::vector<Bytes> expect_bwt_as_reference(const Launch& launch, const BwtKernel& kernel,
                                                  const std::vector<Bytes>& items, uint32_t item_bytes,
                                                  uint32_t room_bytes) {
  using kernels::StreamStatus;
  const BwtRun run = run_bwt_kernel(launch, kernel, items, item_bytes, room_bytes);
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < run.sizes.size(); ++i) {
    SCOPED_TRACE(std::string(kernel.name) + ", item " + std::to_string(i) + " of " + std::to_string(items[i].size()));
    const Bytes& room = run.rooms[i];
    Bytes expected(room.size());
    const auto outcome = kernel.reference(items[i], expected);
    EXPECT_EQ(status_text(static_cast<StreamStatus>(run.statuses[i])), status_text(outcome.status));
    EXPECT_EQ(run.sizes[i], outcome.size_bytes);
    expected.resize(outcome.size_bytes);
    outputs.push_back(run.result(i));
    EXPECT_TRUE(outputs.back() == expected);
    if (outcome.status != StreamStatus::ok) continue;
    EXPECT_TRUE(std::all_of(room.begin() + static_cast<ptrdiff_t>(expected.size()), room.end(), [](uint8_t byte) {
      return byte == kRoomPattern;
    })) << "bytes behind the result changed";
    if (kernel.leaves_order) {
      std::vector<uint32_t> order(items[i].size());
      const size_t scratch_bytes = run.scratch.size() / items.size();
      if (!order.empty()) std::memcpy(order.data(), &run.scratch[i * scratch_bytes], 4 * order.size());
      EXPECT_EQ(check_suffix_order(items[i], order), "");
    }
  }
  return outputs;
}

// Runs a kernel of move-to-front or zero runs over `items`, each with room for `room_bytes`, and expects the
// reference's results. Returns them.
inline std::vector<Bytes> expect_column_as_reference(const Launch& launch, const BwtKernel& kernel,
                                                     const std::vector<Bytes>& items, uint32_t room_bytes) {
  return expect_bwt_as_reference(launch, kernel, items, 0, room_bytes);
}

// Inputs for zero runs: every byte beside every kind of other byte, runs of every length up to 70, long runs.
inline std::vector<Bytes> zero_run_inputs(const std::vector<size_t>& sizes) {
  std::vector<Bytes> inputs = {{}, {0}, {254}, {255}, {1, 253, 254, 255, 0}};
  for (const size_t size : sizes) {
    Bytes growing, sparse(size);
    for (size_t run = 0; growing.size() < size; ++run) {
      growing.insert(growing.end(), run % 70, 0);
      growing.push_back(static_cast<uint8_t>(run * 37 % 255 + 1));
    }
    growing.resize(size);
    for (size_t i = 0; i < size; i += 1 + i * 7919 % 997) sparse[i] = static_cast<uint8_t>(255 - i % 3);
    inputs.insert(inputs.end(), {growing, sparse, Bytes(size), Bytes(size, 255), random_bytes(size, 1)});
    if (size != 0) inputs.back().back() = 0;
  }
  return inputs;
}

// Runs a sort over `raws`, or the inverse over their blocks.
inline void expect_bwt_blocks(const Launch& launch, const BwtKernel& sort, const std::vector<Bytes>& raws) {
  const uint32_t longest = longest_of(raws);
  expect_bwt_as_reference(launch, sort, raws, longest, kernels::bwt_block_bytes(longest));
}
inline void expect_bwt_inverted(const Launch& launch, const std::vector<Bytes>& raws) {
  std::vector<Bytes> blocks;
  for (const Bytes& raw : raws) blocks.push_back(bwt_block(raw));
  const uint32_t longest = longest_of(raws);
  EXPECT_TRUE(expect_bwt_as_reference(launch, bwt_inverse(), blocks, longest, longest) == raws);
}

}  // namespace ptxkit::testing
