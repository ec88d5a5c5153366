// A batch becomes slices; a slice is gathered into a queue's staging memory, copied up, launched, copied down and, when
// its queue's turn comes again, scattered into the items. With several queues the copies of one slice overlap the
// kernel of another, and nothing waits for more than the oldest slice.
//
// Items of a compression lie at a fixed stride (kernels/lz4/abi.hpp), those of a decompression back to back.
#include "runtime/backend/kernels/kernel_backend.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "kernels/lz4/abi.hpp"
#include "runtime/codec/chunk_plan.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using driver::LaunchArgument;

// Regions of a compression and of a decompression, in the order of the arrangement.
enum CompressRegion : std::size_t { kRaw, kRawSizes, kPacked, kPackedSizes, kFlags };
enum DecompressRegion : std::size_t {
  kBlocks,
  kBlockOffsets,
  kBlockSizes,
  kOutput,
  kOutputOffsets,
  kCapacities,
  kOutputSizes,
  kStatuses
};

std::size_t round_up_to_stride(std::size_t size) {
  constexpr std::size_t kUnit = kernels::kStrideUnitBytes;
  return (size + kUnit - 1) / kUnit * kUnit;
}

// A region's host side as an array of T; staging memory is at least 16-byte aligned.
template <class T>
std::span<T> array(MutableBytes bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// What the regions of a slice take, item by item; each region starts at a multiple of 256 bytes.
constexpr std::size_t kRegionRoundingBytes = 8 * 256;

class CompressCost {
 public:
  static std::size_t raw_bytes(const Chunk* chunk) { return chunk->raw.size(); }
  void add(const Chunk* chunk) {
    largest_ = std::max<std::size_t>(largest_, chunk->raw.size());
    ++count_;
  }
  std::size_t memory_bytes() const { return count_ * (2 * round_up_to_stride(largest_) + 9) + kRegionRoundingBytes; }

 private:
  std::size_t largest_ = 1, count_ = 0;
};

class DecompressCost {
 public:
  static std::size_t raw_bytes(const DecompressItem& item) { return item.output.size(); }
  void add(const DecompressItem& item) { memory_bytes_ += item.block.size() + item.output.size() + 32; }
  std::size_t memory_bytes() const { return memory_bytes_ + kRegionRoundingBytes; }

 private:
  std::size_t memory_bytes_ = 0;
};

class KernelBackend final : public Backend {
 public:
  KernelBackend(std::unique_ptr<Machine> machine, Executor& executor)
      : machine_(std::move(machine)), executor_(executor), queues_(machine_->queue_count()) {}

  std::string_view name() const override { return machine_->name(); }
  std::string description() const override { return machine_->description(); }
  bool supports(Operation operation) const override {
    return operation == Operation::compress_reproducible || operation == Operation::decompress;
  }
  Encoder default_encoder() const override { return Encoder::reproducible; }
  std::size_t preferred_batch_bytes(std::size_t chunk_bytes) const override {
    return std::max(chunk_bytes, machine_->slice_bytes() * machine_->queue_count());
  }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    if (lost_) return tl::unexpected(*lost_);
    if (encoder == Encoder::fast) return lacks(Operation::compress_fast);
    for (const CompressItem& item : items) {
      if (!item.history.empty()) return lacks(Operation::compress_linked);
    }
    ChunkPlan plan(items);
    std::vector<Chunk*> pages, chunks;
    for (Chunk& chunk : plan.chunks()) (fits_page_kernel(chunk.raw.size()) ? pages : chunks).push_back(&chunk);
    auto done = compress_chunks(pages, kernels::kLz4CompressPage, kernels::kLz4CompressPageShape);
    if (done) done = compress_chunks(chunks, kernels::kLz4CompressChunk, kernels::kLz4CompressChunkShape);
    if (!done) return done;
    executor_.for_each(plan.item_count(), [&](std::size_t index, unsigned) { plan.finish(index); });
    return {};
  }

  Result<void> decompress(std::span<DecompressItem> items) override {
    if (lost_) return tl::unexpected(*lost_);
    for (const DecompressItem& item : items) {
      if (!item.history.empty()) return lacks(Operation::decompress_linked);
    }
    if (items.empty()) return {};
    if (auto ready = machine_->prepare(kernels::kLz4Decompress); !ready) return ready;
    return in_slices<DecompressCost>(
        items, [this](unsigned queue, std::span<DecompressItem> slice) { return submit_decompression(queue, slice); },
        [this](unsigned queue, std::span<DecompressItem> slice) { return collect_decompression(queue, slice); });
  }

 private:
  // Cuts `all` into slices of about slice_bytes that fit a queue's memory and sends each through the next queue:
  // submit(queue, slice), later collect(queue, slice), in order: a window over the oldest slices, which is all that is
  // ever waited for. An item that fits no queue is an error, and is not submitted. After an error no queue is left
  // busy.
  template <class Cost, class Item, class Submit, class Collect>
  Result<void> in_slices(std::span<Item> all, Submit submit, Collect collect) {
    std::vector<std::span<Item>> pending(queues_);
    const auto drain = [&](unsigned queue) -> Result<void> {
      if (pending[queue].empty()) return {};
      const std::span<Item> slice = std::exchange(pending[queue], {});
      if (auto waited = wait(queue); !waited) return waited;
      return collect(queue, slice);
    };
    Result<void> outcome;
    unsigned queue = 0;
    for (std::size_t begin = 0; outcome && begin < all.size();) {
      const std::size_t end = end_of_slice<Cost, Item>(all, begin);
      outcome = end == begin ? no_room_for<Cost>(all[begin]) : drain(queue);
      if (outcome) {
        // Pending even if it fails half-way: its copies may be under way.
        pending[queue] = all.subspan(begin, end - begin);
        outcome = submit(queue, pending[queue]);
      }
      begin = end;
      queue = (queue + 1) % queues_;
    }
    for (unsigned i = 0; i < queues_; ++i, queue = (queue + 1) % queues_) {
      if (outcome) {
        outcome = drain(queue);
      } else if (!pending[queue].empty()) {
        // The error to report is the first one; this wait only makes the staging memory ours again.
        (void)wait(queue);
      }
    }
    return outcome;
  }

  // A queue whose wait failed may still be copying into its memory, which therefore nobody may use again.
  Result<void> wait(unsigned queue) {
    Result<void> waited = machine_->wait(queue);
    if (!waited && !lost_) lost_ = waited.error();
    return waited;
  }

  // One past the last item of the slice that starts at `begin`; `begin` when that item fits no queue.
  template <class Cost, class Item>
  std::size_t end_of_slice(std::span<Item> all, std::size_t begin) const {
    Cost cost;
    std::size_t end = begin, bytes = 0;
    for (; end < all.size(); ++end) {
      bytes += Cost::raw_bytes(all[end]);
      cost.add(all[end]);
      const bool full = end != begin && bytes > machine_->slice_bytes();
      if (full || cost.memory_bytes() > machine_->queue_memory_bytes()) break;
    }
    return end;
  }

  template <class Cost, class Item>
  Result<void> no_room_for(const Item& item) const {
    Cost cost;
    cost.add(item);
    return fail(fmt::format("an item of {} bytes needs {} bytes of device memory, a queue may take {}",
                            Cost::raw_bytes(item), cost.memory_bytes(), machine_->queue_memory_bytes()),
                description(), "raise the budget, use smaller blocks, or use --backend cpu");
  }

  Result<void> compress_chunks(std::span<Chunk*> chunks, std::string_view kernel, const kernels::LaunchShape& shape) {
    if (chunks.empty()) return {};
    if (auto ready = machine_->prepare(kernel); !ready) return ready;
    return in_slices<CompressCost>(
        chunks,
        [&](unsigned queue, std::span<Chunk*> slice) { return submit_compression(queue, slice, kernel, shape); },
        [this](unsigned queue, std::span<Chunk*> slice) { return collect_compression(queue, slice); });
  }

  Result<void> submit_compression(unsigned queue, std::span<Chunk*> slice, std::string_view kernel,
                                  const kernels::LaunchShape& shape) {
    std::size_t largest = 1;
    for (const Chunk* chunk : slice) largest = std::max(largest, chunk->raw.size());
    const std::size_t stride = round_up_to_stride(largest), count = slice.size();
    const Region regions[] = {{"raw", count * stride},
                              {"raw sizes", count * 4},
                              {"packed", count * stride},
                              {"packed sizes", count * 4},
                              {"flags", count}};
    if (auto arranged = machine_->arrange(queue, regions); !arranged) return arranged;
    const MutableBytes raw = machine_->host(queue, kRaw);
    const auto sizes = array<std::uint32_t>(machine_->host(queue, kRawSizes));
    executor_.for_each(count, [&](std::size_t i, unsigned) {
      std::uint8_t* const at = raw.data() + i * stride;
      const Bytes from = slice[i]->raw;
      if (!from.empty()) std::memcpy(at, from.data(), from.size());
      // The kernel reads whole words; what follows the item must be there, not mean anything.
      std::memset(at + from.size(), 0, stride - from.size());
      sizes[i] = static_cast<std::uint32_t>(from.size());
    });
    const auto stride_units = static_cast<std::uint32_t>(stride / kernels::kStrideUnitBytes);
    const LaunchArgument arguments[] = {address(queue, kRaw),
                                        address(queue, kRawSizes),
                                        address(queue, kPacked),
                                        address(queue, kPackedSizes),
                                        address(queue, kFlags),
                                        LaunchArgument::of(stride_units),
                                        LaunchArgument::of(stride_units),
                                        LaunchArgument::of(static_cast<std::uint32_t>(count))};
    return run(queue, {kRaw, kRawSizes}, kernel, shape, count, arguments, {kPacked, kPackedSizes, kFlags});
  }

  Result<void> collect_compression(unsigned queue, std::span<Chunk*> slice) {
    const MutableBytes packed = machine_->host(queue, kPacked);
    const auto sizes = array<std::uint32_t>(machine_->host(queue, kPackedSizes));
    const MutableBytes flags = machine_->host(queue, kFlags);
    const std::size_t stride = packed.size() / slice.size();
    // What a kernel reports is checked before it is believed: a size beyond its room would make us copy a neighbour's
    // bytes.
    for (std::size_t i = 0; i < slice.size(); ++i) {
      const std::size_t raw_bytes = slice[i]->raw.size();
      const bool possible = (flags[i] == 0 && sizes[i] != 0 && sizes[i] < raw_bytes) ||
                            (flags[i] == 1 && sizes[i] == raw_bytes) || (flags[i] == 2 && sizes[i] == 0);
      if (!possible) {
        return fail(fmt::format("the compressor reported flag {} and {} bytes for a chunk of {} bytes", flags[i],
                                sizes[i], raw_bytes),
                    description(), "use --backend cpu, and report this as a bug");
      }
    }
    executor_.for_each(slice.size(), [&](std::size_t i, unsigned) {
      Chunk& chunk = *slice[i];
      chunk.flag = static_cast<ChunkFlag>(flags[i]);
      chunk.compressed_bytes = sizes[i];
      if (chunk.flag == ChunkFlag::compressed) std::memcpy(chunk.output.data(), packed.data() + i * stride, sizes[i]);
    });
    return {};
  }

  Result<void> submit_decompression(unsigned queue, std::span<DecompressItem> slice) {
    const std::size_t count = slice.size();
    std::size_t block_bytes = 0, output_bytes = 0;
    for (const DecompressItem& item : slice) {
      block_bytes += item.block.size();
      output_bytes += item.output.size();
    }
    const Region regions[] = {{"blocks", block_bytes},     {"block offsets", count * 8},  {"block sizes", count * 4},
                              {"output", output_bytes},    {"output offsets", count * 8}, {"capacities", count * 4},
                              {"output sizes", count * 4}, {"statuses", count * 4}};
    if (auto arranged = machine_->arrange(queue, regions); !arranged) return arranged;
    const auto block_offsets = array<std::uint64_t>(machine_->host(queue, kBlockOffsets));
    const auto block_sizes = array<std::uint32_t>(machine_->host(queue, kBlockSizes));
    const auto output_offsets = array<std::uint64_t>(machine_->host(queue, kOutputOffsets));
    const auto capacities = array<std::uint32_t>(machine_->host(queue, kCapacities));
    block_bytes = output_bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      block_offsets[i] = block_bytes;
      output_offsets[i] = output_bytes;
      block_sizes[i] = static_cast<std::uint32_t>(slice[i].block.size());
      capacities[i] = static_cast<std::uint32_t>(slice[i].output.size());
      block_bytes += slice[i].block.size();
      output_bytes += slice[i].output.size();
    }
    const MutableBytes blocks = machine_->host(queue, kBlocks);
    executor_.for_each(count, [&](std::size_t i, unsigned) {
      if (!slice[i].block.empty())
        std::memcpy(blocks.data() + block_offsets[i], slice[i].block.data(), slice[i].block.size());
    });
    const LaunchArgument arguments[] = {address(queue, kBlocks),
                                        address(queue, kBlockOffsets),
                                        address(queue, kBlockSizes),
                                        address(queue, kOutput),
                                        address(queue, kOutputOffsets),
                                        address(queue, kCapacities),
                                        address(queue, kOutputSizes),
                                        address(queue, kStatuses),
                                        LaunchArgument::of(static_cast<std::uint32_t>(count))};
    return run(queue, {kBlocks, kBlockOffsets, kBlockSizes, kOutputOffsets, kCapacities}, kernels::kLz4Decompress,
               kernels::kLz4DecompressShape, count, arguments, {kOutput, kOutputSizes, kStatuses});
  }

  Result<void> collect_decompression(unsigned queue, std::span<DecompressItem> slice) {
    const auto sizes = array<std::uint32_t>(machine_->host(queue, kOutputSizes));
    const auto statuses = array<std::uint32_t>(machine_->host(queue, kStatuses));
    const auto offsets = array<std::uint64_t>(machine_->host(queue, kOutputOffsets));
    const MutableBytes output = machine_->host(queue, kOutput);
    for (std::size_t i = 0; i < slice.size(); ++i) {
      if (statuses[i] > static_cast<std::uint32_t>(kernels::Lz4Status::item_too_large) ||
          sizes[i] > slice[i].output.size()) {
        return fail(fmt::format("the decompressor reported status {} and {} bytes for room of {} bytes", statuses[i],
                                sizes[i], slice[i].output.size()),
                    description(), "use --backend cpu, and report this as a bug");
      }
    }
    executor_.for_each(slice.size(), [&](std::size_t i, unsigned) {
      DecompressItem& item = slice[i];
      item.status = static_cast<ItemStatus>(statuses[i]);
      item.raw_bytes = item.status == ItemStatus::ok ? sizes[i] : 0;
      if (item.raw_bytes != 0) std::memcpy(item.output.data(), output.data() + offsets[i], item.raw_bytes);
    });
    return {};
  }

  LaunchArgument address(unsigned queue, std::size_t region) {
    return LaunchArgument::of_address(machine_->address(queue, region));
  }

  Result<void> run(unsigned queue, std::initializer_list<std::size_t> inputs, std::string_view kernel,
                   const kernels::LaunchShape& shape, std::size_t item_count, std::span<const LaunchArgument> arguments,
                   std::initializer_list<std::size_t> outputs) {
    for (const std::size_t region : inputs) {
      if (auto copied = machine_->upload(queue, region); !copied) return copied;
    }
    const std::uint32_t grid_blocks = shape.grid_blocks(static_cast<std::uint32_t>(item_count));
    if (auto launched = machine_->launch(queue, kernel, grid_blocks, shape.block_threads, arguments); !launched)
      return launched;
    for (const std::size_t region : outputs) {
      if (auto copied = machine_->download(queue, region); !copied) return copied;
    }
    return {};
  }

  std::unique_ptr<Machine> machine_;
  Executor& executor_;
  unsigned queues_;
  std::optional<Error> lost_;  // why every later call fails
};

}  // namespace

std::unique_ptr<Backend> make_kernel_backend(std::unique_ptr<Machine> machine, Executor& executor) {
  return std::make_unique<KernelBackend>(std::move(machine), executor);
}

}  // namespace ptxkit::codec
