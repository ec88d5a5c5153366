// Typed rANS, decoding of members, with a CTA for each. The four warps fill the table of slots together; then each
// decodes its part, backward, four rows at a time: a lane has a word of four bytes of the plane then, which it joins
// with the copied planes and stores. Words come from a ring in shared memory.
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/typed/typed_decoded.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kRingBlocks = 4;
constexpr u32 kBlockWords = 128;  // words that a warp loads at once, four a lane
constexpr u32 kRingWords = kRingBlocks * kBlockWords;
constexpr u32 kTurnUnits = 2;

class MemberDecoder {
 public:
  using Item = TypedCoded<Rate::block>;

  MemberDecoder(Kernel& k, const Item& item)
      : k_(k),
        item_(item),
        slots_(k.shared<u32, kTypedScale, 16>("slots").data()),
        ring_(k.shared<u16, kTypedParts * kRingWords, 16>("rings").data().at(times<kRingWords>(k.warp()))),
        bad_(k, 0) {}

  // Decodes a member. Barriers separate it from other members.
  void decode(const BlockU32& member) {
    const BlockU32 raw_bytes = item_.raw_bytes();
    k_.range(k_.constant<u32>(0), item_.layout().coded_planes(), 1, [&](const BlockU32& plane) {
      const BlockU32 entry = (member << item_.layout().coded_shift()) + plane;
      const Plane where{member, plane, item_.layout().elements(raw_bytes, member), item_.end_of(entry),
                        item_.end_of(entry + 1)};
      const BlockBool is_inside =
          (where.begin <= where.end) & (where.end <= (item_.size() - item_.coded_at()) / kTypedAlignment);
      bad_ |= zext<u32>(!is_inside);
      const BlockU32 bytes = select(is_inside, (where.end - where.begin) * kTypedAlignment, 0);
      const auto coded = item_.source()
                             .at(align_down<kTypedAlignment>(item_.coded_at()))
                             .at(times<kTypedAlignment>(select(is_inside, where.begin, 0)))
                             .within(bytes);
      const BlockBool is_copied = is_inside & (bytes == where.elements),
                      is_one = is_inside & (bytes == kTypedAlignment), is_coded = is_inside & !(is_copied | is_one);
      WarpVar table_bytes(k_, 0);
      k_.if_(is_coded, [&] { table_bytes = open_table(coded, bytes); });
      k_.barrier();
      k_.if_(is_copied, [&] { copy_part(where, coded); });
      k_.if_(is_one, [&] { fill_part(where, coded); });
      k_.if_(is_coded & (*table_bytes != 0), [&] { decode_part(where, coded, bytes, *table_bytes); });
      k_.barrier();  // the slots are used again
    });
  }

  WarpU32 has_failed() const { return *bad_; }

 private:
  using BlockBool = Expr<bool, Rate::block>;
  using LaneWords = std::array<LaneU32, 4>;

  struct Plane {
    BlockU32 member, plane, elements, begin, end;
  };

  // The elements of this warp's part.
  WarpU32 part_elements(const Plane& where) const {
    const WarpU32 begin = k_.warp() * kTypedPart;
    return select(begin < where.elements, min(where.elements - begin, kTypedPart), 0);
  }

  // --- the table ---

  // Reads the table and fills this warp's share of the slots. Returns the size of what stands before the parts, or 0 if
  // the plane is damaged.
  template <class Coded>
  WarpU32 open_table(const Coded& coded, const BlockU32& bytes) {
    WarpVar end(k_, 0);
    LaneSymbols frequencies(k_);
    k_.warp_loop([&](auto& once) {  // a loop of one iteration; a failure leaves it
      const auto fail_if = [&](const WarpBool& condition, StreamStatus) {
        bad_ |= zext<u32>(condition);
        once.break_if(condition);
      };
      fail_if(bytes < kTypedWordsBytes, StreamStatus::input_overrun);
      const WarpU32 table = read_table(k_, coded.template at<kTypedWordsBytes>(), bytes - kTypedWordsBytes,
                                       k_.constant(kTypedScale), frequencies, fail_if);
      fail_if(any(frequencies.largest() == kTypedScale), StreamStatus::bad_table);
      end = (table + (kTypedWordsBytes + kTypedAlignment - 1)) & ~(kTypedAlignment - 1);
      fill_slots(frequencies);
      once.break_();
    });
    return *end;
  }

  // A slot has its symbol in bits 0 to 7, the symbol's frequency in bits 8 to 19, and its index among the symbol's
  // slots from bit 20 on.
  void fill_slots(LaneSymbols& frequencies) {
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      k_.if_(k_.warp() == j % kTypedParts, [&] {
        // All lanes together fill the slots of one lane's symbol after the other: no lane waits for a long run.
        WarpVar present(k_, ballot(*frequencies[j] != 0));
        k_.warp_loop([&](auto& symbols) {
          symbols.break_if(*present == 0);
          const WarpU32 lane = ctz(*present);
          present &= *present - 1;
          const WarpU32 symbol = shuffle(s, lane), frequency = shuffle(*frequencies[j], lane),
                        first = shuffle(*start, lane);
          for_each_lane(k_, frequency,
                        [&](const LaneU32& i) { slots_.at(first + i).store(symbol | frequency << 8 | i << 20); });
        });
      });
      start += *frequencies[j];
    });
  }

  // --- joining with the copied planes ---

  // The words of the copied planes for unit `unit` of the warp's part.
  template <class Unit>
  LaneWords copied_words(const Plane& where, const Unit& unit) {
    const auto shape = item_.layout();
    const BlockU32 planes = shape.copied_planes();
    const auto from = item_.source()
                          .at(align_down<kTypedAlignment>(shape.copied_at(item_.raw_bytes())))
                          .at(times<kTypedAlignment>(where.member * planes * (kTypedMember / kTypedAlignment)))
                          .at(times<4>(unit_word(unit)))
                          .template as<u32>();
    LaneVar a(k_, 0), b(k_, 0), c(k_, 0);
    k_.if_(planes != 0, [&] { a = from.load(); });
    k_.if_(planes == 3, [&] {
      const BlockU32 words = where.elements / 4;
      b = from.at(words).load();
      c = from.at(words * 2).load();
    });
    return {*a, *b, *c, *c};
  }

  // The number of this lane's word of unit `unit` of the warp's part in the plane.
  template <class Unit>
  LaneU32 unit_word(const Unit& unit) const {
    return (k_.warp() * (kTypedPart / kTypedUnit) + unit) * kWarpLanes + k_.lane();
  }

  // Stores four elements. The coded byte of each is the lowest byte of its word in `coded`.
  template <class Unit>
  void store_elements(const Plane& where, const Unit& unit, const LaneWords& coded, const LaneWords& copied) {
    const auto shape = item_.layout();
    const auto word = [&](u32 value) { return k_.constant(value); };
    const LaneU32 number = unit_word(unit);
    const BlockU32 begin = (where.member * kTypedMember) << shape.element_shift();
    const auto member = item_.room().at(align_down<kTypedAlignment>(begin));
    const auto pack = [&] {
      return LaneU32(prmt(prmt(coded[0], coded[1], word(0x40)), prmt(coded[2], coded[3], word(0x40)), word(0x5410)));
    };
    const auto two = [&](const auto& join) {
      member.at(times<8>(number))
          .template as<u32>()
          .store_vector(std::array<LaneU32, 2>{LaneU32(join(0, word(0x1100))), LaneU32(join(2, word(0x3322)))});
    };
    k_.if_(shape.is(TypedLayout::bfloat16), [&] {
      two([&](u32 i, const BlockU32& of_copied) {
        const auto exponents = prmt(coded[i], coded[i + 1], word(0x4400)) >> 1;
        return (exponents & 0x7F807F80) | (prmt(copied[0], 0, of_copied) & 0x807F807F);
      });
    });
    k_.if_(shape.is(TypedLayout::float16), [&] {
      two([&](u32 i, const BlockU32& of_copied) {
        return (prmt(coded[i], coded[i + 1], word(0x4400)) & 0xFF00FF00) | (prmt(copied[0], 0, of_copied) & 0x00FF00FF);
      });
    });
    k_.if_(shape.element_shift() == 0, [&] { member.at(times<4>(number)).template as<u32>().store(pack()); });
    k_.if_(shape.is(TypedLayout::float32), [&] {
      const auto element = [&](u32 i) {
        const auto low = prmt(copied[0], copied[1], word(0x40 + 0x11 * i));
        // The bytes of the first two planes, and twice that of the third: sign and significand.
        const auto rest = prmt(low, copied[2], word(0x4410 + 0x1100 * i));
        return LaneU32((rest & 0x807FFFFF) | (coded[i] & 0xFF) << 23);
      };
      member.at(times<16>(number))
          .template as<u32>()
          .store_vector(std::array<LaneU32, 4>{element(0), element(1), element(2), element(3)});
    });
    k_.if_(shape.coded_planes() > 1, [&] {
      unrolled<4>([&](auto i) {
        const LaneU32 at = ((number * 4 + i) << shape.element_shift()) + where.plane;
        member.at(at).store(trunc<u8>(coded[i]));
      });
    });
  }

  template <class Word>
  LaneWords bytes_of(const Word& packed) {
    return {LaneU32(packed), LaneU32(packed >> 8), LaneU32(packed >> 16), LaneU32(packed >> 24)};
  }

  // --- parts ---

  template <class Coded>
  void copy_part(const Plane& where, const Coded& coded) {
    k_.range(k_.constant<u32>(0), part_elements(where) / kTypedUnit, 1, [&](const WarpU32& unit) {
      const LaneU32 packed = coded.template as<u32>().at(unit_word(unit)).load();
      store_elements(where, unit, bytes_of(packed), copied_words(where, unit));
    });
  }
  template <class Coded>
  void fill_part(const Plane& where, const Coded& coded) {
    const LaneU32 packed = zext<u32>(coded.load()) * 0x01010101;
    k_.range(k_.constant<u32>(0), part_elements(where) / kTypedUnit, 1,
             [&](const WarpU32& unit) { store_elements(where, unit, bytes_of(packed), copied_words(where, unit)); });
  }

  template <class Coded>
  void decode_part(const Plane& where, const Coded& coded, const BlockU32& bytes, const WarpU32& table_bytes) {
    const WarpU32 elements = part_elements(where);
    // The places of all parts, in the first lanes.
    const LaneU32 part = k_.lane() % kTypedParts, part_begin = part * kTypedPart;
    const LaneU32 there = select(part_begin < where.elements, min(where.elements - part_begin, kTypedPart), 0);
    const LaneU32 words = coded.template as<u32>().at(part).load();
    const LaneU32 part_bytes =
        select(there == 0, 0,
               (min(words, kTypedPart) * 2 + (kTypedStatesBytes + kTypedAlignment - 1)) & ~(kTypedAlignment - 1));
    const LaneU32 mine = select(k_.lane() < kTypedParts, part_bytes, 0);
    const WarpBool is_good = (table_bytes + reduce_add(mine) == bytes) & !any(words > there);
    const WarpU32 begin = table_bytes + shuffle(exclusive_sum(mine), k_.warp()), word_count = shuffle(words, k_.warp()),
                  own_bytes = shuffle(part_bytes, k_.warp());
    bad_ |= zext<u32>(!is_good);
    k_.if_(is_good & (elements != 0), [&] {
      const auto from = coded.at(times<16>(begin / 16)).within(own_bytes);
      decode_words(where, from.template as<u32>(), from.template at<kTypedStatesBytes>(), own_bytes - kTypedStatesBytes,
                   word_count, elements / kTypedUnit);
    });
  }

  template <class States, class Words>
  void decode_words(const Plane& where, const States& states, const Words& words, const WarpU32& words_bytes,
                    const WarpU32& word_count, const WarpU32& units) {
    LaneVar state(k_, states.at(k_.lane()).load());
    const WarpBool starts_well = all(*state - kTypedLow < (kTypedLow << 16) - kTypedLow);
    WarpVar next(k_, word_count);
    // The ring has blocks from `lowest` on. Block b can be loaded once all words of block b + 4 have been taken.
    WarpVar lowest(k_, (word_count + (kBlockWords - 1)) / kBlockWords);
    std::array<LaneVar, 2> asked{LaneVar(k_, 0), LaneVar(k_, 0)};
    const auto can_ask = [&] { return (*lowest != 0) & (*next <= (*lowest + (kRingBlocks - 1)) * kBlockWords); };
    // Loads four words for each lane. They are kept later, so that no instruction waits for them.
    const auto ask = [&] {
      const LaneU32 at = ((*lowest - 1) * kWarpLanes + k_.lane()) * 8;
      k_.if_(at < words_bytes, [&] {
        const auto loaded = words.at(times<8>(at / 8)).template as<u32>().template load_vector<2>();
        for (u32 i = 0; i < 2; ++i) asked[i] = loaded[i];
      });
    };
    const auto keep = [&] {
      lowest -= 1;
      ring_.at(times<4>(*lowest % kRingBlocks * kWarpLanes + k_.lane()))
          .template as<u32>()
          .store_vector(std::array<LaneU32, 2>{*asked[0], *asked[1]});
      k_.sync_warp();
    };
    k_.sync_warp();  // the words of the member before have been read
    // Every place of the ring is written before words are taken: a damaged part may take more than there are.
    unrolled<kRingBlocks>([&](auto i) {
      ring_.at(times<4>(k_.lane() + i * kWarpLanes))
          .template as<u32>()
          .store_vector(std::array<LaneU32, 2>{LaneU32(k_.constant<u32>(0)), LaneU32(k_.constant<u32>(0))});
    });
    k_.sync_warp();
    const auto fill = [&] {
      k_.warp_loop([&](auto& blocks) {
        blocks.break_if(!can_ask());
        ask();
        keep();
      });
    };
    fill();
    const auto decode_unit = [&](const WarpU32& unit, const LaneWords& copied) {
      std::vector<LaneU32> slots;
      unrolled<4>([&](auto) {
        slots.push_back(slots_.at(*state % kTypedScale).load());
        const LaneU32& slot = slots.back();
        const LaneU32 turned = (slot >> 8 & 0xFFF) * (*state >> kTypedScaleBits) + (slot >> 20);
        const LaneBool needs = turned < kTypedLow;
        const WarpU32 needing = ballot(needs);
        next -= popc(needing);
        const LaneU32 place = *next + popc(needing & k_.lanes_below());
        state = select(needs, turned << 16 | zext<u32>(ring_.at(place % kRingWords).load()), turned);
      });
      store_elements(where, unit, {slots[3], slots[2], slots[1], slots[0]}, copied);
    };
    WarpVar unit(k_, units);
    k_.if_(units % kTurnUnits != 0, [&] {
      unit -= 1;
      decode_unit(*unit, copied_words(where, *unit));
      k_.sync_warp();  // every lane has read the words that are now overwritten
      fill();
    });
    k_.warp_loop([&](auto& turns) {
      turns.break_if(*unit == 0);
      k_.if_((*lowest != 0) & (*next < *lowest * kBlockWords + kTurnUnits * kTypedUnit), fill);
      unit -= kTurnUnits;
      const LaneWords second = copied_words(where, *unit + 1), first = copied_words(where, *unit);
      const WarpBool asks = can_ask();
      k_.if_(asks, [&] { ask(); });
      decode_unit(*unit + 1, second);
      decode_unit(*unit, first);
      k_.sync_warp();  // every lane has read the words that are now overwritten
      k_.if_(asks, [&] { keep(); });
    });
    mark_warp(k_, Mark::parse, *next);
    bad_ |= zext<u32>((*next != 0) | !starts_well | !all(*state == kTypedLow));
  }

  Kernel& k_;
  const Item& item_;
  Ptr<shared, u32, 16> slots_;
  Ptr<shared, u16, 16, Rate::warp> ring_;
  WarpVar bad_;
};

}  // namespace

KernelDefinition typed_decode() {
  return define_typed_decoder(
      KernelSpec{.name = std::string(kTypedDecode),
                 .block = kTypedDecodeShape.block_threads,
                 .min_blocks = 8,
                 .budget = {.registers = 64,
                            .shared_bytes = 4 * kTypedScale + kTypedParts * kRingWords * 2,
                            .spill_bytes = 48},
                 .cost = {.threads_per_element = double{kTypedDecodeShape.block_threads} / 65536,
                          .note = "one CTA a member of 32768 elements"}},
      [](Kernel& k, const TypedDecodeArguments& arguments) {
        k.return_if(k.block() >= arguments.item_count * arguments.blocks_per_item);
        const BlockU32 index = k.block() / arguments.blocks_per_item,
                       first = k.block() - index * arguments.blocks_per_item;
        const TypedCoded<Rate::block> item(k, arguments, index);
        k.return_if(!item.is_ok());
        const BlockU32 members = item.layout().members(item.raw_bytes());
        k.return_if(first >= members);
        mark_block(k, Mark::item, item.size());
        MemberDecoder decoder(k, item);
        k.range(first, members, arguments.blocks_per_item, [&](const BlockU32& member) { decoder.decode(member); });
        mark_block(k, Mark::status, decoder.has_failed());
        k.if_(decoder.has_failed() != 0, [&] {
          k.once_per_warp([&] { item.store_result(k.constant(static_cast<u32>(BatchStatus::cannot_decompress))); });
        });
      });
}

}  // namespace ptxkit::kernels
