// LZ4 decompression, one warp a block: all lanes follow the block's sequences together and share the copying.
//
// A sequence is a token, a run of literals and a match. Its numbers are warp-uniform: they are read from read-only
// memory at a uniform address. Each is checked against what is left of the input or of the room, in the order in which
// the fields stand, before any byte moves; lz4_decompress_reference.cpp makes the same checks and gives the same
// status.
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

class Decoder {
 public:
  using Source = Ptr<ReadOnly, u8, 1, Rate::Warp>;
  using Room = Ptr<Global, u8, 1, Rate::Warp>;

  Decoder(Kernel& k, const Source& src, const WarpU32& src_size, const Room& dst, const WarpU32& capacity)
      : k_(k), src_(src), src_size_(src_size), dst_(dst), capacity_(capacity), ip_(k, 0), op_(k, 0), status_(k, 0) {}

  void decode() {
    k_.warp_loop([&](auto& sequences) {  // the warp decodes one sequence a turn
      const auto fail_if = [&](const WarpBool& condition, Lz4Status status) {
        k_.if_(condition, [&] { status_ = k_.constant(static_cast<u32>(status)); });
        sequences.break_if(condition);
      };
      mark_warp(k_, Mark::parse, *ip_);
      fail_if(*ip_ >= src_size_, Lz4Status::input_overrun);
      sequences.continue_if(decode_short_sequence());
      const WarpU32 token = read_byte();
      const WarpU32 literal_count = read_length(token >> 4);
      fail_if(*ip_ > src_size_, Lz4Status::input_overrun);
      fail_if(literal_count > src_size_ - *ip_, Lz4Status::input_overrun);
      fail_if(literal_count > capacity_ - *op_, Lz4Status::output_overrun);
      copy_literals(literal_count);
      sequences.break_if(*ip_ == src_size_);  // the last sequence has no match

      fail_if(src_size_ - *ip_ < 2, Lz4Status::input_overrun);
      const WarpU32 offset_low = read_byte();
      const WarpU32 offset = offset_low | read_byte() << 8;
      fail_if(offset == 0, Lz4Status::offset_zero);
      fail_if(offset > *op_, Lz4Status::offset_out_of_range);
      const WarpU32 match_length = read_length(token & kNibbleMax) + kMinMatch;
      fail_if(*ip_ > src_size_, Lz4Status::input_overrun);
      fail_if(match_length > capacity_ - *op_, Lz4Status::output_overrun);
      copy_match(offset, match_length);
    });
  }

  WarpU32 status() const { return *status_; }
  WarpU32 size_bytes() const { return *op_; }

 private:
  // Decodes the sequence at ip if it is a short one with a match, and well formed. False: nothing has happened.
  WarpBool decode_short_sequence() {
    const LaneU32 lane = k_.lane();
    const LaneU32 byte = zext<u32>(src_.at(min(*ip_ + lane, src_size_ - 1)).load());
    const WarpU32 token = shuffle(byte, 0);
    const WarpU32 literal_count = token >> 4;
    const WarpU32 match_length = (token & kNibbleMax) + kMinMatch;
    const WarpU32 offset = shuffle(byte, literal_count + 1) | shuffle(byte, literal_count + 2) << 8;
    const WarpU32 match_start = *op_ + literal_count;
    const WarpBool is_short = (literal_count < kNibbleMax) & (match_length < kNibbleMax + kMinMatch) &
                              (literal_count + 3 <= src_size_ - *ip_) & (offset != 0) & (offset <= match_start) &
                              (literal_count + match_length <= capacity_ - *op_);
    k_.if_(is_short, [&] {
      mark_warp(k_, Mark::emit, *op_);
      k_.if_((lane != 0) & (lane <= literal_count), [&] { dst_.at(*op_ + lane - 1).store(trunc<u8>(byte)); });
      k_.sync_warp();
      Var<u32, Rate::Thread> from(k_, lane);
      k_.if_(offset < match_length, [&] { from = lane % offset; });  // overlapping: see copy_match
      k_.if_(lane < match_length,
             [&] { dst_.at(match_start + lane).store(dst_.at(match_start - offset + *from).load()); });
      k_.sync_warp();
      ip_ += literal_count + 3;
      op_ = match_start + match_length;
    });
    return is_short;
  }

  WarpU32 read_byte() {
    const WarpU32 byte = zext<u32>(src_.at(*ip_).load());
    ip_ += 1;
    return byte;
  }

  // A length whose nibble is 15 goes on in bytes of 255 and ends with one that is less: the lanes look at 32 of them a
  // turn. Where the input ends first, ip is left beyond it.
  WarpU32 read_length(const WarpU32& nibble) {
    WarpVar length(k_, nibble);
    k_.if_(nibble == kNibbleMax, [&] {
      k_.warp_loop([&](auto& extension) {
        const LaneU32 at = *ip_ + k_.lane();
        const LaneBool inside = at < src_size_;
        const LaneU32 byte = select(inside, zext<u32>(src_.at(select(inside, at, 0)).load()), 255);
        const WarpU32 last_bytes = ballot(byte != 255);
        const WarpU32 full_count = ctz(last_bytes);  // 32 when the length goes on
        length += full_count * 255;
        ip_ += full_count;
        k_.if_(last_bytes != 0, [&] {
          length += shuffle(byte, full_count);
          ip_ += 1;
        });
        k_.if_((last_bytes == 0) & (*ip_ == src_size_), [&] { ip_ += 1; });
        extension.break_if((last_bytes != 0) | (*ip_ > src_size_));
      });
    });
    return *length;
  }

  void copy_literals(const WarpU32& count) {
    mark_warp(k_, Mark::emit, *op_);
    for_each_lane(k_, count, [&](const LaneU32& i) { dst_.at(*op_ + i).store(src_.at(*ip_ + i).load()); });
    ip_ += count;
    op_ += count;
    k_.sync_warp();
  }

  // A match that overlaps itself repeats its first `offset` bytes: read from those, no lane waits for another.
  void copy_match(const WarpU32& offset, const WarpU32& length) {
    mark_warp(k_, Mark::emit, *op_);
    const auto from = dst_.at(*op_ - offset);
    const auto to = dst_.at(*op_);
    k_.if_(offset >= length, [&] {
        for_each_lane(k_, length, [&](const LaneU32& i) { to.at(i).store(from.at(i).load()); });
      }).else_([&] {
      for_each_lane(k_, length, [&](const LaneU32& i) { to.at(i).store(from.at(i % offset).load()); });
    });
    op_ += length;
    k_.sync_warp();
  }

  Kernel& k_;
  Source src_;
  WarpU32 src_size_;
  Room dst_;
  WarpU32 capacity_;
  WarpVar ip_;      // next byte of the block
  WarpVar op_;      // next byte of the room
  WarpVar status_;  // Lz4Status::ok until something is wrong
};

}  // namespace

KernelDefinition lz4_decompress() {
  return define(
      KernelSpec{.name = std::string(kLz4Decompress),
                 .block = kLz4DecompressShape.block_threads,
                 .budget = {.registers = 48},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"src", N},
                                      {"dst", N},
                                      {"src_offsets", N / 512},
                                      {"src_sizes", N / 1024},
                                      {"dst_offsets", N / 512},
                                      {"dst_capacities", N / 1024},
                                      {"dst_sizes", N / 1024},
                                      {"statuses", N / 1024}},
                          .note = "one warp a block; N is the decoded size, in blocks of 4096 bytes or more"}},
      [](Kernel& k, Arg<"src", Ptr<ReadOnly, u8>> src, Arg<"src_offsets", Ptr<ReadOnly, u64>> src_offsets,
         Arg<"src_sizes", Ptr<ReadOnly, u32>> src_sizes, Arg<"dst", Ptr<Global, u8>> dst,
         Arg<"dst_offsets", Ptr<ReadOnly, u64>> dst_offsets, Arg<"dst_capacities", Ptr<ReadOnly, u32>> dst_capacities,
         Arg<"dst_sizes", Ptr<Global, u32>> dst_sizes, Arg<"statuses", Ptr<Global, u32>> statuses,
         Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kLz4DecompressShape>(k, item_count);
        const WarpU32 src_size = src_sizes.within(item_count).at(item).load();
        const WarpU32 capacity = dst_capacities.within(item_count).at(item).load();
        mark_warp(k, Mark::item, src_size);
        WarpVar status(k, static_cast<u32>(Lz4Status::item_too_large)), size_bytes(k, 0);
        k.if_((src_size <= kMaxBlockBytes) & (capacity <= kMaxBlockBytes), [&] {
          const auto room = dst.at(dst_offsets.within(item_count).at(item).load()).within(capacity);
          const auto block = src.at(src_offsets.within(item_count).at(item).load()).within(src_size);
          Decoder decoder(k, block, src_size, room, capacity);
          decoder.decode();
          status = decoder.status();
          size_bytes = select(decoder.status() == static_cast<u32>(Lz4Status::ok), decoder.size_bytes(), 0);
        });
        mark_warp(k, Mark::status, *status);
        k.once_per_warp([&] {
          statuses.within(item_count).at(item).store(*status);
          dst_sizes.within(item_count).at(item).store(*size_bytes);
        });
      });
}

}  // namespace ptxkit::kernels
