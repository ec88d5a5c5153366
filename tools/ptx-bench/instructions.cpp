#include "tools/ptx-bench/instructions.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/abi.hpp"
#include "kernels/transform_abi.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::bench {
namespace {

using emulator::Address;
using emulator::Argument;

constexpr size_t kSampleBytes = 128u << 10;

// One launch on an emulated device. Keeps the first error, so that calls need not be checked one by one.
class Emulation {
 public:
  template <class T>
  Argument upload(const char* name, const std::vector<T>& values) {
    return place(name, values.size() * sizeof(T), std::as_bytes(std::span(values)));
  }
  Argument allocate(const char* name, size_t size_bytes) { return place(name, size_bytes, {}); }

  // Returns the number of warp instructions of the launch.
  Result<uint64_t> launch(const kernels::KernelImage& image, const kernels::LaunchShape& shape, uint32_t item_count,
                          std::vector<Argument> arguments) {
    if (!outcome_) return tl::unexpected(outcome_.error());
    const std::string path = std::string(image.name) + ".ptx";
    const auto program = emulator::Program::load_text(device_, std::string(image.ptx), path);
    if (!program) return tl::unexpected(program.error());
    const auto ran = emulator::launch(*program, image.name,
                                      {.grid = {shape.grid_blocks(item_count)}, .block = {shape.block_threads}},
                                      arguments, {.checks = emulator::kCheckNone});
    if (!ran) return tl::unexpected(ran.error());
    if (!ran->ok()) return fail(emulator::render(*ran, path));
    return ran->statistics.warp_instructions;
  }
  Result<std::vector<uint32_t>> download(const Argument& from, size_t count) {
    std::vector<uint32_t> values(count);
    uint64_t address = 0;
    std::memcpy(&address, from.bytes.data(), sizeof address);
    if (auto read = device_.read(address, std::as_writable_bytes(std::span(values))); !read)
      return tl::unexpected(read.error());
    return values;
  }

 private:
  Argument place(const char* name, size_t size_bytes, std::span<const std::byte> content) {
    if (!outcome_) return {};
    const auto address = device_.allocate(std::max<size_t>(size_bytes, 1), name);
    if (!address) {
      outcome_ = tl::unexpected(address.error());
      return {};
    }
    if (!content.empty()) outcome_ = device_.write(*address, content);
    return Argument::of(*address);
  }

  emulator::Device device_;
  Result<void> outcome_;
};

double per_byte(uint64_t instructions, const std::vector<uint32_t>& sizes) {
  return static_cast<double>(instructions) /
         static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
}

}  // namespace

uint32_t sample_count(const Input& input) {
  return static_cast<uint32_t>(std::min(input.chunk_count(), std::max<size_t>(kSampleBytes / input.chunk_bytes, 1)));
}

Result<double> compressor_instructions(const kernels::KernelImage& image, const Input& input) {
  const uint32_t count = sample_count(input);
  std::vector<uint32_t> sizes;
  std::vector<uint8_t> src(count * input.chunk_bytes);
  for (uint32_t i = 0; i < count; ++i) {
    const codec::Bytes raw = input.chunk(i);
    std::copy(raw.begin(), raw.end(), src.begin() + static_cast<ptrdiff_t>(i * input.chunk_bytes));
    sizes.push_back(static_cast<uint32_t>(raw.size()));
  }
  const auto stride = Argument::of(static_cast<uint32_t>(input.chunk_bytes / kernels::kStrideUnitBytes));
  Emulation emulation;
  std::vector<Argument> arguments{emulation.upload("src", src),
                                  emulation.upload("src_sizes", sizes),
                                  emulation.allocate("dst", src.size()),
                                  emulation.allocate("dst_sizes", count * sizeof(uint32_t)),
                                  emulation.allocate("flags", count),
                                  stride,
                                  stride,
                                  Argument::of(count)};
  const kernels::LaunchShape& shape =
      image.name == kernels::kLz4CompressPage ? kernels::kLz4CompressPageShape : kernels::kLz4CompressChunkShape;
  auto instructions = emulation.launch(image, shape, count, std::move(arguments));
  if (!instructions) return tl::unexpected(instructions.error());
  return per_byte(*instructions, sizes);
}

Result<uint64_t> transform_instructions(const kernels::KernelImage& image, uint32_t items_per_block,
                                        std::span<const TransformItem> items, std::span<const uint32_t> options) {
  const auto aligned = [](size_t bytes) { return (bytes + 15) / 16 * 16; };
  const auto count = static_cast<uint32_t>(items.size());
  std::vector<uint8_t> src;
  std::vector<uint64_t> src_offsets, dst_offsets;
  std::vector<uint32_t> src_sizes, capacities;
  uint64_t dst_bytes = 0;
  for (const TransformItem& item : items) {
    src_offsets.push_back(src.size());
    src_sizes.push_back(static_cast<uint32_t>(item.from.size()));
    dst_offsets.push_back(dst_bytes);
    capacities.push_back(static_cast<uint32_t>(item.room_bytes));
    dst_bytes += aligned(item.room_bytes);
    src.insert(src.end(), item.from.begin(), item.from.end());
    src.resize(aligned(src.size()));
  }
  Emulation emulation;
  std::vector<Argument> arguments{emulation.upload("src", src),
                                  emulation.upload("src_offsets", src_offsets),
                                  emulation.upload("src_sizes", src_sizes),
                                  emulation.allocate("dst", dst_bytes),
                                  emulation.upload("dst_offsets", dst_offsets),
                                  emulation.upload("dst_capacities", capacities),
                                  emulation.allocate("dst_sizes", count * sizeof(uint32_t)),
                                  emulation.allocate("statuses", count * sizeof(uint32_t))};
  const Argument statuses = arguments.back();
  arguments.push_back(Argument::of(count));
  for (const uint32_t option : options) arguments.push_back(Argument::of(option));
  const kernels::LaunchShape shape{.block_threads = image.block_threads, .items_per_block = items_per_block};
  auto instructions = emulation.launch(image, shape, count, std::move(arguments));
  if (!instructions) return instructions;
  const auto found = emulation.download(statuses, count);
  if (!found) return tl::unexpected(found.error());
  for (const uint32_t status : *found) {
    if (status != 0)
      return fail(std::string(status_text(static_cast<kernels::StreamStatus>(status))), std::string(image.name));
  }
  return instructions;
}

Result<double> decompressor_instructions(const kernels::KernelImage& image, const Input& input,
                                         const std::vector<codec::Bytes>& blocks) {
  std::vector<TransformItem> items;
  std::vector<uint32_t> sizes;
  for (uint32_t i = 0; i < sample_count(input); ++i) {
    items.push_back({blocks[i], input.chunk(i).size()});
    sizes.push_back(static_cast<uint32_t>(input.chunk(i).size()));
  }
  const auto instructions = transform_instructions(image, kernels::kLz4DecompressShape.items_per_block, items, {});
  if (!instructions) return tl::unexpected(instructions.error());
  return per_byte(*instructions, sizes);
}

}  // namespace ptxkit::bench
