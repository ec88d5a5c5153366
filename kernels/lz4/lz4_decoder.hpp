// The decoder of LZ4 blocks, a warp for each block: 32 sequences at a time, then 32 bytes at a time.
//
// A batch has up to 32 consecutive sequences. The warp stages a part of the block in shared memory. It then
//   1. finds the tokens: each lane follows the sequences through a segment of the staged part, from a speculative start
//      that soon synchronises with the true sequences, and again from the previous lane's end if it did not;
//   2. gives each lane a sequence, checks all of them at once, and computes their output positions as a prefix sum of
//      their lengths;
//   3. writes the output, one byte for each lane. The sequence that owns a byte is found by counting the sequences that
//      start at or before it, and determines the source of the byte. A source within the same 32 bytes is replaced by
//      its own source until none is left.
// Sequences that do not fit a batch (a length with more than one extension byte, the last sequence of a block, and
// every malformed sequence) are decoded one at a time by the whole warp, field by field with a check for each. Only
// this path sets a status. lz4_decompress_reference.cpp makes the same checks in the same order.
#pragma once

#include <optional>

#include "kernels/lz4/lz4_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

class BlockDecoder {
 public:
  // The part of shared memory that belongs to one warp.
  struct Workspace {
    dsl::Ptr<dsl::shared, uint8_t, 16, dsl::Rate::warp> staged;   // kStagedBytes and a word
    dsl::Ptr<dsl::shared, uint16_t, 16, dsl::Rate::warp> tokens;  // kMaxTokens positions in `staged`
    // kWarpLanes entries of four words, see write_output; nothing if the decoder does not write.
    std::optional<dsl::Ptr<dsl::shared, uint32_t, 16, dsl::Rate::warp>> sources = {};
  };

  // The workspace of this warp, from arrays of the CTA.
  template <uint32_t Warps>
  static Workspace workspace(dsl::Kernel& k) {
    const Workspace without = workspace_without_sources<Warps>(k);
    const auto sources = k.shared<uint32_t, Warps * dsl::kWarpLanes * 4, 16>("sources");
    return {without.staged, without.tokens, sources.data().at(times<4 * dsl::kWarpLanes>(k.warp()))};
  }
  // Of a decoder that does not write.
  template <uint32_t Warps>
  static Workspace workspace_without_sources(dsl::Kernel& k) {
    const auto staged = k.shared<uint8_t, Warps * kStagedStride, 16>("staged");
    const auto tokens = k.shared<uint16_t, Warps * kTokensStride, 16>("tokens");
    return {staged.data().at(times<16>(k.warp() * (kStagedStride / 16))),
            tokens.data().at(times<16>(k.warp() * (kTokensStride / 16)))};
  }
  static constexpr uint32_t shared_bytes(uint32_t warps, bool writes = true) {
    const uint32_t sources = writes ? dsl::kWarpLanes * 16 : 0;
    return warps * (kStagedStride + kTokensStride * 2 + sources);
  }

  using Source = dsl::Ptr<dsl::read_only, uint8_t, 1, dsl::Rate::warp>;
  using Room = dsl::Ptr<dsl::global, uint8_t, 1, dsl::Rate::warp>;

  struct Options {
    bool is_large = false;  // blocks above kMaxBlockBytes, in which a length could overflow: lengths stop at 2^31
    bool writes = true;     // otherwise `dst` is not used, and only the size of the result is found
  };
  BlockDecoder(dsl::Kernel& k, const Source& src, const WarpU32& src_size, const Room& dst, const WarpU32& capacity,
               const Workspace& workspace, const Options& options)
      : k_(k),
        src_(src),
        src_size_(src_size),
        dst_(dst),
        capacity_(capacity),
        shared_(workspace),
        options_(options),
        ip_(k, 0),
        op_(k, 0),
        status_(k, 0),
        staged_from_(k, 0),
        staged_end_(k, 0) {}

  // `dst` holds `count` bytes of output already, which matches may repeat.
  void begin_at(const WarpU32& count) { op_ = count; }

  void decode() {
    k_.warp_loop([&](auto& blocks) {  // a batch or one sequence in each iteration
      const auto fail_if = [&](const WarpBool& condition, Lz4Status status) {
        k_.if_(condition, [&] { status_ = k_.constant(static_cast<uint32_t>(status)); });
        blocks.break_if(condition);
      };
      mark_warp(k_, Mark::parse, *ip_);
      blocks.continue_if(!decode_batches());
      fail_if(*ip_ >= src_size_, Lz4Status::input_overrun);
      const WarpU32 token = read_byte();
      const WarpU32 literal_count = read_length(token >> 4);
      fail_if(*ip_ > src_size_, Lz4Status::input_overrun);
      fail_if(literal_count > src_size_ - *ip_, Lz4Status::input_overrun);
      fail_if(literal_count > capacity_ - *op_, Lz4Status::output_overrun);
      copy_literals(literal_count);
      blocks.break_if(*ip_ == src_size_);  // the last sequence has no match

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
  static constexpr uint32_t kStagedBytes = 2176;  // bytes of the block in shared memory
  static constexpr uint32_t kUnit = 16;           // bytes that a lane stages at a time
  // The largest size of a sequence with at most one extension byte for each length: token, extension, literals, offset,
  // extension.
  static constexpr uint32_t kLongestBatched = 1 + 1 + (kNibbleMax + 254) + 2 + 1;
  static constexpr uint32_t kSegment = 60;    // bytes of the block in which a lane looks for tokens
  static constexpr uint32_t kSideBySide = 4;  // iterations in which all lanes with a wrong start search again
  static constexpr uint32_t kMaxTokens =
      dsl::kWarpLanes * kSegment / 3 + 1;         // a sequence with a match has at least three bytes
  static constexpr uint32_t kLiteral = 1u << 31;  // distinguishes a position in `staged` from a position in the output
  static constexpr uint32_t kLongestLength = 1u << 31;  // longer than every block and every room

  static constexpr uint32_t kStagedStride = kStagedBytes + kUnit, kTokensStride = 648;
  static_assert(kTokensStride >= kMaxTokens);

  // Decodes batches of sequences from ip on. Returns true if the sequence at ip is then not for a batch, or malformed.
  WarpBool decode_batches() {
    // A sequence that was decoded alone may have ended past the staged part.
    const WarpBool running_out = (*ip_ + kLongestBatched > *staged_end_) & (*staged_end_ < src_size_);
    k_.if_(running_out | (*staged_end_ == 0), [&] { stage(); });
    WarpVar listed(k_, 0), decoded(k_, 0);
    // Among consecutive sequences that are too long for a batch, tokens are not searched.
    k_.if_(any(sequence_at(LaneU32(*ip_ - *staged_from_)).batched), [&] {
      listed = find_tokens();
      k_.warp_loop([&](auto& batches) {
        batches.break_if(*decoded >= *listed);
        const WarpU32 count = min(*listed - *decoded, dsl::kWarpLanes);
        const WarpU32 good = decode_sequences(*decoded, count);
        decoded += good;
        batches.break_if(good < count);
      });
    });
    // A sequence that is only partly staged may fit a batch once more is staged.
    return ((*decoded < *listed) | (*listed == 0)) &
           ((*staged_end_ - *ip_ >= kLongestBatched) | (*staged_end_ == src_size_));
  }

  // Stages the block from ip on, in aligned units. The first and the last unit may lie partly outside the block: half
  // of the lanes each copy the bytes of one such unit that belong to the block.
  void stage() {
    k_.sync_warp();  // lanes may just have read the staged part, without having decoded a sequence of it
    const auto units = src_.at(*ip_).template align_down<kUnit>();
    staged_from_ = *ip_ - trunc<uint32_t>(src_.at(*ip_).address() - units.address());  // may be a little below 0
    staged_end_ = min(*staged_from_ + kStagedBytes, src_size_);
    const WarpU32 unit_count = (*staged_end_ - *staged_from_ + (kUnit - 1)) / kUnit;
    const auto is_whole = [&](const LaneU32& position) {
      return (position < src_size_) & (src_size_ - position >= kUnit);
    };
    k_.range(0, unit_count, dsl::kWarpLanes, [&](const auto& first) {
      const LaneU32 unit = first + k_.lane();
      const auto at = times<kUnit>(unit);
      k_.if_((unit < unit_count) & is_whole(*staged_from_ + at), [&] {
        shared_.staged.at(at).template as<uint32_t>().store_vector(
            units.at(at).template as<uint32_t>().template load_vector<4>());
      });
    });
    static_assert(2 * kUnit == dsl::kWarpLanes);
    const LaneBool is_first = k_.lane() < kUnit;
    const LaneU32 edge = select(is_first, 0, (unit_count - 1) * kUnit), at = edge + k_.lane() % kUnit;
    const LaneU32 position = *staged_from_ + at;
    k_.if_((is_first | (edge != 0)) & !is_whole(*staged_from_ + edge) & (position < src_size_),
           [&] { shared_.staged.at(at).store(src_.at(position).load()); });
    k_.if_(k_.lane() < 4,
           [&] { shared_.staged.at(*staged_end_ - *staged_from_ + k_.lane()).store(k_.constant<uint8_t>(0)); });
    k_.sync_warp();
  }

  // A sequence as its token and at most one extension byte for each length describe it. Positions are those in
  // `staged`.
  struct Sequence {
    LaneU32 literal_at, literal_count;
    LaneU32 offset_at, match_length;
    LaneU32 next;      // the position of the next token
    LaneBool batched;  // no length has further extension bytes, and the whole sequence is staged
  };

  Sequence sequence_at(const LaneU32& place) {
    const WarpU32 end = *staged_end_ - *staged_from_;
    const auto token_at = shared_.staged.at(place);
    const LaneU32 token = zext<uint32_t>(token_at.load()), second = zext<uint32_t>(token_at.template at<1>().load());
    const LaneU32 literal_nibble = token >> 4, match_nibble = token & kNibbleMax;
    const LaneBool literals_go_on = literal_nibble == kNibbleMax, match_goes_on = match_nibble == kNibbleMax;
    const LaneU32 literal_count = select(literals_go_on, kNibbleMax + second, literal_nibble);
    const LaneU32 literal_at = place + select(literals_go_on, k_.constant<uint32_t>(2), k_.constant<uint32_t>(1));
    const LaneU32 offset_at = literal_at + literal_count;
    const LaneU32 extension = zext<uint32_t>(shared_.staged.at(min(offset_at + 2, end)).load());
    const LaneU32 next = offset_at + 2 + zext<uint32_t>(match_goes_on);
    return {literal_at, literal_count,
            offset_at,  match_nibble + kMinMatch + select(match_goes_on, extension, 0),
            next,       (next <= end) & !(literals_go_on & (second == 255)) & !(match_goes_on & (extension == 255))};
  }

  // Lists the positions of the tokens from ip on, for about 2 KiB, and returns their number. Entries after a sequence
  // that is not for a batch are no tokens; decode_sequences stops before them.
  //
  // Each lane follows the sequences through a segment of the block: lane 0 from ip, the others from a speculative
  // start. That start is often wrong but soon synchronises with the true sequences. A lane is astray if it did not
  // start where the previous lane ended; it then searches again from there. For the first kSideBySide iterations all
  // lanes that are astray do so. After that only the first of them continues, and past the segments that its search
  // covers: among long runs of literals speculation fails, and the other lanes would follow false sequences for longer
  // than it needs.
  WarpU32 find_tokens() {
    const LaneU32 lane = k_.lane();
    const WarpU32 first = *ip_ - *staged_from_, end = *staged_end_ - *staged_from_;
    const WarpU32 segment_bytes = min((end - first) / dsl::kWarpLanes + 1, kSegment);
    const LaneU32 segment = first + lane * segment_bytes, segment_end = min(segment + segment_bytes, end);
    dsl::Var<uint32_t, dsl::Rate::thread> start(k_, segment), arrival(k_, 0), count(k_, 0);
    k_.if_((lane != 0) & (segment + 16 <= end), [&] { start = guess(segment); });
    dsl::Var<bool, dsl::Rate::thread> astray(k_, k_.constant(true));
    WarpVar lanes_astray(k_, 0), turns(k_, 0);
    const auto search = [&] {
      count = 0;
      arrival = start;
      follow(arrival, segment_end, [&](const LaneU32&) { count += 1; });
    };
    // A lane starts where the previous lane ended. `lost`: the lane has not searched from its start yet.
    const auto compare = [&](const LaneBool& lost) {
      const LaneU32 arrived = shuffle_up(*arrival, 1);
      astray = (lane != 0) & ((arrived != *start) | lost);
      start = select(*astray, arrived, *start);
      lanes_astray = ballot(*astray);
    };
    k_.warp_loop([&](auto& repairs) {
      k_.if_(*astray, search);
      compare(LaneBool(k_.constant(false)));
      turns += 1;
      repairs.break_if((*lanes_astray == 0) | (*turns == kSideBySide));
    });
    k_.warp_loop([&](auto& repairs) {
      repairs.break_if(*lanes_astray == 0);
      const WarpU32 first_astray = ctz(*lanes_astray);
      k_.if_(lane == first_astray, search);
      const WarpU32 reached = shuffle(*arrival, first_astray);
      const LaneBool passed_over = (lane > first_astray) & (segment_end <= reached);
      k_.if_(passed_over, [&] {
        count = 0;
        start = reached;
        arrival = reached;
      });
      compare(*astray & (lane > first_astray) & !passed_over);
    });
    const LaneU32 sum = inclusive_sum(*count);
    dsl::Var<uint32_t, dsl::Rate::thread> next(k_, sum - *count);
    follow(start, segment_end, [&](const LaneU32& place) {
      shared_.tokens.at(*next).store(trunc<uint16_t>(place));
      next += 1;
    });
    k_.sync_warp();
    return shuffle(sum, dsl::kWarpLanes - 1);
  }

  // A likely token position among the 16 bytes from `segment` on: after the first byte below 16 in an aligned word,
  // since the high byte of an offset is so small more often than other bytes are.
  LaneU32 guess(const LaneU32& segment) {
    const auto at = align_down<4>(segment + 3);
    const auto words = shared_.staged.at(at).template as<uint32_t>();
    const auto small = [&](const LaneU32& word) {  // sets bit 4 of each byte that is below 16
      return (0x10101010u - (word >> 4 & 0x0F0F0F0Fu)) & 0x10101010u;
    };
    const LaneU32 first = small(words.load()), second = small(words.template at<1>().load()),
                  third = small(words.template at<2>().load());
    const LaneU32 later = select(third != 0, at + 9 + ctz(third) / 8, segment);
    return select(first != 0, at + 1 + ctz(first) / 8, select(second != 0, at + 5 + ctz(second) / 8, later));
  }

  // Calls visit(position) for the token at `place` and for all following ones before `segment_end`, as if each sequence
  // fitted a batch. `place` becomes the position after the last sequence.
  template <class Visit>
  void follow(dsl::Var<uint32_t, dsl::Rate::thread>& place, const LaneU32& segment_end, const Visit& visit) {
    k_.thread_loop([&](auto& steps) {
      steps.break_if(*place >= segment_end);
      visit(*place);
      const auto token_at = shared_.staged.at(*place);
      const LaneU32 token = zext<uint32_t>(token_at.load()), second = zext<uint32_t>(token_at.template at<1>().load());
      place += 1 + (token >> 4) + 2;
      k_.if_(token >= kNibbleMax << 4, [&] { place += 1 + second; });
      k_.if_((token & kNibbleMax) == kNibbleMax, [&] { place += 1; });
    });
  }

  // Decodes `count` listed sequences, or those before the first that is malformed or not for a batch. Returns their
  // number.
  WarpU32 decode_sequences(const WarpU32& first, const WarpU32& count) {
    const LaneU32 lane = k_.lane();
    const Sequence sequence = sequence_at(zext<uint32_t>(shared_.tokens.at(first + min(lane, count - 1)).load()));
    const auto offset_bytes = shared_.staged.at(min(sequence.offset_at, *staged_end_ - *staged_from_));
    const LaneU32 offset = zext<uint32_t>(offset_bytes.load()) | zext<uint32_t>(offset_bytes.template at<1>().load())
                                                                     << 8;
    const LaneU32 length = select(lane < count, sequence.literal_count + sequence.match_length, 0);
    const LaneU32 end = inclusive_sum(length);
    const LaneU32 start = end - length;
    const LaneU32 match_start = start + sequence.literal_count;
    const LaneBool malformed = (offset == 0) | (offset > *op_ + match_start) | (end > capacity_ - *op_);
    const WarpU32 good = min(ctz(ballot(malformed | !sequence.batched)), count);
    k_.if_(good != 0, [&] {
      mark_warp(k_, Mark::emit, *op_);
      if (options_.writes) {
        // A source is a position in the output, or kLiteral plus a position in `staged`.
        const LaneU32 literal_shift = sequence.literal_at - start + kLiteral;
        shared_.sources->at(times<4>(lane))
            .store_vector(std::array{match_start, literal_shift, *op_ - offset, LaneU32(offset)});
        // The output of all blocks that are being decoded exceeds L2. Prefetching all matches of the batch overlaps
        // their latencies, which would otherwise be paid window by window.
        k_.if_(lane < good, [&] { dst_.at(*op_ + match_start - offset).prefetch_l2(); });
        k_.sync_warp();
      }
      const WarpU32 total = shuffle(end, good - 1);
      if (options_.writes) {
        write_output(select(lane < good, start, k_.constant<uint32_t>(~0u)), total,
                     any((lane < good) & (offset < dsl::kWarpLanes)));
      }
      ip_ = *staged_from_ + shuffle(sequence.next, good - 1);
      op_ += total;
    });
    return good;
  }

  // Writes the next `total` bytes of output. `start` is where the lane's sequence starts among them, or a larger
  // number. Entry i of `sources` has the position where the match of sequence i starts, and what to add to a byte's
  // position to get its source: for a literal, then for a byte of the match. `near`: some offset is so short that a
  // source may be in its own window.
  //
  // A window is stored after the sources of the next one are known, so that its loads have that long to complete.
  void write_output(const LaneU32& start, const WarpU32& total, const WarpBool& near) {
    const LaneU32 lane = k_.lane();
    const LaneU32 lanes_to_own = k_.lanes_below() << 1 | 1;
    const auto output = dst_.at(*op_);
    WarpVar before(k_, ~0u);  // the sequence that owns the last byte of the previous window
    const auto source = [&](const auto& window) {
      const WarpU32 starts = reduce_or(shift_left(1, start - window));
      const LaneU32 owner = *before + popc(starts & lanes_to_own);
      before += popc(starts);
      const auto [match_start, literal_shift, match_shift, unused] =
          shared_.sources->at(times<4>(owner)).template load_vector<4>();
      const LaneU32 place = min(window + lane, total - 1);
      dsl::Var<uint32_t, dsl::Rate::thread> from(k_, place + select(place < match_start, literal_shift, match_shift));
      k_.if_(near, [&] { leave_window(*op_ + window, from); });
      return *from;
    };
    dsl::Var<uint8_t, dsl::Rate::thread> byte(k_, 0);
    const auto load = [&](const LaneU32& from) {
      k_.if_(from >= kLiteral, [&] { byte = shared_.staged.at(from - kLiteral).load(); }).else_([&] {
        byte = dst_.at(from).load();
      });
    };
    load(source(k_.constant<uint32_t>(0)));
    k_.range(k_.constant<uint32_t>(dsl::kWarpLanes), total, dsl::kWarpLanes, [&](const auto& window) {
      const LaneU32 from = source(window);
      output.at(window + lane).template at<-int64_t{dsl::kWarpLanes}>().store(*byte);
      k_.sync_warp();
      load(from);
    });
    const LaneU32 last = align_down<dsl::kWarpLanes>(total - 1) + lane;
    k_.if_(last < total, [&] { output.at(last).store(*byte); });
    k_.sync_warp();
  }

  // Replaces sources in the window of output at `window` by their own sources until none is left.
  void leave_window(const WarpU32& window, dsl::Var<uint32_t, dsl::Rate::thread>& from) {
    k_.warp_loop([&](auto& steps) {
      const LaneU32 lane_of_source = *from - window;
      const LaneBool within = lane_of_source < dsl::kWarpLanes;
      steps.break_if(!any(within));
      const LaneU32 theirs = shuffle(*from, lane_of_source & (dsl::kWarpLanes - 1));
      from = select(within, theirs, *from);
    });
  }

  WarpU32 read_byte() {
    const WarpU32 byte = zext<uint32_t>(src_.at(*ip_).load());
    ip_ += 1;
    return byte;
  }

  // Reads the rest of a length. A nibble of 15 is followed by bytes of 255 and a smaller one; the lanes read 32 of them
  // in each iteration. If the input ends first, ip is left beyond it.
  WarpU32 read_length(const WarpU32& nibble) {
    WarpVar length(k_, nibble);
    k_.if_(nibble == kNibbleMax, [&] {
      k_.warp_loop([&](auto& extension) {
        const LaneU32 at = *ip_ + k_.lane();
        const LaneBool inside = at < src_size_;
        const LaneU32 byte = select(inside, zext<uint32_t>(src_.at(select(inside, at, 0)).load()), 255);
        const WarpU32 last_bytes = ballot(byte != 255);
        const WarpU32 full_count = ctz(last_bytes);  // 32 if the length continues
        length += full_count * 255;
        ip_ += full_count;
        k_.if_(last_bytes != 0, [&] {
          length += shuffle(byte, full_count);
          ip_ += 1;
        });
        if (options_.is_large) length = min(*length, kLongestLength);
        k_.if_((last_bytes == 0) & (*ip_ == src_size_), [&] { ip_ += 1; });
        extension.break_if((last_bytes != 0) | (*ip_ > src_size_));
      });
    });
    return *length;
  }

  void copy_literals(const WarpU32& count) {
    mark_warp(k_, Mark::emit, *op_);
    if (options_.writes)
      for_each_lane(k_, count, [&](const LaneU32& i) { dst_.at(*op_ + i).store(src_.at(*ip_ + i).load()); });
    ip_ += count;
    op_ += count;
    k_.sync_warp();
  }

  // A match that overlaps itself repeats its first `offset` bytes. All lanes read from those, so none waits for
  // another.
  void copy_match(const WarpU32& offset, const WarpU32& length) {
    mark_warp(k_, Mark::emit, *op_);
    if (options_.writes) {
      const auto from = dst_.at(*op_ - offset);
      const auto to = dst_.at(*op_);
      k_.if_(offset >= length, [&] {
          for_each_lane(k_, length, [&](const LaneU32& i) { to.at(i).store(from.at(i).load()); });
        }).else_([&] {
        for_each_lane(k_, length, [&](const LaneU32& i) { to.at(i).store(from.at(i % offset).load()); });
      });
    }
    op_ += length;
    k_.sync_warp();
  }

  dsl::Kernel& k_;
  Source src_;
  WarpU32 src_size_;
  Room dst_;
  WarpU32 capacity_;
  Workspace shared_;
  Options options_;
  WarpVar ip_;                        // next byte of the input block
  WarpVar op_;                        // next byte of the output
  WarpVar status_;                    // Lz4Status::ok until a check fails
  WarpVar staged_from_, staged_end_;  // the range of the block that `staged` holds
};

}  // namespace ptxkit::kernels
