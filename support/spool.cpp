#include "support/spool.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "support/file.hpp"
#include "support/regular_file.hpp"

namespace ptxkit {
namespace {

// A mkostemp template in the directory of the file that `path` refers to.
std::string temporary_beside(const std::string& path) {
  const std::string real = real_path(path);
  const std::string& target = real.empty() ? path : real;
  return target.substr(0, target.rfind('/') + 1) + ".ptxkit.XXXXXX";
}

}  // namespace

Spool::~Spool() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Spool::Spool(Spool&& other) noexcept
    : neighbour_(std::move(other.neighbour_)),
      unstored_(std::move(other.unstored_)),
      stored_bytes_(other.stored_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      has_no_file_(other.has_no_file_),
      is_broken_(other.is_broken_) {}

void Spool::append(std::string_view text) {
  unstored_ += text;
  if (unstored_.size() >= kMaxUnstoredBytes && !has_no_file_) store();
}

void Spool::store() {
  if (descriptor_ < 0) {
    std::string name = temporary_beside(neighbour_);
    descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    has_no_file_ = descriptor_ < 0;
    if (has_no_file_) return;
    ::unlink(name.c_str());
  }
  is_broken_ = is_broken_ || !write_all(descriptor_, unstored_);
  stored_bytes_ += unstored_.size();
  unstored_.clear();
}

bool Spool::piece_at(uint64_t from, uint64_t most_bytes, std::string& piece) {
  const size_t bytes = static_cast<size_t>(std::min<uint64_t>(most_bytes, kPieceBytes));
  if (is_broken_ || from >= size()) return false;
  if (from >= stored_bytes_) {
    piece.assign(unstored_, static_cast<size_t>(from - stored_bytes_), bytes);
    return !piece.empty();
  }
  piece.resize(static_cast<size_t>(std::min<uint64_t>(bytes, stored_bytes_ - from)));
  ssize_t count = 0;
  do count = ::pread(descriptor_, piece.data(), piece.size(), static_cast<off_t>(from));
  while (count < 0 && errno == EINTR);
  piece.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return !piece.empty();
}

bool Spool::write_to(int descriptor) {
  bool is_written = true;
  const bool is_read =
      read(0, size(), [&](std::string_view text) { is_written = is_written && write_all(descriptor, text); });
  if (!is_read && is_written) errno = is_broken_ ? ENOSPC : EIO;
  return is_read && is_written;
}

Result<void> Spool::save(const std::string& path) {
  return replace_file(path, [this](int descriptor) { return write_to(descriptor); });
}

}  // namespace ptxkit
