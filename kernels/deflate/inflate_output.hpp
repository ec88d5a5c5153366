// The output of an item, by one warp: bytes as they stand in the item, and the matches of a round.
#pragma once

#include "kernels/deflate/inflate_input.hpp"
#include "kernels/lz4/lz4_batch.hpp"

namespace ptxkit::kernels {

using InflateStatus = BatchOutcome<dsl::Rate::warp>;

// The matches of a round in order: what match_of made, and where each begins, from the start of the round's output.
struct InflateMatches {
  static constexpr dsl::u32 kSharedBytes = 6 * kInflateRoundMatches;

  explicit InflateMatches(dsl::Kernel& k)
      : matches(k.shared<dsl::u32, kInflateRoundMatches, 16>("matches").data()),
        places(k.shared<dsl::u16, kInflateRoundMatches, 16>("match_places").data()) {}

  InflateShared<dsl::u32> matches;
  InflateShared<dsl::u16> places;
};

class InflateOutput {
 public:
  static constexpr dsl::u32 kSharedBytes = 2 * 4 * dsl::kWarpLanes;

  InflateOutput(dsl::Kernel& k, const InflateRoom& dst, const WarpU32& capacity, const WarpU32& overrun_status,
                InflateStatus& outcome)
      : k_(k),
        dst_(dst),
        capacity_(capacity),
        overrun_status_(overrun_status),
        outcome_(outcome),
        sources_(k.shared<dsl::u32, 2 * dsl::kWarpLanes, 16>("sources").data()),
        size_(k, 0),
        stream_at_(k, 0) {}

  WarpU32 size_bytes() const { return *size_; }
  WarpU32 capacity() const { return capacity_; }
  WarpU32 overrun_status() const { return overrun_status_; }
  const InflateRoom& room() const { return dst_; }

  // Matches go back to the start of the stream.
  void begin_stream() { stream_at_ = *size_; }
  WarpU32 stream_at() const { return *stream_at_; }
  WarpU32 stream_bytes() const { return *size_ - *stream_at_; }
  InflateRoom stream() const { return dst_.at(*stream_at_); }

  void copy(const InflateSource& src, const WarpU32& count) {
    using namespace dsl;
    outcome_.fail_with(count > capacity_ - *size_, overrun_status_);
    k_.if_(outcome_.is_ok(), [&] {
      mark_warp(k_, Mark::emit, *size_);
      const auto to = dst_.at(*size_);
      for_each_lane(k_, count, [&](const LaneU32& i) { to.at(i).store(src.at(i).load()); });
      size_ += count;
      k_.sync_warp();
    });
  }

  // Ends a round of `bytes`, whose literals are written: writes its matches.
  void end_round(const InflateMatches& list, const WarpU32& count, const WarpU32& bytes) {
    using namespace dsl;
    mark_warp(k_, Mark::emit, *size_);
    k_.range(0, count, kWarpLanes, [&](const WarpU32& first) {
      const LaneU32 i = min(first + k_.lane(), count - 1);
      const LaneU32 match = list.matches.at(i).load(), start = zext<u32>(list.places.at(i).load());
      const LaneU32 end = start + (match & 0xFF) + kDeflateMinMatch, distance = (match >> kInflateMatchShift) + 1;
      const LaneBool exists = first + k_.lane() < count;
      const WarpU32 begin = broadcast(start);
      // The bytes from the match before belong to this one.
      const LaneU32 before = shuffle_up(end, 1), from = select(k_.lane() == 0, 0, before - begin);
      k_.sync_warp();
      sources_.at(times<2>(k_.lane())).store_vector(std::array<LaneU32, 2>{start - begin, distance});
      k_.sync_warp();
      write(*size_ + begin, select(exists, from, ~k_.constant<u32>(0)), shuffle(end, kWarpLanes - 1) - begin,
            any(exists & (distance < kWarpLanes)));
    });
    size_ += bytes;
  }

 private:
  // Writes the matches among `total` bytes from `base` on. `start` is the first byte of the lane's match, or of the
  // literals before it, or a larger number. Entry i of `sources_` has where match i starts, and its distance. A window
  // of 32 bytes is stored after the sources of the next one are known, so that its loads have that long.
  void write(const WarpU32& base, const LaneU32& start, const WarpU32& total, const WarpBool& near) {
    using namespace dsl;
    const LaneU32 lane = k_.lane(), lanes_to_own = k_.lanes_below() << 1 | 1;
    const auto output = dst_.at(base);
    WarpVar before(k_, ~0u);  // the match that owns the last byte of the window before
    LaneVar is_match(k_, 0);
    const auto source = [&](const WarpU32& window) {
      const WarpU32 starts = reduce_or(shift_left(1, start - window));
      const LaneU32 owner = *before + popc(starts & lanes_to_own);
      before += popc(starts);
      const auto [match_start, distance] = sources_.at(times<2>(owner)).template load_vector<2>();
      const LaneU32 place = min(window + lane, total - 1);
      const LaneBool repeats = place >= match_start;
      is_match = zext<u32>(repeats);
      LaneVar from(k_, place - select(repeats, distance, 0));
      k_.if_(near, [&] {
        // A literal is its own source.
        k_.warp_loop([&](auto& steps) {
          const LaneU32 lane_of_source = *from - window;
          const LaneU32 theirs = shuffle(*from, lane_of_source & (kWarpLanes - 1));
          const LaneBool goes_on = (lane_of_source < kWarpLanes) & (theirs != *from);
          steps.break_if(!any(goes_on));
          from = select(goes_on, theirs, *from);
        });
      });
      return *from;
    };
    Var<u8, Rate::thread> byte(k_, 0);
    // Sources may lie before `base`, so they are counted from the start of the output.
    const auto load = [&](const LaneU32& from) { byte = dst_.at(base + from).load(); };
    load(source(k_.constant<u32>(0)));
    LaneVar stores(k_, *is_match);
    k_.range(k_.constant<u32>(kWarpLanes), total, kWarpLanes, [&](const WarpU32& window) {
      const LaneU32 from = source(window);
      k_.if_(*stores != 0, [&] { output.at(window + lane).template at<-int64_t{kWarpLanes}>().store(*byte); });
      k_.sync_warp();
      load(from);
      stores = *is_match;
    });
    const LaneU32 last = align_down<kWarpLanes>(total - 1) + lane;
    k_.if_((*stores != 0) & (last < total), [&] { output.at(last).store(*byte); });
    k_.sync_warp();
  }

  dsl::Kernel& k_;
  InflateRoom dst_;
  WarpU32 capacity_, overrun_status_;
  InflateStatus& outcome_;
  InflateShared<dsl::u32> sources_;
  WarpVar size_;       // of the output
  WarpVar stream_at_;  // where the stream begins in it
};

}  // namespace ptxkit::kernels
