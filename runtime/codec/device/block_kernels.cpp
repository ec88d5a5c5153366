#include "runtime/codec/device/block_kernels.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "support/check.hpp"
#include "support/guarded.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {
namespace {

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

void discard_result(BlockToEncode& block) { block.coded.clear(); }
void discard_result(BlockToDecode& block) { block.good = false; }

}  // namespace

size_t blocks_at_once(const Machine& machine, size_t block_bytes, const Result<LaunchPlan>& of_one) {
  const size_t wanted = machine.slice_bytes() / std::max<size_t>(block_bytes, 1);
  const size_t fitting = of_one ? machine.queue_memory_bytes() / memory_bytes_of(of_one->regions) : 1;
  return std::max<size_t>(1, std::min(wanted, fitting));
}

tl::unexpected<Error> refused_block(const Machine& machine) {
  return fail("a kernel refused a block that is within its limits", machine.description(),
              "use --backend cpu, and report this as a bug");
}

std::unique_ptr<BlockPipeline> make_block_pipeline(Machine& machine, Executor& executor, const BlockCoding& codec) {
  if (const auto* zstd = std::get_if<ZstdCoding>(&codec)) return make_zstd_pipeline(machine, executor, *zstd);
  if (const auto* gzip = std::get_if<GzipCoding>(&codec)) return make_gzip_pipeline(machine, executor, *gzip);
  const auto& ptz = std::get<format::PtzCoding>(codec);
  switch (format::row_of(ptz).model) {
    case format::PtzModel::lz77:
      return make_lz_pipeline(machine, executor, ptz);
    case format::PtzModel::bwt:
      return make_bbw_pipeline(machine, executor);
    case format::PtzModel::planes:
      return make_typed_pipeline(machine, executor, ptz);
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another model");
}

BlockPipeline& BlockKernels::Device::pipeline(const BlockCoding& codec) {
  auto& made = pipelines[codec];
  if (!made) made = make_block_pipeline(*machine, executor, codec);
  return *made;
}

size_t BlockKernels::Device::batch_blocks(const BlockCoding& codec, size_t raw_bytes) {
  BlockPipeline& way = pipeline(codec);
  const size_t at_once = std::max(way.encoded_at_once(raw_bytes), way.decoded_at_once(raw_bytes));
  return std::max<size_t>(2, at_once) * machine->queue_count();
}

BlockKernels::BlockKernels(std::vector<std::unique_ptr<Machine>> machines, Executor& executor, Notice notice)
    : notice_(std::move(notice)) {
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

size_t BlockKernels::batch_blocks(const BlockCoding& codec, size_t raw_bytes) {
  size_t count = 0;
  for (Device& device : devices_) count += device.batch_blocks(codec, raw_bytes);
  return count;
}

void BlockKernels::failed(Device& device, Error error) noexcept {
  device.error = std::move(error);
  const auto left = std::count_if(devices_.begin(), devices_.end(), [](const Device& each) { return !each.error; });
  if (left == 0 || !notice_) return;
  // Even if the text finds no memory.
  (void)guarded([&]() -> Result<void> {
    notice_(fmt::format("continuing on {} of {} GPUs: {}", left, devices_.size(), device.error->message()), true);
    return {};
  });
}

template <class Block, class Work>
Result<void> BlockKernels::on_devices(const BlockCoding& codec, std::span<Block> blocks, size_t raw_bytes,
                                      const Work& work) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::span<Block>> open{blocks};  // taken by no device
  open.reserve(1 + devices_.size());
  size_t working_count = 0;
  const auto run = [&](Device& device) noexcept {
    for (std::unique_lock lock(mutex); !device.error;) {
      // Blocks of a device that fails come back.
      changed.wait(lock, [&] { return !open.back().empty() || open.size() > 1 || working_count == 0; });
      if (open.back().empty() && open.size() > 1) {
        open.pop_back();
        continue;
      }
      if (open.back().empty()) return;
      auto most = guarded([&]() -> Result<size_t> {
        return devices_.size() == 1 ? blocks.size() : device.batch_blocks(codec, raw_bytes);
      });
      if (!most) return failed(device, std::move(most.error()));
      const auto part = open.back().first(std::min(open.back().size(), *most));
      open.back() = open.back().subspan(part.size());
      ++working_count;
      lock.unlock();
      Result<void> done = guarded([&] { return work(device, part); });
      if (!done) std::for_each(part.begin(), part.end(), [](Block& block) { discard_result(block); });
      lock.lock();
      --working_count;
      if (!done) {
        open.push_back(part);
        failed(device, std::move(done.error()));
      }
      changed.notify_all();
    }
  };
  // The calling thread drives the first device. If the system refuses threads for the other devices, it processes all
  // blocks.
  std::vector<std::jthread> threads;
  threads.reserve(devices_.size());
  for (size_t i = 1; i < devices_.size(); ++i) {
    if (auto thread = try_thread([&, i] { run(devices_[i]); })) threads.push_back(std::move(*thread));
  }
  run(devices_.front());
  for (std::jthread& thread : threads) thread.join();
  const bool is_done = std::all_of(open.begin(), open.end(), [](std::span<Block> part) { return part.empty(); });
  if (is_done) return {};
  const auto lost = std::find_if(devices_.rbegin(), devices_.rend(), [](const Device& each) { return each.error; });
  return tl::unexpected(*lost->error);
}

Result<void> BlockKernels::encode(const BlockCoding& codec, std::span<BlockToEncode> blocks, MatchSearch search) {
  const size_t raw_bytes = largest_raw_bytes(blocks);
  return on_devices(codec, blocks, raw_bytes, [&](Device& device, std::span<BlockToEncode> part) {
    BlockPipeline& way = device.pipeline(codec);
    return in_groups(*device.machine, part, way.encoded_at_once(raw_bytes), way.encoding(search));
  });
}

Result<void> BlockKernels::decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) {
  const size_t block_bytes = largest_bytes(blocks);
  return on_devices(codec, blocks, block_bytes, [&](Device& device, std::span<BlockToDecode> part) {
    BlockPipeline& way = device.pipeline(codec);
    return in_groups(*device.machine, part, way.decoded_at_once(block_bytes), way.decoding());
  });
}

}  // namespace ptxkit::codec
