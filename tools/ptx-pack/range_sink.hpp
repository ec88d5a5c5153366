// A sink that passes on a range of what is written to it, and then requests the stream to stop. Only a stream that
// checks its parts may stop there: the checksum of a whole frame or member comes behind the range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stop_token>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/file_format.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// Whether a range of what begins with `first` is checked without what comes behind it: LZ4 frames with block checksums
// or none, BGZF members, blocks of .ptz.
inline bool may_stop_behind_range(format::FileFormat format, format::Bytes first) {
  constexpr uint8_t kFrame = 0x04, kLegacyFrame = 0x02;               // the first byte
  constexpr uint8_t kBlockChecksums = 0x10, kContentChecksum = 0x04;  // in the fifth, FLG
  switch (format) {
    case format::FileFormat::lz4:
      if (first.size() < 5) return false;
      if (first[0] == kFrame) return (first[4] & kBlockChecksums) != 0 || (first[4] & kContentChecksum) == 0;
      return first[0] == kLegacyFrame;
    case format::FileFormat::gzip:
      return first.size() > 13 && first[12] == 'B' && first[13] == 'C';
    case format::FileFormat::ptz:
      return true;
    case format::FileFormat::zstd:
      return false;
  }
  return false;
}

class RangeSink final : public format::ByteSink {
 public:
  RangeSink(format::ByteSink& into, const ByteRange& range) : into_(into), range_(range) {}

  Result<void> write(format::Bytes bytes) override {
    const uint64_t begin = std::clamp(range_.begin, at_, at_ + bytes.size()) - at_;
    const uint64_t end = std::clamp(range_.end, at_, at_ + bytes.size()) - at_;
    at_ += bytes.size();
    if (at_ >= range_.end) stop_.request_stop();
    return begin < end ? into_.write(bytes.subspan(begin, end - begin)) : Result<void>();
  }

  std::stop_token stop_token() const { return stop_.get_token(); }
  // Whether the end of the range has been reached. An open range ends with the stream.
  bool is_complete() const { return at_ >= range_.end; }
  // Whether a stream that has ended held the range.
  bool holds_range() const {
    return is_complete() || (range_.end == std::numeric_limits<uint64_t>::max() && at_ > range_.begin);
  }

 private:
  format::ByteSink& into_;
  ByteRange range_;
  uint64_t at_ = 0;
  std::stop_source stop_;
};

}  // namespace ptxkit::pack
