#include "runtime/backend/kernels/block_kernels.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>

#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCodec;

// Step by step, each for as many groups as there are queues. steps(queue, group) -> Result<void>; a queue waits before
// all but the first.
template <class Block, class First, class... Steps>
Result<void> in_groups(Machine& machine, std::span<Block> blocks, std::size_t group_blocks, const First& first,
                       const Steps&... steps) {
  Result<void> outcome;
  for (std::size_t begin = 0; outcome && begin < blocks.size(); begin += group_blocks * machine.queue_count()) {
    const auto left = blocks.subspan(begin);
    const auto queues = static_cast<unsigned>(
        std::min<std::size_t>(machine.queue_count(), (left.size() + group_blocks - 1) / group_blocks));
    const auto group_of = [&](unsigned queue) {
      const auto from = left.subspan(queue * group_blocks);
      return from.first(std::min(group_blocks, from.size()));
    };
    const auto each = [&](const auto& step) {
      for (unsigned queue = 0; outcome && queue < queues; ++queue) outcome = step(queue, group_of(queue));
    };
    const auto each_waits = [&](const auto& step) {
      each([&](unsigned queue, std::span<Block> group) {
        return machine.wait(queue).and_then([&] { return step(queue, group); });
      });
    };
    each(first);
    (each_waits(steps), ...);
    // After an error nothing may be under way any more; the error to report is the first.
    for (unsigned queue = 0; !outcome && queue < queues; ++queue) (void)machine.wait(queue);
  }
  return outcome;
}

template <class Block, class BytesOf>
std::size_t largest(std::span<Block> blocks, const BytesOf& bytes_of) {
  std::size_t bytes = 0;
  for (const Block& block : blocks) bytes = std::max<std::size_t>(bytes, bytes_of(block));
  return bytes;
}

}  // namespace

BlockPipeline& BlockKernels::Device::pipeline(PtzCodec codec) {
  auto& made = pipelines[codec];
  if (!made) made = codec == PtzCodec::bbw ? make_bbw_pipeline(*machine) : make_lz_pipeline(*machine, codec);
  return *made;
}

std::size_t BlockKernels::Device::batch_blocks(PtzCodec codec, std::size_t raw_bytes) {
  return std::max<std::size_t>(2, pipeline(codec).blocks_at_once(raw_bytes)) * machine->queue_count();
}

BlockKernels::BlockKernels(std::vector<std::unique_ptr<Machine>> machines) {
  PTXKIT_CHECK(!machines.empty(), "there is a machine for the blocks");
  for (auto& machine : machines) devices_.push_back({std::move(machine)});
}

BlockKernels::BlockKernels(std::unique_ptr<Machine> machine) { devices_.push_back({std::move(machine)}); }

std::string BlockKernels::description() const {
  std::string all;
  for (const Device& device : devices_) all += (all.empty() ? "" : "; ") + device.machine->description();
  return all;
}

std::size_t BlockKernels::batch_blocks(PtzCodec codec, std::size_t raw_bytes) {
  std::size_t count = 0;
  for (Device& device : devices_) count += device.batch_blocks(codec, raw_bytes);
  return count;
}

template <class Block, class Work>
Result<void> BlockKernels::on_devices(PtzCodec codec, std::span<Block> blocks, std::size_t raw_bytes,
                                      const Work& work) {
  if (devices_.size() == 1) return work(devices_.front(), blocks);
  std::mutex mutex;
  Result<void> outcome;
  std::size_t begin = 0;
  const auto take = [&](Device& device) -> std::span<Block> {
    std::lock_guard lock(mutex);
    if (!outcome) return {};
    const auto left = blocks.subspan(begin);
    const auto part = left.first(std::min(left.size(), device.batch_blocks(codec, raw_bytes)));
    begin += part.size();
    return part;
  };
  const auto run = [&](Device& device) {
    for (auto part = take(device); !part.empty(); part = take(device)) {
      Result<void> done = work(device, part);
      std::lock_guard lock(mutex);
      if (!done && outcome) outcome = std::move(done);
    }
  };
  std::vector<std::thread> threads;
  for (Device& device : devices_) threads.emplace_back(run, std::ref(device));
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

Result<void> BlockKernels::encode(PtzCodec codec, std::span<BlockToEncode> blocks) {
  const std::size_t raw_bytes = largest(blocks, [](const BlockToEncode& block) { return block.raw.size(); });
  return on_devices(codec, blocks, raw_bytes, [&](Device& device, std::span<BlockToEncode> part) {
    BlockPipeline& way = device.pipeline(codec);
    return in_groups(
        *device.machine, part, way.blocks_at_once(raw_bytes),
        [&](unsigned queue, auto group) { return way.begin_encoding(queue, group); },
        [&](unsigned queue, auto group) { return way.fetch_coded(queue, group); },
        [&](unsigned queue, auto group) { return way.collect_coded(queue, group); });
  });
}

Result<void> BlockKernels::decode(PtzCodec codec, std::span<BlockToDecode> blocks) {
  const std::size_t raw_bytes = largest(blocks, [](const BlockToDecode& block) { return block.raw.size(); });
  return on_devices(codec, blocks, raw_bytes, [&](Device& device, std::span<BlockToDecode> part) {
    BlockPipeline& way = device.pipeline(codec);
    return in_groups(
        *device.machine, part, way.blocks_at_once(raw_bytes),
        [&](unsigned queue, auto group) { return way.begin_decoding(queue, group); },
        [&](unsigned queue, auto group) { return way.collect_raw(queue, group); });
  });
}

}  // namespace ptxkit::codec
