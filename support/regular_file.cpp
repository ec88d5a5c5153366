#include "support/regular_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "support/place.hpp"

namespace ptxkit {
namespace {

constexpr int64_t kKernelFileSystems[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC,
                                          SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, EFIVARFS_MAGIC,
                                          BPF_FS_MAGIC,     DEVPTS_SUPER_MAGIC};

bool is_allowed(std::string_view real, std::span<const std::string> real_roots) {
  return std::ranges::any_of(real_roots, [&](const std::string& root) { return is_below(real, root); });
}

}  // namespace

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : "";
}

bool is_below(std::string_view real_path, std::string_view real_root) {
  if (real_root.empty() || !real_path.starts_with(real_root)) return false;
  return real_root.ends_with('/') || real_path.size() == real_root.size() || real_path[real_root.size()] == '/';
}

Result<RegularFile> read_regular_file(const std::string& path, uint64_t most_bytes,
                                      std::span<const std::string> real_roots) {
  const auto refuse = [&](std::string what) { return fail(std::move(what), path); };
  const auto cannot = [&](const char* doing) {
    return refuse(fmt::format("cannot {}: {}", doing, std::strerror(errno)));
  };
  RegularFile file;
  file.real_path = real_path(path);
  if (file.real_path.empty()) return cannot("open");
  if (!is_allowed(file.real_path, real_roots)) return refuse("lies outside of the folders that may be read");
  // Checked before opening, because opening a device may have side effects.
  struct stat info{};
  if (::stat(file.real_path.c_str(), &info) != 0) return cannot("open");
  if (!S_ISREG(info.st_mode)) return refuse("is no regular file");
  const Descriptor opened(::open(file.real_path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return cannot("open");
  // The file may have been exchanged between stat() and open(), so check again.
  struct statfs system{};
  if (::fstat(opened.number(), &info) != 0 || ::fstatfs(opened.number(), &system) != 0) return cannot("read");
  if (!S_ISREG(info.st_mode)) return refuse("is no regular file");
  if (std::ranges::count(kKernelFileSystems, static_cast<int64_t>(system.f_type)))
    return refuse("is a file of the kernel");
  char where[4096];
  const ssize_t length =
      // -1: /proc is not mounted.
      ::readlink(fmt::format("/proc/self/fd/{}", opened.number()).c_str(), where, sizeof where);
  if (length > 0 && !is_allowed({where, static_cast<size_t>(length)}, real_roots))
    return refuse("lies outside of the folders that may be read");
  if (static_cast<uint64_t>(info.st_size) > most_bytes)
    return refuse(fmt::format("has {} bytes, and at most {} are read", info.st_size, most_bytes));
  file.owner = info.st_uid;
  file.group = info.st_gid;
  file.mode = info.st_mode;
  file.content.resize(static_cast<size_t>(info.st_size));
  size_t at = 0;
  while (at < file.content.size()) {
    const ssize_t count = ::read(opened.number(), file.content.data() + at, file.content.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read");
    if (count == 0) break;
    at += static_cast<size_t>(count);
  }
  file.content.resize(at);
  return file;
}

}  // namespace ptxkit
