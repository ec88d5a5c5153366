// Bits as Zstandard's entropy coders write them: from the lowest bit of the first byte on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

class ZstdBits {
 public:
  // Appends the `count` low bits of `value`, at most 32.
  void append(uint32_t value, uint32_t count) {
    held_ |= (value & ((uint64_t{1} << count) - 1)) << held_count_;
    for (held_count_ += count; held_count_ >= 8; held_count_ -= 8, held_ >>= 8)
      bytes_.push_back(static_cast<uint8_t>(held_));
  }
  // Fills up the last byte with zeros and returns all bytes.
  std::vector<uint8_t> padded() && {
    if (held_count_ != 0) bytes_.push_back(static_cast<uint8_t>(held_));
    return std::move(bytes_);
  }
  // Appends the bit 1, from which a reader that goes backwards finds the last bit, and returns all bytes.
  std::vector<uint8_t> marked() && {
    append(1, 1);
    return std::move(*this).padded();
  }

 private:
  std::vector<uint8_t> bytes_;
  uint64_t held_ = 0;  // fewer than 8 bits between calls
  uint32_t held_count_ = 0;
};

// Stores a section at the start of `dst` if it fits.
inline TransformOutcome zstd_store(const std::vector<uint8_t>& section, std::span<uint8_t> dst) {
  if (section.size() > dst.size()) return {StreamStatus::output_overrun, 0};
  std::copy(section.begin(), section.end(), dst.begin());
  return {StreamStatus::ok, static_cast<uint32_t>(section.size())};
}

}  // namespace ptxkit::kernels
