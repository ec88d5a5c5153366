// LZ4 compression, one warp an item: the parse of lz4_compress_reference.cpp with a lane for each position of a window.
//
// What one thread does in order, the warp does at once: `match_any` on the bucket tells each lane which lanes of the
// window share it, so the nearest lane below is its candidate, and only the highest of them enters the table. Scores
// meet through two shuffles and a ballot, and what remains of the window is a bit mask of places where a match starts.
// Chosen matches are measured 32 bytes a turn, and written by all lanes.
//
// The table has a slot for each hash of four bytes, with the latest position that had it; it lives in shared memory, a
// part for each warp, so warps never wait for each other. Candidates lie anywhere in the item, and 32 lanes that read
// 32 places cost shared memory a tenth of what they cost the cache, so an item that fits is brought there first.
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kAllLanes = 0xFFFFFFFFu;
constexpr u32 kMaxScore = 8;  // bytes that are compared before a match is chosen

// `Input` is a pointer to the item's bytes, 16-byte aligned, in global or in shared memory.
template <const Lz4CompressVariant& V, class Input>
class Compressor {
 public:
  static constexpr u32 kSlots = 1u << V.hash_bits;
  using Table = Ptr<Shared, u16, 16, Rate::Warp>;

  Compressor(Kernel& k, const Input& src, const WarpU32& size, const ItemRoom& dst, const Table& table)
      : k_(k),
        src_(src),
        size_(size),
        dst_(dst),
        table_(table),
        start_end_(select(size < kLastMatchStart, 0, size - (kLastMatchStart - 1))),
        match_end_(size - min(size, kLastLiterals)),
        anchor_(k, 0),
        written_(k, 0),
        fails_(k, 0) {}

  // Writes the block; afterwards fails() says that it would not be shorter than the item, or size_bytes() its length.
  void compress() {
    clear_table();
    WarpVar base(k_, 0);
    k_.warp_loop([&](auto& windows) {
      windows.break_if((*base >= start_end_) | (*fails_ != 0));
      mark_warp(k_, Mark::parse, *base);
      const Window window = examine(*base);
      WarpVar starts(k_, window.starts);
      k_.warp_loop([&](auto& matches) {
        matches.break_if(*starts == 0);
        const WarpU32 chosen = ctz(*starts);
        const WarpU32 match = shuffle(window.matches, chosen);
        take_match(*base + chosen, match & 0xFFFF, match >> 16);
        const WarpU32 next = *anchor_ - *base;
        starts = select((*fails_ != 0) | (next >= kWindow), 0, *starts & (kAllLanes << (next & (kWindow - 1))));
      });
      base = max(*base + kWindow, *anchor_);
    });
    write_last_literals();
  }

  WarpBool fails() const { return *fails_ != 0; }
  WarpU32 size_bytes() const { return *written_; }

 private:
  struct Window {
    LaneU32 matches;  // of each lane's position: candidate, and its score from bit 16 on
    WarpU32 starts;   // lanes at which a match is to start
  };

  void clear_table() {
    constexpr u32 kVectors = kSlots * sizeof(u16) / 16;
    const auto empty = k_.constant<u32>(kEmptySlot | u32{kEmptySlot} << 16);
    k_.range(k_.constant<u32>(0), kVectors / kWarpLanes, 1, [&](const auto& i) {
      table_.template as<u32>()
          .at(times<4>(i * kWarpLanes + k_.lane()))
          .store_vector(std::array{empty, empty, empty, empty});
    });
    k_.sync_warp();
  }

  // Looks every position of the window at `base` up, enters it, and decides where matches start.
  Window examine(const WarpU32& base) {
    const LaneU32 lane = k_.lane();
    const LaneBool active = base + lane < start_end_;
    const LaneU32 position = min(base + lane, start_end_ - 1);  // lanes past the end read where they may
    const EightBytes here = load_eight(position);
    const LaneU32 bucket = (here.first * kHashMultiplier) >> (32 - V.hash_bits);

    const LaneU32 same_bucket = match_any(select(active, bucket, kSlots + lane));
    const LaneU32 earlier = same_bucket & k_.lanes_below();
    const auto slot = table_.at(bucket);
    const LaneU32 entered = zext<u32>(slot.load());
    const LaneBool in_window = earlier != 0;
    const LaneU32 candidate = select(in_window, base + (31 - clz(earlier)), entered);
    k_.sync_warp();  // every lane has read its slot before any lane writes one
    k_.if_(active & ((same_bucket >> lane) == 1), [&] { slot.store(trunc<u16>(position)); });
    k_.sync_warp();

    const LaneBool known = active & (in_window | (entered != kEmptySlot));
    const LaneU32 score = score_match(here, known, select(known, candidate, position));
    // A start gives way to the next position if that scores higher, and to the next but one if that scores higher by
    // two.
    const LaneBool stays = (score != 0) & (shuffle_down(score, 1) <= score) & (shuffle_down(score, 2) <= score + 1);
    return {candidate | score << 16, ballot(stays)};
  }

  struct EightBytes {
    LaneU32 first, second;  // little-endian words
  };

  // The eight bytes at any position that may start a match, from the three aligned words that hold them. Such a
  // position has twelve bytes of the item after it, so the words are the item's own.
  EightBytes load_eight(const LaneU32& position) {
    const auto words = src_.template as<u32>().at(position / 4);
    const LaneU32 low = words.load(), middle = words.template at<1>().load(), high = words.template at<2>().load();
    const LaneU32 shift = position * 8;  // modulo 32 in the funnel shift: 8 for each byte past the word's start
    return {funnel_right(low, middle, shift), funnel_right(middle, high, shift)};
  }

  // How many of the eight bytes `here` agree with those at `from` before the first that does not; 0 where there is no
  // candidate, or when the first four do not all agree.
  LaneU32 score_match(const EightBytes& here, const LaneBool& known, const LaneU32& from) {
    const EightBytes there = load_eight(from);
    return select(known & (here.first == there.first), 4 + ctz(here.second ^ there.second) / 8, 0);
  }

  // Measures the match of `position` with `candidate` and writes its sequence. A score below eight already says where
  // the match ends; backwards it goes over bytes that would be literals.
  void take_match(const WarpU32& position, const WarpU32& candidate, const WarpU32& score) {
    const WarpU32 offset = position - candidate;
    WarpVar end(k_, position + score);
    k_.if_(score == kMaxScore, [&] {
      k_.warp_loop([&](auto& forwards) {
        const LaneU32 at = *end + k_.lane();
        const LaneU32 byte_at = min(at, match_end_ - 1);
        const LaneBool differs = (at >= match_end_) | (src_.at(byte_at).load() != src_.at(byte_at - offset).load());
        const WarpU32 differing = ballot(differs);
        end += ctz(differing);  // 32 when there is none
        forwards.break_if(differing != 0);
      });
    });

    const WarpU32 room_before = min(position - *anchor_, candidate);
    WarpVar start(k_, position);
    k_.if_(room_before != 0, [&] {
      const LaneU32 distance = min(k_.lane() + 1, room_before);
      const LaneBool differs =
          (k_.lane() >= room_before) | (src_.at(position - distance).load() != src_.at(candidate - distance).load());
      start -= ctz(ballot(differs));
    });
    write_sequence(*start, offset, min(*end, match_end_));
  }

  static WarpU32 extension_bytes(const WarpU32& length) {
    return select(length < kNibbleMax, 0, (length - kNibbleMax) / 255 + 1);
  }

  // Literals [anchor, start), then the match [start, end). Fails instead where the block would not be shorter than
  // the item.
  void write_sequence(const WarpU32& start, const WarpU32& offset, const WarpU32& end) {
    mark_warp(k_, Mark::emit, *written_);
    const WarpU32 literal_count = start - *anchor_;
    const WarpU32 code = end - start - kMinMatch;
    k_.if_(max(literal_count, code) < kNibbleMax, [&] {
        write_short_sequence(literal_count, offset, code);
      }).else_([&] {
      const WarpU32 needed = extension_bytes(literal_count) + literal_count + extension_bytes(code) + 3;
      k_.if_(*written_ + needed >= size_, [&] { fails_ = 1; }).else_([&] {
        write_literals(literal_count, min(code, kNibbleMax));
        k_.once_per_warp([&] {
          dst_.at(*written_).store(trunc<u8>(offset));
          dst_.at(*written_ + 1).store(trunc<u8>(offset >> 8));
        });
        written_ += 2;
        write_extension(code);
      });
    });
    anchor_ = end;
  }

  // A sequence of at most 17 bytes, as most are: lane i has its byte i, and one store writes it.
  void write_short_sequence(const WarpU32& literal_count, const WarpU32& offset, const WarpU32& code) {
    const LaneU32 i = k_.lane();
    const LaneU32 literal = zext<u32>(src_.at(*anchor_ + min(i, literal_count) - min(i, 1)).load());
    const LaneU32 offset_byte = select(i == literal_count + 1, offset, offset >> 8);
    const LaneU32 byte = select(i == 0, literal_count << 4 | code, select(i <= literal_count, literal, offset_byte));
    const WarpU32 end = *written_ + literal_count + 3;
    k_.if_(end >= size_, [&] { fails_ = 1; }).else_([&] {
      k_.if_(i < literal_count + 3, [&] { dst_.at(*written_ + i).store(trunc<u8>(byte)); });
      written_ = end;
    });
  }

  // The sequence without a match that ends every block.
  void write_last_literals() {
    mark_warp(k_, Mark::emit, *written_);
    const WarpU32 literal_count = size_ - *anchor_;
    const WarpU32 needed = 1 + extension_bytes(literal_count) + literal_count;
    k_.if_(*written_ + needed >= size_, [&] { fails_ = 1; }).else_([&] {
      write_literals(literal_count, k_.constant<u32>(0));
    });
  }

  void write_literals(const WarpU32& count, const WarpU32& match_nibble) {
    const WarpU32 token = min(count, kNibbleMax) << 4 | match_nibble;
    k_.once_per_warp([&] { dst_.at(*written_).store(trunc<u8>(token)); });
    written_ += 1;
    write_extension(count);
    for_each_lane(k_, count, [&](const LaneU32& i) { dst_.at(*written_ + i).store(src_.at(*anchor_ + i).load()); });
    written_ += count;
  }

  // The bytes of a length that its nibble does not hold: 255s, then the rest.
  void write_extension(const WarpU32& length) {
    k_.if_(length >= kNibbleMax, [&] {
      const WarpU32 beyond = length - kNibbleMax;
      const WarpU32 last = beyond / 255;
      for_each_lane(k_, last + 1, [&](const LaneU32& i) {
        dst_.at(*written_ + i).store(trunc<u8>(select(i == last, beyond - last * 255, 255)));
      });
      written_ += last + 1;
    });
  }

  Kernel& k_;
  Input src_;
  WarpU32 size_;
  ItemRoom dst_;
  Table table_;
  WarpU32 start_end_;  // no match starts here or later
  WarpU32 match_end_;  // no match goes beyond
  WarpVar anchor_;     // first byte that no sequence has yet
  WarpVar written_;
  WarpVar fails_;
};

// An item that does not shrink: 16 bytes a lane and turn, then what is left.
void copy_raw(Kernel& k, const ItemSource& src, const ItemRoom& dst, const WarpU32& size) {
  const WarpU32 vector_count = size / kStrideUnitBytes;
  for_each_lane(k, vector_count, [&](const LaneU32& i) {
    dst.as<u32>().at(times<4>(i)).store_vector(src.as<u32>().at(times<4>(i)).load_vector<4>());
  });
  const WarpU32 copied = vector_count * kStrideUnitBytes;
  for_each_lane(k, size - copied, [&](const LaneU32& i) { dst.at(copied + i).store(src.at(copied + i).load()); });
}

// Brings an item into shared memory, 512 bytes a turn; whether all of it is zero.
WarpBool stage(Kernel& k, const ItemSource& src, const WarpU32& size, const Ptr<Shared, u8, 16, Rate::Warp>& page) {
  Var<u32, Rate::Thread> seen(k, 0);
  for_each_lane(k, (size + (kStrideUnitBytes - 1)) / kStrideUnitBytes, [&](const LaneU32& i) {
    const auto vector = src.as<u32>().at(times<4>(i)).load_vector<4>();
    page.as<u32>().at(times<4>(i)).store_vector(vector);
    // What follows the item in its last vector is not its own.
    const LaneBool whole = i < size / kStrideUnitBytes;
    seen |= select(whole, vector[0] | vector[1] | vector[2] | vector[3], 0);
  });
  k.sync_warp();
  const WarpU32 tail = size % kStrideUnitBytes;
  const LaneBool in_tail = k.lane() < tail;
  const LaneU32 tail_byte = zext<u32>(page.at(select(in_tail, size - tail + k.lane(), 0)).load());
  return ballot((*seen | select(in_tail, tail_byte, 0)) != 0) == 0;
}

template <const Lz4CompressVariant& V>
KernelDefinition define_compressor(u32 registers) {
  constexpr u32 kItems = V.shape.items_per_block;
  constexpr u32 kSlots = 1u << V.hash_bits;
  constexpr bool kStaged = V.max_item_bytes <= kMaxPageBytes;
  constexpr u32 kSharedBytes = kItems * (kSlots * sizeof(u16) + (kStaged ? V.max_item_bytes : 0));
  return define(
      KernelSpec{.name = std::string(V.name),
                 .block = V.shape.block_threads,
                 .budget = {.registers = registers, .shared_bytes = kSharedBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / V.max_item_bytes,
                          .buffers = {{"src", N},
                                      {"dst", N},
                                      {"src_sizes", N / (V.max_item_bytes / 4)},
                                      {"dst_sizes", N / (V.max_item_bytes / 4)},
                                      {"flags", N / V.max_item_bytes}},
                          .note = "one warp an item"}},
      [](Kernel& k, Arg<"src", Ptr<ReadOnly, u8, kStrideUnitBytes>> src, Arg<"src_sizes", Ptr<ReadOnly, u32>> src_sizes,
         Arg<"dst", Ptr<Global, u8, kStrideUnitBytes>> dst, Arg<"dst_sizes", Ptr<Global, u32>> dst_sizes,
         Arg<"flags", Ptr<Global, u8>> flags, Arg<"src_stride_16", u32> src_stride_16,
         Arg<"dst_stride_16", u32> dst_stride_16, Arg<"item_count", u32> item_count) {
        const auto tables = k.shared<u16, kItems * kSlots, 16>("tables");
        const WarpU32 item = item_of_warp<V.shape>(k, item_count);
        const auto src_begin = at_item(src, item, src_stride_16);
        const auto dst_begin = at_item(dst, item, dst_stride_16);
        const WarpU32 size = src_sizes.within(item_count).at(item).load();
        const ItemSource item_src = src_begin.template within<kStrideUnitBytes>(size);
        const ItemRoom item_dst = dst_begin.within(size);
        mark_warp(k, Mark::item, size);

        WarpVar flag(k, static_cast<u32>(PageFlag::refused)), length(k, 0);
        k.if_((size <= V.max_item_bytes) & fits_stride(size, src_stride_16) & fits_stride(size, dst_stride_16), [&] {
          const auto compress = [&](const WarpBool& zero, const auto& input) {
            k.if_(zero, [&] { flag = static_cast<u32>(PageFlag::zero); }).else_([&] {
              Compressor<V, std::remove_cvref_t<decltype(input)>> compressor(
                  k, input, size, item_dst, tables.data().at(times<kSlots>(k.warp())).within(u32{kSlots}));
              compressor.compress();
              flag = static_cast<u32>(PageFlag::compressed);
              length = compressor.size_bytes();
              k.if_(compressor.fails(), [&] {
                k.sync_warp();  // what other lanes wrote of the block is there before it is overwritten
                copy_raw(k, item_src, item_dst, size);
                flag = static_cast<u32>(PageFlag::incompressible);
                length = size;
              });
            });
          };
          if constexpr (kStaged) {
            const auto pages = k.shared<u8, kItems * V.max_item_bytes, 16>("pages");
            const Ptr<Shared, u8, 16, Rate::Warp> page =
                pages.data().at(times<V.max_item_bytes>(k.warp())).within(V.max_item_bytes);
            compress(stage(k, item_src, size, page), page);
          } else {
            compress(is_all_zero(k, item_src, size), item_src);
          }
        });
        mark_warp(k, Mark::status, *flag);
        k.once_per_warp([&] {
          flags.within(item_count).at(item).store(trunc<u8>(*flag));
          dst_sizes.within(item_count).at(item).store(*length);
        });
      });
}

}  // namespace

KernelDefinition lz4_compress_chunk() { return define_compressor<kChunkVariant>(64); }

}  // namespace ptxkit::kernels
