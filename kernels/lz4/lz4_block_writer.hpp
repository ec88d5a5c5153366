// Writes an LZ4 block from a list of matches, 32 sequences at a time.
//
// Each lane has one sequence. It extends its match backwards over bytes that would be literals. A prefix sum of sizes
// gives the sequence's position in the block. Each lane stores its token, its offset and the extension bytes of its
// lengths. Literals are stored a byte for each lane, 32 in each iteration: the sequence that owns a literal is found by
// counting the sequences whose literals start at or before it.
#pragma once

#include "kernels/lz4/lz4_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

// The number of bytes that code a length after its token: 0 below kNibbleMax.
template <class Length>
auto extension_size(const Length& length) {
  return (length + (255 - kNibbleMax)) / 255;
}

// A list of matches in shared memory, two words each: the start in the low half of the first word, the end in the high
// half, and the candidate's position in the second. Matches are in order and do not overlap.
using MatchList = dsl::Ptr<dsl::shared, dsl::u32, 8, dsl::Rate::warp>;

// Where a block is written: bytes at any address.
using BlockRoom = dsl::Ptr<dsl::global, dsl::u8, 1, dsl::Rate::warp>;

// Reads a list of matches as sequences. `Input` is a pointer to the item's bytes, 16-byte aligned.
template <class Input>
class SequenceReader {
 public:
  SequenceReader(dsl::Kernel& k, const Input& src) : k_(k), src_(src), anchor_(k, 0) {}

  WarpU32 anchor() const { return *anchor_; }  // the first uncoded byte

 protected:
  // A match and the literals before it. `from` is the candidate's position.
  struct Sequence {
    LaneBool active;
    LaneU32 end_before;  // the end of the previous match
    LaneU32 start, end, from;

    LaneU32 literal_count() const { return start - end_before; }
    LaneU32 code() const { return end - start - kMinMatch; }
    LaneU32 overhead() const { return extension_size(literal_count()) + extension_size(code()) + 3; }
  };

  Sequence sequence_at(const MatchList& list, const WarpU32& count) {
    using namespace dsl;
    const LaneU32 lane = k_.lane();
    const auto [span, from] = list.at(times<2>(min(lane, count - 1))).template load_vector<2>();
    const LaneU32 end = span >> 16;
    return {lane < count, select(lane == 0, *anchor_, shuffle_up(end, 1)), span & 0xFFFF, end, from};
  }

  Sequence stretched(const Sequence& at) {
    using namespace dsl;
    const LaneU32 agreeing = clz(word_before(at.start) ^ word_before(at.from)) / 8;
    const LaneU32 back = min(agreeing, min(at.start - at.end_before, at.from));
    return {at.active, at.end_before, at.start - back, at.end, at.from - back};
  }

  // Extends `count` matches of `list`, 1 to 32, backwards.
  Sequence stretch_list(const MatchList& list, const WarpU32& count) {
    using namespace dsl;
    const Sequence sequence = stretched(sequence_at(list, count));
    k_.sync_warp();  // every lane has read the list
    k_.if_(sequence.active, [&] {
      list.at(times<2>(k_.lane()))
          .store_vector(std::array{LaneU32(sequence.start | sequence.end << 16), LaneU32(sequence.from)});
    });
    return sequence;
  }

  dsl::Kernel& k_;
  Input src_;
  WarpVar anchor_;

 private:
  // The four bytes before `position`, the last one in the high byte. At positions below 4 some bytes are not valid.
  LaneU32 word_before(const LaneU32& position) {
    using namespace dsl;
    const auto words = src_.template as<u32>();
    const LaneU32 word = position / 4;
    return funnel_right(words.at(max(word, 1) - 1).load(), words.at(word).load(), position * 8);
  }
};

// Calls body(to, from, i) for `total` bytes of runs, one for each lane and turn: byte i of all runs goes from `from` +
// i to `to` + i. `first` is the index of the lane's first byte among those of all runs, ~0 if it has none. Each entry
// of `list`, in order and without gaps, has `to` and `from` of a run.
template <class Body>
void for_run_bytes(dsl::Kernel& k, const MatchList& list, const LaneU32& first, const WarpU32& total,
                   const Body& body) {
  using namespace dsl;
  const LaneU32 lanes_to_own = k.lanes_below() << 1 | 1;
  WarpVar before(k, ~0u);  // the entry that owns the last byte of the previous turn
  k.range(0, total, kWarpLanes, [&](const auto& turn) {
    const WarpU32 starts = reduce_or(shift_left(1, first - turn));
    const LaneU32 owner = *before + popc(starts & lanes_to_own);
    before += popc(starts);
    const auto [to, from] = list.at(times<2>(owner)).template load_vector<2>();
    const LaneU32 i = turn + k.lane();
    k.if_(i < total, [&] { body(to, from, i); });
  });
}

// Writes to `dst`.
template <class Input>
class BlockWriter : public SequenceReader<Input> {
 public:
  using Room = BlockRoom;

  BlockWriter(dsl::Kernel& k, const Input& src, const WarpU32& size, const BlockRoom& dst)
      : SequenceReader<Input>(k, src), size_(size), dst_(dst), written_(k, 0) {}

  // Continues at `written` in the block and at `anchor`, the first uncoded byte, in the item.
  void resume(const WarpU32& anchor, const WarpU32& written) {
    anchor_ = anchor;
    written_ = written;
  }

  // Extends `count` matches of `list`, 1 to 32, backwards, and advances the position in the block by the size that
  // append_stretched would write.
  void stretch(const MatchList& list, const WarpU32& count) {
    using namespace dsl;
    const Sequence sequence = this->stretch_list(list, count);
    written_ += reduce_add(select(sequence.active, sequence.overhead() + sequence.literal_count(), 0));
    anchor_ = shuffle(sequence.end, count - 1);
  }

  // Appends `count` matches of `list`, 1 to 32, after extending them backwards. Overwrites the list.
  void append(const MatchList& list, const WarpU32& count) {
    write(list, this->stretched(this->sequence_at(list, count)), count);
  }

  // The same for matches that `stretch` has extended. Overwrites the list.
  void append_stretched(const MatchList& list, const WarpU32& count) {
    write(list, this->sequence_at(list, count), count);
  }

  // Appends the last sequence, which has literals only.
  void finish() {
    using namespace dsl;
    mark_warp(k_, Mark::emit, *written_);
    const WarpU32 count = size_ - *anchor_;
    const WarpU32 token_at = *written_, literals_at = token_at + 1 + extension_size(count);
    written_ = literals_at + count;
    const WarpBool fits = *written_ < size_;
    k_.if_(fits, [&] {
      k_.once_per_warp([&] {
        dst_.at(token_at).store(trunc<u8>(min(count, kNibbleMax) << 4));
        store_extension(LaneU32(token_at + 1), LaneU32(count));
      });
      for_each_lane(k_, count, [&](const LaneU32& i) { dst_.at(literals_at + i).store(src_.at(*anchor_ + i).load()); });
    });
  }

  WarpBool fits() const { return *written_ < size_; }  // the block is shorter than the item
  WarpU32 size_bytes() const { return *written_; }

 private:
  using Sequence = typename SequenceReader<Input>::Sequence;
  using SequenceReader<Input>::k_, SequenceReader<Input>::src_, SequenceReader<Input>::anchor_;

  void write(const MatchList& list, const Sequence& sequence, const WarpU32& count) {
    using namespace dsl;
    mark_warp(k_, Mark::emit, *written_);
    const LaneU32 literal_count = sequence.literal_count(), code = sequence.code(),
                  offset = sequence.start - sequence.from;
    // The literals are counted in the high half, all other bytes in the low half. No prefix sum overflows either half.
    const LaneU32 size = select(sequence.active, sequence.overhead() | literal_count << 16, 0);
    const LaneU32 sum = inclusive_sum(size);
    const LaneU32 before = sum - size;
    const WarpU32 total = shuffle(sum, kWarpLanes - 1);
    const LaneU32 token_at = *written_ + (before & 0xFFFF) + (before >> 16);
    written_ += (total & 0xFFFF) + (total >> 16);
    const WarpBool fits = *written_ < size_;
    k_.if_(fits, [&] {
      const LaneU32 literals_at = token_at + 1 + extension_size(literal_count);
      const LaneU32 offset_at = literals_at + literal_count;
      k_.if_(sequence.active, [&] {
        dst_.at(token_at).store(trunc<u8>(min(literal_count, kNibbleMax) << 4 | min(code, kNibbleMax)));
        dst_.at(offset_at).store(trunc<u8>(offset));
        dst_.at(offset_at).template at<1>().store(trunc<u8>(offset >> 8));
        k_.if_(max(literal_count, code) >= kNibbleMax, [&] {
          store_extension(token_at + 1, literal_count);
          store_extension(offset_at + 2, code);
        });
      });

      const LaneU32 literals_before = before >> 16;
      const LaneBool has_literals = sequence.active & (literal_count != 0);
      const WarpU32 with_literals = ballot(has_literals);
      k_.sync_warp();  // every lane has read the list; entries for the literals replace it
      k_.if_(has_literals, [&] {
        list.at(times<2>(popc(with_literals & k_.lanes_below())))
            .store_vector(std::array{literals_at - literals_before, sequence.end_before - literals_before});
      });
      k_.sync_warp();
      anchor_ = shuffle(sequence.end, count - 1);
      for_run_bytes(k_, list, select(has_literals, literals_before, k_.template constant<u32>(~0u)), total >> 16,
                    [&](const LaneU32& to, const LaneU32& from, const LaneU32& i) {
                      dst_.at(to + i).store(src_.at(from + i).load());
                    });
    });
  }

  // Stores the extension bytes of a length: bytes of 255, then the rest.
  void store_extension(const LaneU32& at, const LaneU32& length) {
    using namespace dsl;
    k_.if_(length >= kNibbleMax, [&] {
      Var<u32, Rate::thread> rest(k_, length - kNibbleMax), next(k_, at);
      k_.thread_loop([&](auto& bytes) {
        dst_.at(*next).store(trunc<u8>(min(*rest, 255)));
        bytes.break_if(*rest < 255);
        rest -= 255;
        next += 1;
      });
    });
  }

  WarpU32 size_;
  BlockRoom dst_;
  WarpVar written_;  // keeps growing when the block no longer fits
};

}  // namespace ptxkit::kernels
