// Decodes an LZ block with one warp, 32 tokens in each iteration. A prefix sum of their lengths gives each its
// position. Literals are written first, then the matches whose source is complete, eight at a time, then the others one
// after the other, each by the whole warp.
#include <array>
#include <bit>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

class Decoder {
 public:
  // A far match has two words in the list: its position, then its offset and length.
  static constexpr u32 kListWords = 2 * kWarpLanes;
  static constexpr u32 kOffsetBits = std::bit_width(kLzMaxOffset);
  using List = Ptr<shared, u32, 16, Rate::warp>;

  Decoder(TransformItem& item, const List& list)
      : item_(item),
        k_(item.k),
        list_(list),
        raw_bytes_(load_u32(item.src)),
        literal_count_(load_u32(item.src.at<4>())),
        match_count_(load_u32(item.src.at<8>())),
        word_count_(load_u32(item.src.at<12>())),
        literals_at_(word_count_ * 4 + kLzBlockHeaderBytes),
        lengths_at_(literals_at_ + literal_count_),
        word_(k_, 0),
        literal_(k_, 0),
        match_(k_, 0),
        at_(k_, 0) {}

  template <class Fail>
  void decode(const Fail& fail_if) {
    fail_if(raw_bytes_ > item_.capacity, StreamStatus::output_overrun);
    fail_if(max(max(literal_count_, match_count_), word_count_) > raw_bytes_, StreamStatus::bad_table);
    const WarpU32 size = lengths_at_ + match_count_ * 3;
    fail_if(size > item_.src_size, StreamStatus::input_overrun);
    fail_if(size < item_.src_size, StreamStatus::corrupt);
    item_.size_bytes = raw_bytes_;
    WarpVar end(k_, 0);  // the end of the segment
    k_.warp_loop([&](auto& batches) {
      batches.break_if(*at_ >= raw_bytes_);
      end = select(*at_ == *end, min(raw_bytes_, *end + kLzSegmentBytes), *end);
      FailIf{item_, batches}(!decode_tokens(*end), StreamStatus::corrupt);
    });
    fail_if.if_failed();
    fail_if((*word_ != word_count_) | (*literal_ != literal_count_) | (*match_ != match_count_), StreamStatus::corrupt);
  }

 private:
  // Decodes the tokens of the next flag word, up to the end of the segment. False if the block is malformed.
  WarpBool decode_tokens(const WarpU32& end) {
    mark_warp(k_, Mark::parse, *at_);
    WarpVar good(k_, 0);
    k_.if_(*word_ < word_count_, [&] {
      const WarpU32 flags = load_u32(item_.src.at(*word_ * 4 + kLzBlockHeaderBytes));
      const LaneBool is_match = (flags >> k_.lane() & 1) != 0;
      const LaneU32 rank =
          select(is_match, *match_ + popc(flags & k_.lanes_below()), *literal_ + popc(~flags & k_.lanes_below()));
      const LaneBool there = rank < select(is_match, match_count_, literal_count_);
      const LaneU32 from = select(is_match, lengths_at_, literals_at_) + rank;
      const LaneU32 byte = zext<u32>(item_.src.at(select(there, from, 0)).load());
      const LaneU32 length = select(is_match, byte + kLzMinMatch, 1);
      const LaneU32 begin = *at_ + exclusive_sum(length);
      const LaneBool active = begin < end;
      const WarpU32 active_mask = ballot(active);
      const LaneBool bad = active & ((!there) | (end - begin < length));
      k_.if_(!any(bad), [&] {
        k_.if_(active & !is_match, [&] { item_.dst.at(begin).store(trunc<u8>(byte)); });
        k_.sync_warp();
        LaneVar offset(k_, 0);
        k_.if_(active & is_match, [&] {
          const auto low = item_.src.at(from + match_count_);
          offset = zext<u32>(low.load()) | zext<u32>(low.at(match_count_).load()) << 8;
        });
        good = zext<u32>(all((!(active & is_match)) | ((*offset != 0) & (*offset <= begin))));
        k_.if_(*good != 0, [&] { copy_matches(flags & active_mask, begin, length, *offset); });
        literal_ += popc(~flags & active_mask);
        match_ += popc(flags & active_mask);
        word_ += 1;
        at_ = reduce_max(select(active, begin + length, 0));
      });
    });
    return *good != 0;
  }

  // Copies the matches whose source ends before this iteration's output. Every eight lanes copy two matches at a time
  // and load their first bytes before storing any. Sources are first prefetched into L2: distant ones are no longer
  // there, since the output of all blocks that are being decoded exceeds L2.
  void copy_far(const WarpU32& mask, const LaneBool& far, const LaneU32& begins, const LaneU32& lengths,
                const LaneU32& offsets) {
    constexpr u32 kGroup = 8, kGroups = kWarpLanes / kGroup, kEach = 2;
    k_.if_(far, [&] {
      const LaneU32 source = begins - offsets;
      item_.dst.at(source).prefetch_l2();
      item_.dst.at(source + lengths - 1).prefetch_l2();
      const auto entry = list_.at(times<2>(popc(mask & k_.lanes_below())));
      entry.store(begins);
      entry.template at<1>().store(offsets | lengths << kOffsetBits);
    });
    k_.sync_warp();
    const WarpU32 count = popc(mask);
    const LaneU32 own = k_.lane() % kGroup;
    struct Copy {
      explicit Copy(Kernel& k) : to(k, 0), from(k, 0), length(k, 0), low(k, 0), high(k, 0) {}
      LaneVar to, from, length;
      LaneVar low, high;  // the first two bytes of the lane
    };
    k_.range(k_.constant<u32>(0), count, kGroups * kEach, [&](const WarpU32& first) {
      std::array<Copy, kEach> copies{Copy(k_), Copy(k_)};
      unrolled<kEach>([&](auto i) {
        const LaneU32 index = first + i * kGroups + k_.lane() / kGroup;
        const LaneBool there = index < count;
        const auto words = list_.at(times<2>(select(there, index, 0))).template load_vector<2>();
        copies[i].to = words[0];
        copies[i].length = select(there, words[1] >> kOffsetBits, 0);
        copies[i].from = words[0] - (words[1] & kLzMaxOffset);
      });
      for (Copy& copy : copies) {
        const auto from = item_.dst.at(*copy.from + own);
        k_.if_(own < *copy.length, [&] { copy.low = zext<u32>(from.load()); });
        k_.if_(own + kGroup < *copy.length, [&] { copy.high = zext<u32>(from.template at<kGroup>().load()); });
      }
      for (Copy& copy : copies) {
        const auto to = item_.dst.at(*copy.to + own);
        k_.if_(own < *copy.length, [&] { to.store(trunc<u8>(*copy.low)); });
        k_.if_(own + kGroup < *copy.length, [&] { to.template at<kGroup>().store(trunc<u8>(*copy.high)); });
      }
      for (Copy& copy : copies) {
        k_.range(own + 2 * kGroup, *copy.length, kGroup,
                 [&](const LaneU32& i) { item_.dst.at(*copy.to + i).store(item_.dst.at(*copy.from + i).load()); });
      }
    });
    k_.sync_warp();
  }

  // A match that overlaps itself repeats its first `offset` bytes. All lanes read from those, so none waits for
  // another.
  void copy_matches(const WarpU32& mask, const LaneU32& begins, const LaneU32& lengths, const LaneU32& offsets) {
    const LaneBool far = ((mask >> k_.lane() & 1) != 0) & (begins - offsets + lengths <= *at_);
    const WarpU32 far_mask = ballot(far);
    k_.if_(far_mask != 0, [&] { copy_far(far_mask, far, begins, lengths, offsets); });
    WarpVar left(k_, mask & ~far_mask);
    k_.warp_loop([&](auto& matches) {
      matches.break_if(*left == 0);
      const WarpU32 lane = ctz(*left);
      left &= *left - 1;
      const WarpU32 begin = shuffle(begins, lane), offset = shuffle(offsets, lane);
      for_each_lane(k_, shuffle(lengths, lane), [&](const LaneU32& i) {
        item_.dst.at(begin + i).store(item_.dst.at(begin - offset + i % offset).load());
      });
      k_.sync_warp();
    });
  }

  TransformItem& item_;
  Kernel& k_;
  List list_;
  WarpU32 raw_bytes_, literal_count_, match_count_, word_count_;
  WarpU32 literals_at_, lengths_at_;
  WarpVar word_, literal_, match_;  // the index of the next flag word, literal and match
  WarpVar at_;                      // the position of the next byte in the output
};

}  // namespace

KernelDefinition lz77_decode() {
  return define_transform<>(
      kLz77Decode, {.registers = 64, .shared_bytes = Decoder::kListWords * sizeof(u32)}, M, "one warp a block",
      [](TransformItem& item, const auto& fail_if) {
        fail_if(item.src_size < kLzBlockHeaderBytes, StreamStatus::input_overrun);
        const auto list = item.k.shared<u32, Decoder::kListWords, 16>("list");
        Decoder(item, list.data()).decode(fail_if);
      },
      kLzDecodeMaxBytes);
}

}  // namespace ptxkit::kernels
