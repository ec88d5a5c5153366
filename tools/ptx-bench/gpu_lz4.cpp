#include "tools/ptx-bench/gpu_lz4.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <lz4.h>

#include "kernels/abi.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "tools/ptx-bench/session.hpp"

namespace ptxkit::bench {
namespace {

using driver::LaunchArgument;
using driver::Stream;

bool decodes_to(codec::Bytes block, codec::Bytes raw) {
  std::vector<char> decoded(raw.size());
  const int length = LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), decoded.data(),
                                         static_cast<int>(block.size()), static_cast<int>(decoded.size()));
  return length == static_cast<int>(raw.size()) && std::memcmp(decoded.data(), raw.data(), raw.size()) == 0;
}

}  // namespace

Result<GpuEncoded> measure_compression(const driver::ContextPointer& context, const Input& input,
                                       std::string_view kernel_name, codec::Executor& executor,
                                       const Repetition& repetition) {
  const kernels::LaunchShape& shape =
      kernel_name == kernels::kLz4CompressPage ? kernels::kLz4CompressPageShape : kernels::kLz4CompressChunkShape;
  GpuEncoded result;
  if (input.chunk_bytes > kernels::kMaxChunkBytes || input.chunk_bytes % kernels::kStrideUnitBytes != 0) {
    return fail(fmt::format("expected chunks of at most {} bytes, a multiple of {}, found {}", kernels::kMaxChunkBytes,
                            kernels::kStrideUnitBytes, input.chunk_bytes));
  }
  auto kernel = load_kernel(context, kernel_name);
  if (!kernel) return tl::unexpected(kernel.error());
  auto session = Session::open(context);
  if (!session) return tl::unexpected(session.error());

  const size_t count = input.chunk_count();
  std::vector<uint32_t> sizes(count);
  for (size_t i = 0; i < count; ++i) sizes[i] = static_cast<uint32_t>(input.chunk(i).size());
  const size_t src = session->allocate(count * input.chunk_bytes), src_sizes = session->upload(sizes),
               dst = session->allocate(count * input.chunk_bytes), dst_sizes = session->allocate(count * 4),
               flags = session->allocate(count);
  if (!session->outcome()) return tl::unexpected(session->outcome().error());
  if (auto loaded = session->time([&](const Stream& stream) { return session->memory(src).upload(input.raw, stream); });
      !loaded) {
    return tl::unexpected(loaded.error());
  }
  for (const size_t output : {dst, dst_sizes, flags}) session->poison(output);
  const auto stride = static_cast<uint32_t>(input.chunk_bytes / kernels::kStrideUnitBytes);
  const auto item_count = static_cast<uint32_t>(count);
  const LaunchArgument arguments[] = {session->argument(src),     session->argument(src_sizes),
                                      session->argument(dst),     session->argument(dst_sizes),
                                      session->argument(flags),   LaunchArgument::of(stride),
                                      LaunchArgument::of(stride), LaunchArgument::of(item_count)};
  auto seconds = median_seconds(repetition, [&] {
    return session->time([&](const Stream& stream) {
      return kernel->launch(stream, shape.grid_blocks(item_count), shape.block_threads, arguments);
    });
  });
  if (!seconds) return tl::unexpected(seconds.error());
  result.seconds = *seconds;

  const auto found_sizes = session->download<uint32_t>(dst_sizes, count);
  const auto found_flags = session->download<uint8_t>(flags, count);
  const auto found = session->download<uint8_t>(dst, count * input.chunk_bytes);
  if (!session->outcome()) return tl::unexpected(session->outcome().error());
  result.blocks.resize(count);
  std::atomic<size_t> first_bad{count};
  executor.for_each(count, [&](size_t i, unsigned) {
    const codec::Bytes raw = input.chunk(i);
    const codec::Bytes room = codec::Bytes(found).subspan(i * input.chunk_bytes, raw.size());
    bool good = false;
    switch (static_cast<kernels::PageFlag>(found_flags[i])) {
      case kernels::PageFlag::compressed:
        good = found_sizes[i] < raw.size() && decodes_to(room.first(found_sizes[i]), raw);
        if (good) result.blocks[i].assign(room.begin(), room.begin() + found_sizes[i]);
        break;
      case kernels::PageFlag::incompressible:
        good = found_sizes[i] == raw.size() && std::equal(raw.begin(), raw.end(), room.begin());
        break;
      case kernels::PageFlag::zero:
        good = found_sizes[i] == 0 && std::all_of(raw.begin(), raw.end(), [](uint8_t byte) { return byte == 0; });
        break;
      case kernels::PageFlag::refused:
        break;
    }
    if (good) return;
    for (size_t seen = first_bad; i < seen && !first_bad.compare_exchange_weak(seen, i);) {
    }
  });
  if (first_bad != count) {
    return fail(fmt::format("{}: chunk {} does not decode to its raw bytes (flag {}, {} bytes)", kernel_name,
                            first_bad.load(), found_flags[first_bad], found_sizes[first_bad]),
                input.name);
  }
  for (const uint32_t size : found_sizes) result.stored_bytes += size;
  return result;
}

Result<Timing> measure_decompression(const driver::ContextPointer& context, const Input& input,
                                     const std::vector<codec::Bytes>& blocks, const Repetition& repetition) {
  auto kernel = load_kernel(context, kernels::kLz4Decompress);
  if (!kernel) return tl::unexpected(kernel.error());
  auto session = Session::open(context);
  if (!session) return tl::unexpected(session.error());
  const size_t count = blocks.size();
  std::vector<uint8_t> packed;
  packed.reserve(std::transform_reduce(blocks.begin(), blocks.end(), size_t{0}, std::plus<>(),
                                       [](codec::Bytes block) { return block.size(); }));
  std::vector<uint64_t> block_offsets(count), output_offsets(count);
  std::vector<uint32_t> block_sizes(count), capacities(count);
  for (size_t i = 0; i < count; ++i) {
    block_offsets[i] = packed.size();
    block_sizes[i] = static_cast<uint32_t>(blocks[i].size());
    output_offsets[i] = i * input.chunk_bytes;
    capacities[i] = static_cast<uint32_t>(input.chunk(i).size());
    packed.insert(packed.end(), blocks[i].begin(), blocks[i].end());
  }
  const size_t src = session->upload(packed), src_offsets = session->upload(block_offsets),
               src_sizes = session->upload(block_sizes), dst = session->allocate(input.raw.size()),
               dst_offsets = session->upload(output_offsets), dst_capacities = session->upload(capacities),
               dst_sizes = session->allocate(count * 4), statuses = session->allocate(count * 4);
  for (const size_t output : {dst, dst_sizes, statuses}) session->poison(output);
  session->wait();
  if (!session->outcome()) return tl::unexpected(session->outcome().error());
  const auto item_count = static_cast<uint32_t>(count);
  const LaunchArgument arguments[] = {
      session->argument(src),       session->argument(src_offsets), session->argument(src_sizes),
      session->argument(dst),       session->argument(dst_offsets), session->argument(dst_capacities),
      session->argument(dst_sizes), session->argument(statuses),    LaunchArgument::of(item_count)};
  const kernels::LaunchShape& shape = kernels::kLz4DecompressShape;
  auto seconds = median_seconds(repetition, [&] {
    return session->time([&](const Stream& stream) {
      return kernel->launch(stream, shape.grid_blocks(item_count), shape.block_threads, arguments);
    });
  });
  if (!seconds) return seconds;
  const auto found = session->download<uint8_t>(dst, input.raw.size());
  const auto found_statuses = session->download<uint32_t>(statuses, count);
  if (!session->outcome()) return tl::unexpected(session->outcome().error());
  for (size_t i = 0; i < count; ++i) {
    if (found_statuses[i] != 0) {
      return fail(
          fmt::format("block {}: {}", i, kernels::status_text(static_cast<kernels::Lz4Status>(found_statuses[i]))),
          input.name);
    }
  }
  if (found == input.raw) return seconds;
  const auto bad = std::mismatch(found.begin(), found.end(), input.raw.begin()).first;
  return fail(fmt::format("byte {} of the decoded data is wrong", bad - found.begin()), input.name);
}

Result<Timing> measure_copy(const driver::ContextPointer& context, size_t size_bytes, const Repetition& repetition) {
  auto session = Session::open(context);
  if (!session) return tl::unexpected(session.error());
  const size_t from = session->allocate(size_bytes), to = session->allocate(size_bytes);
  session->poison(from);
  session->wait();
  if (!session->outcome()) return tl::unexpected(session->outcome().error());
  return median_seconds(repetition, [&] {
    return session->time(
        [&](const Stream& stream) { return session->memory(to).copy_from(session->memory(from), stream); });
  });
}

}  // namespace ptxkit::bench
