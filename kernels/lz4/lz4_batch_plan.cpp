// Where the encodings of an item's chunks go in the item's encoding, with a warp for each item of several chunks, or of
// a framing of blocks.
//
// In a framing of blocks a chunk is a block, coded or raw, behind its header, and places are prefix sums over their
// sizes. Otherwise chunks follow each other as stitch() joins them on the host: the last literals of a chunk, chunks
// without a match and the first literals of the next chunk with one become the literals of one sequence (a run). A
// chunk with a match contributes that sequence's token, length and literals, and what follows them in its encoding up
// to its last sequence. So positions are prefix sums over the chunks. In a second pass, from the end, each chunk learns
// where its last literals go, which the length of their run decides.
#include <array>
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch_compress.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz4/lz4_frame.hpp"
#include "kernels/lz4/xxh32.hpp"
#include "kernels/lz4/xxh32_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

using Item = BatchInput<Rate::warp>;
using LaneVar = Var<u32, Rate::thread>;

// The number of literals in the first sequence of the block of `size` bytes at `block`; 0 if there is no block.
LaneU32 first_literal_count(Kernel& k, const Ptr<read_only, u8, 1, Rate::thread>& block, const LaneU32& size) {
  LaneVar count(k, 0), at(k, 1);
  k.if_(size != 0, [&] {
    count = zext<u32>(block.load()) >> 4;
    k.if_(*count == kNibbleMax, [&] {
      k.thread_loop([&](auto& bytes) {
        bytes.break_if(*at >= size);
        const LaneU32 byte = zext<u32>(block.at(*at).load());
        count += byte;
        at += 1;
        bytes.break_if(byte != 255);
      });
    });
  });
  return *count;
}

// The highest lane of `lanes`, or the lowest; any lane if there is none.
template <class Lanes>
auto highest(const Lanes& lanes) {
  return (31 - clz(lanes)) & (kWarpLanes - 1);
}
template <class Lanes>
auto lowest(const Lanes& lanes) {
  return ctz(lanes) & (kWarpLanes - 1);
}

// Plans one block and returns its size.
WarpU32 plan_block(Kernel& k, const Item& item) {
  const WarpU32 size = item.size(), chunk_count = item.chunk_count();
  WarpVar written(k, 0), run(k, 0);  // the coded bytes so far, and where the literals after them begin in the item
  k.range(k.constant<u32>(0), chunk_count, kWarpLanes, [&](const auto& first) {
    const LaneU32 chunk = first + k.lane(), safe = min(chunk, chunk_count - 1);
    const auto record = item.record(safe);
    const LaneU32 coded = select(chunk < chunk_count, record.load(), 0), last = record.template at<1>().load();
    const LaneU32 begin = safe * kMaxChunkBytes, tail = min(begin + kMaxChunkBytes, size) - last;
    const auto slot = at_address<read_only, u8>(item.slot_address(safe)).within(kMaxChunkBytes);
    const LaneU32 leading = first_literal_count(k, slot, coded);
    const LaneBool has_match = coded != 0;
    const WarpU32 with_match = ballot(has_match);
    const LaneU32 below = with_match & k.lanes_below();
    const LaneU32 tail_below = shuffle(tail, highest(below));
    const LaneU32 run_of_chunk = select(below != 0, tail_below, *run);
    const LaneU32 literal_count = begin + leading - run_of_chunk;
    const LaneU32 body = coded - (extension_size(last) + 1 + last) - (extension_size(leading) + 1 + leading);
    const LaneU32 part = select(has_match, extension_size(literal_count) + 1 + literal_count + body, 0);
    const LaneU32 sum = inclusive_sum(part);
    k.if_(chunk < chunk_count, [&] {
      record.template at<4>().store_vector(
          std::array{leading, LaneU32(*written + sum - body), run_of_chunk, LaneU32(k.constant<u32>(0))});
    });
    written += shuffle(sum, kWarpLanes - 1);
    run = select(with_match != 0, shuffle(tail, highest(with_match)), *run);
  });
  k.sync_warp();  // lanes behind the last chunk have read its record
  const WarpU32 last_count = size - *run, total = *written + extension_size(last_count) + 1 + last_count;
  // A block that is not shorter than the item becomes one sequence of literals.
  const WarpU32 as_literals = extension_size(size) + 1 + size;
  const WarpBool is_literal = total >= size;
  WarpVar shift(k, select(is_literal, as_literals, total) - size), left(k, chunk_count);
  k.warp_loop([&](auto& groups) {
    groups.break_if(*left == 0);
    const WarpU32 first = align_down<kWarpLanes>(*left - 1);
    left = first;
    const LaneU32 chunk = first + k.lane();
    const LaneBool is_chunk = chunk < chunk_count;
    const auto record = item.record(chunk);
    LaneVar coded(k, 0), leading(k, 0), body_at(k, 0), run_of_chunk(k, 0);
    k.if_(is_chunk, [&] {
      coded = record.load();
      const auto planned = record.template at<4>().template load_vector<4>();
      leading = planned[0];
      body_at = planned[1];
      run_of_chunk = planned[2];
    });
    const LaneBool has_match = (*coded != 0) & !is_literal;
    const LaneU32 own_shift = *body_at - (chunk * kMaxChunkBytes + *leading);
    const WarpU32 with_match = ballot(has_match);
    const LaneU32 above = with_match & ~(k.lanes_below() << 1 | 1);
    const LaneU32 shift_above = shuffle(own_shift, lowest(above));
    const LaneU32 shift_behind = select(above != 0, shift_above, *shift);
    k.if_(is_chunk, [&] {
      k.if_(is_literal, [&] { record.store(0); });
      record.template at<4>().store_vector(
          std::array{*leading, *body_at, LaneU32(select(is_literal, 0, *run_of_chunk)), shift_behind});
    });
    shift = select(with_match != 0, shuffle(own_shift, lowest(with_match)), *shift);
  });
  return select(is_literal, as_literals, total);
}

// Flags and block size of a frame with independent blocks of 64 KiB and the size of its content.
constexpr uint32_t kFrameDescriptor = kFrameVersion | static_cast<uint32_t>(FrameFlag::independent_blocks) |
                                      static_cast<uint32_t>(FrameFlag::content_bytes) | kSmallestFrameBlockId << 12;

// The checksum byte of that frame's header: XXH32 of the ten bytes of its descriptor, of which the last four are 0.
WarpU32 frame_header_checksum(Kernel& k, const WarpU32& size) {
  const auto add = [](const WarpU32& hash, const WarpU32& word) {
    return WarpU32(xxh32::rotate_left(hash + word * kXxh32Primes[2], 17) * kXxh32Primes[3]);
  };
  const auto add_zero = [](const WarpU32& hash) { return WarpU32(xxh32::rotate_left(hash, 11) * kXxh32Primes[0]); };
  const WarpU32 words = add(add(k.constant(kXxh32Primes[4] + 10), size << 16 | kFrameDescriptor), size >> 16);
  return xxh32::mix(add_zero(add_zero(words))) >> 8;
}

// Writes what stands before the blocks, and returns its length.
WarpU32 store_blocks_header(Kernel& k, const Item& item) {
  const LaneU32 i = k.lane();
  const WarpU32 size = item.size();
  k.if_(item.is_frame(), [&] {
     const WarpU32 checksum = frame_header_checksum(k, size);
     const LaneU32 magic = k.constant(kFrameMagic) >> min(i, 3) * 8;
     const LaneU32 descriptor = k.constant(kFrameDescriptor) >> (i & 1) * 8;
     const LaneU32 size_byte = select(i < 10, size >> (i - 6) % 4 * 8, select(i == 14, checksum, 0));
     k.if_(i < kFrameHeaderBytes,
           [&] { item.output().at(i).store(trunc<u8>(select(i < 4, magic, select(i < 6, descriptor, size_byte)))); });
   }).else_([&] {
    const LaneU32 number = select(i < 8, size, min(size, kMaxChunkBytes));
    k.if_(i < kHdf5HeaderBytes,
          [&] { item.output().at(i).store(trunc<u8>(select(i < 4, 0, number >> (3 - i % 4) * 8))); });
  });
  return select(item.is_frame(), k.constant(kFrameHeaderBytes), k.constant(kHdf5HeaderBytes));
}

// Plans the blocks of an item, writes what stands around them, and returns the item's size.
WarpU32 plan_blocks(Kernel& k, const Item& item) {
  const WarpU32 chunk_count = item.chunk_count();
  WarpVar written(k, store_blocks_header(k, item));
  k.range(k.constant<u32>(0), chunk_count, kWarpLanes, [&](const auto& first) {
    const LaneU32 chunk = first + k.lane(), safe = min(chunk, chunk_count - 1);
    const auto record = item.record(safe);
    const LaneU32 coded = record.load(), raw = min(item.size() - safe * kMaxChunkBytes, kMaxChunkBytes);
    const LaneU32 part = select(chunk < chunk_count, select(coded != 0, coded, raw) + kBlockHeaderBytes, 0);
    const LaneU32 sum = inclusive_sum(part), none = k.constant<u32>(0);
    k.if_(chunk < chunk_count,
          [&] { record.template at<4>().store_vector(std::array{none, none, none, LaneU32(*written + sum - part)}); });
    written += shuffle(sum, kWarpLanes - 1);
  });
  k.if_(item.is_frame(), [&] {
    k.if_(k.lane() < kFrameEndBytes, [&] { item.output().at(*written + k.lane()).store(k.constant<u8>(0)); });
    written += kFrameEndBytes;
  });
  return *written;
}

}  // namespace

KernelDefinition lz4_batch_plan() {
  return define_batch_kernel(
      KernelSpec{.name = std::string(kLz4BatchPlan),
                 .block = kLz4BatchPlanShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxChunkBytes, .note = "one warp an item"}},
      [](Kernel& k, const BatchArguments& arguments) {
        const Item item(k, arguments, item_of_warp<kLz4BatchPlanShape>(k, arguments.item_count));
        mark_warp(k, Mark::item, item.size());
        WarpVar coded(k, 0);
        const WarpBool is_planned = !(item.is_too_large() | item.is_direct());
        k.if_(is_planned & item.is_ok(), [&] {
          k.if_(item.has_blocks(), [&] { coded = plan_blocks(k, item); }).else_([&] {
            coded = item.header_bytes() + plan_block(k, item);
          });
        });
        mark_warp(k, Mark::status, item.status());
        k.if_(is_planned, [&] { k.once_per_warp([&] { item.store_result(*coded); }); });
      });
}

}  // namespace ptxkit::kernels
