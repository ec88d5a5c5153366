// Reads the headers of an item of Zstandard frames, in a warp: frames, blocks, and what the sections of a block say of
// themselves. Every field is checked against the item before it is used, as zstd_decode_reference.cpp does and in the
// same order.
#pragma once

#include <array>

#include "kernels/zstd/zstd_decode_batch.hpp"

namespace ptxkit::kernels {

inline WarpU32 load_zstd_byte(const ZstdSource& src, const WarpU32& at) {
  return dsl::zext<dsl::u32>(src.at(at).load());
}

// The head of a literals section.
class ZstdLiteralsHead {
 public:
  // The section begins at `begin`, and its block ends at `end`.
  ZstdLiteralsHead(dsl::Kernel& k, const ZstdSource& src, const WarpU32& begin, const WarpU32& end)
      : k_(k), is_bad_(k, 1), type_(k, 0), format_(k, 0), bytes_(k, 0), coded_begin_(k, 0), coded_end_(k, 0) {
    using namespace dsl;
    k.warp_loop([&](auto& once) {
      once.break_if(begin >= end);
      const WarpU32 first = load_zstd_byte(src, begin);
      type_ = first & 3;
      format_ = first >> 2 & 3;
      const WarpBool is_long = (*format_ & 1) != 0;
      const WarpU32 plain_bytes = select(*format_ == 3, constant(3), select(is_long, constant(2), 1));
      const WarpU32 head_bytes = select(is_coded(), select(*format_ < 2, constant(3), *format_ + 2), plain_bytes);
      once.break_if(end - begin < head_bytes);
      const auto byte = [&](u32 i) { return load_zstd_byte(src, begin + min(constant(i), head_bytes - 1)); };
      const WarpU32 low = first | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
      const WarpU32 width = select(*format_ < 2, constant(10), select(*format_ == 2, constant(14), 18));
      const WarpU32 mask = (k.constant<u32>(1) << width) - 1;
      // Both sizes of a section with codes, above the four bits of type and format.
      const WarpU32 sizes = low >> 4, coded = funnel_right(low, byte(4), width + 4) & mask;
      const WarpU32 plain = select(*format_ == 3, sizes & 0xFFFFF, select(is_long, sizes & 0xFFF, first >> 3));
      bytes_ = select(is_coded(), sizes & mask, plain);
      const WarpBool is_raw = *type_ == static_cast<u32>(ZstdLiteralsType::raw);
      const WarpU32 content = select(is_coded(), coded, select(is_raw, plain, 1));
      coded_begin_ = begin + head_bytes;
      once.break_if(end - *coded_begin_ < content);
      coded_end_ = *coded_begin_ + content;
      is_bad_ = 0;
      once.break_();
    });
  }

  WarpBool is_bad() const { return *is_bad_ != 0; }
  WarpU32 type() const { return *type_; }
  WarpBool is_coded() const { return *type_ >= static_cast<uint32_t>(ZstdLiteralsType::compressed); }
  WarpBool has_tree() const { return *type_ == static_cast<uint32_t>(ZstdLiteralsType::compressed); }
  WarpBool is_single() const { return *format_ == 0; }  // one stream
  WarpU32 bytes() const { return *bytes_; }             // of literals
  WarpU32 coded_begin() const { return *coded_begin_; }
  WarpU32 coded_end() const { return *coded_end_; }

 private:
  WarpU32 constant(uint32_t value) const { return k_.constant(value); }

  dsl::Kernel& k_;
  WarpVar is_bad_, type_, format_, bytes_, coded_begin_, coded_end_;
};

// The heads of both sections of a compressed block.
class ZstdSections {
 public:
  ZstdSections(dsl::Kernel& k, const ZstdSource& src, const WarpU32& begin, const WarpU32& end,
               const WarpU32& max_block_bytes)
      : literals(k, src, begin, end), is_bad_(k, 1), count_(k, 0), modes_(k, 0), tables_(k, 0) {
    using namespace dsl;
    k.warp_loop([&](auto& once) {
      once.break_if(literals.is_bad() | (literals.bytes() > max_block_bytes));
      const WarpU32 at = literals.coded_end();
      once.break_if(at == end);
      const WarpU32 first = load_zstd_byte(src, at);
      const WarpU32 count_bytes = select(first < 128, k.constant<u32>(1), select(first == 255, k.constant<u32>(3), 2));
      once.break_if(end - at < count_bytes);
      const WarpU32 second = load_zstd_byte(src, at + min(count_bytes - 1, 1));
      const WarpU32 third = load_zstd_byte(src, at + count_bytes - 1);
      count_ =
          select(first < 128, first,
                 select(first == 255, (second | third << 8) + kZstdLongSequenceCount, (first - 128) << 8 | second));
      tables_ = at + count_bytes;
      k.if_(*count_ == 0, [&] { is_bad_ = zext<u32>(*tables_ != end); });
      once.break_if(*count_ == 0);
      once.break_if((*tables_ == end) | (*count_ > max_block_bytes / kZstdMinMatch));
      modes_ = load_zstd_byte(src, *tables_);
      tables_ += 1;
      is_bad_ = zext<u32>((*modes_ & 3) != 0);
      once.break_();
    });
  }

  ZstdLiteralsHead literals;

  WarpBool is_bad() const { return *is_bad_ != 0; }
  WarpU32 count() const { return *count_; }  // of sequences
  // The mode of a kind's table, ZstdTableMode.
  template <class Kind>
  auto mode(const Kind& kind) const {
    return *modes_ >> (6 - kind * 2) & 3;
  }
  WarpU32 tables() const { return *tables_; }  // where their descriptions begin

 private:
  WarpVar is_bad_, count_, modes_, tables_;
};

// A block of a frame, and where the blocks begin that have the tables it may refer to; 0: there is none.
struct ZstdBlock {
  WarpU32 type;                           // ZstdBlockType
  WarpU32 begin, end;                     // of its content in the item
  WarpU32 bytes;                          // of a raw block or a run
  WarpU32 literal_place, sequence_place;  // how many the compressed blocks of the item before it have
  WarpU32 tree_at;
  std::array<WarpU32, kZstdKinds> table_at;
};

class ZstdWalk {
 public:
  ZstdWalk(dsl::Kernel& k, const ZstdSource& src, const WarpU32& size, ZstdOutcome& outcome)
      : k_(k),
        src_(src),
        size_(size),
        outcome_(outcome),
        at_(k, 0),
        flags_(k, 0),
        window_(k, 0),
        stated_(k, 0),
        is_inside_(k, 0),
        frame_count_(k, 0),
        literal_place_(k, 0),
        sequence_place_(k, 0),
        tree_at_(k, 0),
        table_at_{WarpVar(k, 0), WarpVar(k, 0), WarpVar(k, 0)} {}

  // Calls begin() behind a frame's header, take(block, sections) for each of its blocks, and end() behind the last,
  // where a checksum is at position(), as long as the outcome is ok. All of them may fail it. The sections are those of
  // a compressed block, and bad otherwise.
  template <class Begin, class Take, class End>
  void run(const Begin& begin, const Take& take, const End& end) {
    using namespace dsl;
    k_.warp_loop([&](auto& steps) {
      steps.break_if(!outcome_.is_ok());
      // An item ends behind a frame; one that is empty ends nowhere.
      steps.break_if((*is_inside_ == 0) & (*at_ == size_) & (*frame_count_ != 0));
      k_.if_(*is_inside_ == 0, [&] { open_frame(begin); });
      steps.continue_if((*is_inside_ == 0) | !outcome_.is_ok());
      fail_if(size_ - *at_ < kZstdBlockHeaderBytes);
      steps.continue_if(!outcome_.is_ok());
      const WarpU32 header = byte(*at_) | byte(*at_ + 1) << 8 | byte(*at_ + 2) << 16;
      const WarpU32 type = header >> 1 & 3, bytes = header >> 3;
      const WarpBool is_run = type == static_cast<u32>(ZstdBlockType::rle);
      const WarpBool is_compressed = type == static_cast<u32>(ZstdBlockType::compressed);
      const WarpU32 content = select(is_run, 1, bytes), from = *at_ + kZstdBlockHeaderBytes;
      fail_if((type == static_cast<u32>(ZstdBlockType::reserved)) | (bytes > max_block_bytes()));
      fail_if(size_ - from < content);
      steps.continue_if(!outcome_.is_ok());
      at_ = from + content;
      const ZstdSections sections(k_, src_, from, select(is_compressed, *at_, from), max_block_bytes());
      const WarpBool has_sections = is_compressed & !sections.is_bad();
      fail_if(is_compressed & sections.is_bad());
      tree_at_ = select(has_sections & sections.literals.has_tree(), from, *tree_at_);
      for (u32 kind = 0; kind < kZstdKinds; ++kind) {
        const WarpBool repeats = sections.mode(k_.constant(kind)) == static_cast<u32>(ZstdTableMode::repeat);
        table_at_[kind] = select(has_sections & (sections.count() != 0) & !repeats, from, *table_at_[kind]);
      }
      steps.continue_if(!outcome_.is_ok());
      take(ZstdBlock{type,
                     from,
                     *at_,
                     bytes,
                     *literal_place_,
                     *sequence_place_,
                     *tree_at_,
                     {*table_at_[0], *table_at_[1], *table_at_[2]}},
           sections);
      k_.if_(has_sections, [&] {
        literal_place_ += sections.literals.bytes();
        sequence_place_ += sections.count();
      });
      const WarpBool is_last = (header & 1) != 0;
      const WarpU32 checksum_bytes = select(has_checksum(), k_.constant(u32{kZstdChecksumBytes}), 0);
      fail_if(is_last & (size_ - *at_ < checksum_bytes));
      k_.if_(is_last & outcome_.is_ok(), [&] {
        end();
        at_ += checksum_bytes;
        is_inside_ = 0;
        frame_count_ += 1;
      });
    });
  }

  WarpU32 position() const { return *at_; }
  WarpBool has_checksum() const { return (*flags_ & kZstdChecksumFlag) != 0; }
  // Of the frame; of a window or a size above kZstdMaxItemBytes, something above that.
  WarpU32 window_bytes() const { return *window_; }
  WarpU32 stated_bytes() const { return *stated_; }
  WarpBool has_stated_bytes() const { return (*flags_ & (kZstdSingleSegmentFlag | 3u << 6)) != 0; }
  WarpU32 max_block_bytes() const { return dsl::min(*window_, kZstdMaxBlockBytes); }

 private:
  void fail_if(const WarpBool& condition, BatchStatus status = BatchStatus::cannot_decompress) {
    outcome_.fail_if(condition, status);
  }
  WarpU32 byte(const WarpU32& at) const { return load_zstd_byte(src_, at); }
  WarpU32 word(const WarpU32& at) const { return src_.at(at).load_bytewise<uint32_t>(); }

  // Opens a frame, or passes a skippable one.
  template <class Begin>
  void open_frame(const Begin& begin) {
    using namespace dsl;
    WarpVar magic(k_, 0);
    fail_if(size_ - *at_ < 4);
    k_.if_(outcome_.is_ok(), [&] { magic = word(*at_); });
    const WarpBool is_skippable = (*magic & ~kZstdSkippableMagicMask) == kZstdSkippableMagic;
    fail_if((*magic != kZstdMagic) & !is_skippable);
    fail_if(size_ - *at_ < select(is_skippable, k_.constant<u32>(8), 5));
    k_.if_(is_skippable & outcome_.is_ok(), [&] {
      const WarpU32 length = word(*at_ + 4);
      at_ += 8;
      fail_if(size_ - *at_ < length);
      at_ += length;
      frame_count_ += 1;
    });
    k_.if_(!is_skippable & outcome_.is_ok(), [&] { open_zstd_frame(begin); });
  }

  template <class Begin>
  void open_zstd_frame(const Begin& begin) {
    using namespace dsl;
    flags_ = byte(*at_ + 4);
    const WarpU32 is_single = *flags_ >> 5 & 1, size_format = *flags_ >> 6, dictionary_format = *flags_ & 3;
    const WarpU32 dictionary_bytes = shift_left(1, dictionary_format) >> 1;
    const WarpU32 size_bytes = select(size_format == 0, is_single, shift_left(1, size_format));
    at_ += 5;
    const WarpU32 dictionary_at = *at_ + 1 - is_single, size_at = dictionary_at + dictionary_bytes;
    fail_if(size_ - *at_ < 1 - is_single + dictionary_bytes + size_bytes);
    fail_if((*flags_ & kZstdReservedFlag) != 0);
    k_.if_(outcome_.is_ok(), [&] {
      window_ = 0;
      k_.if_(is_single == 0, [&] {
        const WarpU32 descriptor = byte(*at_), log = (descriptor >> 3) + kZstdMinWindowLog;
        fail_if(log > kZstdMaxWindowLog, BatchStatus::unsupported);
        const WarpU32 base = shift_left(1, min(log, 28));
        window_ = base + (base >> 3) * (descriptor & 7);
      });
      WarpVar dictionary(k_, 0), high(k_, 0);
      k_.range(0, dictionary_bytes, 1, [&](const WarpU32& i) { dictionary |= byte(dictionary_at + i); });
      fail_if(*dictionary != 0, BatchStatus::unsupported);
      stated_ = 0;
      k_.range(0, size_bytes, 1, [&](const WarpU32& i) {
        const WarpU32 value = byte(size_at + i);
        k_.if_(i < 4, [&] { stated_ |= value << i * 8; }).else_([&] { high |= value; });
      });
      stated_ += select(size_format == 1, k_.constant<u32>(256), 0);
      stated_ = select(*high == 0, *stated_, ~k_.constant<u32>(0));
      window_ = select(is_single == 0, *window_, *stated_);
      at_ = size_at + size_bytes;
      tree_at_ = 0;
      for (auto& at : table_at_) at = 0;
      is_inside_ = 1;
      k_.if_(outcome_.is_ok(), begin);
    });
  }

  dsl::Kernel& k_;
  ZstdSource src_;
  WarpU32 size_;
  ZstdOutcome& outcome_;
  WarpVar at_, flags_, window_, stated_;
  WarpVar is_inside_;    // 1: of a frame
  WarpVar frame_count_;  // that are closed; of all kinds
  WarpVar literal_place_, sequence_place_;
  WarpVar tree_at_;
  std::array<WarpVar, kZstdKinds> table_at_;
};

}  // namespace ptxkit::kernels
