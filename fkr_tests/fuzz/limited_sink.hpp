// What fuzz targets of decoders share.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::fuzz {

inline constexpr size_t kMaxRawBytes = 16u << 20;  // longer results are not compared

// Keeps what is written, and fails with "enough" beyond kMaxRawBytes.
class LimitedSink final : public format::ByteSink {
 public:
  Result<void> write(format::Bytes bytes) override {
    if (raw.size() + bytes.size() > kMaxRawBytes) return fail("enough");
    raw.insert(raw.end(), bytes.begin(), bytes.end());
    return {};
  }

  std::vector<uint8_t> raw;
};

}  // namespace ptxkit::fuzz
