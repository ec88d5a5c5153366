// The codec `bbw` put together from its kernels alone, wherever they run: the blocks that ptx-pack writes, and back.
#pragma once

#include "fkr_tests/bwt_cases.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/bbw_block.hpp"

namespace ptxkit::testing {

inline void append_number(Bytes& to, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}

// One launch of a transform over `items`; results of statuses other than ok are empty.
inline std::vector<Bytes> run_transform(const Launch& launch, std::string_view kernel, const std::vector<Bytes>& items,
                                        uint32_t room_bytes, const std::vector<uint32_t>& options) {
  Bytes src, src_offsets, src_sizes, dst_offsets, capacities;
  for (size_t i = 0; i < items.size(); ++i) {
    append_number(src_offsets, src.size(), 8);
    append_number(src_sizes, items[i].size(), 4);
    append_number(dst_offsets, i * room_bytes, 8);
    append_number(capacities, room_bytes, 4);
    src.insert(src.end(), items[i].begin(), items[i].end());
  }
  std::vector<KernelArgument> arguments;
  for (const Bytes& input : {src, src_offsets, src_sizes}) arguments.push_back(KernelArgument::input(input));
  arguments.push_back(KernelArgument::output(items.size() * room_bytes));
  for (const Bytes& input : {dst_offsets, capacities}) arguments.push_back(KernelArgument::input(input));
  for (int i = 0; i < 2; ++i) arguments.push_back(KernelArgument::output(4 * items.size()));
  arguments.push_back(KernelArgument::number(static_cast<uint32_t>(items.size())));
  for (const uint32_t option : options) arguments.push_back(KernelArgument::number(option));
  const uint32_t threads = kernels::find_kernel_image(kernel, 9, 0)->block_threads;
  const auto buffers = launch(kernel, static_cast<uint32_t>(items.size()), threads, arguments);
  std::vector<Bytes> results(items.size());
  for (size_t i = 0; i < items.size() && !buffers.empty(); ++i) {
    uint32_t size = 0;
    std::memcpy(&size, &buffers[6][4 * i], 4);
    const auto begin = buffers[3].begin() + static_cast<ptrdiff_t>(i * room_bytes);
    results[i].assign(begin, begin + static_cast<ptrdiff_t>(size));
  }
  return results;
}

inline Bytes run_column(const Launch& launch, const BwtKernel& kernel, const Bytes& item, uint32_t item_bytes,
                        uint32_t room_bytes) {
  const BwtRun run = run_bwt_kernel(launch, kernel, {item}, item_bytes, room_bytes);
  EXPECT_EQ(run.statuses, std::vector<uint32_t>{0}) << kernel.name;
  return run.sizes.empty() ? Bytes() : run.result(0);
}

// `raw` shrinks.
inline void expect_bbw_block(const Launch& launch, const Bytes& raw) {
  constexpr size_t kSection = 32768;
  const auto n = static_cast<uint32_t>(raw.size());
  const Bytes block = run_column(launch, bwt_rank(), raw, n, kernels::bwt_block_bytes(n));
  ASSERT_EQ(block.size(), kernels::bwt_block_bytes(n));
  const auto column_at = block.begin() + kernels::bwt_column_at(n);
  const Bytes places = run_column(launch, mtf_encode(), Bytes(column_at, block.end()), 0, n);
  const Bytes runs = run_column(launch, zero_runs_encode(), places, 0, kernels::zero_runs_bound(n));
  std::vector<Bytes> sections;
  for (size_t at = 0; at < runs.size(); at += kSection) {
    const auto begin = runs.begin() + static_cast<ptrdiff_t>(at);
    sections.emplace_back(begin, begin + static_cast<ptrdiff_t>(std::min(kSection, runs.size() - at)));
  }
  const auto streams = run_transform(launch, kernels::kRansWarpEncode, sections, kSection, {12, 15});
  Bytes coded(block.begin(), column_at);
  append_number(coded, runs.size(), 4);
  for (size_t i = 0; i < sections.size(); ++i) {
    const bool shrinks = !streams[i].empty() && streams[i].size() < sections[i].size();
    const Bytes& content = shrinks ? streams[i] : sections[i];
    append_number(coded, content.size() | (shrinks ? 0 : 1u << 31), 4);
    coded.insert(coded.end(), content.begin(), content.end());
    if (!shrinks) continue;
    const auto back = run_transform(launch, kernels::kRansWarpDecode, {streams[i]}, kSection, {});
    EXPECT_TRUE(back[0] == sections[i]);
  }
  EXPECT_TRUE(coded == codec::encode_bbw_block(raw));

  const Bytes places_back = run_column(launch, zero_runs_decode(), runs, 0, n);
  const Bytes column_back = run_column(launch, mtf_decode(), places_back, 0, n);
  Bytes block_back(block.begin(), column_at);
  block_back.insert(block_back.end(), column_back.begin(), column_back.end());
  EXPECT_TRUE(run_column(launch, bwt_inverse(), block_back, n, n) == raw);
}

}  // namespace ptxkit::testing
