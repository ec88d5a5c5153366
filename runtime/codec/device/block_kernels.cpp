#include "runtime/codec/device/block_kernels.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "support/check.hpp"
#include "support/guarded.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCodec;

// Processes blocks in groups of up to `most_blocks`, smaller ones if a queue would stay idle, and deals the groups to
// the queues in turn.
template <class Block>
Result<void> in_groups(Machine& machine, std::span<Block> blocks, size_t most_blocks, const Steps<Block>& steps) {
  struct UnderWay {
    std::span<Block> group;
    size_t steps_done;
  };
  std::vector<UnderWay> queues(machine.queue_count());
  const size_t share = (blocks.size() + queues.size() - 1) / queues.size();
  const size_t group_blocks = std::clamp<size_t>(share, 1, most_blocks);
  Result<void> outcome;
  for (bool is_busy = true; outcome && is_busy;) {
    is_busy = false;
    for (unsigned queue = 0; outcome && queue < queues.size(); ++queue) {
      auto& [group, steps_done] = queues[queue];
      if (!group.empty()) {
        outcome = machine.wait(queue).and_then([&, &done = steps_done, &of = group] { return steps[done](queue, of); });
        if (++steps_done == steps.size()) group = {};
      }
      if (outcome && group.empty() && !blocks.empty()) {
        group = blocks.first(std::min(group_blocks, blocks.size()));
        blocks = blocks.subspan(group.size());
        outcome = steps[0](queue, group);
        steps_done = 1;
      }
      is_busy |= !group.empty();
    }
  }
  // After an error, wait until every queue is idle; report the first error.
  for (unsigned queue = 0; !outcome && queue < queues.size(); ++queue) (void)machine.wait(queue);
  return outcome;
}

// The largest raw or coded size of any block.
size_t largest_bytes(std::span<const BlockToDecode> blocks) {
  size_t bytes = 0;
  for (const BlockToDecode& block : blocks) bytes = std::max({bytes, block.raw.size(), block.coded.size()});
  return bytes;
}

}  // namespace

BlockPipeline& BlockKernels::Device::pipeline(PtzCodec codec) {
  auto& made = pipelines[codec];
  if (!made) {
    made = format::row_of(codec).model == format::PtzModel::bwt ? make_bbw_pipeline(*machine, executor)
                                                                : make_lz_pipeline(*machine, executor, codec);
  }
  return *made;
}

size_t BlockKernels::Device::batch_blocks(PtzCodec codec, size_t raw_bytes) {
  BlockPipeline& way = pipeline(codec);
  const size_t at_once = std::max(way.encoded_at_once(raw_bytes), way.decoded_at_once(raw_bytes));
  return std::max<size_t>(2, at_once) * machine->queue_count();
}

BlockKernels::BlockKernels(std::vector<std::unique_ptr<Machine>> machines, Executor& executor) {
  PTXKIT_CHECK(!machines.empty(), "there is a machine for the blocks");
  for (auto& machine : machines) devices_.push_back({std::move(machine), executor});
}

BlockKernels::BlockKernels(std::unique_ptr<Machine> machine, Executor& executor) {
  devices_.push_back({std::move(machine), executor});
}

std::string BlockKernels::description() const {
  std::string all;
  for (const Device& device : devices_) all += (all.empty() ? "" : "; ") + device.machine->description();
  return all;
}

size_t BlockKernels::batch_blocks(PtzCodec codec, size_t raw_bytes) {
  size_t count = 0;
  for (Device& device : devices_) count += device.batch_blocks(codec, raw_bytes);
  return count;
}

template <class Block, class Work>
Result<void> BlockKernels::on_devices(PtzCodec codec, std::span<Block> blocks, size_t raw_bytes, const Work& work) {
  if (devices_.size() == 1) return work(devices_.front(), blocks);
  std::mutex mutex;
  Result<void> outcome;
  size_t begin = 0;
  const auto take = [&](Device& device) -> std::span<Block> {
    std::lock_guard lock(mutex);
    if (!outcome) return {};
    const auto left = blocks.subspan(begin);
    const auto part = left.first(std::min(left.size(), device.batch_blocks(codec, raw_bytes)));
    begin += part.size();
    return part;
  };
  const auto fail_with = [&](Result<void> done) {
    std::lock_guard lock(mutex);
    if (!done && outcome) outcome = std::move(done);
  };
  const auto run = [&](Device& device) -> Result<void> {
    for (auto part = take(device); !part.empty(); part = take(device)) {
      if (auto done = work(device, part); !done) return done;
    }
    return {};
  };
  const auto guarded_run = [&](Device& device) { fail_with(guarded([&] { return run(device); })); };
  // The calling thread drives the first device. If the system refuses threads for the other devices, it processes all
  // blocks.
  std::vector<std::thread> threads;
  threads.reserve(devices_.size());
  for (size_t i = 1; i < devices_.size(); ++i) {
    if (auto thread = try_thread([&, i] { guarded_run(devices_[i]); })) threads.push_back(std::move(*thread));
  }
  guarded_run(devices_.front());
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

Result<void> BlockKernels::encode(PtzCodec codec, std::span<BlockToEncode> blocks, MatchSearch search) {
  const size_t raw_bytes = largest_raw_bytes(blocks);
  return on_devices(codec, blocks, raw_bytes, [&](Device& device, std::span<BlockToEncode> part) {
    BlockPipeline& way = device.pipeline(codec);
    return in_groups(*device.machine, part, way.encoded_at_once(raw_bytes), way.encoding(search));
  });
}

Result<void> BlockKernels::decode(PtzCodec codec, std::span<BlockToDecode> blocks) {
  const size_t block_bytes = largest_bytes(blocks);
  return on_devices(codec, blocks, block_bytes, [&](Device& device, std::span<BlockToDecode> part) {
    BlockPipeline& way = device.pipeline(codec);
    return in_groups(*device.machine, part, way.decoded_at_once(block_bytes), way.decoding());
  });
}

}  // namespace ptxkit::codec
