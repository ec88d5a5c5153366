#include "fkr_tests/emulated/kernel_harness.hpp"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "builder/emit.hpp"

namespace ptxkit::testing {
namespace {

using emulator::Address;
using emulator::Argument;
using kernels::kStrideUnitBytes;

constexpr uint8_t kPattern = 0xa5;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

void require(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message());
}

// One emulated device with the buffers of one launch.
class Bench {
 public:
  template <class T>
  Address upload(std::string name, const std::vector<T>& values, uint64_t align_bytes = 256) {
    const Address address = value_of(device_.allocate(values.size() * sizeof(T), std::move(name), align_bytes));
    if (!values.empty()) require(device_.write(address, std::as_bytes(std::span(values))));
    return address;
  }
  template <class T>
  Address allocate(std::string name, size_t count) {
    return value_of(device_.allocate(count * sizeof(T), std::move(name)));
  }
  template <class T>
  std::vector<T> download(Address address, size_t count) {
    std::vector<T> values(count);
    if (count != 0) require(device_.read(address, std::as_writable_bytes(std::span(values))));
    return values;
  }
  void launch(Ran& ran, std::string_view ptx, std::string_view entry, kernels::LaunchShape shape, uint32_t item_count,
              std::vector<Argument> arguments, const emulator::LaunchOptions& options) {
    const auto program = value_of(emulator::Program::load_text(device_, std::string(ptx), std::string(entry) + ".ptx"));
    // A debug build has an additional parameter.
    std::vector<Marker> buffer(ptx.find("_debug_buffer") == std::string_view::npos ? 0 : kMarkers + 1);
    const Address buffer_address = buffer.empty() ? 0 : upload("debug_buffer", buffer);
    if (!buffer.empty()) arguments.push_back(Argument::of(buffer_address));
    ran.outcome = value_of(emulator::launch(
        program, entry, {.grid = {shape.grid_blocks(item_count)}, .block = {shape.block_threads}}, arguments, options));
    if (!ran.outcome.ok()) ran.report = emulator::render(ran.outcome, std::string(entry) + ".ptx");
    if (buffer.empty()) return;
    buffer = download<Marker>(buffer_address, buffer.size());
    const uint32_t marked = buffer[0].id;
    if (marked > kMarkers) return;
    for (uint32_t i = 1; i <= marked; ++i)
      ran.marks.push_back({static_cast<kernels::Mark>(buffer[i].id), buffer[i].thread, buffer[i].value});
  }
  emulator::CountedOutcome count(std::string_view ptx, std::string_view entry, uint32_t grid, uint32_t block_threads,
                                 const std::vector<Argument>& arguments) {
    const auto program = value_of(emulator::Program::load_text(device_, std::string(ptx), std::string(entry) + ".ptx"));
    return value_of(emulator::launch_counted(program, entry, {.grid = {grid}, .block = {block_threads}}, arguments));
  }

 private:
  struct Marker {
    uint32_t id, thread;
    uint64_t value;
  };
  static constexpr uint32_t kMarkers = dsl::EmitOptions{}.debug_records;

  emulator::Device device_;
};

// Items at one stride. The bytes after an item are not zero, so that a kernel which reads them is noticed.
struct Strided {
  uint32_t stride_units = 1;
  Bytes bytes;
  std::vector<uint32_t> sizes;

  explicit Strided(const std::vector<Bytes>& items) {
    size_t longest = 1;
    for (const Bytes& item : items) longest = std::max(longest, item.size());
    stride_units = static_cast<uint32_t>((longest + kStrideUnitBytes - 1) / kStrideUnitBytes);
    bytes.resize(items.size() * stride_bytes(), kPattern);
    for (size_t i = 0; i < items.size(); ++i) {
      std::copy(items[i].begin(), items[i].end(), bytes.begin() + static_cast<ptrdiff_t>(i * stride_bytes()));
      sizes.push_back(static_cast<uint32_t>(items[i].size()));
    }
  }
  size_t stride_bytes() const { return size_t{stride_units} * kStrideUnitBytes; }
};

// Takes the items out of `room` and reports whether anything but the first `owned[i]` bytes at each start changed.
// After a fault the lengths are meaningless, and there are no outputs.
void collect(Ran& ran, const Bytes& room, const std::vector<uint64_t>& starts, const std::vector<uint32_t>& owned,
             const std::vector<uint32_t>& sizes) {
  std::vector<bool> is_owned(room.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto begin = static_cast<ptrdiff_t>(starts[i]);
    std::fill_n(is_owned.begin() + begin, owned[i], true);
    if (!ran.outcome.ok()) continue;
    const bool fits = sizes[i] <= owned[i];
    ran.claims_too_much |= !fits;
    ran.outputs.emplace_back(room.begin() + begin, room.begin() + begin + (fits ? sizes[i] : 0));
  }
  for (size_t at = 0; at < room.size(); ++at) ran.touched_outside |= !is_owned[at] && room[at] != kPattern;
}

}  // namespace

Ran emulate_compress(std::string_view ptx, const kernels::Lz4CompressVariant& variant, const std::vector<Bytes>& items,
                     const emulator::LaunchOptions& options) {
  Bench bench;
  Ran ran;
  const Strided src(items);
  const uint32_t dst_stride_units = src.stride_units + 1;  // one unit more than an item may use
  const size_t dst_stride_bytes = size_t{dst_stride_units} * kStrideUnitBytes;
  const auto count = static_cast<uint32_t>(items.size());
  const Address src_address = bench.upload("src", src.bytes), sizes = bench.upload("src_sizes", src.sizes);
  const Address dst = bench.upload("dst", Bytes(items.size() * dst_stride_bytes, kPattern));
  const Address dst_sizes = bench.allocate<uint32_t>("dst_sizes", count);
  const Address flags = bench.allocate<uint8_t>("flags", count);
  bench.launch(
      ran, ptx, variant.name, variant.shape, count,
      {Argument::of(src_address), Argument::of(sizes), Argument::of(dst), Argument::of(dst_sizes), Argument::of(flags),
       Argument::of(src.stride_units), Argument::of(dst_stride_units), Argument::of(count)},
      options);
  const auto flag_bytes = bench.download<uint8_t>(flags, count);
  ran.codes.assign(flag_bytes.begin(), flag_bytes.end());
  std::vector<uint64_t> starts;
  for (size_t i = 0; i < items.size(); ++i) starts.push_back(i * dst_stride_bytes);
  collect(ran, bench.download<uint8_t>(dst, items.size() * dst_stride_bytes), starts, src.sizes,
          bench.download<uint32_t>(dst_sizes, count));
  return ran;
}

Ran emulate_decompress(std::string_view ptx, const std::vector<Block>& blocks, const emulator::LaunchOptions& options) {
  return emulate_items(ptx, kernels::kLz4Decompress, kernels::kLz4DecompressShape, {}, blocks, options);
}

Ran emulate_items(std::string_view ptx, std::string_view entry, kernels::LaunchShape shape,
                  const std::vector<uint32_t>& kernel_options, const std::vector<Block>& blocks,
                  const emulator::LaunchOptions& options) {
  Bench bench;
  Ran ran;
  Bytes src;
  std::vector<uint64_t> src_offsets, dst_offsets;
  std::vector<uint32_t> src_sizes, capacities;
  uint64_t dst_bytes = 3;
  for (const Block& block : blocks) {  // blocks are adjacent and start anywhere; rooms are three bytes apart
    src_offsets.push_back(src.size());
    src_sizes.push_back(static_cast<uint32_t>(block.bytes.size()));
    src.insert(src.end(), block.bytes.begin(), block.bytes.end());
    dst_offsets.push_back(dst_bytes);
    capacities.push_back(block.capacity);
    dst_bytes += block.capacity + 3;
  }
  const auto count = static_cast<uint32_t>(blocks.size());
  const Address src_address = bench.upload("src", src, 1);
  const Address src_offsets_address = bench.upload("src_offsets", src_offsets);
  const Address src_sizes_address = bench.upload("src_sizes", src_sizes);
  const Address dst = bench.upload("dst", Bytes(dst_bytes, kPattern), 1);
  const Address dst_offsets_address = bench.upload("dst_offsets", dst_offsets);
  const Address capacities_address = bench.upload("dst_capacities", capacities);
  const Address dst_sizes = bench.allocate<uint32_t>("dst_sizes", count);
  const Address statuses = bench.allocate<uint32_t>("statuses", count);
  std::vector<Argument> arguments = {Argument::of(src_address),
                                     Argument::of(src_offsets_address),
                                     Argument::of(src_sizes_address),
                                     Argument::of(dst),
                                     Argument::of(dst_offsets_address),
                                     Argument::of(capacities_address),
                                     Argument::of(dst_sizes),
                                     Argument::of(statuses),
                                     Argument::of(count)};
  for (const uint32_t option : kernel_options) arguments.push_back(Argument::of(option));
  bench.launch(ran, ptx, entry, shape, count, std::move(arguments), options);
  ran.codes = bench.download<uint32_t>(statuses, count);
  collect(ran, bench.download<uint8_t>(dst, dst_bytes), dst_offsets, capacities,
          bench.download<uint32_t>(dst_sizes, count));
  return ran;
}

namespace {

// The arguments on a device, and the addresses of those that are buffers.
struct Placed {
  std::vector<Argument> values;
  std::vector<Address> addresses;
  std::vector<std::vector<Address>> pointees;  // of each of `addresses`
};

Placed place(Bench& bench, const std::vector<KernelArgument>& arguments) {
  Placed placed;
  for (const KernelArgument& argument : arguments) {
    if (!argument.is_buffer) {
      placed.values.push_back(Argument::of(argument.value));
      continue;
    }
    const std::string name = "argument " + std::to_string(placed.values.size());
    Bytes array;
    placed.pointees.emplace_back();
    for (const Bytes& pointee : argument.pointees) {
      const Address at = bench.upload(name + ", item " + std::to_string(placed.pointees.back().size()), pointee);
      placed.pointees.back().push_back(at);
      const auto* const first = reinterpret_cast<const uint8_t*>(&at);
      array.insert(array.end(), first, first + sizeof at);
    }
    if (!array.empty()) {
      array.resize(argument.size_bytes);
      placed.addresses.push_back(bench.upload(name, array));
      placed.values.push_back(Argument::of(placed.addresses.back()));
      continue;
    }
    const Address address = argument.bytes.empty() ? bench.allocate<uint8_t>(name, argument.size_bytes)
                                                   : bench.upload(name, argument.bytes);
    placed.addresses.push_back(address);
    placed.values.push_back(Argument::of(address));
  }
  return placed;
}

std::vector<Bytes> fetch(Bench& bench, const std::vector<KernelArgument>& arguments, const Placed& placed) {
  std::vector<Bytes> buffers;
  for (const KernelArgument& argument : arguments) {
    if (!argument.is_buffer) continue;
    const size_t index = buffers.size();
    if (argument.pointees.empty()) {
      buffers.push_back(
          bench.download<uint8_t>(placed.addresses[index], argument.is_scratch ? 0 : argument.size_bytes));
      continue;
    }
    buffers.emplace_back();
    for (size_t i = 0; i < argument.pointees.size(); ++i) {
      const Bytes content = bench.download<uint8_t>(placed.pointees[index][i], argument.pointees[i].size());
      buffers.back().insert(buffers.back().end(), content.begin(), content.end());
    }
  }
  return buffers;
}

}  // namespace

RanBuffers emulate_launch(std::string_view ptx, std::string_view entry, uint32_t grid, uint32_t block_threads,
                          const std::vector<KernelArgument>& arguments) {
  Bench bench;
  const Placed placed = place(bench, arguments);
  Ran ran;
  bench.launch(ran, ptx, entry, {.block_threads = block_threads, .items_per_block = 1}, grid, placed.values, {});
  if (!ran.outcome.ok()) return {{}, ran.report};
  return {fetch(bench, arguments, placed), {}};
}

CountedBuffers count_launch(std::string_view ptx, std::string_view entry, uint32_t grid, uint32_t block_threads,
                            const std::vector<KernelArgument>& arguments) {
  Bench bench;
  const Placed placed = place(bench, arguments);
  auto ran = bench.count(ptx, entry, grid, block_threads, placed.values);
  if (!ran.outcome.ok()) return {{}, emulator::render(ran.outcome, std::string(entry) + ".ptx"), {}};
  return {fetch(bench, arguments, placed), {}, std::move(ran.counts)};
}

Launch emulator_launch(std::string_view variant) {
  return [variant](std::string_view kernel, uint32_t grid, uint32_t block_threads, const auto& arguments) {
    auto ran = emulate_launch(kernel_image(kernel, variant).ptx, kernel, grid, block_threads, arguments);
    EXPECT_EQ(ran.report, "") << kernel << ", " << variant;
    return ran.buffers;
  };
}

Ran emulate_zero_page(std::string_view ptx, const std::vector<Bytes>& items, const emulator::LaunchOptions& options) {
  Bench bench;
  Ran ran;
  const Strided src(items);
  const auto count = static_cast<uint32_t>(items.size());
  const Address src_address = bench.upload("src", src.bytes), sizes = bench.upload("src_sizes", src.sizes);
  const Address flags = bench.allocate<uint8_t>("flags", count);
  bench.launch(ran, ptx, kernels::kZeroPage, kernels::kZeroPageShape, count,
               {Argument::of(src_address), Argument::of(sizes), Argument::of(flags), Argument::of(src.stride_units),
                Argument::of(count)},
               options);
  const auto flag_bytes = bench.download<uint8_t>(flags, count);
  ran.codes.assign(flag_bytes.begin(), flag_bytes.end());
  return ran;
}

}  // namespace ptxkit::testing
