// The fast match finder: the last position with the same hash, from tables in shared memory, without chains.
//
// A CTA has a part of a block, with a thread for each position of a step. A step looks up its positions in two tables,
// by the hashes of four and of seven bytes, and enters their names in two smaller tables, where an atomic maximum keeps
// the first of the step (step_table.hpp). After a barrier each thread compares eight bytes at the previous position and
// at the positions found in all four tables, and keeps the longest match, the nearest of equals. Positions that are the
// first of their name slot are inserted into the tables. The kLzTableBefore bytes before the part are inserted first.
#include <array>
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/lz77/lz_item.hpp"
#include "kernels/lz77/lz_source.hpp"
#include "kernels/step_table.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using LaneVar = Var<u32, Rate::thread>;

constexpr u32 kCompared = 8;
constexpr u32 kByLane = 24;  // bytes of a match that its lane compares; the warp compares the rest

void clear(Kernel& k, const Ptr<shared, u32, 16>& words, u32 count) {
  k.range(k.constant<u32>(0), count / 4, kLzTableStep, [&](const auto& first) {
    const LaneU32 zero(k.constant<u32>(0));
    words.at(times<4>(first + k.thread())).store_vector(std::array{zero, zero, zero, zero});
  });
}

// The distance to a table's last position, modulo 65536.
LaneU32 back_to(const LaneU32& last, const LaneU32& position) { return (position - last) & kLzMaxOffset; }

// The length of one lane's match, of which `Known` bytes agree, measured by the whole warp: eight bytes in each lane,
// the last of them where the longest possible match ends.
template <u32 Known>
WarpU32 length_by_warp(Kernel& k, const LzSource& src, const LaneU32& its_position, const LaneU32& its_offset,
                       const WarpU32& its_lane) {
  static_assert(Known + kCompared * kWarpLanes >= kLzMaxMatch && Known >= kCompared);
  const WarpU32 position = shuffle(its_position, its_lane), offset = shuffle(its_offset, its_lane);
  const LaneU32 limit = longest_match(src, position);
  const LaneU32 from = min(Known + kCompared * k.lane(), limit - kCompared);
  const auto [low, high] = src.words_at(position + from);
  const auto [low_before, high_before] = src.words_at(position - offset + from);
  const LaneU32 in_low = low ^ low_before, in_high = high ^ high_before;
  const LaneU32 agree = select(in_low != 0, ctz(in_low), 32 + ctz(in_high)) / 8;
  return reduce_min(select(agree == kCompared, limit, from + agree));
}

// The full lengths of the matches. `compared` is the number of bytes known to agree; a match with kCompared of them may
// be longer. If the next lane's match has the same offset, this lane's length follows from it.
LaneU32 lengths_of(Kernel& k, const LzSource& src, const LaneU32& position, const LaneU32& offset,
                   const LaneU32& compared) {
  const LaneU32 lane = k.lane();
  const LaneBool goes_on = compared == kCompared;
  const LaneU32 of_next = shuffle_down(select(goes_on, offset, 0), 1);
  const LaneBool follows = goes_on & (lane != kWarpLanes - 1) & (of_next == offset);
  LaneVar length(k, compared);
  k.if_(goes_on & !follows, [&] { length = match_length<kCompared, kByLane>(k, src, position, position - offset); });
  WarpVar longer(k, ballot(*length == kByLane));
  k.warp_loop([&](auto& matches) {
    matches.break_if(*longer == 0);
    const WarpU32 its_lane = ctz(*longer);
    length = select(lane == its_lane, length_by_warp<kByLane>(k, src, position, offset, its_lane), *length);
    longer &= *longer - 1;
  });
  const LaneU32 last = ctz(ballot(!follows) & shift_left(~0u, lane));
  return min(shuffle(*length, last) + (last - lane), kLzMaxMatch);
}

}  // namespace

KernelDefinition lz77_table() {
  return define(KernelSpec{.name = std::string(kLz77Table),
                           .block = kLzTableStep,
                           .min_blocks = 4,
                           .budget = {.registers = 64,
                                      .shared_bytes = (2u << kLzTableShortBits) + (2u << kLzTableLongBits) +
                                                      2 * (4u << kLzTableNamesBits)},
                           .cost = {.threads_per_element = double{kLzTableStep} / kLzTablePart,
                                    .buffers = {{"src", N}, {"matches", N * 12}, {"sizes", 4}},
                                    .note = "a CTA for 64 KiB, which enters the 32 KiB before too"}},
                [](Kernel& k, Arg<"src", LzBytes> bytes, Arg<"sizes", LzSizes> sizes,
                   Arg<"matches", LzMatchWords> all_matches, Arg<"item_bytes", u32> item_bytes) {
                  const auto last_of_four = k.shared<u16, 1u << kLzTableShortBits, 16>("last_of_four");
                  const auto names_of_four = k.shared<u32, 1u << kLzTableNamesBits, 16>("names_of_four");
                  const auto last_of_seven = k.shared<u16, 1u << kLzTableLongBits, 16>("last_of_seven");
                  const auto names_of_seven = k.shared<u32, 1u << kLzTableNamesBits, 16>("names_of_seven");
                  const StepTable<kLzTableStep, kLzTableShortBits, kLzTableNamesBits> of_four{last_of_four.data(),
                                                                                              names_of_four.data()};
                  const StepTable<kLzTableStep, kLzTableLongBits, kLzTableNamesBits> of_seven{last_of_seven.data(),
                                                                                              names_of_seven.data()};
                  const LzItem item(k, sizes, item_bytes, lz_parts<kLzTablePart>(item_bytes));
                  const BlockU32 begin = item.part * kLzTablePart;
                  mark_block(k, Mark::item, item.size);
                  k.return_if(begin >= item.size);
                  const LzSource src(bytes, item);
                  const auto matches = item.matches_of(all_matches);
                  const BlockU32 hashed_end = item.size - min(item.size, kCompared - 1);
                  clear(k, last_of_four.data().as<u32>(), (1u << kLzTableShortBits) / 2);
                  clear(k, names_of_four.data(), 1u << kLzTableNamesBits);
                  clear(k, last_of_seven.data().as<u32>(), (1u << kLzTableLongBits) / 2);
                  clear(k, names_of_seven.data(), 1u << kLzTableNamesBits);
                  k.barrier();
                  k.range(begin - min(begin, kLzTableBefore), min(begin + kLzTablePart, item.size), kLzTableStep,
                          [&](const auto& step) {
                            mark_block(k, Mark::parse, step);
                            const LaneU32 position = step + k.thread();
                            const LaneBool hashed = position < hashed_end;
                            const auto [first, second] = src.words_at(select(hashed, position, 0));
                            const LaneU32 four = first * kHashMultiplier;
                            const LaneU32 seven = (four + (second & 0xFFFFFF)) * kLongHashMultiplier;
                            const LaneU32 four_back = back_to(of_four.last(four), position),
                                          seven_back = back_to(of_seven.last(seven), position);
                            k.if_(hashed, [&] {
                              of_four.enter_name(four, of_four.name_of(position));
                              of_seven.enter_name(seven, of_seven.name_of(position));
                            });
                            k.barrier();  // all positions have been looked up and named
                            const LaneU32 four_first = of_four.first_named(four),
                                          seven_first = of_seven.first_named(seven);
                            k.if_(step >= begin, [&] {
                              LaneVar best(k, 0);
                              for (const LaneU32& back : {LaneU32(k.constant<u32>(1)), position - four_first,
                                                          position - seven_first, four_back, seven_back}) {
                                const LaneBool is_before = hashed & (back - 1 < min(position, kLzMaxOffset));
                                const auto [there, behind] = src.words_at(select(is_before, position - back, 0));
                                const LaneU32 agree = 4 + ctz(second ^ behind) / 8;
                                const LaneU32 score = select(is_before & (first == there), agree, 0);
                                best = max(*best, score << 16 | ((kLzMaxOffset - back) & kLzMaxOffset));
                              }
                              const LaneU32 compared = *best >> 16;
                              const LaneU32 offset = select(compared == 0, 0, kLzMaxOffset - (*best & kLzMaxOffset));
                              const LaneU32 length = lengths_of(k, src, position, offset, compared);
                              k.if_(position < item.size, [&] {
                                const auto to = matches.at(position * kLzMatchWords);
                                to.store(offset);
                                to.template at<1>().store(length);
                                to.template at<2>().store(k.constant<u32>(0));
                              });
                            });
                            k.if_(hashed & (four_first == position), [&] { of_four.enter(four, position); });
                            k.if_(hashed & (seven_first == position), [&] { of_seven.enter(seven, position); });
                            k.barrier();  // the step has been inserted
                          });
                  mark_block(k, Mark::status, k.constant<u32>(0));
                });
}

}  // namespace ptxkit::kernels
