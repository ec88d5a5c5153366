// Cuts a batch into slices. A slice is copied up, launched, copied down and, when its queue is needed again, handed to
// its items (slice_window.hpp). With several queues the copies of one slice overlap the kernel of another, and nothing
// waits for more than the oldest slice.
//
// Items to compress lie at a fixed stride (kernels/abi.hpp), items to decompress back to back. Items that already lie
// so in page-locked memory are copied directly, items to decompress also with gaps between them: by the copy engine, or
// by `copy_items` if there are too many gaps. Others are gathered into staging memory and scattered from it. After the
// kernel of a compression has finished, its output sizes are known and only the used bytes are copied down.
#include "runtime/codec/device/kernel_backend.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/cost.hpp"
#include "runtime/codec/blocks/chunk_plan.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/device/kernel_call.hpp"
#include "runtime/codec/device/slice_window.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/throttle.hpp"
#include "runtime/driver/context.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

// Regions of a compression and of a decompression, in the order in which they are arranged.
enum CompressRegion : size_t { kRaw, kRawSizes, kPacked, kPackedSizes, kFlags };
constexpr RegionName kCompressRegions[] = {{"raw"}, {"raw sizes"}, {"packed"}, {"packed sizes"}, {"flags"}};
enum DecompressRegion : size_t {
  kBlocks,
  kBlockOffsets,
  kBlockSizes,
  kOutput,
  kOutputOffsets,
  kCapacities,
  kOutputSizes,
  kStatuses,
  kHostBlocks,  // the blocks and outputs of the caller, if copy_items copies them
  kHostOutput
};
constexpr RegionName kDecompressRegions[] = {{"blocks"},         {"block offsets"}, {"block sizes"},  {"output"},
                                             {"output offsets"}, {"capacities"},    {"output sizes"}, {"statuses"},
                                             {"host blocks"},    {"host output"}};

size_t round_up_to_stride(size_t size) {
  constexpr size_t kUnit = kernels::kStrideUnitBytes;
  return (size + kUnit - 1) / kUnit * kUnit;
}

// A region's host side as an array of T. Staging memory is at least 16-byte aligned.
template <class T>
std::span<T> array(MutableBytes bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// The launch size of a slice, accumulated item by item.
class CompressSize {
 public:
  static size_t raw_bytes(const Chunk* chunk) { return chunk->raw.size(); }
  void add(const Chunk* chunk) {
    largest_ = std::max<size_t>(largest_, chunk->raw.size());
    ++count_;
  }
  kernels::LaunchSize launch() const { return {count_ * round_up_to_stride(largest_), count_}; }

 private:
  size_t largest_ = 1, count_ = 0;
};

class DecompressSize {
 public:
  static size_t raw_bytes(const DecompressItem& item) { return item.output.size(); }
  void add(const DecompressItem& item) {
    launch_.input_bytes += item.output.size();
    launch_.coded_bytes += item.block.size();
    ++launch_.item_count;
  }
  const kernels::LaunchSize& launch() const { return launch_; }

 private:
  kernels::LaunchSize launch_ = {0, 0, 0};
};

// Padding of up to 8 regions in device memory: each starts at a multiple of 256 bytes.
constexpr size_t kRegionRoundingBytes = 8 * 256;

// The CTAs that copy items over the bus. Reads wait behind stores, so few warps write (docs/log/performance.md).
constexpr uint32_t kReadingCtas = 128, kWritingCtas = 8;

// One more run of rows costs about as much as copying this many bytes.
constexpr size_t kRunBytes = 64u << 10;

// Spans of which each begins at or after the end of the one before it.
struct Extent {
  uint8_t* first = nullptr;             // null: the spans are not in this order
  size_t size_bytes = 0;                // to the end of the last span
  size_t used_bytes = 0;                // of the spans
  size_t runs = 0;                      // of adjacent spans
  std::vector<driver::Rows> rows = {};  // by which the spans are copied
  bool by_kernel = false;               // copy_items copies the spans, as they are too many for the copy engine
};
// `span_of` gives the span of an item.
template <class Item, class SpanOf>
Extent extent_of(std::span<Item> items, SpanOf span_of) {
  Extent extent{.first = span_of(items[0]).data()};
  for (const Item& item : items) {
    const auto span = span_of(item);
    const uint8_t* const end = extent.first + extent.size_bytes;
    if (span.data() < end) return {};
    if (extent.runs == 0 || span.data() != end) ++extent.runs;
    extent.size_bytes = static_cast<size_t>(span.data() + span.size() - extent.first);
    extent.used_bytes += span.size();
  }
  return extent;
}

struct Place {
  size_t offset_bytes, size_bytes;
};

// The runs of adjacent places, which are in order.
std::vector<driver::Rows> runs_of_places(std::span<const Place> places) {
  std::vector<driver::Rows> runs;
  for (const auto& [offset, size] : places) {
    if (size == 0) continue;
    if (runs.empty() || runs.back().offset_bytes + runs.back().width_bytes != offset) runs.push_back({offset, 0, 0, 1});
    runs.back().pitch_bytes = runs.back().width_bytes += size;
  }
  return runs;
}

// Groups places, which are in order, into runs of rows that hold them. A place joins the previous run if it lies at the
// run's pitch and the unneeded bytes cost less than another run. No run reaches beyond `end_bytes`.
std::vector<driver::Rows> rows_of_places(std::span<const Place> places, size_t end_bytes) {
  std::vector<driver::Rows> runs;
  for (const auto& [offset, size] : places) {
    if (!runs.empty()) {
      driver::Rows& run = runs.back();
      const size_t pitch = run.count == 1 ? offset - run.offset_bytes : run.pitch_bytes;
      const size_t width = std::max(run.width_bytes, size);
      const size_t needless = (width - run.width_bytes) * run.count + (width - size);
      if (offset == run.offset_bytes + run.count * pitch && width <= pitch && needless <= kRunBytes &&
          offset + width <= end_bytes) {
        run = {run.offset_bytes, pitch, width, run.count + 1};
        continue;
      }
    }
    runs.push_back({offset, size, size, 1});
  }
  return runs;
}

// What copying runs costs, in bytes of one copy.
size_t cost_bytes(std::span<const driver::Rows> runs) {
  size_t cost = 0;
  for (const driver::Rows& run : runs) cost += run.width_bytes * run.count + kRunBytes;
  return cost;
}

class KernelBackend final : public Backend {
 public:
  KernelBackend(std::unique_ptr<Machine> machine, Executor& executor, scheduler::Throttle* throttle)
      : machine_(std::move(machine)), executor_(executor), throttle_(throttle) {}

  std::string_view name() const override { return machine_->name(); }
  std::string description() const override { return machine_->description(); }
  bool supports(Operation operation) const override {
    return operation == Operation::compress_reproducible || operation == Operation::decompress;
  }
  Encoder default_encoder() const override { return Encoder::reproducible; }
  size_t preferred_batch_bytes(size_t chunk_bytes) const override {
    // Two batches at a time keep all queues busy.
    return std::max(chunk_bytes, machine_->slice_bytes() * ((machine_->queue_count() + 1) / 2));
  }
  Result<HostMemory> host_memory(size_t size_bytes) override { return machine_->host_memory(size_bytes); }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return begin_compress(items, encoder)->finish();
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return begin_decompress(items)->finish(); }

  std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    if (encoder == Encoder::fast) return finished_batch(lacks(Operation::compress_fast));
    for (const CompressItem& item : items) {
      if (!item.history.empty()) return finished_batch(lacks(Operation::compress_linked));
    }
    auto begun = std::make_unique<Compression>(*this, items);
    SliceWindow::Lock lock(mutex_);
    if (encoder == Encoder::high) {
      std::vector<Chunk*>& all = begun->chunks;
      all.insert(all.end(), begun->pages.begin(), begun->pages.end());
      compress_chunks(lock, begun->batch, all, kernels::kLz4CompressHigh, kernels::kLz4CompressChunkShape);
    } else {
      compress_chunks(lock, begun->batch, begun->pages, kernels::kLz4CompressPage, kernels::kLz4CompressPageShape);
      compress_chunks(lock, begun->batch, begun->chunks, kernels::kLz4CompressChunk, kernels::kLz4CompressChunkShape);
    }
    lock.unlock();  // the destructor of `begun` takes the lock
    return begun;
  }

  std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items) override {
    for (const DecompressItem& item : items) {
      if (!item.history.empty()) return finished_batch(lacks(Operation::decompress_linked));
    }
    auto begun = std::make_unique<Begun>(*this);
    SliceWindow::Lock lock(mutex_);
    if (!items.empty()) begun->batch.outcome = machine_->prepare(kernels::kLz4Decompress);
    in_slices<DecompressSize>(
        lock, begun->batch, items, kernels::kLz4Decompress,
        [this](unsigned queue, std::span<DecompressItem> slice) { return submit_decompression(queue, slice); });
    lock.unlock();
    return begun;
  }

 private:
  struct Begun : PendingBatch {
    explicit Begun(KernelBackend& of) : backend(of) {}
    ~Begun() override { wait(); }
    Result<void> finish() override {
      wait();
      return batch.outcome;
    }
    void wait() {
      SliceWindow::Lock lock(backend.mutex_);
      backend.window_.finish(lock, batch);
    }
    DeviceTimes device_times() const override { return batch.times; }
    KernelBackend& backend;
    SliceWindow::Batch batch;
  };
  struct Compression final : Begun {
    Compression(KernelBackend& of, std::span<CompressItem> items) : Begun(of), plan(items) {
      for (Chunk& chunk : plan.chunks()) (fits_page_kernel(chunk.raw.size()) ? pages : chunks).push_back(&chunk);
    }
    // Waits before the chunks are destroyed: slices still running use them.
    ~Compression() override { wait(); }
    Result<void> finish() override {
      Result<void> outcome = Begun::finish();
      if (outcome) {
        if (plan.chunks().size() == plan.item_count()) {
          for (size_t index = 0; index < plan.item_count(); ++index) plan.finish(index);
        } else {
          // Items of several chunks must be stitched, which is worth several threads.
          backend.executor_.for_each(plan.item_count(), [&](size_t index, unsigned) { plan.finish(index); });
        }
      }
      return outcome;
    }
    ChunkPlan plan;
    std::vector<Chunk*> pages, chunks;
  };

  // Cuts `all` into slices of about slice_bytes that fit a queue's memory, and adds each to the window. An item that
  // does not fit is an error of the batch and is not submitted.
  template <class Size, class Item, class Submit>
  void in_slices(SliceWindow::Lock& lock, SliceWindow::Batch& batch, std::span<Item> all, std::string_view kernel,
                 Submit submit) {
    for (size_t begin = 0; batch.outcome && begin < all.size();) {
      const auto end = end_of_slice<Size, Item>(all, begin, kernel);
      if (!end) {
        batch.outcome = tl::unexpected(end.error());
        return;
      }
      window_.add(lock, batch, [&](unsigned queue) { return submit(queue, all.subspan(begin, *end - begin)); });
      begin = *end;
    }
  }

  // Copies between items and staging memory, `total_bytes` in all: copy(i) for each item. Threads take as many items at
  // a time as make a task worth its start. CPU workers yield meanwhile.
  template <class Copy>
  void copy_each(size_t count, size_t total_bytes, const Copy& copy) {
    constexpr size_t kTaskBytes = 256u << 10;
    const scheduler::Throttle::Hold hold(throttle_);
    const size_t task_count = std::clamp<size_t>(total_bytes / kTaskBytes, 1, count);
    executor_.for_each(task_count, [&](size_t task, unsigned) {
      for (size_t i = task * count / task_count; i < (task + 1) * count / task_count; ++i) copy(i);
    });
  }

  // The end of the slice that starts at `begin`: at least one item further. Fails if a single item does not fit a
  // queue.
  template <class Size, class Item>
  Result<size_t> end_of_slice(std::span<Item> all, size_t begin, std::string_view kernel) {
    Size whole;
    size_t end = begin, bytes = 0;
    for (; end < all.size(); ++end) {
      bytes += Size::raw_bytes(all[end]);
      if (end != begin && bytes > machine_->slice_bytes()) break;
      whole.add(all[end]);
    }
    auto needed = memory_bytes(kernel, whole.launch());
    if (!needed || *needed <= machine_->queue_memory_bytes()) return needed.transform([&](size_t) { return end; });
    Size fitting;
    for (size_t next = begin; next < end; ++next) {
      fitting.add(all[next]);
      needed = memory_bytes(kernel, fitting.launch());
      if (!needed) return needed;
      if (*needed <= machine_->queue_memory_bytes()) continue;
      if (next != begin) return next;
      return fail(fmt::format("an item of {} bytes needs {} bytes of device memory, a queue may take {}",
                              Size::raw_bytes(all[begin]), *needed, machine_->queue_memory_bytes()),
                  description(), "raise the budget, use smaller blocks, or use --backend cpu");
    }
    return end;
  }
  Result<size_t> memory_bytes(std::string_view kernel, const kernels::LaunchSize& launch) {
    return costs_.memory_bytes(kernel, launch).transform([](size_t bytes) { return bytes + kRegionRoundingBytes; });
  }

  void compress_chunks(SliceWindow::Lock& lock, SliceWindow::Batch& batch, std::span<Chunk*> chunks,
                       std::string_view kernel, const kernels::LaunchShape& shape) {
    if (chunks.empty() || !batch.outcome) return;
    batch.outcome = machine_->prepare(kernel);
    in_slices<CompressSize>(lock, batch, chunks, kernel, [&](unsigned queue, std::span<Chunk*> slice) {
      return submit_compression(queue, slice, kernel, shape);
    });
  }

  // The address of the spans, if they lie at the stride in page-locked memory, the last one rounded up; null otherwise.
  template <class SpanOf>
  uint8_t* page_locked(std::span<Chunk*> slice, size_t stride, size_t size_bytes, SpanOf span_of) const {
    const uint8_t* const first = span_of(*slice[0]).data();
    for (size_t i = 1; i < slice.size(); ++i) {
      if (slice[i - 1]->raw.size() != stride || span_of(*slice[i]).data() != first + i * stride) return nullptr;
    }
    // The const_cast is safe: an input region is only read.
    return machine_->is_page_locked({first, size_bytes}) ? const_cast<uint8_t*>(first) : nullptr;
  }

  Result<SliceWindow::Steps> submit_compression(unsigned queue, std::span<Chunk*> slice, std::string_view kernel,
                                                const kernels::LaunchShape& shape) {
    size_t largest = 1;
    for (const Chunk* chunk : slice) largest = std::max(largest, chunk->raw.size());
    const size_t stride = round_up_to_stride(largest), count = slice.size();
    const size_t size_bytes = (count - 1) * stride + round_up_to_stride(slice.back()->raw.size());
    uint8_t* const raw_at = page_locked(slice, stride, size_bytes, [](const Chunk& chunk) { return chunk.raw; });
    uint8_t* const packed_at =
        page_locked(slice, stride, size_bytes, [](const Chunk& chunk) { return Bytes(chunk.output); });
    const auto items = static_cast<uint32_t>(count);
    const CallArgument stride_units = number(static_cast<uint32_t>(stride / kernels::kStrideUnitBytes));
    const KernelCall call = {kernel,
                             {size_bytes, count},
                             shape.grid_blocks(items),
                             shape.block_threads,
                             {kRaw, kRawSizes},
                             {buffer(kRaw), buffer(kRawSizes), buffer(kPacked), buffer(kPackedSizes), buffer(kFlags),
                              stride_units, stride_units, number(items)},
                             {kPackedSizes, kFlags}};
    const auto arranged = arrange(queue, kCompressRegions, {&call, 1}, [&](std::span<Region> regions) {
      regions[kRaw].host = raw_at;
      regions[kPacked].host = packed_at;
    });
    if (!arranged) return tl::unexpected(arranged.error());
    const MutableBytes raw = machine_->host(queue, kRaw);
    const auto sizes = array<uint32_t>(machine_->host(queue, kRawSizes));
    for (size_t i = 0; i < count; ++i) sizes[i] = static_cast<uint32_t>(slice[i]->raw.size());
    if (raw_at == nullptr) {
      copy_each(count, size_bytes, [&](size_t i) {
        uint8_t* const at = raw.data() + i * stride;
        const Bytes from = slice[i]->raw;
        if (!from.empty()) std::memcpy(at, from.data(), from.size());
        // The kernel reads whole words. The bytes after an item must be readable; their values do not matter.
        std::memset(at + from.size(), 0, round_up_to_stride(from.size()) - from.size());
      });
    }
    if (auto done = codec::run(*machine_, queue, {&call, 1}); !done) return tl::unexpected(done.error());
    return SliceWindow::Steps{
        [=, this] { return fetch_compression(queue, slice, stride); },
        [=, this] { return collect_compression(queue, slice, stride, packed_at != nullptr); },
    };
  }

  Result<void> fetch_compression(unsigned queue, std::span<Chunk*> slice, size_t stride) {
    const auto sizes = array<uint32_t>(machine_->host(queue, kPackedSizes));
    const MutableBytes flags = machine_->host(queue, kFlags);
    const size_t end_bytes = (slice.size() - 1) * stride + slice.back()->raw.size();
    std::vector<Place> used(slice.size());
    for (size_t i = 0; i < slice.size(); ++i) {
      Chunk& chunk = *slice[i];
      const size_t raw_bytes = chunk.raw.size();
      // Kernel results are validated first: a size beyond the item's room would make the host copy bytes of a
      // neighbour.
      const bool possible = (flags[i] == 0 && sizes[i] != 0 && sizes[i] < raw_bytes) ||
                            (flags[i] == 1 && sizes[i] == raw_bytes) || (flags[i] == 2 && sizes[i] == 0);
      if (!possible) {
        return fail(fmt::format("the compressor reported flag {} and {} bytes for a chunk of {} bytes", flags[i],
                                sizes[i], raw_bytes),
                    description(), "use --backend cpu, and report this as a bug");
      }
      chunk.flag = static_cast<ChunkFlag>(flags[i]);
      chunk.compressed_bytes = sizes[i];
      used[i] = {i * stride, chunk.flag == ChunkFlag::compressed ? sizes[i] : 0};
    }
    return machine_->download_rows(queue, kPacked, rows_of_places(used, end_bytes));
  }

  Result<void> collect_compression(unsigned queue, std::span<Chunk*> slice, size_t stride, bool is_in_place) {
    if (is_in_place) return {};
    const MutableBytes packed = machine_->host(queue, kPacked);
    copy_each(slice.size(), slice.size() * stride, [&](size_t i) {
      const Chunk& chunk = *slice[i];
      if (chunk.flag == ChunkFlag::compressed) {
        std::memcpy(chunk.output.data(), packed.data() + i * stride, chunk.compressed_bytes);
      }
    });
    return {};
  }

  // The blocks where they lie, if they can be copied up from there in no more time than the copy of the output down
  // takes, and with as little device memory. Else copy_items copies them.
  Extent blocks_in_place(std::span<const DecompressItem> slice, size_t output_bytes) const {
    // The const_cast is safe: an input region is only read.
    Extent blocks = extent_of(slice, [](const DecompressItem& item) {
      return MutableBytes(const_cast<uint8_t*>(item.block.data()), item.block.size());
    });
    const size_t limit_bytes = std::max(output_bytes, blocks.used_bytes + blocks.used_bytes / 8);
    if (blocks.first == nullptr || blocks.size_bytes > 2 * limit_bytes ||
        !machine_->is_page_locked({blocks.first, blocks.size_bytes}))
      return {};
    std::vector<driver::Rows> whole{{0, blocks.size_bytes, blocks.size_bytes, 1}};
    std::vector<Place> places;
    places.reserve(slice.size());
    for (const DecompressItem& item : slice) {
      places.push_back({static_cast<size_t>(item.block.data() - blocks.first), item.block.size()});
    }
    blocks.rows = rows_of_places(places, blocks.size_bytes);
    if (cost_bytes(whole) <= cost_bytes(blocks.rows)) blocks.rows = std::move(whole);
    if (cost_bytes(blocks.rows) <= limit_bytes + kRunBytes) return blocks;
    blocks.rows = runs_of_places(places);
    blocks.by_kernel = true;
    return is_aligned(blocks) ? blocks : Extent{};
  }
  // The outputs where they lie, in runs for the copy engine, or in too many runs for it, which copy_items writes.
  // Device memory has room for what lies between them, too.
  Extent outputs_in_place(std::span<const DecompressItem> slice) const {
    Extent outputs = extent_of(slice, [](const DecompressItem& item) { return item.output; });
    if (outputs.first == nullptr || !machine_->is_page_locked({outputs.first, outputs.size_bytes})) return {};
    // Whether the copies of the runs take longer than copying as many bytes again.
    outputs.by_kernel = (outputs.runs - 1) * kRunBytes > outputs.used_bytes;
    if (outputs.by_kernel && (!is_aligned(outputs) || outputs.size_bytes > 2 * outputs.used_bytes)) return {};
    std::vector<Place> places;
    places.reserve(slice.size());
    for (const DecompressItem& item : slice) {
      places.push_back({static_cast<size_t>(item.output.data() - outputs.first), item.output.size()});
    }
    outputs.rows = runs_of_places(places);
    return outputs;
  }
  // As copy_items needs it.
  static bool is_aligned(const Extent& extent) {
    return reinterpret_cast<uintptr_t>(extent.first) % kernels::kStrideUnitBytes == 0;
  }

  Result<SliceWindow::Steps> submit_decompression(unsigned queue, std::span<DecompressItem> slice) {
    const size_t count = slice.size();
    DecompressSize gathered;
    for (const DecompressItem& item : slice) gathered.add(item);
    kernels::LaunchSize size = gathered.launch();
    Extent blocks_at = blocks_in_place(slice, size.input_bytes), outputs_at = outputs_in_place(slice);
    kernels::LaunchSize in_place = size;
    if (blocks_at.first != nullptr) in_place.coded_bytes = blocks_at.size_bytes;
    if (outputs_at.first != nullptr) in_place.input_bytes = outputs_at.size_bytes;
    const auto needed = memory_bytes(kernels::kLz4Decompress, in_place);
    if (!needed) return tl::unexpected(needed.error());
    if (*needed <= machine_->queue_memory_bytes()) {
      size = in_place;
    } else {
      blocks_at = outputs_at = {};
    }
    // The regions whose host sides the blocks and the outputs are.
    const size_t block_region = blocks_at.by_kernel ? kHostBlocks : kBlocks;
    const size_t output_region = outputs_at.by_kernel ? kHostOutput : kOutput;
    std::vector<KernelCall> calls;
    if (blocks_at.by_kernel)
      calls.push_back(
          copying(kHostBlocks, kBlockOffsets, kBlockSizes, kBlocks, kReadingCtas, {blocks_at.size_bytes, count}));
    KernelCall& call = calls.emplace_back(transform_call(
        kernels::kLz4Decompress, size, kernels::kLz4DecompressShape.block_threads,
        {kBlocks, kBlockOffsets, kBlockSizes, kOutput, kOutputOffsets, kCapacities, kOutputSizes, kStatuses}));
    call.grid_blocks = kernels::kLz4DecompressShape.grid_blocks(static_cast<uint32_t>(count));
    call.uploads = {kBlockOffsets, kBlockSizes, kOutputOffsets, kCapacities};
    call.downloads = {kOutputSizes, kStatuses};
    if (outputs_at.by_kernel)
      calls.push_back(copying(kOutput, kOutputOffsets, kOutputSizes, kHostOutput, kWritingCtas, size));
    const auto arranged = arrange(queue, kDecompressRegions, calls, [&](std::span<Region> regions) {
      regions[block_region].host = blocks_at.first;
      regions[output_region].host = outputs_at.first;
      regions[kBlocks].stays_on_device = regions[kHostBlocks].lies_on_host = blocks_at.by_kernel;
      regions[kOutput].stays_on_device = regions[kHostOutput].lies_on_host = outputs_at.by_kernel;
    });
    if (!arranged) return tl::unexpected(arranged.error());
    const auto block_offsets = array<uint64_t>(machine_->host(queue, kBlockOffsets));
    const auto block_sizes = array<uint32_t>(machine_->host(queue, kBlockSizes));
    const auto output_offsets = array<uint64_t>(machine_->host(queue, kOutputOffsets));
    const auto capacities = array<uint32_t>(machine_->host(queue, kCapacities));
    size_t block_bytes = 0, output_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      const Bytes block = slice[i].block, output = slice[i].output;
      block_offsets[i] = blocks_at.first != nullptr ? static_cast<size_t>(block.data() - blocks_at.first) : block_bytes;
      output_offsets[i] =
          outputs_at.first != nullptr ? static_cast<size_t>(output.data() - outputs_at.first) : output_bytes;
      block_sizes[i] = static_cast<uint32_t>(block.size());
      capacities[i] = static_cast<uint32_t>(output.size());
      block_bytes += block.size();
      output_bytes += output.size();
    }
    if (blocks_at.first == nullptr) {
      const MutableBytes blocks = machine_->host(queue, kBlocks);
      copy_each(count, block_bytes, [&](size_t i) {
        if (!slice[i].block.empty())
          std::memcpy(blocks.data() + block_offsets[i], slice[i].block.data(), slice[i].block.size());
      });
    }
    if (blocks_at.first == nullptr) blocks_at.rows = {{0, block_bytes, block_bytes, 1}};
    if (outputs_at.first == nullptr) outputs_at.rows = {{0, output_bytes, output_bytes, 1}};
    auto done = machine_->upload_rows(queue, block_region, blocks_at.rows);
    if (done) done = codec::run(*machine_, queue, calls);
    if (done) done = machine_->download_rows(queue, output_region, outputs_at.rows);
    if (!done) return tl::unexpected(done.error());
    const bool is_in_place = outputs_at.first != nullptr;
    return SliceWindow::Steps{{}, [=, this] { return collect_decompression(queue, slice, is_in_place); }};
  }

  static KernelCall copying(size_t from, size_t offsets, size_t sizes, size_t to, uint32_t most_ctas,
                            const kernels::LaunchSize& size) {
    const auto count = static_cast<uint32_t>(size.item_count);
    return {kernels::kCopyItems,
            size,
            std::min(kernels::kCopyItemsShape.grid_blocks(count), most_ctas),
            kernels::kCopyItemsShape.block_threads,
            {},
            {buffer(from), buffer(offsets), buffer(sizes), buffer(to), number(count)},
            {}};
  }

  Result<void> collect_decompression(unsigned queue, std::span<DecompressItem> slice, bool is_in_place) {
    const auto sizes = array<uint32_t>(machine_->host(queue, kOutputSizes));
    const auto statuses = array<uint32_t>(machine_->host(queue, kStatuses));
    const auto offsets = array<uint64_t>(machine_->host(queue, kOutputOffsets));
    const MutableBytes output = machine_->host(queue, kOutput);
    for (size_t i = 0; i < slice.size(); ++i) {
      if (statuses[i] > static_cast<uint32_t>(kernels::Lz4Status::item_too_large) ||
          sizes[i] > slice[i].output.size()) {
        return fail(fmt::format("the decompressor reported status {} and {} bytes for room of {} bytes", statuses[i],
                                sizes[i], slice[i].output.size()),
                    description(), "use --backend cpu, and report this as a bug");
      }
      slice[i].status = static_cast<ItemStatus>(statuses[i]);
      slice[i].raw_bytes = slice[i].status == ItemStatus::ok ? sizes[i] : 0;
    }
    if (is_in_place) return {};
    copy_each(slice.size(), output.size(), [&](size_t i) {
      const DecompressItem& item = slice[i];
      if (item.raw_bytes != 0) std::memcpy(item.output.data(), output.data() + offsets[i], item.raw_bytes);
    });
    return {};
  }

  // Arranges the regions of calls. `adapt` says which of them have memory of the caller as their host side.
  template <class Adapt>
  Result<void> arrange(unsigned queue, std::span<const RegionName> names, std::span<const KernelCall> calls,
                       const Adapt& adapt) {
    auto regions = costs_.regions(names, calls);
    if (!regions) return tl::unexpected(regions.error());
    adapt(*regions);
    return machine_->arrange(queue, *regions);
  }

  std::unique_ptr<Machine> machine_;
  DeclaredCosts costs_{*machine_};
  Executor& executor_;
  scheduler::Throttle* throttle_;
  std::mutex mutex_;  // guards the machine and the window, which several threads use
  SliceWindow window_{*machine_};
};

}  // namespace

std::unique_ptr<Backend> make_kernel_backend(std::unique_ptr<Machine> machine, Executor& executor,
                                             scheduler::Throttle* throttle) {
  return std::make_unique<KernelBackend>(std::move(machine), executor, throttle);
}

}  // namespace ptxkit::codec
