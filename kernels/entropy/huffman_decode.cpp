// Huffman decoding, a thread for each lane. The warp builds a table of the codes of up to kTableBits bits, indexed by
// the next bits. Longer codes are rare in a lane but common in a row of 32 lanes: the first of them have a table too,
// and the others are found by comparison with the limit of each length.
#include <array>
#include <tuple>
#include <utility>

#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/huffman_codes.hpp"
#include "kernels/entropy/lane_bits.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kTableBits = 11;
constexpr u32 kTableEntries = 1u << kTableBits;
constexpr u32 kLongEntries = 1536;

class Decoder {
 public:
  struct Tables {
    Ptr<shared, u16, 16, Rate::warp> short_codes;  // kTableEntries
    Ptr<shared, u8, 16, Rate::warp> long_codes;    // kLongEntries
    Ptr<shared, u8, 16, Rate::warp> lengths;       // the length of each symbol's code
  };

  Decoder(TransformItem& item, const CodeTables& codes, const Tables& tables, const LaneReader::Ring& ring)
      : item_(item), k_(item.k), codes_(codes), tables_(tables), ring_(ring), raw_bytes_(load_u32(item.src)) {}

  template <class Fail>
  void decode(const Fail& fail_if) {
    fail_if(raw_bytes_ > item_.capacity, StreamStatus::output_overrun);
    fail_if((raw_bytes_ == 0) & (item_.src_size != kLanedHeaderBytes), StreamStatus::corrupt);
    item_.size_bytes = raw_bytes_;
    fail_if(raw_bytes_ == 0, StreamStatus::ok);  // an empty stream
    constexpr u32 kSizesAt = kLanedHeaderBytes + kCodeLengthsBytes;
    fail_if(item_.src_size < kSizesAt, StreamStatus::input_overrun);
    fail_if(!read_codes(), StreamStatus::bad_table);
    fill_short_codes();
    const LongCodes long_codes = fill_long_codes();
    LaneReader reader(item_, ring_, k_.constant<u32>(kSizesAt), fail_if);
    const LaneU32 bad = run(reader, long_codes);
    fail_if(any((bad != 0) | !reader.is_at_end()), StreamStatus::corrupt);
  }

 private:
  // Reads the code lengths and builds the tables. False if the lengths are not those of a code.
  WarpBool read_codes() {
    LaneSymbols lengths(k_);
    const auto packed = item_.src.at<kLanedHeaderBytes>();
    for_lane_symbols(
        k_, [&](auto j, const LaneU32& s) { lengths[j] = zext<u32>(packed.at(s / 2).load()) >> (j % 2 * 4) & 15; });
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) { tables_.lengths.at(s).store(trunc<u8>(*lengths[j])); });
    WarpVar ones(k_, 0);
    const WarpU32 size = for_canonical_codes(
        k_, lengths,
        [&](const auto& length, const WarpU32& first, const WarpU32& count, const WarpU32& rank) {
          k_.once_per_warp([&] {
            codes_.limits.at(length).store((first + count) << (kMaxCodeBits - length));
            codes_.ranks.at(length).store(rank - first);
          });
          ones = select(length == 1, count, *ones);
        },
        [&](auto, const LaneU32& s, const LaneU32&, const LaneU32& rank) {
          codes_.symbols.at(rank).store(trunc<u8>(s));
        });
    k_.sync_warp();
    constexpr u32 kWholeCode = 1u << kMaxCodeBits;
    return (size == kWholeCode) | ((size == kWholeCode / 2) & (*ones == 1));
  }

  LaneU32 symbol_of(const LaneU32& bits, const LaneU32& length) {
    const LaneU32 code = bits >> (kMaxCodeBits - length);
    return zext<u32>(codes_.symbols.at(codes_.ranks.at(length).load() + code).load());
  }

  // Fills the short codes' table. An entry is the symbol, with the code's length from bit 8 on; 0 if the code is longer
  // than kTableBits.
  void fill_short_codes() {
    std::array<LaneVar, kTableBits> limits = [&]<u32... L>(std::integer_sequence<u32, L...>) {
      return std::array{LaneVar(k_, codes_.limits.at<L + 1>().load())...};
    }(std::make_integer_sequence<u32, kTableBits>{});
    k_.range(k_.constant<u32>(0), kTableEntries, kWarpLanes, [&](const auto& first) {
      const LaneU32 entry = first + k_.lane();
      const LaneU32 bits = entry << (kMaxCodeBits - kTableBits);
      LaneVar length(k_, 1), found(k_, 0);
      unrolled<kTableBits>([&](auto l) { length += zext<u32>(bits >= *limits[l]); });
      k_.if_(*length <= kTableBits, [&] { found = symbol_of(bits, *length) | *length << 8; });
      tables_.short_codes.at(entry).store(trunc<u16>(*found));
    });
    k_.sync_warp();
  }

  // The strings of kMaxCodeBits bits that begin with a longer code: the first one, and how many of them have an entry.
  struct LongCodes {
    LaneU32 first, count;
  };

  // Fills the long codes' table. An entry is the symbol.
  LongCodes fill_long_codes() {
    const LaneU32 first = codes_.limits.at<kTableBits>().load();
    const LaneU32 count = min(codes_.limits.at<kMaxCodeBits>().load() - first, kLongEntries);
    k_.range(k_.lane(), count, kWarpLanes, [&](const LaneU32& i) {
      LaneVar length(k_, kTableBits + 1);
      unrolled<kMaxCodeBits - kTableBits - 1>(
          [&](auto l) { length += zext<u32>(first + i >= codes_.limits.at<kTableBits + 1 + l>().load()); });
      tables_.long_codes.at(i).store(trunc<u8>(symbol_of(first + i, *length)));
    });
    k_.sync_warp();
    return {first, count};
  }

  // Decodes all symbols. The result is not 0 in lanes that met bits with which no code begins.
  LaneU32 run(LaneReader& reader, const LongCodes& long_codes) {
    LaneVar bad(k_, 0);
    for_lane_rows(item_, raw_bytes_, reader, [&](const auto& to, const auto& skip) {
      const LaneU32 bits = reader.peek();
      LaneVar entry(k_, zext<u32>(tables_.short_codes.at(bits >> (32 - kTableBits)).load()));
      k_.if_(*entry == 0, [&] {
        const LaneU32 front = bits >> (32 - kMaxCodeBits);
        k_.if_(front - long_codes.first < long_codes.count, [&] {
            const LaneU32 symbol = zext<u32>(tables_.long_codes.at(front - long_codes.first).load());
            entry = symbol | zext<u32>(tables_.lengths.at(symbol).load()) << 8;
          }).else_([&] {
          LaneVar length(k_, kTableBits + 1);
          k_.thread_loop([&](auto& lengths) {
            lengths.break_if(*length > kMaxCodeBits);
            lengths.break_if(front < codes_.limits.at(*length).load());
            length += 1;
          });
          k_.if_(*length > kMaxCodeBits, [&] { bad |= 1; }).else_([&] {
            entry = symbol_of(front, *length) | *length << 8;
          });
        });
      });
      to.store(trunc<u8>(*entry));
      skip(*entry >> 8);
    });
    return *bad;
  }

  TransformItem& item_;
  Kernel& k_;
  CodeTables codes_;
  Tables tables_;
  LaneReader::Ring ring_;
  WarpU32 raw_bytes_;
};

}  // namespace

KernelDefinition huffman_decode() {
  return define_transform<>(kHuffmanDecode,
                            {.registers = 64,
                             .shared_bytes = (2 * (kMaxCodeBits + 1) + LaneReader::kRingWords) * sizeof(u32) +
                                             kSymbols + kTableEntries * sizeof(u16) + kLongEntries + kSymbols},
                            M, "one warp a stream", [](TransformItem& item, const auto& fail_if) {
                              const auto limits = item.k.shared<u32, kMaxCodeBits + 1, 16>("limits");
                              const auto ranks = item.k.shared<u32, kMaxCodeBits + 1, 16>("ranks");
                              const auto symbols = item.k.shared<u8, kSymbols, 16>("symbols");
                              const auto table = item.k.shared<u16, kTableEntries, 16>("table");
                              const auto ring = item.k.shared<u32, LaneReader::kRingWords, 16>("ring");
                              const auto longs = item.k.shared<u8, kLongEntries, 16>("long_codes");
                              const auto lengths = item.k.shared<u8, kSymbols, 16>("lengths");
                              fail_if(item.src_size < kLanedHeaderBytes, StreamStatus::input_overrun);
                              Decoder(item, {limits.data(), ranks.data(), symbols.data()},
                                      {table.data(), longs.data(), lengths.data()}, ring.data())
                                  .decode(fail_if);
                            });
}

}  // namespace ptxkit::kernels
