// The symbols of a block, by one warp, in rounds.
//
// In a round each lane has a segment of the block's bits. It begins with the first symbol that begins there, which only
// the lane before it knows. So each begins with a guess, its segment's first bit, and goes over the segment again from
// where its neighbour ended until all agree: after 32 turns at the latest, mostly after two or three, since wrong
// symbols soon meet the right ones. Then sums say where the lanes' bytes and matches go, and each goes over its segment
// once more to write its literals and list its matches.
#pragma once

#include "kernels/deflate/inflate_codes.hpp"
#include "kernels/deflate/inflate_output.hpp"

namespace ptxkit::kernels {

class InflateSymbols {
 public:
  InflateSymbols(dsl::Kernel& k, InflateInput& input, const InflateBlockCodes& codes, InflateOutput& output,
                 InflateStatus& outcome)
      : k_(k), input_(input), codes_(codes), output_(output), outcome_(outcome), matches_(k) {}

  // Decodes the symbols from `place` on up to the end of the block, and returns the place behind it.
  WarpU32 decode(const WarpU32& place) {
    using namespace dsl;
    WarpVar at(k_, place);
    k_.warp_loop([&](auto& rounds) {
      mark_warp(k_, Mark::parse, *at);
      input_.stage(*at);
      const WarpBool is_last = round(at);
      rounds.break_if(is_last | !outcome_.is_ok());
    });
    return *at;
  }

 private:
  // A lane's way through its segment.
  struct Run {
    explicit Run(dsl::Kernel& k) : begin(k, 0), end(k, 0), stop(k, 0), bytes(k, 0), matches(k, 0) {}
    LaneVar begin, end;  // positions
    LaneVar stop;        // kInflateIsEnd or kInflateIsBad if it does not go on behind its segment
    LaneVar bytes, matches;
  };

  // Where a lane writes what it decodes.
  struct Places {
    LaneU32 bytes, matches;  // from the start of the round's output, and of its list
    LaneVar& fault;          // BatchStatus of the first thing that is wrong, or ok
  };

  // Goes over the symbols from `run.begin` to the end of the segment: counts them, or, with `places`, writes them.
  void go(Run& run, const LaneU32& segment_end, const WarpU32& input_end, const Places* places) {
    using namespace dsl;
    LaneVar at(k_, *run.begin), bytes(k_, 0), matches(k_, 0);
    if (places == nullptr) run.stop = 0;
    k_.thread_loop([&](auto& symbols) {
      symbols.break_if(*at >= segment_end);
      const LaneU32 bits = input_.bits(*at), entry = codes_.literals.find(bits), width = entry & kInflateWidthMask;
      LaneVar behind(k_, *at + width), size(k_, 1), flags(k_, entry & (kInflateIsEnd | kInflateIsBad));
      LaneVar is_wrong(k_, 0), is_over(k_, 0);
      const auto check = [&](const LaneU32& place, const LaneBool& is_near) {
        is_wrong = zext<u32>((*flags >= kInflateIsBad) | (*behind > input_end) | !is_near);
        is_over = zext<u32>(place + *size > output_.capacity());
        return (*is_wrong | *is_over | *flags) == 0;
      };
      const LaneBool is_match = (entry & kInflateIsMatch) != 0;
      // Both branches write, so that lanes meet again behind them before any leaves the loop.
      k_.if_(is_match, [&] {
          const LaneU32 extra = entry >> kInflateExtraShift & kInflateLengthExtraMask;
          size = (entry >> kInflateLengthShift & kInflateLengthMask) + bit_field(bits, width - extra, extra);
          const LaneU32 more = input_.bits(*behind), distance_entry = codes_.distances.find(more);
          const LaneU32 distance_width = distance_entry & kInflateWidthMask;
          behind += distance_width;
          flags = distance_entry & kInflateIsBad;
          if (places == nullptr) return;
          const LaneU32 distance_extra = distance_entry >> kInflateExtraShift & kInflateDistanceExtraMask;
          const LaneU32 distance = (distance_entry >> kInflateDistanceShift & kInflateDistanceMask) +
                                   bit_field(more, distance_width - distance_extra, distance_extra);
          const LaneU32 place = output_.size_bytes() + places->bytes + *bytes;
          k_.if_(check(place, distance <= place - output_.stream_at()), [&] {
            const LaneU32 number = places->matches + *matches;
            matches_.matches.at(number).store((*size - kDeflateMinMatch) | (distance - 1) << kInflateMatchShift);
            matches_.places.at(number).store(trunc<u16>(places->bytes + *bytes));
          });
        }).else_([&] {
        if (places == nullptr) return;
        const LaneU32 place = output_.size_bytes() + places->bytes + *bytes;
        k_.if_(check(place, k_.constant(true)),
               [&] { output_.room().at(place).store(trunc<u8>(entry >> kInflateLengthShift)); });
      });
      if (places == nullptr) {
        flags |= select(*behind > input_end, k_.constant(kInflateIsBad), 0);
        run.stop = *flags;
        at = select(*flags >= kInflateIsBad, *at, *behind);
        symbols.break_if(*flags != 0);
      } else {
        const LaneBool is_end = *flags == kInflateIsEnd;
        places->fault =
            select(*is_wrong != 0, k_.constant(static_cast<u32>(BatchStatus::cannot_decompress)),
                   select(is_end | (*is_over == 0), static_cast<u32>(BatchStatus::ok), output_.overrun_status()));
        symbols.break_if((*is_wrong != 0) | is_end | (*is_over != 0));
        at = *behind;
      }
      bytes += *size;
      matches += zext<u32>(is_match);
    });
    if (places != nullptr) return;
    run.end = *at;
    run.bytes = *bytes;
    run.matches = *matches;
  }

  // Decodes a round from `place` on, which is staged, and moves `place` behind it. The result is whether the block ends
  // there.
  WarpBool round(WarpVar& place) {
    using namespace dsl;
    const LaneU32 lane = k_.lane();
    const WarpU32 first = *place - input_.staged_begin(), input_end = input_.end() - input_.staged_begin();
    const LaneU32 segment_end = first + (lane + 1) * kInflateSegmentBits;
    Run run(k_);
    WarpVar is_guess(k_, 1);
    k_.warp_loop([&](auto& turns) {
      const LaneU32 before = shuffle_up(*run.end, 1), stop_before = shuffle_up(*run.stop, 1);
      const LaneBool moves = (*is_guess != 0) | ((lane != 0) & (stop_before == 0) & (before != *run.begin));
      turns.break_if(!any(moves));
      k_.if_(moves, [&] {
        run.begin = select(*is_guess != 0, first + lane * kInflateSegmentBits, before);
        go(run, segment_end, input_end, nullptr);
      });
      is_guess = 0;
    });
    // Lanes behind the block's end, or behind bits that are bad, have no part in it.
    const LaneBool is_part = lane <= ctz(ballot(*run.stop != 0));
    const LaneU32 bytes = inclusive_sum(select(is_part, *run.bytes, 0));
    const LaneU32 matches = inclusive_sum(select(is_part, *run.matches, 0));
    const LaneBool fits = is_part & (bytes <= kInflateRoundBytes) & (matches <= kInflateRoundMatches);
    const WarpU32 last = 31 - clz(ballot(fits));
    LaneVar fault(k_, static_cast<u32>(BatchStatus::ok));
    k_.if_(fits, [&] {
      const Places places{bytes - *run.bytes, matches - *run.matches, fault};
      go(run, segment_end, input_end, &places);
    });
    const WarpU32 faulty = ballot(*fault != static_cast<u32>(BatchStatus::ok));
    outcome_.fail_with(faulty != 0, shuffle(*fault, ctz(faulty) & (kWarpLanes - 1)));
    k_.sync_warp();
    k_.if_(outcome_.is_ok(), [&] { output_.end_round(matches_, shuffle(matches, last), shuffle(bytes, last)); });
    place = input_.staged_begin() + shuffle(*run.end, last);
    return shuffle(*run.stop, last) == kInflateIsEnd;
  }

  dsl::Kernel& k_;
  InflateInput& input_;
  const InflateBlockCodes& codes_;
  InflateOutput& output_;
  InflateStatus& outcome_;
  InflateMatches matches_;
};

}  // namespace ptxkit::kernels
