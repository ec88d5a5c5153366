#include "support/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptxkit {
namespace {

constexpr uint64_t kMostBytes = uint64_t{4} << 30;
constexpr const char* kTooLong = "longer than 4 GiB, which is more than is read whole";

tl::unexpected<Error> system_error(const std::string& path, const char* doing) {
  return fail(std::string("cannot ") + doing + ": " + std::strerror(errno), path);
}

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Result<std::string> read_all(int descriptor, const std::string& path, uint64_t most_bytes = kMostBytes) {
  const auto too_long = [&] {
    return fail(most_bytes == kMostBytes ? kTooLong : "longer than " + std::to_string(most_bytes) + " bytes", path);
  };
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

// A device or a pipe: a rename would put a file in its place.
Result<void> write_into(const std::string& path, std::string_view content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path, "open");
  const bool written = write_all(descriptor, content);
  const int write_errno = errno;
  const bool closed = ::close(descriptor) == 0;
  if (written && closed) return {};
  if (!written) errno = write_errno;
  return system_error(path, "write");
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const bool is_stdin = path == "-";
  const int descriptor = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path, "open");
  auto content = read_all(descriptor, path);
  if (!is_stdin) ::close(descriptor);
  return content;
}

Result<std::string> read_regular_file(const std::string& path, std::size_t most_bytes) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // a pipe would wait
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
  // What a link leads to is written, not the link.
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  const std::string target = real ? real.get() : path;
  struct stat info{};
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return write_into(target, content);
  // Not the target's name and more: that may be as long as names can be.
  std::string temporary = target.substr(0, target.rfind('/') + 1) + ".ptxkit.XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0) return system_error(path, "write");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool written = write_all(descriptor, content);
  const int write_errno = errno;
  (void)::fchmod(descriptor, 0666 & ~mask);  // a file system without modes refuses, and the content is right
  const bool closed = ::close(descriptor) == 0;
  if (!written || !closed || ::rename(temporary.c_str(), target.c_str()) != 0) {
    if (!written) errno = write_errno;
    auto error = system_error(path, "write");
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

}  // namespace ptxkit
