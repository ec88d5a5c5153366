// Match selection of the LZ4 compressors in windows of 32 positions, one for each lane.
//
// Lanes exchange scores with two shuffles. A ballot then gives the mask of positions at which a match may start. From
// the mask each lane finds the match that follows its own, so that selection takes one shuffle for each match. Only a
// match whose bytes agree as far as they were compared has to be measured first.
#pragma once

#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

// `Input` is a pointer to the item's bytes, 16-byte aligned, in global or shared memory.
template <class Input>
class WindowParser {
 public:
  static constexpr uint32_t kMaxMatches = kWindow / kMinMatch;  // in a window
  static constexpr uint32_t kMaxScore = 8;

  // No match starts at `start_end` or later (the last possible start is twelve bytes before the item's end), and none
  // extends past `match_end`. `matches` receives the listed matches.
  WindowParser(dsl::Kernel& k, const Input& src, const WarpU32& start_end, const WarpU32& match_end,
               const MatchList& matches)
      : k_(k), src_(src), start_end_(start_end), match_end_(match_end), matches_(matches), listed_(k, 0) {}

  // A lane's position in the window at `base`. Lanes past the end get the last position at which a match may start.
  struct Place {
    LaneU32 position;
    LaneBool active;
    LaneU32 first, second;  // the eight bytes at the position, as little-endian words
    LaneU32 hash;
  };
  Place place_at(const WarpU32& base) {
    using namespace dsl;
    const LaneBool active = base + k_.lane() < start_end_;
    const LaneU32 position = min(base + k_.lane(), start_end_ - 1);
    const auto [first, second] = load_eight(src_, position);
    return {position, active, first, second, first * kHashMultiplier};
  }

  // The previous position if the byte there is repeated for four bytes; otherwise `found`.
  LaneU32 repeated_or(const Place& place, const LaneU32& found) {
    using namespace dsl;
    const LaneU32 before = max(place.position, 1) - 1;
    const LaneU32 byte = zext<u32>(src_.at(before).load());
    return select(prmt(place.first, byte, k_.constant<u32>(0x2104)) == place.first, before, found);
  }

  // The number of bytes, up to eight, that agree with those at `candidate` before the first difference. 0 if the first
  // four do not all agree, or if the candidate is not before the position.
  LaneU32 score(const Place& place, const LaneU32& candidate) {
    return score(src_, place.first, place.second, candidate, place.active & (candidate < place.position));
  }
  static LaneU32 score(const Input& src, const LaneU32& first, const LaneU32& second, const LaneU32& candidate,
                       const LaneBool& is_before) {
    using namespace dsl;
    const auto [candidate_first, candidate_second] = load_eight(src, candidate);
    return select(is_before & (first == candidate_first), 4 + ctz(second ^ candidate_second) / 8, 0);
  }

  // Whether a match is to start at a position, given its score and those of the next two positions (lazy matching): it
  // gives way to the next position if that scores higher, and to the one after it if that scores higher by at least
  // two.
  static LaneBool stays(const LaneU32& score, const LaneU32& next, const LaneU32& next_but_one) {
    return (score != 0) & (next <= score) & (next_but_one <= score + 1);
  }

  // Selects matches among the allowed starts in the window at `base` and lists them. Returns the start of the next
  // window.
  WarpU32 list_matches(const WarpU32& base, const LaneU32& position, const LaneU32& candidate, const LaneU32& score,
                       const LaneBool& stays) {
    using namespace dsl;
    const LaneU32 lane = k_.lane();
    const WarpU32 starts = ballot(stays);
    // relative to base, as all positions in this function
    Var<u32, Rate::thread> end(k_, lane + min(score, match_end_ - position));
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

  // The eight bytes at a position where a match may start, from the three aligned words that contain them. Twelve bytes
  // of the item follow such a position, so the words do not extend past the item.
  static std::array<LaneU32, 2> load_eight(const Input& src, const LaneU32& position) {
    using namespace dsl;
    const auto words = src.at(align_down<4>(position)).template as<u32>();
    const LaneU32 low = words.load(), middle = words.template at<1>().load(), high = words.template at<2>().load();
    const LaneU32 shift = position * 8;  // the funnel shift takes it modulo 32: 8 for each byte after the word's start
    return {funnel_right(low, middle, shift), funnel_right(middle, high, shift)};
  }

  // The end of a match of which at least kMaxScore bytes agree.
  WarpU32 measure(const WarpU32& position, const WarpU32& offset) {
    using namespace dsl;
    WarpVar end(k_, position + kMaxScore);
    k_.warp_loop([&](auto& forwards) {
      const LaneU32 at = *end + k_.lane();
      const LaneU32 byte_at = min(at, match_end_ - 1);
      const LaneBool differs = (at >= match_end_) | (src_.at(byte_at).load() != src_.at(byte_at - offset).load());
      const WarpU32 differing = ballot(differs);
      end += ctz(differing);  // 32 if all lanes agree
      forwards.break_if(differing != 0);
    });
    return min(*end, match_end_);
  }

  WarpU32 listed() const { return *listed_; }
  void forget_listed() { listed_ = 0; }

 private:
  static constexpr uint32_t kGoesOn = 64;  // a value that is no lane
  static constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

  // The lowest lane of `starts` that is at or above `from`; kWindow if there is none.
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
