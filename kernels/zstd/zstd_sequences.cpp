// The sequences section of a block, by one warp.
//
// The states of an encoder follow each other from the last sequence to the first, but they depend on far sequences only
// by chance: a symbol of frequency f leads to one of f states, so that chains from different states soon meet. Each
// lane therefore codes a run of sequences from a guessed state, and again from the state at which the lane behind it
// arrived, until every lane has begun where the one behind it ended. A chain that has met the one before after
// kHeadSequences is not followed further.
#include <array>
#include <deque>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/fse_tables.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "kernels/zstd/zstd_stream.hpp"
#include "kernels/zstd/zstd_tables.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kStates = 1u << kZstdMaxTableBits;
constexpr u32 kHeadSequences = 48;
constexpr u32 kLengthCodes = 64, kMatchCodes = 128;  // lengths that are looked up
constexpr u32 kKindSymbols = 64;                     // room for the symbols of a kind
constexpr u32 kDescriptionBytes = 64;                // of a kind: 53 symbols of at most 9 bits each

// The kinds in the order in which the encoder writes their parts of a sequence: states, extra bits, last states.
constexpr std::array<u32, kZstdKinds> kOfStates{1, 2, 0}, kOfExtraBits{0, 2, 1}, kOfEnd{2, 1, 0};

// Eight frequencies of a predefined table, four bits each; those of -1 count as 1.
constexpr u32 predefined_word(u32 kind, u32 lane) {
  u32 word = 0;
  for (u32 j = 0; j < kLaneSymbols && lane * kLaneSymbols + j < kZstdMaxSymbols; ++j) {
    const int8_t frequency = kZstdPredefined[kind][lane * kLaneSymbols + j];
    word |= static_cast<u32>(frequency < 0 ? -frequency : frequency) << 4 * j;
  }
  return word;
}

// The states that symbols of less than one take, which are the last symbols of the predefined tables.
constexpr u32 rare_states(u32 kind) {
  u32 count = 0;
  for (const int8_t frequency : kZstdPredefined[kind]) count += frequency < 0;
  return count;
}

// One of the three codes of a sequence, and the value whose low bits follow it.
struct Coded {
  LaneU32 code, value, extra_bits;
  LaneU32 extra() const { return value & ((1 << extra_bits) - 1); }
};

// An encoder's table. A symbol of frequency f has two words: 2^16 n - 2^n f, where n is the most bits that it emits, so
// that adding a state gives 2^16 times the bits that are emitted there; and where its states begin, less f.
struct StateTable {
  Ptr<shared, u32, 8, Rate::warp> steps;
  Ptr<shared, u16, 16, Rate::warp> next;

  // The first state of `symbol`.
  LaneU32 begin(const LaneU32& symbol) const {
    const auto [to_bits, to_place] = steps.at(times<2>(symbol)).load_vector<2>();
    const LaneU32 bits = (to_bits + (1 << 15)) >> 16;
    return zext<u32>(next.at((((bits << 16) - to_bits) >> bits) + to_place).load());
  }
  // Codes `symbol` in `state`: calls emit(field, bits) and returns the next state.
  template <class Emit>
  LaneU32 code(const LaneU32& state, const LaneU32& symbol, const Emit& emit) const {
    const auto [to_bits, to_place] = steps.at(times<2>(symbol)).load_vector<2>();
    const LaneU32 bits = (state + to_bits) >> 16;
    emit(state & ((1 << bits) - 1), bits);
    return zext<u32>(next.at((state >> bits) + to_place).load());
  }
};

class SequencesSection {
 public:
  explicit SequencesSection(TransformItem& item)
      : item_(item),
        k_(item.k),
        count_(item.src_size / kZstdSequenceBytes),
        counts_(k_.shared<u32, kZstdKinds * kSymbols, 16>("counts").data()),
        words_(k_.shared<u32, kKindSymbols, 16>("words").data()),
        steps_(k_.shared<u32, kZstdKinds * kKindSymbols * 2, 16>("steps").data()),
        length_codes_(k_.shared<u16, kLengthCodes, 16>("length_codes").data()),
        match_codes_(k_.shared<u16, kMatchCodes, 16>("match_codes").data()),
        next_(k_.shared<u16, kZstdKinds * kStates, 16>("next").data()),
        symbols_(k_.shared<u8, kStates, 16>("symbols").data()),
        places_(k_.shared<u16, kStates, 16>("places").data()),
        descriptions_(k_.shared<u8, kZstdKinds * kDescriptionBytes, 16>("descriptions").data()),
        start_(k_, 0) {
    for (u32 kind = 0; kind < kZstdKinds; ++kind) {
      modes_.emplace_back(k_, k_.constant(static_cast<u32>(ZstdTableMode::predefined)));
      table_bits_.emplace_back(k_, k_.constant<u32>(0));
      description_bytes_.emplace_back(k_, k_.constant<u32>(0));
      states_.emplace_back(k_, k_.constant<u32>(0));
    }
  }

  template <class Fail>
  void write(const Fail& fail_if) {
    const WarpU32 count_bytes = select(count_ < 128, k_.constant<u32>(1), 2);
    item_.size_bytes = k_.constant<u32>(1);
    fail_if(item_.capacity == 0, StreamStatus::output_overrun);
    k_.once_per_warp([&] { item_.dst.store(trunc<u8>(select(count_ < 128, count_, (count_ >> 8) + 128))); });
    fail_if(count_ == 0, StreamStatus::ok);
    list_codes();
    // Counting reads from the address rounded down, so that its loads are aligned at any address. A debug build traps
    // there, since the first one is not of the item.
    const WarpBool is_corrupt = count_codes();
    fail_if((trunc<u32>(item_.src.address()) & (kZstdSequenceBytes - 1)) != 0, StreamStatus::misaligned);
    fail_if(is_corrupt, StreamStatus::corrupt);
    unrolled<kZstdKinds>([&](auto kind) { choose_table(kind); });

    const WarpU32 piece = (count_ + (kWarpLanes - 1)) / kWarpLanes;
    const LaneU32 begin = min(k_.lane() * piece, count_), end = min(begin + piece, count_);
    const LaneU32 bits = chain(begin, end);
    const WarpU32 last_bits = *table_bits_[0] + *table_bits_[1] + *table_bits_[2];
    ZstdLaneStream stream(k_, item_.dst, bits + select(k_.lane() == 0, last_bits, 0), k_.constant<u32>(kWarpLanes));
    const WarpU32 descriptions_at = count_bytes + 1;
    const WarpU32 stream_at =
        descriptions_at + *description_bytes_[0] + *description_bytes_[1] + *description_bytes_[2];
    item_.size_bytes = stream_at + shuffle(stream.size_bytes(), 0);
    fail_if(*item_.size_bytes > item_.capacity, StreamStatus::output_overrun);
    mark_warp(k_, Mark::emit, stream_at);
    k_.once_per_warp([&] {
      k_.if_(count_ >= 128, [&] { item_.dst.at<1>().store(trunc<u8>(count_)); });
      item_.dst.at(count_bytes).store(trunc<u8>(*modes_[0] << 6 | *modes_[1] << 4 | *modes_[2] << 2));
    });
    WarpVar at(k_, descriptions_at);
    for (u32 kind = 0; kind < kZstdKinds; ++kind) {
      for_each_lane(k_, *description_bytes_[kind], [&](const LaneU32& i) {
        item_.dst.at(*at + i).store(descriptions_.at(i + k_.constant(kind * kDescriptionBytes)).load());
      });
      at += *description_bytes_[kind];
    }
    stream.begin(stream_at);
    const auto append = [&](const LaneU32& field, const LaneU32& width) { stream.append(field, width); };
    LaneVar next(k_, end);
    begin_run(next, begin, append);
    code_run(next, begin, append);
    k_.if_(k_.lane() == 0, [&] {
      for (const u32 kind : kOfEnd) stream.append(*states_[kind] - state_count(kind), LaneU32(*table_bits_[kind]));
    });
    stream.end();
  }

 private:
  // The arrays of one kind.
  SymbolWords counts(u32 kind) { return offset<kSymbols>(counts_, kind); }
  StateTable table(u32 kind) { return {offset<kKindSymbols * 2>(steps_, kind), offset<kStates>(next_, kind)}; }
  SharedBytes description(u32 kind) { return offset<kDescriptionBytes>(descriptions_, kind); }
  template <u32 Count, class Pointer>
  Pointer offset(const Pointer& pointer, u32 kind) {
    return pointer.at(times<Count>(k_.constant(kind)));
  }
  WarpU32 state_count(u32 kind) { return shift_left(1, *table_bits_[kind]); }

  // The first value, the extra bits and the code of values from there on.
  struct Step {
    u32 first, extra_bits, code;
  };
  // Lists the codes of lengths, each with its extra bits from bit 8 on.
  template <size_t Count>
  void list(const Ptr<shared, u16, 16, Rate::warp>& codes, u32 size, const std::array<Step, Count>& steps) {
    for (u32 first = 0; first < size; first += kWarpLanes) {
      const LaneU32 value = k_.lane() + k_.constant(first);
      LaneVar entry(k_, value);
      for (const Step& step : steps) {
        const LaneU32 code = (value - k_.constant(step.first)) >> k_.constant(step.extra_bits);
        entry = select(value < k_.constant(step.first), *entry, code + k_.constant(step.code | step.extra_bits << 8));
      }
      codes.at(value).store(trunc<u16>(*entry));
    }
  }
  void list_codes() {
    list(length_codes_, kLengthCodes, std::array<Step, 4>{{{16, 1, 16}, {24, 2, 20}, {32, 3, 22}, {48, 4, 24}}});
    list(match_codes_, kMatchCodes,
         std::array<Step, 5>{{{32, 1, 32}, {40, 2, 36}, {48, 3, 38}, {64, 4, 40}, {96, 5, 42}}});
  }
  // `listed` codes are looked up; those above are log2 and `base`.
  Coded coded(const LaneU32& value, const Ptr<shared, u16, 16, Rate::warp>& codes, u32 listed, u32 base) {
    const LaneU32 entry = zext<u32>(codes.at(min(value, k_.constant(listed - 1))).load());
    const LaneU32 log = 31 - clz(value);
    const LaneBool is_listed = value < k_.constant(listed);
    return {select(is_listed, entry & 0xFF, log + k_.constant(base)), value, select(is_listed, entry >> 8, log)};
  }

  // The codes of sequence `i`: literal length, offset, match length.
  std::array<Coded, kZstdKinds> sequence(const LaneU32& i) {
    const auto packed = item_.src.align_down<kZstdSequenceBytes>().as<u32>();
    const auto [lengths, offset_value] = packed.at(times<2>(i)).load_vector<2>();
    const LaneU32 offset_code = 31 - clz(offset_value);
    return {coded(lengths & 0xFFFF, length_codes_, kLengthCodes, 19), Coded{offset_code, offset_value, offset_code},
            coded((lengths >> 16) - kZstdMinMatch, match_codes_, kMatchCodes, 36)};
  }

  // Counts the codes of each kind. Returns whether a sequence is none.
  WarpBool count_codes() {
    for (u32 kind = 0; kind < kZstdKinds; ++kind) {
      for_lane_symbols(k_, [&](auto, const LaneU32& s) { counts(kind).at(s).store(k_.constant<u32>(0)); });
    }
    k_.sync_warp();
    LaneVar bad(k_, 0);
    for_each_lane(k_, count_, [&](const LaneU32& i) {
      const auto kinds = sequence(i);
      const LaneBool is_bad = (kinds[2].value >= (1u << 16)) | (kinds[1].value - 1 >= kZstdMaxOffsetValue);
      bad |= zext<u32>(is_bad);
      k_.if_(!is_bad, [&] {
        for (u32 kind = 0; kind < kZstdKinds; ++kind)
          atomic_add(counts(kind).at(kinds[kind].code), k_.constant<u32>(1), Order::relaxed, Scope::cta);
      });
    });
    k_.sync_warp();
    return any(*bad != 0);
  }

  // What the codes of a kind cost with `frequencies` among 2^bits, in 1/256 bit.
  WarpU32 cost_of(u32 kind, LaneSymbols& frequencies, const WarpU32& bits) {
    LaneVar cost(k_, 0);
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      cost += counts(kind).at(s).load() * ((bits << 8) - zstd_log2(max(*frequencies[j], 1)));
    });
    return reduce_add(*cost);
  }

  void store_words(LaneSymbols& frequencies) {
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      k_.if_(s < kKindSymbols, [&] { words_.at(s).store(*frequencies[j] | *start << 16); });
      start += *frequencies[j];
    });
    k_.sync_warp();
  }

  // Chooses mode and table of a kind, and writes its description.
  void choose_table(u32 kind) {
    const ZstdKindLimits& limits = kZstdKindLimits[kind];
    LaneVar present(k_, 0), largest(k_, 0), last(k_, 0);
    for_lane_symbols(k_, [&](auto, const LaneU32& s) {
      const LaneU32 count = counts(kind).at(s).load();
      present += zext<u32>(count != 0);
      last = select(count == 0, *last, s);
    });
    const WarpU32 distinct = reduce_add(*present), symbol = reduce_max(*last);
    LaneSymbols predefined(k_);
    LaneVar packed(k_, 0);
    for (u32 lane = 0; lane * kLaneSymbols < limits.symbols; ++lane)
      packed = select(k_.lane() == k_.constant(lane), k_.constant(predefined_word(kind, lane)), *packed);
    unrolled<kLaneSymbols>([&](auto j) { predefined[j] = *packed >> 4 * j & 0xF; });
    const WarpU32 predefined_cost = cost_of(kind, predefined, k_.constant(limits.predefined_bits));
    WarpVar rare(k_, k_.constant(rare_states(kind)));
    table_bits_[kind] = k_.constant(limits.predefined_bits);
    k_.if_(distinct == 1, [&] {
        k_.if_(predefined_cost > 8 << 8, [&] {
          modes_[kind] = k_.constant(static_cast<u32>(ZstdTableMode::rle));
          table_bits_[kind] = 0;
          description_bytes_[kind] = 1;
          k_.once_per_warp([&] {
            description(kind).store(trunc<u8>(symbol));
            words_.at(symbol).store(k_.constant<u32>(1));
            table(kind).next.store(k_.constant<u16>(1));
          });
        });
      }).else_([&] {
      const WarpU32 bits = zstd_table_bits(k_, count_, distinct, limits.max_table_bits);
      LaneSymbols own(k_);
      normalise_frequencies(k_, counts(kind), count_, bits, own);
      store_words(own);
      LaneVar size(k_, 0);
      k_.once_per_warp([&] {
        ZstdSerialBits description_bits(k_, description(kind));
        zstd_describe(k_, words_, bits, description_bits);
        size = description_bits.size_bytes();
      });
      const WarpU32 bytes = broadcast(*size);
      k_.if_(cost_of(kind, own, bits) + (bytes << 11) < predefined_cost, [&] {
        modes_[kind] = k_.constant(static_cast<u32>(ZstdTableMode::own));
        table_bits_[kind] = bits;
        description_bytes_[kind] = bytes;
        rare = 0;
      });
    });
    k_.sync_warp();
    k_.if_(*modes_[kind] == static_cast<u32>(ZstdTableMode::predefined), [&] { store_words(predefined); });
    k_.if_(*table_bits_[kind] != 0, [&] { fill_table(kind, *rare); });
    store_steps(kind);
    k_.sync_warp();
  }

  // Gives the states to the symbols, by the frequencies in the table's words. The last `rare` states go to the last
  // symbols.
  void fill_table(u32 kind, const WarpU32& rare) {
    const WarpU32 states = state_count(kind), common = states - rare;
    const WarpU32 step = (states >> 1) + (states >> 3) + 3;
    WarpVar placed(k_, 0);
    k_.range(k_.constant<u32>(0), states, kWarpLanes, [&](const auto& first) {
      const LaneU32 place = (first + k_.lane()) * step & (states - 1);
      const LaneBool is_common = place < common;
      const WarpU32 chosen = ballot(is_common);
      k_.if_(is_common, [&] { places_.at(*placed + popc(chosen & k_.lanes_below())).store(trunc<u16>(place)); });
      placed += popc(chosen);
    });
    for_each_lane(k_, rare, [&](const LaneU32& i) { places_.at(common + i).store(trunc<u16>(states - 1 - i)); });
    k_.sync_warp();
    k_.range(k_.constant<u32>(0), kZstdKindLimits[kind].symbols, 1, [&](const auto& s) {
      const WarpU32 word = broadcast(words_.at(s).load());
      for_each_lane(k_, word & 0xFFFF, [&](const LaneU32& i) {
        symbols_.at(zext<u32>(places_.at((word >> 16) + i).load())).store(trunc<u8>(s));
      });
    });
    k_.sync_warp();
    for_each_place(k_, states, symbols_, counts(kind), [&](const LaneU32& place, const LaneU32& s, const LaneU32& i) {
      table(kind).next.at((words_.at(s).load() >> 16) + i).store(trunc<u16>(states + place));
    });
  }

  void store_steps(u32 kind) {
    k_.sync_warp();
    for_each_lane(k_, k_.constant(kZstdKindLimits[kind].symbols), [&](const LaneU32& s) {
      const LaneU32 word = words_.at(s).load(), frequency = word & 0xFFFF;
      const LaneU32 most_bits = *table_bits_[kind] + clz(frequency - 1) - 31;
      table(kind)
          .steps.at(times<2>(s))
          .store_vector(
              std::array{(most_bits << 16) - shift_left(frequency, most_bits), LaneU32((word >> 16) - frequency)});
    });
  }

  template <class Emit>
  void emit_extra_bits(const std::array<Coded, kZstdKinds>& kinds, const Emit& emit) {
    for (const u32 kind : kOfExtraBits) emit(kinds[kind].extra(), kinds[kind].extra_bits);
  }

  // Goes to the states from which the lane begins at `at`: those where the lane behind it ended, or, for the last
  // sequence, which it codes, the first ones of its symbols.
  template <class Emit>
  void begin_run(LaneVar& at, const LaneU32& begin, const Emit& emit) {
    for (u32 kind = 0; kind < kZstdKinds; ++kind) states_[kind] = *start_ >> k_.constant(10 * kind) & 0x3FF;
    k_.if_((*at == count_) & (begin < *at), [&] {
      at -= 1;
      const auto kinds = sequence(*at);
      for (const u32 kind : kOfStates) states_[kind] = table(kind).begin(kinds[kind].code);
      emit_extra_bits(kinds, emit);
    });
  }
  // Codes the sequences from before `at` down to `begin`.
  template <class Emit>
  void code_run(LaneVar& at, const LaneU32& begin, const Emit& emit) {
    k_.thread_loop([&](auto& sequences) {
      sequences.break_if(*at == begin);
      at -= 1;
      const auto kinds = sequence(*at);
      for (const u32 kind : kOfStates) states_[kind] = table(kind).code(*states_[kind], kinds[kind].code, emit);
      emit_extra_bits(kinds, emit);
    });
  }

  // The three states in a word, ten bits each.
  LaneU32 packed_states() { return *states_[0] | *states_[1] << 10 | *states_[2] << 20; }

  // Finds the states from which each lane has to begin, and returns how many bits its sequences take.
  LaneU32 chain(const LaneU32& begin, const LaneU32& end) {
    for (u32 kind = 0; kind < kZstdKinds; ++kind) states_[kind] = state_count(kind);
    start_ = packed_states();
    const LaneU32 head_end = max(end, begin + kHeadSequences) - kHeadSequences;
    LaneVar met(k_, 0), ended(k_, 0);  // the states behind the head, and at the end; 0: none yet
    LaneVar head_bits(k_, 0), rest_bits(k_, 0);
    Var<bool, Rate::thread> astray(k_, k_.constant(true));
    k_.warp_loop([&](auto& turns) {
      k_.if_(*astray, [&] {
        LaneVar at(k_, end), to(k_, head_end), bits(k_, 0), in_rest(k_, 0);
        const auto count = [&](const LaneU32&, const LaneU32& width) { bits += width; };
        begin_run(at, begin, count);
        k_.thread_loop([&](auto& parts) {
          code_run(at, *to, count);
          k_.if_(*in_rest != 0, [&] {
            rest_bits = *bits;
            ended = packed_states();
          });
          parts.break_if(*in_rest != 0);
          head_bits = *bits;
          const LaneBool meets = *met == packed_states();
          parts.break_if(meets);
          met = packed_states();
          bits = 0;
          to = begin;
          in_rest = 1;
        });
      });
      const LaneU32 from = shuffle_down(*ended, 1);
      astray = (from != *start_) & (end != count_);
      start_ = from;
      turns.break_if(!any(*astray));
    });
    return *head_bits + *rest_bits;
  }

  TransformItem& item_;
  Kernel& k_;
  WarpU32 count_;
  SymbolWords counts_, words_;
  Ptr<shared, u32, 8, Rate::warp> steps_;
  Ptr<shared, u16, 16, Rate::warp> length_codes_, match_codes_;
  Ptr<shared, u16, 16, Rate::warp> next_;
  SharedBytes symbols_;
  Ptr<shared, u16, 16, Rate::warp> places_;
  SharedBytes descriptions_;
  std::deque<WarpVar> modes_, table_bits_, description_bytes_;  // of each kind
  std::deque<LaneVar> states_;
  LaneVar start_;  // the states from which the lane begins
};

}  // namespace

KernelDefinition zstd_sequences() {
  return define_transform<>(
      kZstdSequences,
      {.registers = 96,
       .shared_bytes = kZstdKinds * (kSymbols * 4 + kKindSymbols * 8 + kStates * 2 + kDescriptionBytes) +
                       kKindSymbols * 4 + kStates * 3 + (kLengthCodes + kMatchCodes) * 2},
      N, "one warp a section", [](TransformItem& item, const auto& fail_if) {
        fail_if(item.src_size > kZstdMaxSequences * kZstdSequenceBytes, StreamStatus::item_too_large);
        fail_if(item.src_size % kZstdSequenceBytes != 0, StreamStatus::input_overrun);
        SequencesSection(item).write(fail_if);
      });
}

}  // namespace ptxkit::kernels
