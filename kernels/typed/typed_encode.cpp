// Typed rANS, encoding of members: a CTA splits a member's elements, stores the copied planes where they belong in the
// item, and keeps a coded plane in shared memory with the counts of its bytes. Then each warp codes its part, forward:
// words are written over elements that are coded. The coded plane goes to its slot, whence typed_join takes it.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/typed/typed_item.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kThreads = kTypedEncodeShape.block_threads;
constexpr u32 kPartRoom =
    kTypedPart + kTypedSlackBytes;  // a part's words from its begin on, its elements up to its end
constexpr u32 kAhead = 4;           // vectors that a thread asks for at once
constexpr u32 kVectorBytes = 16;
constexpr u32 kFailed = ~0u;  // in place of a part's number of words
constexpr u32 kStateBits = 31;
// What warps tell each other: the words of each part, then these two.
constexpr u32 kTableBytes = kTypedParts, kOnlySymbol = kTypedParts + 1, kFacts = kTypedParts + 2;

using Vector = std::array<LaneU32, 4>;

// An entry of the table: two words for each symbol. In the first are its frequency from bit 19 on, the start of its
// slots in bits 5 to 17 and, in bits 0 to 4, by how much the product with the second, its reciprocal, is shifted. A
// frequency of 1 has 2^32 - 1 as its reciprocal: the quotient is one too small, for which the start makes up.
class Entry {
 public:
  explicit Entry(const std::array<LaneU32, 2>& words) : first_(words[0]), reciprocal_(words[1]) {}

  static void store(Kernel& k, const SymbolWords& entries, const LaneU32& symbol, const LaneU32& frequency,
                    const LaneU32& start) {
    // 2^(31 + bits) / frequency rounded up, as 2^43 / even, in two divisions of 32 bits.
    const LaneU32 f = max(frequency, 1), bits = 32 - clz(max(f, 2) - 1);
    const LaneU32 even = f << (kTypedScaleBits - min(bits, kTypedScaleBits));
    const LaneU32 high = k.constant(1u << kStateBits) / even, rest = (k.constant(1u << kStateBits) - high * even) << 12;
    const LaneU32 low = rest / even;
    const LaneU32 reciprocal = (high << 12 | low) + zext<u32>(low * even != rest);
    const LaneBool is_one = f == 1;
    entries.at(times<2>(symbol))
        .store_vector(std::array<LaneU32, 2>{
            LaneU32(frequency << kFrequencyShift | (start + select(is_one, k.constant<u32>(kTypedScale - 1), 0)) << 5 |
                    select(is_one, 0, bits - 1)),
            LaneU32(select(is_one, ~0u, reciprocal))});
  }
  LaneBool gives_up(const LaneU32& state) const { return state >= (first_ & ~((1u << kFrequencyShift) - 1)); }
  LaneU32 next(const LaneU32& state) const {
    const LaneU32 quotient = funnel_right(mul_hi(state, reciprocal_), 0, first_);
    const LaneU32 others = kTypedScale - (first_ >> kFrequencyShift);
    return state + (first_ >> 5 & 0x1FFF) + quotient * others;
  }

 private:
  static constexpr u32 kFrequencyShift = kStateBits - kTypedScaleBits;
  LaneU32 first_, reciprocal_;
};

class MemberEncoder {
 public:
  MemberEncoder(Kernel& k, const TypedEncodeArguments& arguments, const TypedInput& item)
      : k_(k),
        item_(item),
        arguments_(arguments),
        parts_(k.shared<u8, kTypedParts * kPartRoom, 16>("parts").data()),
        entries_(k.shared<u32, 2 * kSymbols, 16>("entries").data()),
        counts_(entries_.as<u32>()),
        facts_(k.shared<u32, kFacts, 16>("facts").data()),
        elements_(item.elements()) {}

  void encode() {
    k_.range(k_.constant<u32>(0), item_.layout.coded_planes(), 1, [&](const BlockU32& plane) {
      clear_counts();
      k_.barrier();
      split(plane);
      k_.barrier();
      const auto slot = arguments_.slots.at(item_.slot_at(plane)).within(kTypedMember);
      k_.if_(k_.warp() == 0, [&] { make_table(slot); });
      k_.barrier();
      const WarpU32 table_bytes = fact(kTableBytes);
      const WarpBool is_constant = table_bytes == 0;
      LaneVar state(k_, kTypedLow);
      k_.if_(!is_constant, [&] { encode_part(state); });
      k_.barrier();
      store_plane(plane, slot, table_bytes, *state);
      k_.barrier();  // shared memory is used again
    });
  }

 private:
  // Where bytes of the plane are in shared memory, from byte `at` on.
  template <class At>
  auto plane_at(const At& at) const {
    constexpr u32 kStep = kTypedSlackBytes / 16;
    return parts_.at(at).at(times<16>(LaneU32(at) / kTypedPart * kStep)).template at<kTypedSlackBytes>();
  }
  // The elements of a part; 0 behind the member's end.
  template <class Part>
  auto part_elements(const Part& part) const {
    const auto begin = part * kTypedPart;
    return select(begin < elements_, min(elements_ - begin, kTypedPart), 0);
  }
  WarpU32 fact(u32 i) const { return broadcast(facts_.at(k_.constant(i)).load()); }

  void clear_counts() {
    unrolled<kSymbols / kThreads>([&](auto i) { counts_.at(k_.thread() + i * kThreads).store(k_.constant<u32>(0)); });
  }

  // --- splitting ---

  // Calls body(i, vector) for each vector of 16 bytes of the member.
  template <class Body>
  void for_vectors(const Body& body) {
    const BlockU32 shift = item_.layout.element_shift();
    const BlockU32 count = elements_ >> (4 - shift);
    const auto from = item_.source().at(times<kVectorBytes>(item_.member() * (kTypedMember / kVectorBytes) << shift));
    const auto vector = [&](const LaneU32& i) {
      return from.at(times<kVectorBytes>(i)).template as<u32>().template load_vector<4>();
    };
    const BlockU32 whole = align_down<kAhead * kThreads>(count);
    k_.range(k_.constant<u32>(0), whole, kAhead * kThreads, [&](const BlockU32& first) {
      std::vector<Vector> vectors;
      unrolled<kAhead>([&](auto j) { vectors.push_back(vector(first + k_.thread() + j * kThreads)); });
      unrolled<kAhead>([&](auto j) { body(first + k_.thread() + j * kThreads, vectors[j]); });
    });
    k_.range(whole, count, kThreads, [&](const BlockU32& first) {
      const LaneU32 i = first + k_.thread();
      k_.if_(i < count, [&] { body(i, vector(i)); });
    });
  }

  // Calls on_symbols(at, words, n) for n bytes of a coded plane, and on_copied(plane, at, words) for those of the
  // copied ones, in words that begin at byte `at` of the plane, which is a multiple of n.
  template <class OnSymbols, class OnCopied>
  void split_vectors(const BlockU32& plane, const OnSymbols& on_symbols, const OnCopied& on_copied) {
    const auto& layout = item_.layout;
    const auto word = [&](u32 value) { return k_.constant(value); };
    k_.if_(layout.element_shift() == 0,
           [&] { for_vectors([&](const LaneU32& i, const Vector& v) { on_symbols(times<16>(i), v, bytes_of<16>); }); });
    k_.if_(layout.is(TypedLayout::bfloat16), [&] {
      for_vectors([&](const LaneU32& i, const Vector& v) {
        const auto exponents = [&](u32 j) { return LaneU32(prmt(v[j] << 1, v[j + 1] << 1, word(0x7531))); };
        const auto rest = [&](u32 j) { return (v[j] & 0x007F007F) | (v[j] >> 8 & 0x00800080); };
        const auto rests = [&](u32 j) { return LaneU32(prmt(rest(j), rest(j + 1), word(0x6420))); };
        on_symbols(times<8>(i), std::array{exponents(0), exponents(2)}, bytes_of<8>);
        on_copied(0, times<8>(i), std::array{rests(0), rests(2)});
      });
    });
    const auto bytes_by = [&](const Vector& v, const BlockU32& selector) {
      return std::array{LaneU32(prmt(v[0], v[1], selector)), LaneU32(prmt(v[2], v[3], selector))};
    };
    k_.if_(layout.is(TypedLayout::float16), [&] {
      for_vectors([&](const LaneU32& i, const Vector& v) {
        on_symbols(times<8>(i), bytes_by(v, word(0x7531)), bytes_of<8>);
        on_copied(0, times<8>(i), bytes_by(v, word(0x6420)));
      });
    });
    k_.if_(layout.is(TypedLayout::stride2), [&] {
      for_vectors([&](const LaneU32& i, const Vector& v) {
        on_symbols(times<8>(i), bytes_by(v, plane * 0x1111 + 0x6420), bytes_of<8>);
      });
    });
    // Byte `byte` of four words.
    const auto gather = [&](const Vector& v, const BlockU32& byte) {
      const BlockU32 pair = byte * 0x11 + 0x40;
      return std::array{LaneU32(prmt(prmt(v[0], v[1], pair), prmt(v[2], v[3], pair), word(0x5410)))};
    };
    const auto each = [](const Vector& v, const auto& change) {
      return Vector{LaneU32(change(v[0])), LaneU32(change(v[1])), LaneU32(change(v[2])), LaneU32(change(v[3]))};
    };
    k_.if_(layout.is(TypedLayout::float32), [&] {
      for_vectors([&](const LaneU32& i, const Vector& v) {
        on_symbols(times<4>(i), gather(each(v, [](const auto& w) { return w << 1; }), word(3)), bytes_of<4>);
        const Vector rest = each(v, [](const auto& w) { return (w & 0x007FFFFF) | (w >> 8 & 0x00800000); });
        for (u32 b = 0; b < 3; ++b) on_copied(b, times<4>(i), gather(rest, word(b)));
      });
    });
    k_.if_(layout.is(TypedLayout::stride4), [&] {
      for_vectors([&](const LaneU32& i, const Vector& v) { on_symbols(times<4>(i), gather(v, plane), bytes_of<4>); });
    });
    k_.if_(layout.is(TypedLayout::stride8), [&] {
      for_vectors([&](const LaneU32& i, const Vector& v) {
        const LaneU32 a = select(plane < 4, v[0], v[1]), b = select(plane < 4, v[2], v[3]);
        on_symbols(times<2>(i), std::array{LaneU32(prmt(a, b, plane % 4 * 0x11 + 0x40))}, bytes_of<2>);
      });
    });
  }
  template <u32 Bytes>
  static constexpr std::integral_constant<u32, Bytes> bytes_of{};

  // Stores words, or the first half of one.
  template <class To, size_t Words, class Bytes>
  static void store_words(const To& to, const std::array<LaneU32, Words>& words, Bytes) {
    if constexpr (Bytes::value == 2) {
      to.template as<u16>().store(trunc<u16>(words[0]));
    } else if constexpr (Words == 1) {
      to.template as<u32>().store(words[0]);
    } else {
      to.template as<u32>().store_vector(words);
    }
  }

  // Stores the copied planes in the item and `plane` in shared memory, and counts its bytes.
  void split(const BlockU32& plane) {
    const BlockU32 copied_planes = item_.layout.copied_planes();
    const auto copied = item_.room(item_.layout.copied_at(item_.size()) + item_.member() * kTypedMember * copied_planes,
                                   elements_ * copied_planes);
    split_vectors(
        plane,
        [&](const auto& at, const auto& words, auto bytes) {
          store_words(plane_at(at), words, bytes);
          for (const LaneU32& word : words) {
            unrolled<std::min<u32>(bytes, 4)>([&](auto j) {
              atomic_add(counts_.at(word >> 8 * j & 0xFF), k_.constant<u32>(1), Order::relaxed, Scope::cta);
            });
          }
        },
        [&](u32 number, const auto& at, const auto& words) {
          const auto to = copied.at(align_down<kTypedUnit>(elements_ * k_.constant(number))).at(at);
          store_words(to, words, bytes_of<4>);
        });
  }

  // --- the table, by the first warp ---

  // Makes the entries of the counts, and writes the table to the slot. Its length becomes kTableBytes; 0 says that the
  // plane is one byte, which becomes kOnlySymbol.
  template <class Slot>
  void make_table(const Slot& slot) {
    LaneSymbols frequencies(k_);
    LaneVar only(k_, 0);
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      const LaneU32 count = counts_.at(s).load();
      // Rounded to the nearest, but at least 1.
      const LaneU32 share = (count * kTypedScale + elements_ / 2) / elements_;
      frequencies[j] = select(count == 0, 0, max(share, 1));
      only |= select(count == elements_, s + 1, 0);
    });
    const WarpU32 single = reduce_max(*only);
    k_.sync_warp();  // the counts have been read: the entries take their place
    WarpVar bytes(k_, 0);
    k_.if_(single == 0, [&] {
      WarpVar sum(k_, reduce_add(frequencies.sum()));
      k_.warp_loop([&](auto& turns) {
        turns.break_if(*sum == kTypedScale);
        LaneVar key(k_, 0);
        for_lane_symbols(k_,
                         [&](auto j, const LaneU32& s) { key = max(*key, *frequencies[j] << 8 | (kSymbols - 1 - s)); });
        const WarpU32 largest = reduce_max(*key), excess = *sum - kTypedScale;
        const WarpU32 missing = kTypedScale - *sum;
        const WarpBool is_short = *sum < kTypedScale;
        const WarpU32 taken = min(excess, largest >> 9);
        const WarpU32 change = select(is_short, missing, 0 - taken);
        for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
          frequencies[j] += select((*frequencies[j] << 8 | (kSymbols - 1 - s)) == largest, change, 0);
        });
        sum += change;
      });
      LaneVar start(k_, exclusive_sum(frequencies.sum()));
      for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
        Entry::store(k_, entries_, s, *frequencies[j], *start);
        start += *frequencies[j];
      });
      write_table(k_, frequencies, slot.template at<kTypedWordsBytes>());
      const WarpU32 end = table_bytes(k_, frequencies) + kTypedWordsBytes;
      bytes = (end + (kTypedAlignment - 1)) & ~(kTypedAlignment - 1);
      k_.if_(k_.lane() < *bytes - end, [&] { slot.at(end + k_.lane()).store(k_.constant<u8>(0)); });
    });
    k_.once_per_warp([&] {
      facts_.template at<kTableBytes>().store(*bytes);
      facts_.template at<kOnlySymbol>().store(single - 1);
    });
  }

  // --- rANS, by each warp for its part ---

  void encode_part(LaneVar& state) {
    const WarpU32 elements = part_elements(k_.warp()), units = elements / kTypedUnit;
    const auto room = parts_.at(times<16>(k_.warp() * (kPartRoom / 16))).within(kPartRoom);
    const auto words = room.template as<u16>();
    const auto unit_words = room.template at<kTypedSlackBytes>().template as<u32>().at(k_.lane());
    WarpVar next(k_, 0);
    LaneVar ahead(k_, 0);
    k_.if_(units != 0, [&] { ahead = unit_words.load(); });
    k_.range(k_.constant<u32>(0), units, 1, [&](const WarpU32& unit, auto& loop) {
      const WarpBool is_full = *next * 2 + 2 * kTypedUnit > unit * kTypedUnit + (kTypedUnit + kTypedSlackBytes);
      next = select(is_full, kFailed, *next);
      loop.break_if(is_full);
      const LaneU32 symbols = *ahead;
      std::vector<Entry> row_entries;
      unrolled<4>([&](auto j) {
        row_entries.emplace_back(entries_.at(times<2>(symbols >> 8 * j & 0xFF)).template load_vector<2>());
      });
      ahead = unit_words.at(min(unit + 1, units - 1) * kWarpLanes).load();
      k_.sync_warp();  // every lane has read the unit that the words may overwrite
      for (const Entry& entry : row_entries) {
        const LaneBool leaves = entry.gives_up(*state);
        const WarpU32 leaving = ballot(leaves);
        const LaneU32 place = *next + popc(leaving & k_.lanes_below());
        k_.if_(leaves, [&] { words.at(place).store(trunc<u16>(*state)); });
        next += popc(leaving);
        state = entry.next(select(leaves, *state >> 16, *state));
      }
    });
    mark_warp(k_, Mark::emit, *next * 2);
    k_.if_((*next != kFailed) & (k_.lane() < kTypedAlignment / 2 - 1), [&] {
      const LaneU32 place = *next + k_.lane();
      k_.if_(place < ((*next + (kTypedAlignment / 2 - 1)) & ~(kTypedAlignment / 2 - 1)),
             [&] { words.at(place).store(k_.constant<u16>(0)); });
    });
    k_.once_per_warp([&] { facts_.at(k_.warp()).store(*next); });
  }

  // --- what became of the plane ---

  template <class Slot>
  void store_plane(const BlockU32& plane, const Slot& slot, const WarpU32& table_bytes, const LaneU32& state) {
    const WarpBool is_constant = table_bytes == 0;
    const LaneU32 part = k_.lane() % kTypedParts;
    LaneVar count(k_, 0);
    k_.if_(!is_constant, [&] { count = facts_.at(part).load(); });
    const LaneU32 elements = part_elements(part);
    const LaneU32 bytes =
        select(elements == 0, 0,
               (min(*count, kTypedPart) * 2 + (kTypedStatesBytes + kTypedAlignment - 1)) & ~(kTypedAlignment - 1));
    const LaneU32 mine = select(k_.lane() < kTypedParts, bytes, 0);
    const WarpU32 total = table_bytes + reduce_add(mine);
    const WarpBool is_copied = (!is_constant) & (any(*count == kFailed) | (total >= elements_));
    const WarpBool is_coded = (!is_constant) & !is_copied;
    const WarpU32 own_at = table_bytes + shuffle(exclusive_sum(mine), k_.warp());
    const WarpU32 own_count = shuffle(*count, k_.warp());
    k_.if_(is_coded & (part_elements(k_.warp()) != 0), [&] {
      const auto to = slot.at(align_down<16>(own_at));
      to.template as<u32>().at(k_.lane()).store(state);
      const auto words_to = to.template at<kTypedStatesBytes>().template as<u32>();
      const auto from = parts_.at(times<16>(k_.warp() * (kPartRoom / 16))).template as<u32>();
      for_each_lane(k_, (own_count + (kTypedAlignment / 2 - 1)) / (kTypedAlignment / 2), [&](const LaneU32& i) {
        words_to.at(times<4>(i)).store_vector(from.at(times<4>(i)).template load_vector<4>());
      });
    });
    k_.if_(is_coded & (k_.warp() == 0) & (k_.lane() < kTypedParts),
           [&] { slot.template as<u32>().at(k_.lane()).store(*count); });
    const WarpU32 only = fact(kOnlySymbol);
    k_.if_(is_constant & (k_.warp() == 0) & (k_.lane() < 4),
           [&] { slot.template as<u32>().at(k_.lane()).store(select(k_.lane() == 0, only, 0)); });
    k_.if_(is_copied, [&] {
      split_vectors(
          plane,
          [&](const auto& at, const auto& words, auto count_there) { store_words(slot.at(at), words, count_there); },
          [](u32, const auto&, const auto&) {});
    });
    const WarpU32 size = select(is_constant, k_.constant<u32>(kTypedAlignment), select(is_copied, elements_, total));
    k_.once_per_block(
        [&] { arguments_.coded_units.at(item_.entry(item_.member(), plane)).store(size / kTypedAlignment); });
  }

  Kernel& k_;
  const TypedInput& item_;
  const TypedEncodeArguments& arguments_;
  Ptr<shared, u8, 16> parts_;
  Ptr<shared, u32, 16> entries_;
  Ptr<shared, u32, 16> counts_;
  Ptr<shared, u32, 16> facts_;
  BlockU32 elements_;
};

}  // namespace

KernelDefinition typed_encode() {
  return define_typed_encoder(
      KernelSpec{.name = std::string(kTypedEncode),
                 .block = kThreads,
                 .min_blocks = 6,
                 .budget = {.registers = 80,
                            .shared_bytes = kTypedParts * kPartRoom + 8 * kSymbols + 4 * kFacts,
                            .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kThreads} / 65536,
                          .note = "one CTA a member of 32768 elements; N is in elements of one byte"}},
      [](Kernel& k, const TypedEncodeArguments& arguments) {
        k.return_if(k.block() >= arguments.item_count * arguments.members_per_item);
        const TypedInput item(k, arguments);
        k.return_if((!item.is_ok()) | (item.member() >= item.members()));
        mark_block(k, Mark::item, item.elements());
        MemberEncoder(k, arguments, item).encode();
        mark_block(k, Mark::status, item.status());
      });
}

}  // namespace ptxkit::kernels
