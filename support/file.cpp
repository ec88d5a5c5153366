#include "support/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <endian.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/place.hpp"

namespace ptxkit {
namespace {

tl::unexpected<Error> system_error(const std::string& path, const char* doing) {
  return fail(std::string("cannot ") + doing + ": " + std::strerror(errno), path);
}

Result<std::string> read_all(int descriptor, const std::string& path, uint64_t most_bytes) {
  const auto too_long = [&] { return fail("longer than " + std::to_string(most_bytes) + " bytes", path); };
  std::string content;
  struct stat info{};
  if (::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode)) {
    if (static_cast<uint64_t>(info.st_size) > most_bytes) return too_long();
    content.reserve(static_cast<size_t>(info.st_size) + 1);
  }
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "read");
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
    if (content.size() > most_bytes) return too_long();
  }
}

// A file that gets its name only when it is complete. Until then it has no name where system and file system support
// that (O_TMPFILE, and /proc to link it), so that even a signal that ends the process leaves nothing behind.
class TemporaryFile {
 public:
  // In the folder of `target`. The temporary name does not contain the final name, which may already have the maximum
  // length.
  explicit TemporaryFile(const Place& target) : target_(target) {}
  ~TemporaryFile() {
    const int before = errno;
    if (!name_.empty()) ::unlinkat(target_.at(), name_.c_str(), 0);
    errno = before;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // open() and put_in_place() return false with errno on failure.
  bool open() {
    file_ = Descriptor(::openat(target_.at(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (file_ && ::access(own_link().c_str(), F_OK) == 0) return true;
    return with_new_name([&](const char* name) {
      file_ = Descriptor(::openat(target_.at(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      return static_cast<bool>(file_);
    });
  }

  bool put_in_place() {
    // link() does not replace an existing file, rename() does.
    const auto link = [&](const char* name) {
      return ::linkat(AT_FDCWD, own_link().c_str(), target_.at(), name, AT_SYMLINK_FOLLOW) == 0;
    };
    if (name_.empty() && !with_new_name(link)) return false;
    if (::close(file_.release()) != 0 ||
        ::renameat(target_.at(), name_.c_str(), target_.at(), target_.name.c_str()) != 0) {
      return false;
    }
    name_.clear();
    return true;
  }

  int descriptor() const { return file_.number(); }

 private:
  // Tries names until `make` does not find one taken, and keeps the last one.
  bool with_new_name(const std::function<bool(const char* name)>& make) {
    constexpr int kMostAttempts = 100;
    std::random_device random;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const std::string name = fmt::format(".ptxkit.{:08x}{:08x}", random(), random());
      if (make(name.c_str())) {
        name_ = name;
        return true;
      }
      if (errno != EEXIST) return false;
    }
    return false;
  }

  std::string own_link() const { return fmt::format("/proc/self/fd/{}", file_.number()); }

  const Place& target_;
  Descriptor file_;
  std::string name_;  // the temporary one; empty: none
};

}  // namespace

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Result<std::string> read_file(const std::string& path, uint64_t most_bytes) {
  const bool is_stdin = path == "-";
  const int descriptor = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path, "open");
  auto content = read_all(descriptor, path, most_bytes);
  if (!is_stdin) ::close(descriptor);
  return content;
}

Result<std::string> read_regular_file(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: opening a pipe must not block.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return system_error(path, "open");
  struct stat info{};
  Result<std::string> content = fail("expected a regular file", path);
  if (::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode)) content = read_all(descriptor, path, most_bytes);
  ::close(descriptor);
  return content;
}

Result<void> check_writable(const std::string& path) {
  if (path.empty() || path == "-") return {};
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) errno = EISDIR;
    if (!S_ISDIR(info.st_mode) && ::access(path.c_str(), W_OK) == 0) return {};
    return system_error(path, "write");
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  if (slash + 1 == path.size() && slash != path.npos)
    errno = EISDIR;
  else if (::access(folder.c_str(), W_OK | X_OK) == 0)
    return {};
  return system_error(path, "write");
}

Result<void> write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    if (!write_all(STDOUT_FILENO, content)) return system_error("standard output", "write");
    return {};
  }
  return replace_file(path, [content](int descriptor) { return write_all(descriptor, content); });
}

namespace {

// The process's mask. umask() can only be asked by changing it, which other threads would notice; Linux 4.7 and later
// tell it in /proc.
mode_t current_umask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Umask:")) return static_cast<mode_t>(std::strtoul(line.c_str() + 6, nullptr, 8));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

// The permissions of the regular file at `place`, which has the status `info`.
mode_t permissions_of(const Place& place, const struct stat& info) {
  const Descriptor file(::openat(place.at(), place.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return (file ? mode_of(file.number(), info) : info.st_mode) & 0777;
}

}  // namespace

Result<void> replace_file(const std::string& path, const std::function<bool(int descriptor)>& write,
                          mode_t permissions) {
  if (path.empty()) {
    errno = ENOENT;
    return system_error(path, "write");
  }
  // A symbolic link is followed: its target is replaced, or made where there is none.
  auto place = place_of(path);
  const auto target = place ? follow(std::move(*place)) : std::nullopt;
  if (!target) return system_error(path, "write");
  if (target->descriptor || (target->info && !S_ISREG(target->info->st_mode) && !S_ISDIR(target->info->st_mode))) {
    // A device or a pipe is written to directly: a rename would replace it by a file.
    auto opened = open_existing(*target, path);
    if (!opened) return tl::unexpected(opened.error());
    const bool is_written = write(opened->number());
    const int write_errno = errno;
    const bool is_closed = ::close(opened->release()) == 0;
    if (is_written && is_closed) return {};
    if (!is_written) errno = write_errno;
    return system_error(path, "write");
  }
  TemporaryFile file(target->place);
  const mode_t mode = target->info ? permissions_of(target->place, *target->info) : permissions & ~current_umask();
  if (!file.open() || !write(file.descriptor())) return system_error(path, "write");
  // File systems without modes refuse this; the content is still right.
  (void)::fchmod(file.descriptor(), mode);
  if (!file.put_in_place()) return system_error(path, "write");
  return {};
}

mode_t mode_of(int descriptor, const struct stat& info) {
  // linux/posix_acl_xattr.h: a version of 32 bits, then entries of a tag, rights and a number of a user or group.
  struct Entry {
    uint16_t tag, rights;
    uint32_t number;
  };
  constexpr uint16_t kOwningGroup = 0x04;
  constexpr size_t kVersionBytes = sizeof(uint32_t), kMostEntries = 8192;  // XATTR_SIZE_MAX is 64 KiB
  const mode_t mode = info.st_mode & 07777;
  char first = 0;
  if (::fgetxattr(descriptor, "system.posix_acl_access", &first, 0) <= 0) return mode;
  std::vector<char> list(kVersionBytes + kMostEntries * sizeof(Entry));
  const ssize_t size = ::fgetxattr(descriptor, "system.posix_acl_access", list.data(), list.size());
  for (size_t at = kVersionBytes; size > 0 && at + sizeof(Entry) <= static_cast<size_t>(size); at += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, list.data() + at, sizeof(entry));
    if (le16toh(entry.tag) == kOwningGroup) return mode & (07707 | static_cast<mode_t>(le16toh(entry.rights)) << 3);
  }
  return mode & 07707;
}

}  // namespace ptxkit
