#include "tools/ptx-pack/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tools/ptx-pack/output_file.hpp"

namespace ptxkit::pack {
namespace {

tl::unexpected<Error> system_error(const std::string& doing, const std::string& where) {
  return fail(fmt::format("cannot {}: {}", doing, std::strerror(errno)), where);
}

// File systems that generate content on reading: their files report a size of 0 or of one page.
bool is_made_when_read(int descriptor) {
  struct statfs system{};
  if (::fstatfs(descriptor, &system) != 0) return false;
  constexpr std::array<uint64_t, 7> kKinds = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,      TRACEFS_MAGIC,
                                              SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC};
  const auto kind = static_cast<uint64_t>(static_cast<uint32_t>(system.f_type));
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

bool is_same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

Result<InputFile> InputFile::open(const std::string& path) {
  const bool is_stdin = path == "-";
  const int descriptor = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error("open", path);
  InputFile file(descriptor, is_stdin ? "standard input" : path);
  if (::fstat(descriptor, &file.info_) != 0) return system_error("read", file.name_);
  if (S_ISDIR(file.info_.st_mode))
    return fail("expected a file, found a directory", path, "add -r to take the files in it");
  if (!S_ISREG(file.info_.st_mode) || is_made_when_read(descriptor)) return file;
  const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
  if (position < 0 || position > file.info_.st_size) return file;
  file.begin_ = static_cast<uint64_t>(position);
  // A user-space file system (FUSE) may report 0 for a file whose size it does not know.
  char byte;
  if (file.info_.st_size == 0 && ::pread(descriptor, &byte, 1, 0) != 0) return file;
  file.size_bytes_ = static_cast<uint64_t>(file.info_.st_size - position);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      info_(other.info_),
      begin_(other.begin_),
      size_bytes_(other.size_bytes_) {}

InputFile::~InputFile() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

Result<void> InputFile::check_size(uint64_t read_bytes) const {
  struct stat now{};
  if (!size_bytes_ || ::fstat(descriptor_, &now) != 0) return {};
  if (read_bytes == *size_bytes_ && now.st_size == info_.st_size) return {};
  const uint64_t found = read_bytes != *size_bytes_ ? read_bytes : static_cast<uint64_t>(now.st_size) - begin_;
  return fail(fmt::format("the input changed while it was read: expected {} bytes, found {}", *size_bytes_, found),
              name_, "compress it again when nobody writes to it");
}

bool InputFile::is_still(const std::string& path) const {
  struct stat now{};
  return ::stat(path.c_str(), &now) == 0 && is_same_file(now, info_) && now.st_size == info_.st_size &&
         now.st_mtim.tv_sec == info_.st_mtim.tv_sec && now.st_mtim.tv_nsec == info_.st_mtim.tv_nsec;
}

Result<void> remove_input(const std::string& path, const InputFile& input, const OutputFile& output) {
  if (!output.lies_in_place()) {
    return fail("the input is kept: its output is no longer the file that was written", output.name());
  }
  if (!input.is_still(path)) {
    return fail("the input is kept: it has changed since it was read", path, "compress it again");
  }
  if (::unlink(path.c_str()) != 0) return system_error("remove the input", path);
  return {};
}

FoundFiles files_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {.files = {path}, .errors = {}};
  FoundFiles found;
  const auto complain = [&](const fs::path& folder) {
    found.errors.push_back(Error{"cannot read the directory: " + error.message(), folder.string(), {}});
  };
  std::vector<fs::path> folders = {path};
  while (!folders.empty()) {
    const fs::path folder = std::move(folders.back());
    folders.pop_back();
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      std::error_code kind_error;
      const fs::file_status kind = at->symlink_status(kind_error);
      if (fs::is_directory(kind)) folders.push_back(at->path());
      // For a file whose type cannot be read, opening it later reports the reason.
      if (fs::is_regular_file(kind) || kind_error) found.files.push_back(at->path().string());
    }
    if (error) complain(folder);
  }
  std::sort(found.files.begin(), found.files.end());
  return found;
}

}  // namespace ptxkit::pack
