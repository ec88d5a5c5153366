// Reads the small fields and the large payloads of a stream without a system call for each: what it reads ahead stays
// in a buffer of its own.
#pragma once

#include <vector>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::format {

class FieldReader {
 public:
  explicit FieldReader(ByteSource& source) : source_(source) {}

  // The next bytes, without consuming them: at least `least` unless the input ends before, and perhaps more.
  // `least` is at most kAheadBytes. Valid until the next call.
  Result<Bytes> peek(size_t least);
  // Consumes bytes that peek() has returned.
  void skip(size_t count);
  // Appends the next `count` bytes to `out`; fewer if the input ends. Returns how many. Reads in steps that double, so
  // a size that the input only claims costs no memory.
  Result<size_t> append(size_t count, std::vector<uint8_t>& out);
  // Consumes `count` bytes, or fewer if the input ends. Returns how many.
  Result<uint64_t> discard(uint64_t count);

  uint64_t offset() const { return offset_; }  // bytes consumed
  const std::string& name() const { return source_.name(); }

  static constexpr size_t kAheadBytes = 128u << 10;

 private:
  ByteSource& source_;
  std::vector<uint8_t> ahead_;
  size_t begin_ = 0, end_ = 0;  // of the unread bytes in ahead_
  uint64_t offset_ = 0;
};

}  // namespace ptxkit::format
