// How both compressors choose matches: windows of 32 positions, one a lane.
//
// Scores meet through two shuffles and a ballot, which leaves a bit mask of places where a match may start. Each lane
// then knows which of them follows its own match, so that choosing is one shuffle a match; only a match that agrees
// with all that was compared has to be measured first.
#pragma once

#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

// `Input` points to the item's bytes, 16-byte aligned, in global or in shared memory.
template <class Input>
class WindowParser {
 public:
  static constexpr uint32_t kMaxMatches = kWindow / kMinMatch;  // of a window
  static constexpr uint32_t kMaxScore = 8;

  // No match starts at `start_end` or later, which is twelve bytes before the item's end; none goes beyond `match_end`.
  // `matches` has room for what is listed.
  WindowParser(dsl::Kernel& k, const Input& src, const WarpU32& start_end, const WarpU32& match_end,
               const MatchList& matches)
      : k_(k), src_(src), start_end_(start_end), match_end_(match_end), matches_(matches), listed_(k, 0) {}

  // What a lane sees of the window at `base`. Lanes past the end look at the last position where a match may start.
  struct Place {
    LaneU32 position;
    LaneBool active;
    LaneU32 first, second;  // its eight bytes, as little-endian words
    LaneU32 hash;
  };
  Place place_at(const WarpU32& base) {
    using namespace dsl;
    const LaneBool active = base + k_.lane() < start_end_;
    const LaneU32 position = min(base + k_.lane(), start_end_ - 1);
    const auto [first, second] = load_eight(src_, position);
    return {position, active, first, second, first * kHashMultiplier};
  }

  // The position before, where the byte there is repeated for four bytes; else `found`.
  LaneU32 repeated_or(const Place& place, const LaneU32& found) {
    using namespace dsl;
    const LaneU32 before = max(place.position, 1) - 1;
    const LaneU32 byte = zext<u32>(src_.at(before).load());
    return select(prmt(place.first, byte, k_.constant<u32>(0x2104)) == place.first, before, found);
  }

  // How many of the eight bytes agree with those at `candidate` before the first that does not; 0 where the first four
  // do not all agree, or the candidate is not before the position.
  LaneU32 score(const Place& place, const LaneU32& candidate) {
    return score(src_, place.first, place.second, candidate, place.active & (candidate < place.position));
  }
  static LaneU32 score(const Input& src, const LaneU32& first, const LaneU32& second, const LaneU32& candidate,
                       const LaneBool& is_before) {
    using namespace dsl;
    const auto [candidate_first, candidate_second] = load_eight(src, candidate);
    return select(is_before & (first == candidate_first), 4 + ctz(second ^ candidate_second) / 8, 0);
  }

  // Whether a match is to start at a position, its score and those of the next two given: it gives way to the next
  // position if that scores higher, and to the next but one if that scores higher by two.
  static LaneBool stays(const LaneU32& score, const LaneU32& next, const LaneU32& next_but_one) {
    return (score != 0) & (next <= score) & (next_but_one <= score + 1);
  }

  // Chooses matches among those that may start in the window at `base` and lists them; where the next window starts.
  WarpU32 list_matches(const WarpU32& base, const LaneU32& position, const LaneU32& candidate, const LaneU32& score,
                       const LaneBool& stays) {
    using namespace dsl;
    const LaneU32 lane = k_.lane();
    const WarpU32 starts = ballot(stays);
    Var<u32, Rate::thread> end(k_, lane + min(score, match_end_ - position));  // counted from base, as all here
    const LaneU32 follower = select(score == kMaxScore, k_.constant<u32>(kGoesOn), first_of(starts, *end));
    Var<bool, Rate::thread> chosen(k_, k_.constant(false));
    WarpVar next(k_, ctz(starts));
    k_.warp_loop([&](auto& measured) {
      measured.break_if(*next >= kWindow);
      WarpVar last(k_, *next);
      k_.warp_loop([&](auto& matches) {
        chosen |= lane == *next;
        last = *next;
        next = shuffle(follower, *next);
        matches.break_if(*next >= kWindow);
      });
      measured.break_if(*next != kGoesOn);
      const WarpU32 begin = base + *last;
      const WarpU32 match_end = measure(begin, begin - shuffle(candidate, *last)) - base;
      end = select(lane == *last, match_end, *end);
      next = first_of(starts, match_end);
    });
    const WarpU32 taken = ballot(*chosen);
    k_.if_(*chosen, [&] {
      matches_.at(times<2>(*listed_ + popc(taken & k_.lanes_below())))
          .store_vector(std::array{position | (base + *end) << 16, candidate});
    });
    listed_ += popc(taken);
    return base + max(select(taken != 0, shuffle(*end, 31 - clz(taken)), 0), kWindow);
  }

  // The eight bytes at any position that may start a match, from the three aligned words that hold them. Such a
  // position has twelve bytes of the item after it, so the words are the item's own.
  static std::array<LaneU32, 2> load_eight(const Input& src, const LaneU32& position) {
    using namespace dsl;
    const auto words = src.at(align_down<4>(position)).template as<u32>();
    const LaneU32 low = words.load(), middle = words.template at<1>().load(), high = words.template at<2>().load();
    const LaneU32 shift = position * 8;  // modulo 32 in the funnel shift: 8 for each byte past the word's start
    return {funnel_right(low, middle, shift), funnel_right(middle, high, shift)};
  }

  // Where a match ends that agrees with kMaxScore bytes at least.
  WarpU32 measure(const WarpU32& position, const WarpU32& offset) {
    using namespace dsl;
    WarpVar end(k_, position + kMaxScore);
    k_.warp_loop([&](auto& forwards) {
      const LaneU32 at = *end + k_.lane();
      const LaneU32 byte_at = min(at, match_end_ - 1);
      const LaneBool differs = (at >= match_end_) | (src_.at(byte_at).load() != src_.at(byte_at - offset).load());
      const WarpU32 differing = ballot(differs);
      end += ctz(differing);  // 32 when there is none
      forwards.break_if(differing != 0);
    });
    return min(*end, match_end_);
  }

  WarpU32 listed() const { return *listed_; }
  void forget_listed() { listed_ = 0; }

 private:
  static constexpr uint32_t kGoesOn = 64;  // no lane
  static constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

  // The lowest lane of `starts` from `from` on; kWindow if there is none.
  template <class From>
  static auto first_of(const WarpU32& starts, const From& from) {
    return ctz(starts & dsl::shift_left(kAllLanes, from));
  }

  dsl::Kernel& k_;
  Input src_;
  WarpU32 start_end_;
  WarpU32 match_end_;
  MatchList matches_;
  WarpVar listed_;
};

}  // namespace ptxkit::kernels
