// Which matches of a block are coded, and by which offset, by one warp; zstd_choose_reference.hpp has the rule.
//
// What is chosen depends on the last three offsets, and on the end of the last match that is coded. Each lane goes over
// a run of matches from a guess, and again from what the lane before it ended with, until every lane has begun with
// that. A lane that has the same state as before after kHeadMatches does not go further. Then the matches that are
// coded move up, and the literals between them are copied.
#include <array>
#include <deque>
#include <string>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "kernels/zstd/zstd_tables.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kZstdListWords = kZstdListBytes / sizeof(u32);
constexpr u32 kHeadMatches = 32;
constexpr u32 kEnd = kZstdRepeatOffsets;  // what the state has behind the last offsets: the end of the last match

using Sequences = Ptr<global, u32, 8, Rate::warp>;

// The bytes of a block, and its matches.
struct Parse {
  ItemSource src;
  WarpU32 size;
  Ptr<read_only, u32, 8, Rate::warp> matches;
  WarpU32 match_count;
};

// What a byte costs on average as a literal, in 1/256 bit.
WarpU32 literal_cost(Kernel& k, const Parse& parse, const SymbolWords& counts) {
  count_bytes(k, parse.src, parse.size, counts);
  LaneVar cost(k, 0);
  for_lane_symbols(k, [&](auto, const LaneU32& s) {
    const LaneU32 count = counts.at(s).load();
    cost += count * (zstd_log2(parse.size) - zstd_log2(max(count, 1)));
  });
  const WarpU32 total = reduce_add(*cost);
  return select(total == 0, 0, max(total / parse.size, kZstdLeastLiteralCost));
}

// The matches `begin` to `end` of a lane. The literals before the first one begin at `at`.
struct Run {
  LaneU32 begin, end, at;
};

Run run_of(Kernel& k, const Parse& parse) {
  const WarpU32 piece = (parse.match_count + (kWarpLanes - 1)) / kWarpLanes;
  const LaneU32 begin = min(k.lane() * piece, parse.match_count), end = min(begin + piece, parse.match_count);
  LaneVar bytes(k, 0);
  k.range(begin, end, 1, [&](const LaneU32& i) {
    const LaneU32 lengths = parse.matches.at(times<2>(i)).load();
    bytes += (lengths & 0xFFFF) + (lengths >> 16);
  });
  return {begin, end, exclusive_sum(*bytes)};
}

// Decides on the matches of a lane, and lists them all in `sequences`: those that are not coded with the value 0.
class Chooser {
 public:
  Chooser(Kernel& k, const Parse& parse, const WarpU32& byte_cost, const Run& run, const Sequences& sequences)
      : k_(k), parse_(parse), byte_cost_(byte_cost), run_(run), sequences_(sequences) {
    for (u32 i = 0; i <= kEnd; ++i) {
      starts_.emplace_back(k, i == kEnd ? run.at : LaneU32(k.constant<u32>(0)));
      for (auto* state : {&met_, &states_, &ended_}) state->emplace_back(k, k.constant<u32>(0));
    }
  }

  void choose() {
    const LaneU32 head_end = min(run_.end, run_.begin + kHeadMatches);
    LaneVar has_met(k_, 0);
    Var<bool, Rate::thread> astray(k_, k_.constant(true));
    k_.warp_loop([&](auto& turns) {
      k_.if_(*astray, [&] {
        LaneVar i(k_, run_.begin), at(k_, run_.at), to(k_, head_end), in_rest(k_, 0);
        assign(states_, starts_);
        k_.thread_loop([&](auto& parts) {
          choose_run(i, *to, at);
          k_.if_(*in_rest != 0, [&] { assign(ended_, states_); });
          parts.break_if(*in_rest != 0);
          parts.break_if((difference(met_, states_) == 0) & (*has_met != 0));
          assign(met_, states_);
          has_met = 1;
          in_rest = 1;
          to = run_.end;
        });
      });
      for (u32 i = 0; i <= kEnd; ++i) states_[i] = select(k_.lane() == 0, *starts_[i], shuffle_up(*ended_[i], 1));
      astray = (difference(states_, starts_) != 0) & (run_.begin < run_.end);
      assign(starts_, states_);
      turns.break_if(!any(*astray));
    });
  }

 private:
  using State = std::deque<LaneVar>;  // the last offsets, and the end of the last match that is coded

  void assign(State& to, const State& from) {
    for (u32 i = 0; i <= kEnd; ++i) to[i] = *from[i];
  }
  LaneU32 difference(const State& a, const State& b) {
    LaneVar bits(k_, 0);
    for (u32 i = 0; i <= kEnd; ++i) bits |= *a[i] ^ *b[i];
    return *bits;
  }

  // Goes over the matches from `i` to `to`; `at` is the end of the match before. All words of a match are loaded at
  // once, and the match behind it with them: a lane waits for memory once a match.
  void choose_run(LaneVar& i, const LaneU32& to, LaneVar& at) {
    LaneVar next_lengths(k_, 0), next_found(k_, 0);
    const auto load_next = [&](const LaneU32& index) {
      k_.if_(index < to, [&] {
        const auto [lengths, found] = parse_.matches.at(times<2>(index)).load_vector<2>();
        next_lengths = lengths;
        next_found = found;
      });
    };
    load_next(*i);
    k_.thread_loop([&](auto& matches) {
      matches.break_if(*i == to);
      const LaneU32 lengths = *next_lengths, found = *next_found;
      const LaneU32 length = lengths >> 16, start = *at + (lengths & 0xFFFF);
      at = start + length;
      const LaneU32 own = parse_.src.at(start).load_unaligned_u32();
      std::vector<LaneU32> words;
      for (u32 r = 0; r < kZstdRepeatOffsets; ++r)
        words.push_back(parse_.src.at(start - *states_[r]).load_unaligned_u32());
      load_next(*i + 1);
      LaneVar repeated(k_, 0);
      for (u32 r = 0; r < kZstdRepeatOffsets; ++r) {
        const LaneU32 offset = *states_[r];
        k_.if_((*repeated == 0) & (offset != 0) & (words[r] == own),
               [&] { repeated = select(agrees(start, length, offset, found), offset, 0); });
      }
      const LaneU32 cost = select(*repeated != 0, 1 << 8, zstd_log2(found)) + (kZstdMatchCostBits << 8);
      const LaneU32 offset = select(*repeated != 0, *repeated, found);
      LaneVar value(k_, 0);
      const LaneU32 literal_count = start - *states_[kEnd];
      k_.if_(length * byte_cost_ >= cost, [&] {
        value = value_of(offset, literal_count == 0);
        states_[kEnd] = *at;
      });
      sequences_.at(times<2>(*i)).store_vector(std::array{literal_count | length << 16, *value});
      i += 1;
    });
  }

  // Whether a match found at offset `found`, whose first four bytes agree at `offset`, is as long there.
  LaneBool agrees(const LaneU32& start, const LaneU32& length, const LaneU32& offset, const LaneU32& found) {
    LaneVar done(k_, select(offset == found, length, 4)), bits(k_, 0);
    k_.thread_loop([&](auto& words) {
      words.break_if(*done >= length);
      const LaneU32 at = start + *done, beyond = 4 - min(length - *done, 4);
      const LaneU32 word = parse_.src.at(at).load_unaligned_u32();
      bits = (word ^ parse_.src.at(at - offset).load_unaligned_u32()) << beyond * 8;
      words.break_if(*bits != 0);
      done += 4;
    });
    return *bits == 0;
  }

  // The value that codes `offset`, which becomes the last one.
  LaneU32 value_of(const LaneU32& offset, const LaneBool& is_bare) {
    const LaneU32 last = *states_[0], second = *states_[1], third = *states_[2], skipped = zext<u32>(is_bare);
    const LaneBool one_less = is_bare & (last > 1) & (offset + 1 == last);
    LaneVar value(k_, select(one_less, kZstdRepeatOffsets, offset + kZstdRepeatOffsets));
    value = select(offset == third, 3 - skipped, *value);
    value = select(offset == second, 2 - skipped, *value);
    const LaneBool is_last = (offset == last) & !is_bare;
    value = select(is_last, 1, *value);
    k_.if_(!is_last, [&] {
      states_[2] = select(offset == second, third, second);
      states_[1] = last;
      states_[0] = offset;
    });
    return *value;
  }

  Kernel& k_;
  Parse parse_;
  WarpU32 byte_cost_;
  Run run_;
  Sequences sequences_;
  State starts_, met_, states_, ended_;  // at first; behind the head the last time; now; in the end
};

// What is left of a block: the number of its sequences and of its literals.
struct Parts {
  WarpVar sequences, literals;
};

// Moves the sequences that are coded up, and copies the literals between and behind them.
template <class Literals>
void gather(Kernel& k, const Parse& parse, const Sequences& sequences, const Literals& literals, const MatchList& runs,
            Parts& parts) {
  WarpVar from(k, 0);  // the end of the last match
  k.range(0, parse.match_count, kWarpLanes, [&](const WarpU32& first) {
    const LaneU32 i = first + k.lane();
    LaneVar lengths(k, 0), value(k, 0);
    k.if_(i < parse.match_count, [&] {
      const auto [decided, coded] = sequences.at(times<2>(i)).template load_vector<2>();
      lengths = decided;
      value = coded;
    });
    k.sync_warp();  // every lane has read what others overwrite
    const LaneBool is_coded = *value != 0;
    const WarpU32 all_coded = ballot(is_coded);
    k.if_(is_coded, [&] {
      sequences.at(times<2>(*parts.sequences + popc(all_coded & k.lanes_below())))
          .store_vector(std::array{*lengths, *value});
    });
    parts.sequences += popc(all_coded);
    const LaneU32 own = select(is_coded, *lengths & 0xFFFF, 0), length = select(is_coded, *lengths >> 16, 0);
    const LaneU32 sum = inclusive_sum(own), position = inclusive_sum(own + length);
    const LaneU32 index = sum - own;
    const LaneBool is_run = own != 0;
    const WarpU32 all_runs = ballot(is_run);
    k.if_(is_run, [&] {
      const LaneU32 begin = *from + position - own - length;
      runs.at(times<2>(popc(all_runs & k.lanes_below())))
          .store_vector(std::array{LaneU32(*parts.literals), begin - index});
    });
    k.sync_warp();
    const WarpU32 total = shuffle(sum, kWarpLanes - 1);
    for_run_bytes(k, runs, select(is_run, index, k.constant<u32>(~0u)), total,
                  [&](const LaneU32& to, const LaneU32& begin, const LaneU32& byte) {
                    literals.at(to + byte).store(parse.src.at(begin + byte).load());
                  });
    parts.literals += total;
    from += shuffle(position, kWarpLanes - 1);
    k.sync_warp();  // every lane has read the runs
  });
  const WarpU32 rest = parse.size - *from;
  for_each_lane(k, rest,
                [&](const LaneU32& i) { literals.at(*parts.literals + i).store(parse.src.at(*from + i).load()); });
  parts.literals += rest;
  // zstd_literals reads the whole word in which the last literal lies.
  k.if_(k.lane() < (0 - *parts.literals & 3),
        [&] { literals.at(*parts.literals + k.lane()).store(k.constant<u8>(0)); });
}

}  // namespace

KernelDefinition zstd_choose() {
  return define(
      KernelSpec{.name = std::string(kZstdChoose),
                 .block = kZstdChooseShape.block_threads,
                 .budget = {.registers = 80, .shared_bytes = kSymbols * sizeof(u32) + kWarpLanes * 8},
                 .cost = {.threads_per_element = double{kWarpLanes} / kZstdBlockBytes,
                          .buffers = {{"blocks", 8},
                                      {"block_bytes", 4},
                                      {"matches", kZstdListBytes},
                                      {"match_counts", 4},
                                      {"literals", kZstdBlockBytes},
                                      {"literal_counts", 4},
                                      {"sequences", kZstdListBytes},
                                      {"sequence_bytes", 4}},
                          .note = "one warp a block"}},
      [](Kernel& k, Arg<"blocks", Ptr<read_only, u64>> blocks, Arg<"block_bytes", Ptr<read_only, u32>> block_bytes,
         Arg<"matches", Ptr<read_only, u32, 8>> matches, Arg<"match_counts", Ptr<read_only, u32>> match_counts,
         Arg<"literals", Ptr<global, u8, kStrideUnitBytes>> literals,
         Arg<"literal_counts", Ptr<global, u32>> literal_counts, Arg<"sequences", Ptr<global, u32, 8>> sequences,
         Arg<"sequence_bytes", Ptr<global, u32>> sequence_bytes, Arg<"block_count", u32> block_count) {
        const SymbolWords counts = k.shared<u32, kSymbols, 16>("counts").data();
        const MatchList runs = k.shared<u32, 2 * kWarpLanes, 16>("runs").data();
        const BlockU32 index = k.block();
        k.return_if(index >= block_count);
        const BlockU32 size = min(block_bytes.within(block_count).at(index).load(), kZstdBlockBytes);
        mark_block(k, Mark::item, size);
        const auto of_block = [&](const auto& all) {
          return all.at(times<kZstdListWords>(zext<u64>(index))).within(kZstdListWords);
        };
        const Parse parse{at_address<read_only, u8, kStrideUnitBytes>(blocks.within(block_count).at(index).load())
                              .template within<kStrideUnitBytes>(size),
                          size, of_block(matches), match_counts.within(block_count).at(index).load()};
        const auto own_sequences = of_block(sequences);
        const auto own_literals =
            literals.at(times<kZstdBlockBytes>(zext<u64>(index))).template within<1>(k.constant(u32{kZstdBlockBytes}));
        Parts parts{WarpVar(k, 0), WarpVar(k, 0)};
        k.if_(size != 0, [&] {
          Chooser(k, parse, literal_cost(k, parse, counts), run_of(k, parse), own_sequences).choose();
          k.sync_warp();
          gather(k, parse, own_sequences, own_literals, runs, parts);
        });
        mark_block(k, Mark::status, *parts.literals);
        k.once_per_block([&] {
          literal_counts.within(block_count).at(index).store(*parts.literals);
          sequence_bytes.within(block_count).at(index).store(*parts.sequences * kZstdSequenceBytes);
        });
      });
}

}  // namespace ptxkit::kernels
