#include "runtime/format/byte_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace ptxkit::format {

Result<std::size_t> DescriptorSource::read(MutableBytes into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::read(descriptor_, into.data() + done, into.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(std::string("cannot read: ") + std::strerror(errno), name_);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<void> DescriptorSink::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(std::string("cannot write: ") + std::strerror(errno), name_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<std::size_t> MemorySource::read(MutableBytes into) {
  const std::size_t count = std::min(into.size(), rest_.size());
  if (count != 0) std::memcpy(into.data(), rest_.data(), count);
  rest_ = rest_.subspan(count);
  return count;
}

Result<void> MemorySink::write(Bytes bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return {};
}

}  // namespace ptxkit::format
