// Writes the output of an item from the literals and sequences of its blocks, by one warp.
//
// 32 sequences at a time: a sum over the lanes says where each begins, and the bytes are written 32 at a time. A lane
// finds the sequence that owns its byte, and with it the byte's source, among the literals or in the output before.
#pragma once

#include <array>

#include "kernels/transform.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"

namespace ptxkit::kernels {

class ZstdOutput {
 public:
  using Sources = dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>;
  static constexpr dsl::u32 kSharedBytes = 4 * 4 * dsl::kWarpLanes;

  ZstdOutput(dsl::Kernel& k, const ZstdRoom& dst, const WarpU32& capacity, const WarpU32& overrun_status,
             ZstdOutcome& outcome)
      : k_(k),
        dst_(dst),
        capacity_(capacity),
        overrun_status_(overrun_status),
        outcome_(outcome),
        sources_(k.shared<dsl::u32, 4 * dsl::kWarpLanes, 16>("sources").data()),
        size_(k, 0),
        frame_at_(k, 0),
        offsets_{WarpVar(k, 0), WarpVar(k, 0), WarpVar(k, 0)} {}

  WarpU32 size_bytes() const { return *size_; }
  WarpU32 frame_at() const { return *frame_at_; }
  WarpU32 frame_bytes() const { return *size_ - *frame_at_; }
  WarpU32 left() const { return capacity_ - *size_; }

  void begin_frame() {
    frame_at_ = *size_;
    for (dsl::u32 i = 0; i < kZstdRepeatOffsets; ++i) offsets_[i] = k_.constant(kZstdFirstOffsets[i]);
  }

  // Writes `count` bytes from `src`: each of them (step 1) or the first as often (step 0).
  void copy(const ZstdSource& src, const WarpU32& count, const WarpU32& step) {
    reserve(count);
    k_.if_(outcome_.is_ok(), [&] {
      mark_warp(k_, Mark::emit, *size_);
      const auto to = dst_.at(*size_);
      for_each_lane(k_, count, [&](const LaneU32& i) { to.at(i).store(src.at(i * step).load()); });
      size_ += count;
      k_.sync_warp();
    });
  }

  struct Block {
    ZstdRoom literals;
    WarpU32 literal_bytes;
    ZstdSequences sequences;
    WarpU32 count;
    WarpU32 content_bytes;
    std::array<WarpU32, kZstdRepeatOffsets> last_offsets;
    WarpU32 window_bytes;
  };
  void run(const Block& block) {
    using namespace dsl;
    reserve(block.content_bytes);
    k_.if_(outcome_.is_ok(), [&] {
      mark_warp(k_, Mark::emit, *size_);
      WarpVar literal(k_, 0);
      k_.range(0, block.count, kWarpLanes, [&](const WarpU32& first, auto& batches) {
        batches.break_if(!outcome_.is_ok());
        batch(block, first, literal);
      });
      k_.if_(outcome_.is_ok(), [&] {
        const WarpU32 rest = block.literal_bytes - *literal;
        const auto from = block.literals.at(*literal);
        const auto to = dst_.at(*size_);
        for_each_lane(k_, rest, [&](const LaneU32& i) { to.at(i).store(from.at(i).load()); });
        size_ += rest;
        k_.sync_warp();
        const std::array<WarpU32, kZstdRepeatOffsets> last{
            resolved(block.last_offsets[0]), resolved(block.last_offsets[1]), resolved(block.last_offsets[2])};
        for (u32 i = 0; i < kZstdRepeatOffsets; ++i) offsets_[i] = last[i];
      });
    });
  }

 private:
  static constexpr uint32_t kLiteral = 1u << 31;

  void reserve(const WarpU32& count) { outcome_.fail_with(count > left(), overrun_status_); }

  // An offset that may follow from those that the block begins with.
  template <dsl::Rate R>
  dsl::Expr<dsl::u32, R> resolved(const dsl::Expr<dsl::u32, R>& stored) const {
    using namespace dsl;
    const Expr<u32, R> number = stored >> kZstdFirstNumberShift & 3;
    const Expr<u32, R> from = select(number == 0, *offsets_[0], select(number == 1, *offsets_[1], *offsets_[2]));
    const Expr<u32, R> less = stored & ((1u << kZstdFirstNumberShift) - 1);
    return select((stored & kZstdFromFirst) != 0, from - min(less, from), stored);
  }

  void batch(const Block& block, const WarpU32& first, WarpVar& literal) {
    using namespace dsl;
    const LaneU32 i = first + k_.lane();
    const LaneBool exists = i < block.count;
    const auto [low, high] = block.sequences.at(times<2>(min(i, block.count - 1))).template load_vector<2>();
    const LaneU32 literals = select(exists, low & ((1u << kZstdLiteralLengthBits) - 1), 0);
    const LaneU32 match =
        (low >> kZstdLiteralLengthBits | high >> kZstdOffsetBits << kZstdMatchLowBits) + kZstdMinMatch;
    const LaneU32 offset = resolved(LaneU32(high & ((1u << kZstdOffsetBits) - 1)));
    const LaneU32 length = select(exists, literals + match, 0);
    const LaneU32 end = inclusive_sum(length), start = end - length, match_start = start + literals;
    const LaneU32 literal_end = inclusive_sum(literals);
    const LaneBool is_bad = (offset == 0) | (offset > frame_bytes() + match_start) | (offset > block.window_bytes);
    outcome_.fail_if(any(exists & is_bad), BatchStatus::cannot_decompress);
    k_.if_(outcome_.is_ok(), [&] {
      const LaneU32 literal_shift = *literal + literal_end - literals - start + kLiteral;
      sources_.at(times<4>(k_.lane()))
          .store_vector(std::array<LaneU32, 4>{match_start, literal_shift, *size_ - offset, offset});
      k_.sync_warp();
      const WarpU32 total = shuffle(end, kWarpLanes - 1);
      write(block, select(exists, start, ~k_.constant<u32>(0)), total, any(exists & (offset < kWarpLanes)));
      size_ += total;
      literal += shuffle(literal_end, kWarpLanes - 1);
    });
  }

  // Writes `total` bytes. `start` is where the lane's sequence starts among them, or a larger number. Entry i of
  // `sources_` has the position where the match of sequence i starts, and what to add to a byte's position to get its
  // source: for a literal, then for a byte of the match. `near`: some offset is so short that a source may be in its
  // own window. A window is stored after the sources of the next one are known, so that its loads have that long.
  void write(const Block& block, const LaneU32& start, const WarpU32& total, const WarpBool& near) {
    using namespace dsl;
    const LaneU32 lane = k_.lane(), lanes_to_own = k_.lanes_below() << 1 | 1;
    const auto output = dst_.at(*size_);
    WarpVar before(k_, ~0u);  // the sequence that owns the last byte of the window before
    const auto source = [&](const WarpU32& window) {
      const WarpU32 starts = reduce_or(shift_left(1, start - window));
      const LaneU32 owner = *before + popc(starts & lanes_to_own);
      before += popc(starts);
      const auto [match_start, literal_shift, match_shift, unused] =
          sources_.at(times<4>(owner)).template load_vector<4>();
      const LaneU32 place = min(window + lane, total - 1);
      LaneVar from(k_, place + select(place < match_start, literal_shift, match_shift));
      k_.if_(near, [&] {
        k_.warp_loop([&](auto& steps) {
          const LaneU32 lane_of_source = *from - (*size_ + window);
          const LaneBool within = lane_of_source < kWarpLanes;
          steps.break_if(!any(within));
          from = select(within, shuffle(*from, lane_of_source & (kWarpLanes - 1)), *from);
        });
      });
      return *from;
    };
    Var<u8, Rate::thread> byte(k_, 0);
    const auto load = [&](const LaneU32& from) {
      k_.if_(from >= kLiteral, [&] { byte = block.literals.at(from - kLiteral).load(); }).else_([&] {
        byte = dst_.at(from).load();
      });
    };
    load(source(k_.constant<u32>(0)));
    k_.range(k_.constant<u32>(kWarpLanes), total, kWarpLanes, [&](const WarpU32& window) {
      const LaneU32 from = source(window);
      output.at(window + lane).template at<-int64_t{kWarpLanes}>().store(*byte);
      k_.sync_warp();
      load(from);
    });
    const LaneU32 last = align_down<kWarpLanes>(total - 1) + lane;
    k_.if_(last < total, [&] { output.at(last).store(*byte); });
    k_.sync_warp();
  }

  dsl::Kernel& k_;
  ZstdRoom dst_;
  WarpU32 capacity_, overrun_status_;
  ZstdOutcome& outcome_;
  Sources sources_;
  WarpVar size_;      // of the output
  WarpVar frame_at_;  // where the frame begins in it
  std::array<WarpVar, kZstdRepeatOffsets> offsets_;
};

}  // namespace ptxkit::kernels
