#include "tools/ptx-pack/sparse_sink.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptxkit::pack {
namespace {

constexpr uint64_t kPageBytes = 4096;

bool is_zero(format::Bytes bytes) {
  return bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

bool SparseSink::fits(int descriptor) {
  struct stat info{};
  const int flags = ::fcntl(descriptor, F_GETFL);
  return ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && flags >= 0 && (flags & O_APPEND) == 0 &&
         ::lseek(descriptor, 0, SEEK_CUR) >= 0;
}

SparseSink::SparseSink(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {
  struct stat info{};
  if (::fstat(descriptor, &info) == 0) old_bytes_ = static_cast<uint64_t>(info.st_size);
  at_ = end_ = static_cast<uint64_t>(std::max<off_t>(0, ::lseek(descriptor, 0, SEEK_CUR)));
}

Result<void> SparseSink::write(format::Bytes bytes) {
  while (!bytes.empty()) {
    // Splits at page boundaries of the file, and joins adjacent pages that become holes, or that do not, into one
    // piece.
    const auto page_bytes = [&](uint64_t at) {
      return std::min<uint64_t>(kPageBytes - at % kPageBytes, bytes.size() - (at - at_));
    };
    const auto is_hole = [&](uint64_t at, uint64_t size) {
      return size == kPageBytes && at >= old_bytes_ && is_zero(bytes.subspan(at - at_, size));
    };
    uint64_t end = at_ + page_bytes(at_);
    const bool leaves_hole = is_hole(at_, end - at_);
    while (end - at_ < bytes.size()) {
      const uint64_t size = page_bytes(end);
      if (is_hole(end, size) != leaves_hole) break;
      end += size;
    }
    const auto piece = bytes.first(end - at_);
    if (!leaves_hole) {
      if (auto done = write_at(at_, piece); !done) return done;
      end_ = end;
    }
    at_ = end;
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

Result<void> SparseSink::finish() {
  if (at_ > std::max(end_, old_bytes_) && ::ftruncate(descriptor_, static_cast<off_t>(at_)) != 0) {
    return fail(std::string("cannot write: ") + std::strerror(errno), name_);
  }
  // Later writers to the same descriptor (standard output) continue after the data.
  if (::lseek(descriptor_, static_cast<off_t>(at_), SEEK_SET) < 0) {
    return fail(std::string("cannot write: ") + std::strerror(errno), name_);
  }
  return {};
}

Result<void> SparseSink::write_at(uint64_t at, format::Bytes bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(std::string("cannot write: ") + std::strerror(errno), name_);
    at += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace ptxkit::pack
