// A source whose first bytes can be inspected before they are read. The name of a pipe does not tell its format.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::format {

class PeekedSource final : public ByteSource {
 public:
  explicit PeekedSource(ByteSource& from) : from_(from) {}

  // The first 16 bytes, or all of fewer. Call it once, before any read.
  Result<Bytes> first() {
    const auto got = from_.read(first_);
    if (!got) return tl::unexpected(got.error());
    left_ = Bytes(first_).first(*got);
    return left_;
  }
  // What first() has returned and no read has consumed.
  Bytes peeked() const { return left_; }

  Result<size_t> read(MutableBytes into) override { return read_some(into, into.size()); }
  Result<size_t> read_some(MutableBytes into, size_t least) override {
    const size_t count = std::min(left_.size(), into.size());
    std::copy_n(left_.begin(), count, into.begin());
    left_ = left_.subspan(count);
    if (count >= least) return count;
    const auto more = from_.read_some(into.subspan(count), least - count);
    return more ? Result<size_t>(count + *more) : more;
  }
  size_t look_ahead(uint64_t at, MutableBytes into) const override {
    return left_.empty() ? from_.look_ahead(at, into) : 0;
  }
  const std::string& name() const override { return from_.name(); }

 private:
  ByteSource& from_;
  std::array<uint8_t, 16> first_{};
  Bytes left_;  // of first_, not yet read
};

}  // namespace ptxkit::format
