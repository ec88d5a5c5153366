#include "runtime/codec/format/byte_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace ptxkit::format {
namespace {

tl::unexpected<Error> ends_early(uint64_t at, size_t expected_bytes, size_t found_bytes, const std::string& name) {
  return fail("truncated: expected " + std::to_string(expected_bytes) + " bytes, found " + std::to_string(found_bytes),
              name + ", byte " + std::to_string(at));
}

}  // namespace

Result<size_t> DescriptorSource::read_some(MutableBytes into, size_t least) {
  size_t done = 0;
  while (done < least) {
    const ssize_t count = ::read(descriptor_, into.data() + done, into.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_io(std::string("cannot read: ") + std::strerror(errno), name_);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

// Errors count as nothing to look at here: read() reports them.
size_t DescriptorSource::look_ahead(uint64_t at, MutableBytes into) const {
  const off_t begin = ::lseek(descriptor_, 0, SEEK_CUR);
  if (begin < 0) return 0;
  const ssize_t count = ::pread(descriptor_, into.data(), into.size(), begin + static_cast<off_t>(at));
  return count < 0 ? 0 : static_cast<size_t>(count);
}

Result<void> DescriptorFile::read_at(uint64_t at, MutableBytes into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count =
        ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(begin_ + at + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_io(std::string("cannot read: ") + std::strerror(errno), name_);
    if (count == 0) return ends_early(at, into.size(), done, name_);
    done += static_cast<size_t>(count);
  }
  return {};
}

Result<void> DescriptorSink::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_io(std::string("cannot write: ") + std::strerror(errno), name_);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<size_t> MemorySource::read(MutableBytes into) {
  const size_t count = std::min(into.size(), rest_.size());
  if (count != 0) std::memcpy(into.data(), rest_.data(), count);
  rest_ = rest_.subspan(count);
  return count;
}

size_t MemorySource::look_ahead(uint64_t at, MutableBytes into) const {
  const Bytes ahead = at < rest_.size() ? rest_.subspan(at) : Bytes();
  const size_t count = std::min(into.size(), ahead.size());
  if (count != 0) std::memcpy(into.data(), ahead.data(), count);
  return count;
}

Result<void> MemoryFile::read_at(uint64_t at, MutableBytes into) const {
  const size_t left = at < bytes_.size() ? bytes_.size() - at : 0;
  if (left < into.size()) return ends_early(at, into.size(), left, name_);
  if (!into.empty()) std::memcpy(into.data(), bytes_.data() + at, into.size());
  return {};
}

Result<void> MemorySink::write(Bytes bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return {};
}

}  // namespace ptxkit::format
