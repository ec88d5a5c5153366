// An item of Deflate by one warp: what stands around its streams, their blocks, their checksums. Every check is one of
// inflate_reference.cpp, in the same order.
#pragma once

#include "kernels/deflate/checksums.hpp"
#include "kernels/deflate/inflate_codes.hpp"
#include "kernels/deflate/inflate_symbols.hpp"

namespace ptxkit::kernels {

class InflateItem {
 public:
  InflateItem(dsl::Kernel& k, const InflateSource& src, const WarpU32& size, InflateOutput& output,
              InflateStatus& outcome)
      : k_(k),
        input_(k, src, size),
        codes_(k, input_),
        output_(output),
        outcome_(outcome),
        symbols_(k, input_, codes_, output, outcome),
        at_(k, input_.begin()) {}

  static constexpr dsl::u32 kSharedBytes =
      InflateInput::kSharedBytes + InflateBlockCodes::kSharedBytes + InflateMatches::kSharedBytes;
  static_assert(InflateBlockCodes::Literals::kEntries >= kCrc32TableEntries);

  void decode(const BlockU32& framing) {
    using namespace dsl;
    const auto is = [&](DeflateFraming which) { return framing == k_.constant(static_cast<u32>(which)); };
    const WarpBool is_zlib = is(DeflateFraming::zlib), is_raw = is(DeflateFraming::raw);
    const WarpBool is_gzip = !(is_raw | is_zlib);
    k_.warp_loop([&](auto& members) {
      k_.if_(is_zlib, [&] { zlib_header(); });
      k_.if_(is_gzip, [&] { member_header(); });
      members.break_if(!outcome_.is_ok());
      output_.begin_stream();
      stream();
      members.break_if(!outcome_.is_ok());
      k_.if_(is_zlib, [&] { zlib_trailer(); });
      k_.if_(is_gzip, [&] { member_trailer(); });
      members.break_if(!outcome_.is_ok());
      at_ = InflateInput::byte_end(*at_);
      k_.if_(!is_gzip, [&] { fail_if(*at_ != input_.end()); });
      members.break_if(!is_gzip);
      members.break_if(rest_is_zero());
    });
  }

 private:
  void fail_if(const WarpBool& condition, BatchStatus status = BatchStatus::cannot_decompress) {
    outcome_.fail_if(condition, status);
  }
  WarpU32 left_bytes() const { return (input_.end() - *at_) / 8; }  // behind a whole byte

  // The next bytes, which `at_` is moved behind, as a number with the first one lowest. Without them the item fails.
  WarpU32 take(dsl::u32 count) {
    using namespace dsl;
    WarpVar value(k_, 0);
    fail_if(left_bytes() < k_.constant(count));
    k_.if_(outcome_.is_ok(), [&] {
      for (u32 i = 0; i < count; ++i)
        value |= zext<u32>(input_.at(*at_).at(k_.constant(i)).load()) << k_.constant(8 * i);
      at_ += k_.constant(8 * count);
    });
    return *value;
  }
  void skip(const WarpU32& bytes) {
    fail_if(left_bytes() < bytes);
    k_.if_(outcome_.is_ok(), [&] { at_ += bytes * 8; });
  }
  // Skips the bytes up to the next one that is 0, and that.
  void skip_text() {
    using namespace dsl;
    k_.warp_loop([&](auto& rows) {
      rows.break_if(!outcome_.is_ok());
      const WarpU32 zeros = ballot(is_byte([](const LaneU32& byte) { return byte == 0; }));
      const WarpU32 count = min(ctz(zeros) + 1, kWarpLanes);
      fail_if(left_bytes() < count);
      at_ += min(count, left_bytes()) * 8;
      rows.break_if(zeros != 0);
    });
  }
  // Whether the lane has one of the next 32 bytes, and it is such a byte.
  template <class Such>
  LaneBool is_byte(const Such& such) {
    using namespace dsl;
    LaneVar result(k_, 0);
    k_.if_(k_.lane() < left_bytes(),
           [&] { result = zext<u32>(such(zext<u32>(input_.at(*at_).at(k_.lane()).load()))); });
    return *result != 0;
  }
  WarpBool rest_is_zero() {
    using namespace dsl;
    WarpVar ahead(k_, *at_), found(k_, 0);
    k_.warp_loop([&](auto& rows) {
      rows.break_if((*ahead >= input_.end()) | (*found != 0));
      LaneVar byte(k_, 0);
      k_.if_(k_.lane() < (input_.end() - *ahead) / 8,
             [&] { byte = zext<u32>(input_.at(*ahead).at(k_.lane()).load()); });
      found = ballot(*byte != 0);
      ahead += 8 * kWarpLanes;
    });
    return *found == 0;
  }

  void zlib_header() {
    const WarpU32 head = take(kZlibHeaderBytes), method = head & 0xFF, flags = head >> 8;
    fail_if((method << 8 | flags) % kZlibHeaderFactor != 0);
    fail_if((method & 15) != kDeflateMethod, BatchStatus::unsupported);
    fail_if(method >> 4 > kZlibMaxWindow);
    fail_if((flags & kZlibDictionaryFlag) != 0, BatchStatus::unsupported);
  }
  void zlib_trailer() {
    using namespace dsl;
    at_ = InflateInput::byte_end(*at_);
    const WarpU32 stored = prmt(take(kZlibTrailerBytes), k_.constant<u32>(0), k_.constant<u32>(0x0123));
    k_.if_(outcome_.is_ok(), [&] {
      fail_if(adler32_of(k_, output_.stream(), output_.stream_bytes()) != stored, BatchStatus::bad_checksum);
    });
  }

  void member_header() {
    using namespace dsl;
    const WarpU32 begin = *at_;
    fail_if(take(2) != kGzipMagic);
    fail_if(take(1) != kDeflateMethod, BatchStatus::unsupported);
    const WarpU32 flags = take(1);
    fail_if((flags & kGzipReservedFlags) != 0, BatchStatus::unsupported);
    skip(k_.constant<u32>(kGzipHeaderBytes - 4));
    k_.if_((flags & kGzipExtraFlag) != 0, [&] { skip(take(2)); });
    k_.if_((flags & kGzipNameFlag) != 0, [&] { skip_text(); });
    k_.if_((flags & kGzipCommentFlag) != 0, [&] { skip_text(); });
    k_.if_((flags & kGzipHeaderCrcFlag) != 0, [&] {
      const WarpU32 end = *at_, stored = take(2);
      k_.if_(outcome_.is_ok(), [&] {
        const WarpU32 crc = crc32_of(k_, input_.at(begin), (end - begin) / 8, codes_.take_table());
        fail_if((crc & 0xFFFF) != stored, BatchStatus::bad_checksum);
      });
    });
  }
  void member_trailer() {
    at_ = InflateInput::byte_end(*at_);
    const WarpU32 crc = take(4), size = take(4);
    k_.if_(outcome_.is_ok(), [&] {
      fail_if(crc32_of(k_, output_.stream(), output_.stream_bytes(), codes_.take_table()) != crc,
              BatchStatus::bad_checksum);
      fail_if(size != output_.stream_bytes());
    });
  }

  // The blocks from `at_` on.
  void stream() {
    using namespace dsl;
    k_.warp_loop([&](auto& blocks) {
      mark_warp(k_, Mark::parse, *at_);
      input_.stage(*at_);
      const WarpU32 position = *at_ - input_.staged_begin(), head = broadcast(input_.bits(position));
      const WarpU32 type = head >> 1 & 3;
      const auto is = [&](DeflateBlockType which) { return type == k_.constant(static_cast<u32>(which)); };
      fail_if((input_.end() - *at_ < kDeflateBlockHeaderBits) | is(DeflateBlockType::reserved));
      blocks.break_if(!outcome_.is_ok());
      at_ += kDeflateBlockHeaderBits;
      k_.if_(is(DeflateBlockType::stored), [&] { stored(); }).else_([&] {
        k_.if_(is(DeflateBlockType::fixed), [&] { codes_.use_fixed(); }).else_([&] {
          const WarpU32 behind = codes_.read(position + kDeflateBlockHeaderBits);
          fail_if(behind == 0);
          at_ = input_.staged_begin() + behind;
        });
        k_.if_(outcome_.is_ok(), [&] { at_ = symbols_.decode(*at_); });
      });
      blocks.break_if(!outcome_.is_ok() | ((head & 1) != 0));
    });
  }

  void stored() {
    at_ = InflateInput::byte_end(*at_);
    const WarpU32 length = take(2), complement = take(2);
    fail_if(length != (complement ^ 0xFFFF));
    fail_if(left_bytes() < length);
    k_.if_(outcome_.is_ok(), [&] {
      output_.copy(input_.at(*at_), length);
      at_ += length * 8;
    });
  }

  dsl::Kernel& k_;
  InflateInput input_;
  InflateBlockCodes codes_;
  InflateOutput& output_;
  InflateStatus& outcome_;
  InflateSymbols symbols_;
  WarpVar at_;  // the place in the item
};

}  // namespace ptxkit::kernels
