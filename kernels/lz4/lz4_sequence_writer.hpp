// Lists the matches of a chunk compressor instead of writing a block, for encoders of other formats: what
// lz4_parse_reference lists.
#pragma once

#include <array>

#include "kernels/lz4/lz4_block_writer.hpp"

namespace ptxkit::kernels {

// Has the functions of BlockWriter that SegmentedMatches calls. Its sizes are numbers of sequences. A sequence is two
// words: the literal count in the low half of the first, the match length in the high half, and the offset.
class SequenceWriter : public SequenceReader<ItemSource> {
 public:
  using Room = dsl::Ptr<dsl::global, dsl::u32, 8>;

  SequenceWriter(dsl::Kernel& k, const ItemSource& src, const WarpU32&, const Room& dst)
      : SequenceReader(k, src), dst_(dst), written_(k, 0) {}

  void resume(const WarpU32& anchor, const WarpU32& written) {
    anchor_ = anchor;
    written_ = written;
  }
  void stretch(const MatchList& list, const WarpU32& count) {
    const Sequence sequence = stretch_list(list, count);
    written_ += count;
    anchor_ = dsl::shuffle(sequence.end, count - 1);
  }
  void append(const MatchList& list, const WarpU32& count) { store(stretched(sequence_at(list, count)), count); }
  void append_stretched(const MatchList& list, const WarpU32& count) { store(sequence_at(list, count), count); }
  void finish() {}
  WarpU32 size_bytes() const { return *written_; }

 private:
  void store(const Sequence& sequence, const WarpU32& count) {
    mark_warp(k_, Mark::emit, *written_);
    const LaneU32 lengths = sequence.literal_count() | (sequence.end - sequence.start) << 16;
    k_.if_(sequence.active, [&] {
      dst_.at(dsl::times<2>(*written_ + k_.lane()))
          .store_vector(std::array{lengths, LaneU32(sequence.start - sequence.from)});
    });
    written_ += count;
    anchor_ = dsl::shuffle(sequence.end, count - 1);
  }

  Room dst_;
  WarpVar written_;
};

}  // namespace ptxkit::kernels
