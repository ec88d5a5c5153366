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
    LaneVar stop;        // kInflateIsEnd or kInflateIsBad where the symbols end before the segment
    LaneVar bytes, matches;
  };
  // Both numbers of a run are counted at once.
  static constexpr dsl::u32 kOneMatch = 1u << 20;

  // A length, by its entry and the bits that begin with it.
  static LaneU32 length_of(const LaneU32& entry, const LaneU32& bits) {
    const LaneU32 width = entry & kInflateWidthMask, extra = entry >> kInflateExtraShift & kInflateLengthExtraMask;
    return (entry >> kInflateLengthShift & kInflateLengthMask) + bit_field(bits, width - extra, extra);
  }
  static LaneU32 distance_of(const LaneU32& entry, const LaneU32& bits) {
    const LaneU32 width = entry & kInflateWidthMask, extra = entry >> kInflateExtraShift & kInflateDistanceExtraMask;
    return (entry >> kInflateDistanceShift & kInflateDistanceMask) + bit_field(bits, width - extra, extra);
  }

  // Goes over the symbols from `run.begin` to the end of the segment, or of the item if that comes first. Whether a
  // symbol is cut off, or missing, write() finds.
  void count(Run& run, const LaneU32& segment_end, const WarpU32& input_end) {
    using namespace dsl;
    const LaneU32 end = min(segment_end, input_end);
    LaneVar at(k_, *run.begin), counted(k_, 0), stop(k_, 0);
    k_.thread_loop([&](auto& symbols) {
      symbols.break_if(*at >= end);
      const auto window = input_.window(*at);
      const LaneU32 bits = window.bits(), entry = codes_.literals.find(bits), width = entry & kInflateWidthMask;
      LaneVar size(k_, 1);
      stop = entry & (kInflateIsEnd | kInflateIsBad);
      at += width;
      k_.if_((entry & kInflateIsMatch) != 0, [&] {
        const LaneU32 distance = codes_.distances.find(window.bits_behind(width));
        size = length_of(entry, bits) + kOneMatch;
        stop = distance & kInflateIsBad;
        at += distance & kInflateWidthMask;
      });
      symbols.break_if(*stop != 0);
      counted += *size;
    });
    run.stop = *stop;
    run.end = *at;
    run.bytes = *counted & (kOneMatch - 1);
    run.matches = *counted / kOneMatch;
  }

  // Goes over them again and writes them: the first byte to `first_place`, the first match as number `first_match` of
  // the list. Places in the list count from the start of the round's output. The result is the status of the first
  // symbol that is wrong, or ok.
  LaneU32 write(const Run& run, const LaneU32& segment_end, const WarpU32& input_end, const LaneU32& first_place,
                const LaneU32& first_match) {
    using namespace dsl;
    constexpr auto kOk = static_cast<u32>(BatchStatus::ok);
    LaneVar at(k_, *run.begin), place(k_, first_place), number(k_, first_match), status(k_, kOk);
    k_.thread_loop([&](auto& symbols) {
      symbols.break_if(*at >= segment_end);
      const auto window = input_.window(*at);
      const LaneU32 bits = window.bits(), entry = codes_.literals.find(bits), width = entry & kInflateWidthMask;
      LaneVar size(k_, 1), is_wrong(k_, 0), is_over(k_, 0), is_end(k_, entry & kInflateIsEnd);
      at += width;
      const auto is_right = [&](const LaneBool& has_code) {
        is_wrong = zext<u32>(!has_code | (*at > input_end));
        is_over = zext<u32>(*place + *size > output_.capacity());
        return (*is_wrong | *is_over | *is_end) == 0;
      };
      // Both branches write, so that lanes meet again behind them before any leaves the loop.
      k_.if_((entry & kInflateIsMatch) != 0, [&] {
          const LaneU32 more = window.bits_behind(width), distance_entry = codes_.distances.find(more);
          const LaneU32 distance = distance_of(distance_entry, more);
          size = length_of(entry, bits);
          at += distance_entry & kInflateWidthMask;
          const LaneBool has_code = (distance_entry < kInflateIsBad) & (distance <= *place - output_.stream_at());
          k_.if_(is_right(has_code), [&] {
            matches_.matches.at(*number).store((*size - kDeflateMinMatch) | (distance - 1) << kInflateMatchShift);
            matches_.places.at(*number).store(trunc<u16>(*place - output_.size_bytes()));
          });
          number += 1;
        }).else_([&] {
        k_.if_(is_right(entry < kInflateIsBad),
               [&] { output_.room().at(*place).store(trunc<u8>(entry >> kInflateLengthShift)); });
      });
      status = select(*is_wrong != 0, k_.constant(static_cast<u32>(BatchStatus::cannot_decompress)),
                      select((*is_end != 0) | (*is_over == 0), kOk, output_.overrun_status()));
      symbols.break_if((*is_wrong != 0) | (*is_end != 0) | (*is_over != 0));
      status = k_.constant(kOk);  // what one way out leaves differs from the other, so that LLVM keeps them apart
      place += *size;
    });
    return *status;
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
        count(run, segment_end, input_end);
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
      fault = write(run, segment_end, input_end, output_.size_bytes() + bytes - *run.bytes, matches - *run.matches);
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
