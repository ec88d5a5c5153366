// A Machine that forwards to another one and records what the kernel backend allocates and launches, and the comparison
// of the record with each kernel's declarations.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/abi.hpp"
#include "kernels/cost.hpp"
#include "kernels/images.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/kernel_backend.hpp"
#include "runtime/codec/device/kernel_call.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "support/result.hpp"

namespace ptxkit::testing {

struct RecordedLaunch {
  std::string kernel;
  std::vector<size_t> region_bytes;  // sizes of the queue's regions
  uint32_t grid_blocks, block_threads;
  unsigned chain = 0;        // equal for the launches of one submission; 0: a submission of one launch
  unsigned arrangement = 0;  // equal for launches between two arrangements of a queue
  struct Argument {
    uint64_t value;
    std::optional<size_t> region;   // the region to which it points
    std::optional<size_t> reached;  // the region whose addresses are in that array
  };
  std::vector<Argument> arguments = {};
};

class RecordingMachine : public codec::Machine {
 public:
  RecordingMachine(std::unique_ptr<codec::Machine> machine, std::vector<RecordedLaunch>& launches)
      : machine_(std::move(machine)),
        launches_(launches),
        regions_(machine_->queue_count()),
        arrangement_of_(machine_->queue_count()),
        chain_of_(machine_->queue_count()) {}

  std::string_view name() const override { return machine_->name(); }
  std::string description() const override { return machine_->description(); }
  unsigned queue_count() const override { return machine_->queue_count(); }
  size_t slice_bytes() const override { return machine_->slice_bytes(); }
  size_t queue_memory_bytes() const override { return machine_->queue_memory_bytes(); }
  Result<const kernels::KernelImage*> image(std::string_view kernel) const override { return machine_->image(kernel); }
  Result<void> prepare(std::string_view kernel) override { return machine_->prepare(kernel); }
  Result<codec::HostMemory> host_memory(size_t size_bytes) override { return machine_->host_memory(size_bytes); }
  bool is_page_locked(codec::Bytes memory) const override { return machine_->is_page_locked(memory); }
  Result<void> arrange(unsigned queue, std::span<const codec::Region> regions) override {
    arrangement_of_[queue] = ++arrangement_count_;
    regions_[queue].clear();
    for (const codec::Region& region : regions) regions_[queue].push_back(region.size_bytes);
    return machine_->arrange(queue, regions);
  }
  codec::MutableBytes host(unsigned queue, size_t region) override { return machine_->host(queue, region); }
  uint64_t address(unsigned queue, size_t region) override { return machine_->address(queue, region); }
  Result<void> upload(unsigned queue, size_t region) override { return machine_->upload(queue, region); }
  Result<void> download(unsigned queue, size_t region) override { return machine_->download(queue, region); }
  Result<void> upload_parts(unsigned queue, std::span<const codec::PartUp> parts) override {
    return machine_->upload_parts(queue, parts);
  }
  Result<void> clear(unsigned queue, size_t region) override { return machine_->clear(queue, region); }
  Result<void> download_parts(unsigned queue, std::span<const codec::PartDown> parts) override {
    return machine_->download_parts(queue, parts);
  }
  Result<void> upload_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) override {
    return machine_->upload_rows(queue, region, rows);
  }
  Result<void> download_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) override {
    return machine_->download_rows(queue, region, rows);
  }
  Result<void> launch(unsigned queue, std::string_view kernel, uint32_t grid_blocks, uint32_t block_threads,
                      std::span<const driver::LaunchArgument> arguments) override {
    RecordedLaunch launch{std::string(kernel), regions_[queue],  grid_blocks,
                          block_threads,       chain_of_[queue], arrangement_of_[queue]};
    for (const driver::LaunchArgument& argument : arguments) {
      launch.arguments.push_back({argument.value, region_at(queue, argument.type, argument.value), {}});
    }
    record_reached(queue, launch);
    launches_.push_back(std::move(launch));
    return machine_->launch(queue, kernel, grid_blocks, block_threads, arguments);
  }
  Result<void> begin_chain(unsigned queue) override {
    chain_of_[queue] = ++chain_count_;
    return machine_->begin_chain(queue);
  }
  Result<void> end_chain(unsigned queue) override {
    chain_of_[queue] = 0;
    return machine_->end_chain(queue);
  }
  Result<void> wait(unsigned queue) override { return machine_->wait(queue); }

 private:
  std::unique_ptr<codec::Machine> machine_;
  std::vector<RecordedLaunch>& launches_;
  std::vector<std::vector<size_t>> regions_;
  // An empty region begins where the next one does.
  std::optional<size_t> region_at(unsigned queue, kernels::ParameterType type, uint64_t value) {
    std::optional<size_t> found;
    for (size_t i = 0; i < regions_[queue].size(); ++i) {
      const bool is_it = type == kernels::ParameterType::pointer && address(queue, i) == value;
      if (is_it && (!found || regions_[queue][*found] == 0)) found = i;
    }
    return found;
  }

  // The first item of an array of addresses is at the beginning of the region.
  void record_reached(unsigned queue, RecordedLaunch& launch) {
    const auto image = machine_->image(launch.kernel);
    if (!image) return;
    const auto cost = kernels::parse_kernel_cost((*image)->ptx);
    if (!cost) return;
    for (size_t i = 0; i < launch.arguments.size() && i < (*image)->parameters.size(); ++i) {
      const bool is_array = cost->find_buffer(std::string((*image)->parameters[i].name) + "[]") != nullptr;
      RecordedLaunch::Argument& argument = launch.arguments[i];
      if (!is_array || !argument.region) continue;
      const uint64_t first = *codec::host_array<uint64_t>(*machine_, queue, *argument.region);
      argument.reached = region_at(queue, kernels::ParameterType::pointer, first);
    }
  }

  std::vector<unsigned> arrangement_of_, chain_of_;
  unsigned arrangement_count_ = 0, chain_count_ = 0;
};

// A machine with wrong kernels: the bytes downloaded from one region are all ones.
class LyingMachine : public RecordingMachine {
 public:
  LyingMachine(std::unique_ptr<codec::Machine> machine, size_t region)
      : RecordingMachine(std::move(machine), launches_), region_(region) {}
  Result<void> download(unsigned queue, size_t region) override {
    auto done = RecordingMachine::download(queue, region);
    const codec::MutableBytes bytes = host(queue, region);
    if (region == region_) std::fill(bytes.begin(), bytes.end(), uint8_t{0xff});
    return done;
  }

 private:
  std::vector<RecordedLaunch> launches_;
  size_t region_;
};

// An LZ4 block of 4096 bytes that decodes to 4096 bytes: the lengths of 4070 literals take 18 bytes, which a match of
// 21 bytes saves.
inline std::vector<uint8_t> block_as_long_as_its_page() {
  std::vector<uint8_t> block = {0xff};
  block.insert(block.end(), 15, 255);
  block.push_back(4070 - 15 - 15 * 255);
  block.insert(block.end(), 4070, 'x');
  block.insert(block.end(), {1, 0, 21 - 4 - 15, 0x50, 1, 2, 3, 4, 5});
  return block;
}

// A launch whose arguments are found by parameter name.
class NamedLaunch {
 public:
  NamedLaunch(const RecordedLaunch& launch, const kernels::KernelImage& image, const kernels::KernelCost& cost)
      : launch_(launch), image_(image), cost_(cost) {}

  std::optional<uint64_t> number(std::string_view name) const {
    for (size_t i = 0; i < image_.parameters.size(); ++i) {
      if (image_.parameters[i].name == name) return launch_.arguments[i].value;
    }
    return std::nullopt;
  }

  // The size of the launch, from its arguments and its grid. Kernels with offsets are not told where their items end;
  // the size is then that of the smallest region declared as exactly N, or as exactly M.
  kernels::LaunchSize size() const {
    kernels::LaunchSize size;
    const auto item_bytes = number("item_bytes");
    size.item_count = number("item_count").value_or(launch_.grid_blocks);
    if (item_bytes && !launch_.kernel.starts_with("bwt_")) size.item_count /= ctas_of_item(*item_bytes);
    if (const auto stride_16 = number("src_stride_16"); stride_16 && !item_bytes) {
      size.input_bytes = size.item_count * *stride_16 * kernels::kStrideUnitBytes;
    } else if (item_bytes) {
      size.input_bytes = size.item_count * *item_bytes;
    } else if (const auto most_bytes = number("max_input_bytes")) {
      size.input_bytes = size.item_count * *most_bytes;
    } else {
      size.input_bytes = smallest_declared_as("N");
    }
    size.coded_bytes = smallest_declared_as("M");
    return size;
  }

  // Calls use(region, declared bytes, parameter) for each pointer.
  template <class Use>
  void each_buffer(Use use) const {
    const kernels::LaunchSize launched = size();
    for (size_t i = 0; i < image_.parameters.size(); ++i) {
      if (image_.parameters[i].type != kernels::ParameterType::pointer) continue;
      const std::string_view name = image_.parameters[i].name;
      const kernels::CostBuffer* const buffer = cost_.find_buffer(name);
      ASSERT_NE(buffer, nullptr) << launch_.kernel << " declares nothing of " << name;
      ASSERT_TRUE(launch_.arguments[i].region) << name << " of " << launch_.kernel << " is the begin of no region";
      const auto bytes = buffer->bytes.evaluate(launched);
      ASSERT_TRUE(bytes) << launch_.kernel << ": " << bytes.error().message();
      use(*launch_.arguments[i].region, *bytes, name);
      const kernels::CostBuffer* const behind = cost_.find_buffer(std::string(name) + "[]");
      if (behind == nullptr) continue;
      ASSERT_TRUE(launch_.arguments[i].reached) << name << " of " << launch_.kernel << " has addresses of no region";
      const auto bytes_behind = behind->bytes.evaluate(launched);
      ASSERT_TRUE(bytes_behind) << launch_.kernel << ": " << bytes_behind.error().message();
      use(*launch_.arguments[i].reached, *bytes_behind, behind->name);
    }
  }

 private:
  uint64_t ctas_of_item(uint64_t item_bytes) const {
    if (launch_.kernel == kernels::kLz77Link) return kernels::kLzLinkBlocks;
    const bool is_demux = launch_.kernel.starts_with("demux_");
    const uint64_t positions = is_demux                                ? kernels::kLzSegmentBytes
                               : launch_.kernel == kernels::kLz77Table ? kernels::kLzTablePart
                                                                       : kernels::kLzBlockThreads;
    return (item_bytes + positions - 1) / positions;
  }
  uint64_t smallest_declared_as(std::string_view text) const {
    std::optional<uint64_t> smallest;
    for (size_t i = 0; i < image_.parameters.size(); ++i) {
      const RecordedLaunch::Argument& argument = launch_.arguments[i];
      for (const auto& [name, region] : {std::pair(std::string(image_.parameters[i].name), argument.region),
                                         std::pair(std::string(image_.parameters[i].name) + "[]", argument.reached)}) {
        const kernels::CostBuffer* const buffer = cost_.find_buffer(name);
        if (buffer == nullptr || buffer->bytes.text() != text || !region) continue;
        const size_t bytes = launch_.region_bytes[*region];
        smallest = std::min<uint64_t>(smallest.value_or(bytes), bytes);
      }
    }
    return smallest.value_or(0);
  }

  const RecordedLaunch& launch_;
  const kernels::KernelImage& image_;
  const kernels::KernelCost& cost_;
};

// Checks every launch: each pointer is the beginning of a region. Every region is as large as the cost block of one
// kernel that uses it declares, and no other kernel that uses it in the same arrangement needs more. The CTA's size is
// as declared.
inline void expect_regions_as_declared(const std::vector<RecordedLaunch>& launches, uint32_t major, uint32_t minor) {
  struct Need {
    uint64_t bytes = 0, allocated = 0;
    std::string by;
  };
  std::map<std::pair<unsigned, size_t>, Need> needs;  // by arrangement and region
  for (const RecordedLaunch& launch : launches) {
    const kernels::KernelImage* const image = kernels::find_kernel_image(launch.kernel, major, minor);
    ASSERT_NE(image, nullptr) << launch.kernel;
    const auto cost = kernels::parse_kernel_cost(image->ptx);
    ASSERT_TRUE(cost) << cost.error().message();
    ASSERT_EQ(launch.arguments.size(), image->parameters.size()) << launch.kernel;
    EXPECT_EQ(launch.block_threads, image->block_threads) << launch.kernel;
    NamedLaunch(launch, *image, *cost).each_buffer([&](size_t region, uint64_t bytes, std::string_view name) {
      Need& need = needs[{launch.arrangement, region}];
      need.allocated = launch.region_bytes[region];
      if (!need.by.empty() && bytes <= need.bytes) return;
      need.bytes = bytes;
      need.by = launch.kernel + "." + std::string(name);
    });
  }
  for (const RecordedLaunch& launch : launches) {
    for (size_t region = 0; region < launch.region_bytes.size(); ++region) {
      if (launch.region_bytes[region] == 0) continue;
      EXPECT_TRUE(needs.contains({launch.arrangement, region}))
          << "no launch takes region " << region << " beside " << launch.kernel;
    }
  }
  for (const auto& [of, need] : needs) {
    EXPECT_EQ(need.allocated, need.bytes) << "region " << of.second << ", of which " << need.by << " declares most";
  }
}

// Runs `item_count` pages, chunks and blocks through a backend made by `make`. For each launch, the cost block of the
// PTX at the launch's N must give the bytes of each region, their sum, and the threads; the CTA's size must be as
// declared.
template <class Make>
void expect_declared_costs(const Make& make, uint32_t major, uint32_t minor, size_t item_count) {
  using kernels::kMaxChunkBytes, kernels::kMaxPageBytes;
  std::vector<RecordedLaunch> launches;
  const std::unique_ptr<codec::Backend> backend = make(launches);
  ASSERT_NE(backend, nullptr);
  for (const uint32_t size : {kMaxPageBytes, kMaxChunkBytes}) {
    std::vector<uint8_t> raw(item_count * size), room(raw.size());
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<uint8_t>(i * i >> 7);
    std::vector<codec::CompressItem> items(item_count);
    for (size_t i = 0; i < item_count; ++i) {
      items[i].raw = codec::Bytes(raw).subspan(i * size, size);
      items[i].output = codec::MutableBytes(room).subspan(i * size, size);
    }
    const auto done = backend->compress(items, codec::Encoder::reproducible);
    ASSERT_TRUE(done) << done.error().message();
  }
  const auto block = block_as_long_as_its_page();
  ASSERT_EQ(block.size(), kMaxPageBytes);
  std::vector<uint8_t> room(item_count * kMaxPageBytes);
  std::vector<codec::DecompressItem> items(item_count);
  for (size_t i = 0; i < item_count; ++i) {
    items[i].block = block;
    items[i].output = codec::MutableBytes(room).subspan(i * kMaxPageBytes, kMaxPageBytes);
  }
  const auto done = backend->decompress(items);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(items.back().status, codec::ItemStatus::ok);
  EXPECT_EQ(items.back().raw_bytes, kMaxPageBytes);

  expect_regions_as_declared(launches, major, minor);
  size_t input_bytes = 0;
  for (const RecordedLaunch& launch : launches) {
    const auto cost = kernels::parse_kernel_cost(kernels::find_kernel_image(launch.kernel, major, minor)->ptx);
    ASSERT_TRUE(cost) << cost.error().message();
    // The first region is the input, and nothing else is allocated than the kernel declares.
    const size_t n = launch.region_bytes.at(0);
    input_bytes += n;
    const size_t all = std::accumulate(launch.region_bytes.begin(), launch.region_bytes.end(), size_t{0});
    EXPECT_EQ(
        cost->memory_bytes({n, n / (launch.kernel == kernels::kLz4CompressChunk ? kMaxChunkBytes : kMaxPageBytes), n})
            .value(),
        all)
        << launch.kernel;
    const uint64_t threads = uint64_t{launch.grid_blocks} * launch.block_threads;
    EXPECT_GE(threads, *cost->thread_count(n)) << launch.kernel;
    EXPECT_LT(threads - *cost->thread_count(n), launch.block_threads) << launch.kernel;
  }
  EXPECT_EQ(input_bytes, item_count * (2 * kMaxPageBytes + kMaxChunkBytes));
}

}  // namespace ptxkit::testing
