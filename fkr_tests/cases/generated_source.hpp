// A long input that is never in memory as a whole: a repeated pattern.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::testing {

class GeneratedSource final : public format::ByteSource {
 public:
  GeneratedSource(std::vector<uint8_t> pattern, uint64_t size_bytes)
      : pattern_(std::move(pattern)), left_bytes_(size_bytes) {}

  Result<size_t> read(format::MutableBytes into) override {
    const auto count = static_cast<size_t>(std::min<uint64_t>(into.size(), left_bytes_));
    for (size_t done = 0; done < count;) {
      const size_t piece = std::min(pattern_.size() - at_, count - done);
      std::memcpy(into.data() + done, pattern_.data() + at_, piece);
      at_ = (at_ + piece) % pattern_.size();
      done += piece;
    }
    left_bytes_ -= count;
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  const std::vector<uint8_t> pattern_;
  uint64_t left_bytes_;
  size_t at_ = 0;
  const std::string name_ = "generated";
};

}  // namespace ptxkit::testing
