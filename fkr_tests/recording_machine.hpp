// A Machine that notes what the kernel backend allocates and launches on the one that it stands before, and the
// comparison of that with what each kernel declares.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cost.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/abi.hpp"
#include "runtime/backend/kernels/kernel_backend.hpp"
#include "runtime/backend/kernels/machine.hpp"

namespace ptxkit::testing {

struct RecordedLaunch {
  std::string kernel;
  std::vector<std::size_t> region_bytes;  // what the queue held
  std::uint32_t grid_blocks, block_threads;
  unsigned chain = 0;  // launches of one submission have the same number; 0: a submission of its own
};

class RecordingMachine : public codec::Machine {
 public:
  RecordingMachine(std::unique_ptr<codec::Machine> machine, std::vector<RecordedLaunch>& launches)
      : machine_(std::move(machine)),
        launches_(launches),
        regions_(machine_->queue_count()),
        chain_of_(machine_->queue_count()) {}

  std::string_view name() const override { return machine_->name(); }
  std::string description() const override { return machine_->description(); }
  unsigned queue_count() const override { return machine_->queue_count(); }
  std::size_t slice_bytes() const override { return machine_->slice_bytes(); }
  std::size_t queue_memory_bytes() const override { return machine_->queue_memory_bytes(); }
  Result<void> prepare(std::string_view kernel) override { return machine_->prepare(kernel); }
  Result<codec::HostMemory> host_memory(std::size_t size_bytes) override { return machine_->host_memory(size_bytes); }
  bool is_page_locked(codec::Bytes memory) const override { return machine_->is_page_locked(memory); }
  Result<void> arrange(unsigned queue, std::span<const codec::Region> regions) override {
    regions_[queue].clear();
    for (const codec::Region& region : regions) regions_[queue].push_back(region.size_bytes);
    return machine_->arrange(queue, regions);
  }
  codec::MutableBytes host(unsigned queue, std::size_t region) override { return machine_->host(queue, region); }
  std::uint64_t address(unsigned queue, std::size_t region) override { return machine_->address(queue, region); }
  Result<void> upload(unsigned queue, std::size_t region) override { return machine_->upload(queue, region); }
  Result<void> download(unsigned queue, std::size_t region) override { return machine_->download(queue, region); }
  Result<void> upload_parts(unsigned queue, std::span<const codec::PartUp> parts) override {
    return machine_->upload_parts(queue, parts);
  }
  Result<void> clear(unsigned queue, std::size_t region) override { return machine_->clear(queue, region); }
  Result<void> download_parts(unsigned queue, std::span<const codec::PartDown> parts) override {
    return machine_->download_parts(queue, parts);
  }
  Result<void> download_rows(unsigned queue, std::size_t region, std::span<const driver::Rows> rows) override {
    return machine_->download_rows(queue, region, rows);
  }
  Result<void> launch(unsigned queue, std::string_view kernel, std::uint32_t grid_blocks, std::uint32_t block_threads,
                      std::span<const driver::LaunchArgument> arguments) override {
    launches_.push_back({std::string(kernel), regions_[queue], grid_blocks, block_threads, chain_of_[queue]});
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
  std::vector<std::vector<std::size_t>> regions_;
  std::vector<unsigned> chain_of_;
  unsigned chain_count_ = 0;
};

// An LZ4 block of 4096 bytes that decodes to 4096: 18 bytes that the lengths of 4070 literals take are what a match of
// 21 bytes saves.
inline std::vector<std::uint8_t> block_as_long_as_its_page() {
  std::vector<std::uint8_t> block = {0xff};
  block.insert(block.end(), 15, 255);
  block.push_back(4070 - 15 - 15 * 255);
  block.insert(block.end(), 4070, 'x');
  block.insert(block.end(), {1, 0, 21 - 4 - 15, 0x50, 1, 2, 3, 4, 5});
  return block;
}

// `item_count` pages, chunks and blocks through a backend made by `make`: for each launch the cost block of the PTX, at
// the launch's N, gives the bytes of the regions, of each and of all, and the threads; and the CTA is as declared.
template <class Make>
void expect_declared_costs(const Make& make, std::uint32_t major, std::uint32_t minor, std::size_t item_count) {
  using kernels::kMaxChunkBytes, kernels::kMaxPageBytes;
  std::vector<RecordedLaunch> launches;
  const std::unique_ptr<codec::Backend> backend = make(launches);
  ASSERT_NE(backend, nullptr);
  for (const std::uint32_t size : {kMaxPageBytes, kMaxChunkBytes}) {
    std::vector<std::uint8_t> raw(item_count * size), room(raw.size());
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::uint8_t>(i * i >> 7);
    std::vector<codec::CompressItem> items(item_count);
    for (std::size_t i = 0; i < item_count; ++i) {
      items[i].raw = codec::Bytes(raw).subspan(i * size, size);
      items[i].output = codec::MutableBytes(room).subspan(i * size, size);
    }
    const auto done = backend->compress(items, codec::Encoder::reproducible);
    ASSERT_TRUE(done) << done.error().message();
  }
  const auto block = block_as_long_as_its_page();
  ASSERT_EQ(block.size(), kMaxPageBytes);
  std::vector<std::uint8_t> room(item_count * kMaxPageBytes);
  std::vector<codec::DecompressItem> items(item_count);
  for (std::size_t i = 0; i < item_count; ++i) {
    items[i].block = block;
    items[i].output = codec::MutableBytes(room).subspan(i * kMaxPageBytes, kMaxPageBytes);
  }
  const auto done = backend->decompress(items);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(items.back().status, codec::ItemStatus::ok);
  EXPECT_EQ(items.back().raw_bytes, kMaxPageBytes);

  std::size_t input_bytes = 0;
  for (const RecordedLaunch& launch : launches) {
    const kernels::KernelImage* const image = kernels::find_kernel_image(launch.kernel, major, minor);
    ASSERT_NE(image, nullptr) << launch.kernel;
    const auto cost = kernels::parse_kernel_cost(image->ptx);
    ASSERT_TRUE(cost) << cost.error().message();
    // The first region is the input.
    const std::size_t n = launch.region_bytes.at(0);
    input_bytes += n;
    ASSERT_EQ(cost->buffers.size(), launch.region_bytes.size()) << launch.kernel;
    std::multiset<std::uint64_t> declared, allocated(launch.region_bytes.begin(), launch.region_bytes.end());
    for (const kernels::CostBuffer& buffer : cost->buffers) declared.insert(buffer.bytes.evaluate(n).value());
    EXPECT_EQ(declared, allocated) << launch.kernel << " at N = " << n;
    EXPECT_EQ(launch.block_threads, image->block_threads) << launch.kernel;
    const std::uint64_t threads = std::uint64_t{launch.grid_blocks} * launch.block_threads;
    EXPECT_GE(threads, *cost->thread_count(n)) << launch.kernel;
    EXPECT_LT(threads - *cost->thread_count(n), launch.block_threads) << launch.kernel;
  }
  EXPECT_EQ(input_bytes, item_count * (2 * kMaxPageBytes + kMaxChunkBytes));
}

}  // namespace ptxkit::testing
