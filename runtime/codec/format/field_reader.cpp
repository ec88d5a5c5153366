#include "runtime/codec/format/field_reader.hpp"

#include <algorithm>

#include "support/check.hpp"

namespace ptxkit::format {
namespace {

constexpr size_t kFirstStepBytes = 64u << 10;

}  // namespace

Result<Bytes> FieldReader::peek(size_t least) {
  PTXKIT_CHECK(least <= kAheadBytes, "a field is shorter than the buffer");
  if (end_ - begin_ < least) {
    ahead_.resize(kAheadBytes);
    std::copy(ahead_.begin() + static_cast<ptrdiff_t>(begin_), ahead_.begin() + static_cast<ptrdiff_t>(end_),
              ahead_.begin());
    end_ -= begin_;
    begin_ = 0;
    const auto count = source_.read_some(MutableBytes(ahead_).subspan(end_), least - end_);
    if (!count) return tl::unexpected(count.error());
    end_ += *count;
  }
  return Bytes(ahead_).subspan(begin_, end_ - begin_);
}

void FieldReader::skip(size_t count) {
  PTXKIT_CHECK(count <= end_ - begin_, "only what was peeked at can be skipped");
  begin_ += count;
  offset_ += count;
}

Result<size_t> FieldReader::append(size_t count, std::vector<uint8_t>& out) {
  size_t done = std::min(count, end_ - begin_);
  out.insert(out.end(), ahead_.begin() + static_cast<ptrdiff_t>(begin_),
             ahead_.begin() + static_cast<ptrdiff_t>(begin_ + done));
  skip(done);
  for (size_t step = kFirstStepBytes; done < count; step *= 2) {
    const size_t wanted = std::min(step, count - done), before = out.size();
    out.resize(before + wanted);
    const auto got = source_.read(MutableBytes(out).last(wanted));
    if (!got) return tl::unexpected(got.error());
    out.resize(before + *got);
    offset_ += *got;
    done += *got;
    if (*got < wanted) break;
  }
  return done;
}

Result<uint64_t> FieldReader::discard(uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    const auto bytes = peek(static_cast<size_t>(std::min<uint64_t>(count - done, kAheadBytes)));
    if (!bytes) return tl::unexpected(bytes.error());
    if (bytes->empty()) break;
    const auto taken = static_cast<size_t>(std::min<uint64_t>(count - done, bytes->size()));
    skip(taken);
    done += taken;
  }
  return done;
}

}  // namespace ptxkit::format
