// Items to Deflate streams in a framing, with a warp for each: tokens from the matches, codes, the smallest type of
// block, its bits, header and checksum.
#include <deque>
#include <string>

#include "kernels/abi.hpp"
#include "kernels/deflate/checksums.hpp"
#include "kernels/deflate/deflate_arrays.hpp"
#include "kernels/deflate/deflate_bits.hpp"
#include "kernels/deflate/deflate_codes.hpp"
#include "kernels/deflate/deflate_encode_batch.hpp"
#include "kernels/deflate/deflate_tokens.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

using Room = DeflateBits::Room;

// What stands around the block.
class Framing {
 public:
  Framing(Kernel& k, const WarpU32& framing)
      : k_(k),
        is_zlib_(framing == static_cast<u32>(DeflateFraming::zlib)),
        is_bgzf_(framing == static_cast<u32>(DeflateFraming::bgzf)),
        is_gzip_(is_bgzf_ | (framing == static_cast<u32>(DeflateFraming::gzip))) {}

  WarpU32 header_bytes() const {
    return select(is_bgzf_, bytes(deflate_header_bytes(DeflateFraming::bgzf)),
                  select(is_gzip_, bytes(deflate_header_bytes(DeflateFraming::gzip)),
                         select(is_zlib_, bytes(deflate_header_bytes(DeflateFraming::zlib)), 0)));
  }
  WarpU32 trailer_bytes() const {
    return select(is_gzip_, bytes(kGzipTrailerBytes), select(is_zlib_, bytes(kZlibTrailerBytes), 0));
  }
  WarpBool is_zlib() const { return is_zlib_; }
  WarpBool is_gzip() const { return is_gzip_; }

  // `total`: the bytes of all.
  void write_header(const Room& to, const WarpU32& total) {
    const LaneU32 i = k_.lane();
    LaneVar byte(k_, 0);
    const auto set = [&](u32 at, const LaneU32& value) { byte = select(i == k_.constant(at), value, *byte); };
    for (u32 at = 0; at < kBgzfSizeAt; ++at) {
      if (kBgzfHeader[at] != 0) set(at, k_.constant(u32{kBgzfHeader[at]}));
    }
    set(3, select(is_bgzf_, k_.constant(kGzipExtraFlag), 0));
    set(kBgzfSizeAt, total - 1);
    set(kBgzfSizeAt + 1, (total - 1) >> 8);
    const LaneU32 of_zlib = select(i == 0, k_.constant(kZlibHeaderByte0), kZlibHeaderByte1);
    k_.if_(i < header_bytes(), [&] { to.at(i).store(trunc<u8>(select(is_zlib_, of_zlib, *byte))); });
  }
  void write_trailer(const Room& to, const WarpU32& checksum, const WarpU32& size) {
    const LaneU32 i = k_.lane(), shift = i % 4 * 8;
    const LaneU32 word = select(i < 4, checksum, size);
    k_.if_(i < trailer_bytes(), [&] { to.at(i).store(trunc<u8>(word >> select(is_zlib_, 24 - shift, shift))); });
  }

 private:
  WarpU32 bytes(u32 count) const { return k_.constant(count); }

  Kernel& k_;
  WarpBool is_zlib_, is_bgzf_, is_gzip_;
};

WarpU32 checksum_of(Kernel& k, const Framing& framing, const ItemSource& src, const WarpU32& size,
                    const DeflateArrays& arrays) {
  WarpVar checksum(k, 0);
  k.if_(framing.is_gzip(), [&] { checksum = crc32_of(k, src, size, arrays.crc_table()); });
  k.if_(framing.is_zlib(), [&] { checksum = adler32_of(k, src, size); });
  k.sync_warp();  // every lane has read the table
  return *checksum;
}

void write_stored(Kernel& k, const ItemSource& src, const WarpU32& size, const Room& to) {
  // The last block, and before it one of kDeflateMaxStoredBytes if that is not enough.
  const WarpBool has_two = size > kDeflateMaxStoredBytes;
  const auto write_block_header = [&](const Room& at, const WarpU32& length, u32 is_last) {
    const LaneU32 lengths = length | ~length << 16;
    k.if_(k.lane() < kDeflateStoredBlockBytes, [&] {
      at.at(k.lane()).store(trunc<u8>(select(k.lane() == 0, k.constant(is_last), lengths >> (k.lane() - 1) % 4 * 8)));
    });
  };
  k.if_(has_two, [&] { write_block_header(to, k.constant(kDeflateMaxStoredBytes), 0); });
  const WarpU32 first = select(has_two, k.constant(kDeflateMaxStoredBytes), 0);
  const WarpU32 last_at = select(has_two, k.constant(kDeflateStoredBlockBytes + kDeflateMaxStoredBytes), 0);
  write_block_header(to.at(last_at), size - first, 1);
  for_each_lane(k, size, [&](const LaneU32& i) {
    const WarpU32 one = k.constant(kDeflateStoredBlockBytes);
    to.at(i + select(has_two & (i >= first), one * 2, one)).store(src.at(i).load());
  });
}

// Writes the tokens, four of each lane at a time, and the end of the block.
template <class Tokens>
void write_tokens(Kernel& k, const Tokens& tokens, const WarpU32& count, const DeflateArrays& arrays,
                  DeflateBits& bits) {
  constexpr u32 kLaneTokens = 4, kTurnTokens = kLaneTokens * kWarpLanes, kMaxTokenBits = 48;
  static_assert(kTurnTokens * kMaxTokenBits <= DeflateBits::kMaxTurnBits - 32);
  constexpr u32 kShift = DeflateCodes::kBitsShift, kMask = DeflateCodes::kBitsMask;
  k.range(0, count, kTurnTokens, [&](const WarpU32& first) {
    const LaneU32 begin = first + times<kLaneTokens>(k.lane());
    std::deque<LaneVar> codes, distances;  // an entry of the tables; the bits of the distance, and their number
    std::deque<LaneVar> distance_bits;
    LaneVar sum(k, 0);
    for (u32 i = 0; i < kLaneTokens; ++i) {
      for (auto* values : {&codes, &distances, &distance_bits}) values->emplace_back(k, k.constant<u32>(0));
    }
    k.if_(begin < count, [&] {
      const auto four = tokens.at(times<kLaneTokens>(begin / kLaneTokens)).template load_vector<kLaneTokens>();
      for (u32 i = 0; i < kLaneTokens; ++i) {
        const LaneU32 token = four[i];
        k.if_(begin + k.constant(i) < count, [&] {
          codes[i] = arrays.token_codes().at(token & (kDeflateTokenCodes - 1)).load();
          sum += *codes[i] >> kShift;
          k.if_((token & kDeflateMatchToken) != 0, [&] {
            const LaneU32 distance = token >> kDeflateTokenDistanceShift;
            const auto [code, extra_bits] = deflate_lane_code_of_distance(distance);
            const LaneU32 entry = arrays.distance_codes().at(code).load(), code_bits = entry >> kShift;
            const LaneU32 extra = distance & ((1 << extra_bits) - 1);
            distances[i] = (entry & kMask) | extra << code_bits;
            distance_bits[i] = code_bits + extra_bits;
            sum += *distance_bits[i];
          });
        });
      }
    });
    bits.turn(*sum, [&] {
      for (u32 i = 0; i < kLaneTokens; ++i) {
        bits.put(*codes[i] & kMask, *codes[i] >> kShift);
        k.if_(*distance_bits[i] != 0, [&] { bits.put(*distances[i], *distance_bits[i]); });
      }
    });
  });
  const LaneU32 end = arrays.length_symbol_codes().load();
  const LaneU32 end_bits = select(k.lane() == 0, end >> kShift, 0);
  bits.turn(end_bits, [&] { bits.put(select(end_bits == 0, 0, end & kMask), end_bits); });
}

}  // namespace

KernelDefinition deflate_encode() {
  return define_deflate_batch_kernel(
      KernelSpec{.name = std::string(kDeflateEncode),
                 .block = kDeflateEncodeShape.block_threads,
                 .budget = {.registers = 88, .shared_bytes = DeflateArrays::kBytes(), .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxChunkBytes, .note = "one warp an item"}},
      [](Kernel& k, const DeflateBatchArguments& arguments) {
        const DeflateArrays arrays(k);
        const BlockU32 index = k.block();
        k.return_if(index >= arguments.item_count);
        const DeflateBatchItem item(k, arguments, index);
        WarpVar total(k, 0);
        k.if_(item.is_ok(), [&] {
          const WarpU32 size = item.size();
          mark_block(k, Mark::item, size);
          const ItemSource src = item.source();
          Framing framing(k, arguments.framing);
          const WarpU32 checksum = checksum_of(k, framing, src, size, arrays);
          const auto tokens = arguments.tokens_of(index);
          const WarpU32 match_count = broadcast(arguments.match_counts.within(arguments.item_count).at(index).load());
          const WarpU32 token_count =
              DeflateTokens(k, src, size, arguments.matches_of(index), tokens, arrays).make(match_count);
          DeflateCodes codes(k, arrays);
          codes.make();
          const WarpU32 stored_bytes =
              size +
              select(size > kDeflateMaxStoredBytes, k.constant(2 * kDeflateStoredBlockBytes), kDeflateStoredBlockBytes);
          const WarpU32 coded_bits = min(codes.fixed_bits(), codes.own_bits());
          const WarpBool is_stored = stored_bytes * 8 <= coded_bits;
          const WarpU32 block_bytes = select(is_stored, stored_bytes, (coded_bits + 7) / 8);
          const WarpU32 header_bytes = framing.header_bytes();
          total = header_bytes + block_bytes + framing.trailer_bytes();
          mark_block(k, Mark::emit, *total);
          const Room to = item.output().within(*total);
          framing.write_header(to, *total);
          const Room block = to.at(header_bytes);
          k.if_(is_stored, [&] { write_stored(k, src, size, block); }).else_([&] {
            const WarpBool is_fixed = codes.fixed_bits() <= codes.own_bits();
            codes.make_tables(is_fixed);
            DeflateBits bits(k, arrays.ring(), block, block_bytes);
            k.if_(is_fixed, [&] {
               const LaneU32 head_bits = select(k.lane() == 0, k.constant(kDeflateBlockHeaderBits), 0);
               bits.turn(head_bits, [&] {
                 bits.put(select(k.lane() == 0, k.constant(1 | static_cast<u32>(DeflateBlockType::fixed) << 1), 0),
                          head_bits);
               });
             }).else_([&] { codes.write_header(bits); });
            write_tokens(k, tokens, token_count, arrays, bits);
            bits.finish();
          });
          framing.write_trailer(block.at(block_bytes), checksum, size);
        });
        mark_block(k, Mark::status, item.status());
        k.once_per_block([&] {
          arguments.output_bytes.within(arguments.item_count).at(index).store(zext<u64>(*total));
          k.if_(arguments.statuses.address() != 0,
                [&] { arguments.statuses.within(arguments.item_count).at(index).store(item.status()); });
        });
      });
}

}  // namespace ptxkit::kernels
