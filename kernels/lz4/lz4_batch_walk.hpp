// Reads the headers of an item of framing `frame` or `hdf5`, in a warp: one block after another, without decoding any.
//
// An item of `frame` is one or more LZ4 frames and skippable frames. A frame is a header, blocks with a 32-bit size
// in front, and an end mark (lz4_Frame_format.md of the LZ4 project). An item of `hdf5` is a chunk of HDF5 filter
// 32004: its raw size (u64), the raw size of a block (u32), and blocks with a 32-bit size in front; these numbers are
// big-endian. Every field is checked against the item before it is used. lz4_batch_framed_reference.cpp makes the same
// checks in the same order.
#pragma once

#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_frame.hpp"
#include "kernels/lz4/xxh32.hpp"

namespace ptxkit::kernels {

class ItemWalk {
 public:
  using Source = dsl::Ptr<dsl::read_only, uint8_t, 1, dsl::Rate::warp>;
  using Outcome = BatchOutcome<dsl::Rate::warp>;

  struct Block {
    WarpU32 begin, coded_bytes;  // behind the header
    WarpBool is_raw;
    WarpU32 most_raw_bytes;  // of `hdf5` exactly that many
  };

  ItemWalk(dsl::Kernel& k, const Source& src, const WarpU32& size, const BlockU32& framing, Outcome& outcome)
      : k_(k),
        src_(src),
        size_(size),
        is_hdf5_(framing == static_cast<uint32_t>(BatchFraming::hdf5)),
        outcome_(outcome),
        at_(k, 0),
        flags_(k, 0),
        block_bytes_(k, 0),
        is_inside_(k, 0),
        frame_count_(k, 0),
        stated_bytes_(k, 0),
        left_(k, 0) {}

  // Calls begin() behind the header of a frame or of the chunk, take(block) for each of its blocks, and end() at its
  // end, where a frame's content checksum is at position(), as long as the outcome is ok. All of them may fail it.
  template <class Begin, class Take, class End>
  void run(const Begin& begin, const Take& take, const End& end) {
    using namespace dsl;
    k_.if_(is_hdf5_, [&] { open_chunk(begin); });
    k_.warp_loop([&](auto& steps) {
      steps.break_if(!outcome_.is_ok());
      // An item ends behind a frame; one that is empty ends nowhere.
      steps.break_if((*is_inside_ == 0) & (*at_ == size_) & (*frame_count_ != 0));
      k_.if_(*is_inside_ == 0, [&] { open_frame(begin); });
      steps.continue_if((*is_inside_ == 0) | !outcome_.is_ok());
      const WarpBool is_chunk_done = is_hdf5_ & (*left_ == 0);
      WarpVar field(k_, 0);
      k_.if_(!is_chunk_done, [&] {
        require(constant(4));
        k_.if_(outcome_.is_ok(), [&] { field = load_field(*at_); });
        at_ += 4;
      });
      steps.continue_if(!outcome_.is_ok());
      k_.if_(is_chunk_done | (!is_hdf5_ & (*field == 0)), [&] { close(end); }).else_([&] { take_block(*field, take); });
    });
  }

  WarpU32 position() const { return *at_; }
  WarpU32 block_bytes() const { return *block_bytes_; }
  WarpBool is_independent() const { return has(FrameFlag::independent_blocks); }
  WarpBool has_block_checksums() const { return has(FrameFlag::block_checksum); }
  WarpBool has_stated_bytes() const { return has(FrameFlag::content_bytes); }
  WarpBool has_checksum() const { return has(FrameFlag::content_checksum); }
  WarpU64 stated_bytes() const { return *stated_bytes_; }  // of the frame or chunk

 private:
  WarpU32 constant(uint32_t value) const { return k_.constant(value); }
  WarpBool has(FrameFlag flag) const { return (*flags_ & constant(static_cast<uint32_t>(flag))) != 0; }
  template <class Condition>
  void fail_if(const Condition& condition, BatchStatus status = BatchStatus::cannot_decompress) {
    outcome_.fail_if(condition, status);
  }
  // `count` bytes follow.
  void require(const WarpU32& count) { fail_if(size_ - *at_ < count); }
  template <class Place>
  WarpU32 load_little_endian(const Place& place) const {
    return src_.at(place).template load_bytewise<uint32_t>();
  }
  template <class Place>
  WarpU32 load_big_endian(const Place& place) const {
    return prmt(load_little_endian(place), 0, constant(0x0123));
  }
  template <class Place>
  WarpU32 load_field(const Place& place) const {
    const WarpU32 field = load_little_endian(place);
    return select(is_hdf5_, prmt(field, 0, constant(0x0123)), field);
  }

  template <class Begin>
  void open_chunk(const Begin& begin) {
    using namespace dsl;
    require(constant(kHdf5HeaderBytes));
    k_.if_(outcome_.is_ok(), [&] {
      const WarpU32 high = load_big_endian(*at_), low = load_big_endian(*at_ + 4);
      stated_bytes_ = zext<u64>(high) << 32 | zext<u64>(low);
      left_ = stated_bytes_;
      block_bytes_ = load_big_endian(*at_ + 8);
      flags_ = static_cast<u32>(FrameFlag::independent_blocks) | static_cast<u32>(FrameFlag::content_bytes);
      fail_if((*block_bytes_ == 0) & (*left_ != 0));
      at_ = kHdf5HeaderBytes;
      is_inside_ = 1;
      k_.if_(outcome_.is_ok(), begin);
    });
  }

  // Opens a frame, or passes a skippable one.
  template <class Begin>
  void open_frame(const Begin& begin) {
    using namespace dsl;
    require(constant(4));
    WarpVar magic(k_, 0), length(k_, 0);
    k_.if_(outcome_.is_ok(), [&] { magic = load_little_endian(*at_); });
    const WarpBool is_skippable = (*magic & ~kSkippableMagicMask) == kSkippableMagic;
    fail_if(*magic == kLegacyFrameMagic, BatchStatus::unsupported);
    fail_if((*magic != kFrameMagic) & !is_skippable);
    // The bytes of a frame's descriptor are at least two and a checksum.
    require(select(is_skippable, constant(8), constant(kFrameMagicBytes + 3)));
    k_.if_(is_skippable & outcome_.is_ok(), [&] {
      length = load_little_endian(*at_ + 4);
      at_ += 8;
      require(*length);
      at_ += *length;
      frame_count_ += 1;
    });
    k_.if_(!is_skippable & outcome_.is_ok(), [&] { open_lz4_frame(begin); });
  }

  template <class Begin>
  void open_lz4_frame(const Begin& begin) {
    using namespace dsl;
    const WarpU32 descriptor = *at_ + kFrameMagicBytes;
    flags_ = zext<u32>(src_.at(descriptor).load());
    const WarpU32 block = zext<u32>(src_.at(descriptor + 1).load()), size_id = block >> 4;
    fail_if(((*flags_ >> 6) != 1) | ((*flags_ & kFrameReservedFlag) != 0));
    fail_if(((block & kFrameReservedBlockBits) != 0) | (size_id < kSmallestFrameBlockId));
    const WarpU32 content_size_bytes = select(has_stated_bytes(), constant(8), constant(0));
    const WarpU32 dictionary_bytes = select(has(FrameFlag::dictionary), constant(4), constant(0));
    const WarpU32 length = content_size_bytes + dictionary_bytes + 2;
    at_ = descriptor;
    require(length + 1);
    k_.if_(outcome_.is_ok(), [&] {
      const WarpU32 checksum = xxh32_of_few(k_, src_.at(descriptor), length) >> 8 & 0xFF;
      fail_if(checksum != zext<u32>(src_.at(descriptor + length).load()), BatchStatus::bad_checksum);
      fail_if(has(FrameFlag::dictionary), BatchStatus::unsupported);
      stated_bytes_ = 0;
      k_.if_(has_stated_bytes(), [&] {
        stated_bytes_ =
            zext<u64>(load_little_endian(descriptor + 6)) << 32 | zext<u64>(load_little_endian(descriptor + 2));
      });
      block_bytes_ = shift_left(1, size_id * 2 + 8);
      at_ += length + 1;
      is_inside_ = 1;
      k_.if_(outcome_.is_ok(), begin);
    });
  }

  template <class Take>
  void take_block(const WarpU32& field, const Take& take) {
    using namespace dsl;
    const WarpU32 most = trunc<u32>(select(is_hdf5_, min(*left_, zext<u64>(*block_bytes_)), zext<u64>(*block_bytes_)));
    const WarpU32 coded = select(is_hdf5_, field, field & ~kFrameRawBlock);
    const WarpU32 checksum_bytes = select(has_block_checksums(), constant(4), constant(0));
    fail_if(is_hdf5_ & (coded == 0));
    fail_if(!is_hdf5_ & (coded > most));
    require(coded);
    fail_if(size_ - *at_ - coded < checksum_bytes);
    k_.if_(outcome_.is_ok(), [&] {
      take(Block{*at_, coded, (is_hdf5_ & (coded == most)) | (!is_hdf5_ & (field >= kFrameRawBlock)), most});
      at_ += coded + checksum_bytes;
      left_ -= zext<u64>(most);
    });
  }

  template <class End>
  void close(const End& end) {
    using namespace dsl;
    const WarpU32 checksum_bytes = select(has_checksum(), constant(4), constant(0));
    require(checksum_bytes);
    fail_if(is_hdf5_ & (*at_ != size_));  // nothing follows a chunk
    k_.if_(outcome_.is_ok(), end);
    at_ += checksum_bytes;
    is_inside_ = 0;
    frame_count_ += 1;
  }

  dsl::Kernel& k_;
  Source src_;
  WarpU32 size_;
  WarpBool is_hdf5_;
  Outcome& outcome_;
  WarpVar at_;
  WarpVar flags_, block_bytes_;
  WarpVar is_inside_;                                        // 1: of a frame or chunk
  WarpVar frame_count_;                                      // that are closed; of all kinds
  dsl::Var<dsl::u64, dsl::Rate::warp> stated_bytes_, left_;  // left_: raw bytes of the chunk that no block had yet
};

}  // namespace ptxkit::kernels
