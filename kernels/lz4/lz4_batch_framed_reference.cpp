// Items of framings `frame` and `hdf5`, one at a time: the headers as ItemWalk reads them, the blocks by the reference
// of the decompressor.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_frame.hpp"
#include "kernels/lz4/xxh32_reference.hpp"

namespace ptxkit::kernels {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr BatchItem failed(BatchStatus status) { return {status, 0}; }

template <class T>
T little_endian(Bytes bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value |= static_cast<T>(T{bytes[i]} << 8 * i);
  return value;
}
template <class T>
T big_endian(Bytes bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value = static_cast<T>(value << 8 | bytes[i]);
  return value;
}

class Walk {
 public:
  struct Block {
    Bytes coded;
    bool is_raw;
    uint64_t most_raw_bytes;
    std::optional<uint32_t> checksum;
  };

  Walk(Bytes src, bool is_hdf5) : src_(src), is_hdf5_(is_hdf5) {}

  // As ItemWalk::run. The functions return what is wrong, or ok.
  template <class Begin, class Take, class End>
  BatchStatus run(const Begin& begin, const Take& take, const End& end) {
    if (is_hdf5_) {
      if (const auto status = open_chunk(); status != BatchStatus::ok) return status;
      if (const auto status = begin(*this); status != BatchStatus::ok) return status;
    }
    while (is_inside_ || at_ != src_.size() || frame_count_ == 0) {
      if (!is_inside_) {
        if (const auto status = open_frame(); status != BatchStatus::ok) return status;
        if (!is_inside_) continue;
        if (const auto status = begin(*this); status != BatchStatus::ok) return status;
      }
      const auto status = is_hdf5_ && left_ == 0 ? close(end) : next_block(take, end);
      if (status != BatchStatus::ok) return status;
    }
    return BatchStatus::ok;
  }

  bool is_independent() const { return has(FrameFlag::independent_blocks); }
  std::optional<uint64_t> stated_bytes() const {
    return has(FrameFlag::content_bytes) ? std::optional(stated_bytes_) : std::nullopt;
  }
  std::optional<uint32_t> content_checksum() const {
    return has(FrameFlag::content_checksum) ? std::optional(little_endian<uint32_t>(rest())) : std::nullopt;
  }

 private:
  static constexpr BatchStatus kMalformed = BatchStatus::cannot_decompress;

  bool has(FrameFlag flag) const { return (flags_ & static_cast<uint32_t>(flag)) != 0; }
  Bytes rest() const { return src_.subspan(at_); }

  BatchStatus open_chunk() {
    if (src_.size() < kHdf5HeaderBytes) return kMalformed;
    stated_bytes_ = left_ = big_endian<uint64_t>(src_);
    block_bytes_ = big_endian<uint32_t>(src_.subspan(8));
    flags_ = static_cast<uint32_t>(FrameFlag::independent_blocks) | static_cast<uint32_t>(FrameFlag::content_bytes);
    if (block_bytes_ == 0 && left_ != 0) return kMalformed;
    at_ = kHdf5HeaderBytes;
    is_inside_ = true;
    return BatchStatus::ok;
  }

  BatchStatus open_frame() {
    if (rest().size() < 4) return kMalformed;
    const auto magic = little_endian<uint32_t>(rest());
    const bool is_skippable = (magic & ~kSkippableMagicMask) == kSkippableMagic;
    if (magic == kLegacyFrameMagic) return BatchStatus::unsupported;
    if (magic != kFrameMagic && !is_skippable) return kMalformed;
    if (rest().size() < (is_skippable ? 8 : kFrameMagicBytes + 3)) return kMalformed;
    if (is_skippable) {
      const auto length = little_endian<uint32_t>(rest().subspan(4));
      at_ += 8;
      if (rest().size() < length) return kMalformed;
      at_ += length;
      ++frame_count_;
      return BatchStatus::ok;
    }
    at_ += kFrameMagicBytes;
    flags_ = rest()[0];
    const uint32_t block = rest()[1];
    if (flags_ >> 6 != 1 || (flags_ & kFrameReservedFlag) != 0) return kMalformed;
    if ((block & kFrameReservedBlockBits) != 0 || block >> 4 < kSmallestFrameBlockId) return kMalformed;
    const size_t length = 2 + (has(FrameFlag::content_bytes) ? 8 : 0) + (has(FrameFlag::dictionary) ? 4 : 0);
    if (rest().size() < length + 1) return kMalformed;
    if ((xxh32_reference(rest().first(length)) >> 8 & 0xFF) != rest()[length]) return BatchStatus::bad_checksum;
    if (has(FrameFlag::dictionary)) return BatchStatus::unsupported;
    stated_bytes_ = has(FrameFlag::content_bytes) ? little_endian<uint64_t>(rest().subspan(2)) : 0;
    block_bytes_ = 1u << (2 * (block >> 4) + 8);
    at_ += length + 1;
    is_inside_ = true;
    return BatchStatus::ok;
  }

  template <class Take, class End>
  BatchStatus next_block(const Take& take, const End& end) {
    if (rest().size() < 4) return kMalformed;
    const uint32_t field = is_hdf5_ ? big_endian<uint32_t>(rest()) : little_endian<uint32_t>(rest());
    at_ += 4;
    if (!is_hdf5_ && field == 0) return close(end);
    const uint64_t most = is_hdf5_ ? std::min<uint64_t>(left_, block_bytes_) : block_bytes_;
    const uint32_t coded = is_hdf5_ ? field : field & ~kFrameRawBlock;
    const size_t checksum_bytes = has(FrameFlag::block_checksum) ? 4 : 0;
    if (is_hdf5_ ? coded == 0 : coded > most) return kMalformed;
    if (rest().size() < coded || rest().size() - coded < checksum_bytes) return kMalformed;
    Block taken{rest().first(coded), is_hdf5_ ? coded == most : field >= kFrameRawBlock, most, {}};
    if (checksum_bytes != 0) taken.checksum = little_endian<uint32_t>(rest().subspan(coded));
    if (const auto status = take(*this, taken); status != BatchStatus::ok) return status;
    at_ += coded + checksum_bytes;
    left_ -= most;
    return BatchStatus::ok;
  }

  template <class End>
  BatchStatus close(const End& end) {
    const size_t checksum_bytes = has(FrameFlag::content_checksum) ? 4 : 0;
    if (rest().size() < checksum_bytes) return kMalformed;
    if (is_hdf5_ && !rest().empty()) return kMalformed;
    if (const auto status = end(*this); status != BatchStatus::ok) return status;
    at_ += checksum_bytes;
    is_inside_ = false;
    ++frame_count_;
    return BatchStatus::ok;
  }

  Bytes src_;
  bool is_hdf5_;
  size_t at_ = 0;
  uint32_t flags_ = 0, block_bytes_ = 0;
  bool is_inside_ = false;
  uint64_t frame_count_ = 0, stated_bytes_ = 0, left_ = 0;
};

BatchStatus nothing(const Walk&) { return BatchStatus::ok; }
BatchStatus no_block(const Walk&, const Walk::Block&) { return BatchStatus::ok; }

class Decoding {
 public:
  Decoding(std::span<uint8_t> dst, bool is_hdf5) : dst_(dst), is_hdf5_(is_hdf5) {}

  BatchStatus take(const Walk& walk, const Walk::Block& block) {
    const uint64_t most = std::min<uint64_t>(block.most_raw_bytes, dst_.size() - raw_bytes_);
    const auto overrun = most < block.most_raw_bytes ? BatchStatus::output_too_small : BatchStatus::cannot_decompress;
    if (block.checksum && *block.checksum != xxh32_reference(block.coded)) return BatchStatus::bad_checksum;
    size_t decoded = block.coded.size();
    if (block.is_raw) {
      if (decoded > most) return overrun;
      std::ranges::copy(block.coded, dst_.begin() + static_cast<ptrdiff_t>(raw_bytes_));
    } else {
      const size_t history = walk.is_independent() ? raw_bytes_ : frame_begin_;
      const DecompressedItem item = lz4_decode_block_reference(
          block.coded, dst_.subspan(history, raw_bytes_ - history + most), static_cast<uint32_t>(raw_bytes_ - history));
      if (item.status == Lz4Status::output_overrun) return overrun;
      if (item.status != Lz4Status::ok) return BatchStatus::cannot_decompress;
      decoded = item.size_bytes;
    }
    if (is_hdf5_ && decoded != block.most_raw_bytes) return BatchStatus::cannot_decompress;
    raw_bytes_ += decoded;
    return BatchStatus::ok;
  }

  BatchStatus end(const Walk& walk) {
    const auto content = dst_.subspan(frame_begin_, raw_bytes_ - frame_begin_);
    if (walk.stated_bytes() && *walk.stated_bytes() != content.size()) return BatchStatus::cannot_decompress;
    if (walk.content_checksum() && *walk.content_checksum() != xxh32_reference(content))
      return BatchStatus::bad_checksum;
    frame_begin_ = raw_bytes_;
    return BatchStatus::ok;
  }

  size_t raw_bytes() const { return raw_bytes_; }

 private:
  std::span<uint8_t> dst_;
  bool is_hdf5_;
  size_t raw_bytes_ = 0, frame_begin_ = 0;
};

}  // namespace

BatchItem lz4_batch_framed_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, BatchFraming framing) {
  const bool is_hdf5 = framing == BatchFraming::hdf5;
  // All headers first, then the sizes that they state, then the blocks.
  uint64_t left = dst.size();
  bool is_too_small = false;
  const auto begin = [&](const Walk& walk) {
    const uint64_t stated = walk.stated_bytes().value_or(0);
    is_too_small |= stated > left;
    left -= std::min(stated, left);
    return BatchStatus::ok;
  };
  if (const auto status = Walk(src, is_hdf5).run(begin, no_block, nothing); status != BatchStatus::ok) {
    return failed(status);
  }
  if (is_too_small) return failed(BatchStatus::output_too_small);
  Decoding decoding(dst, is_hdf5);
  const auto status = Walk(src, is_hdf5)
                          .run(
                              nothing, [&](const Walk& walk, const auto& block) { return decoding.take(walk, block); },
                              [&](const Walk& walk) { return decoding.end(walk); });
  if (status != BatchStatus::ok) return failed(status);
  return {BatchStatus::ok, decoding.raw_bytes()};
}

BatchItem lz4_batch_framed_size_reference(std::span<const uint8_t> src, BatchFraming framing) {
  uint64_t sum = 0;
  bool is_stated = true, is_too_large = false;
  const auto begin = [&](const Walk& walk) {
    is_stated &= walk.stated_bytes().has_value();
    const uint64_t stated = walk.stated_bytes().value_or(0);
    is_too_large |= stated > ~sum;
    sum += stated;
    return BatchStatus::ok;
  };
  const auto status = Walk(src, framing == BatchFraming::hdf5).run(begin, no_block, nothing);
  if (status != BatchStatus::ok) return failed(status);
  if (!is_stated) return failed(BatchStatus::unsupported);
  return is_too_large ? failed(BatchStatus::cannot_decompress) : BatchItem{BatchStatus::ok, sum};
}

}  // namespace ptxkit::kernels
