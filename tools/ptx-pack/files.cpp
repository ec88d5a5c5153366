#include "tools/ptx-pack/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <dirent.h>
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

// The folder of a search, if it is still the one that was searched.
Result<Descriptor> open_root(const std::string& path, const std::optional<FileIdentity>& searched) {
  Descriptor root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!root || ::fstat(root.number(), &info) != 0) return system_error("open", path);
  if (searched && FileIdentity(info) != *searched)
    return fail("the folder is another one than when it was searched", path);
  return root;
}

Result<Place> place_of_input(const InputName& input) {
  std::optional<Place> place;
  if (input.root) {
    const std::string root_path = input.path.substr(0, input.root->path_bytes);
    const auto root = open_root(root_path, input.root->identity);
    if (!root) return tl::unexpected(root.error());
    place = place_below(*root, root_path, std::string_view(input.path).substr(input.root->path_bytes));
  } else {
    place = place_of(input.path);
  }
  if (!place) return system_error("open", input.path);
  return *place;
}

}  // namespace

std::vector<std::string> paths_of(const std::vector<InputName>& inputs) {
  std::vector<std::string> paths;
  for (const InputName& input : inputs) paths.push_back(input.path);
  return paths;
}

Result<InputFile> InputFile::open(const InputName& input) {
  const std::string& path = input.path;
  const bool is_stdin = path == "-";
  std::optional<Place> place;
  int descriptor = STDIN_FILENO;
  if (!is_stdin) {
    auto found = place_of_input(input);
    if (!found) return tl::unexpected(found.error());
    // A file that was found may have become a pipe, which nobody writes to.
    const int more = input.root ? O_NOFOLLOW | O_NONBLOCK : 0;
    descriptor = ::openat(found->at(), found->name.c_str(), O_RDONLY | O_CLOEXEC | more);
    if (descriptor < 0) return system_error("open", path);
    place = std::move(*found);
  }
  InputFile file(descriptor, is_stdin ? "standard input" : path, std::move(place), input.root.has_value());
  if (::fstat(descriptor, &file.info_) != 0) return system_error("read", file.name_);
  if (S_ISDIR(file.info_.st_mode))
    return fail("expected a file, found a directory", path, "add -r to take the files in it");
  if (input.root && !S_ISREG(file.info_.st_mode)) return fail("it is no longer the file that the search found", path);
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
      place_(std::move(other.place_)),
      was_found_(other.was_found_),
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

bool InputFile::is_unchanged() const {
  struct stat now{};
  return place_ && place_->status(now, was_found_ ? AT_SYMLINK_NOFOLLOW : 0) &&
         FileIdentity(now) == FileIdentity(info_) && now.st_size == info_.st_size &&
         now.st_mtim.tv_sec == info_.st_mtim.tv_sec && now.st_mtim.tv_nsec == info_.st_mtim.tv_nsec;
}

Result<void> remove_input(const InputFile& input, const OutputFile& output) {
  if (!output.lies_in_place()) {
    return fail("the input is kept: its output is no longer the file that was written", output.name());
  }
  if (!input.is_unchanged()) {
    return fail("the input is kept: it has changed since it was read", input.name(), "compress it again");
  }
  if (::unlinkat(input.place()->at(), input.place()->name.c_str(), 0) != 0)
    return system_error("remove the input", input.name());
  return {};
}

FoundFiles files_below(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {.files = {{path}}, .errors = {}};
  FoundFiles found;
  const auto complain = [&](const std::string& folder) {
    found.errors.push_back(system_error("read the directory", folder).value());
  };
  const auto root = open_root(path, {});
  if (!root || ::fstat(root->number(), &info) != 0) {
    complain(path);
    return found;
  }
  const InputName::Root searched{path.size(), FileIdentity(info)};
  std::vector<std::string> folders = {path.ends_with('/') ? path : path + '/'};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    const auto place = place_below(*root, path, std::string_view(folder).substr(path.size()));
    Descriptor opened(place ? ::openat(place->at(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    const auto close = [](DIR* each) { ::closedir(each); };
    const std::unique_ptr<DIR, decltype(close)> listing(opened ? ::fdopendir(opened.number()) : nullptr, close);
    const int number = opened.number();
    const dirent* entry = nullptr;
    if (listing) opened.release();
    while (listing && (errno = 0, entry = ::readdir(listing.get())) != nullptr) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat kind{};
      const bool is_known = ::fstatat(number, entry->d_name, &kind, AT_SYMLINK_NOFOLLOW) == 0;
      if (is_known && S_ISDIR(kind.st_mode)) folders.push_back(folder + entry->d_name + '/');
      // For a file whose type cannot be read, opening it later reports the reason.
      if (!is_known || S_ISREG(kind.st_mode)) found.files.push_back({folder + entry->d_name, searched});
    }
    if (!listing || errno != 0) complain(folder.size() == 1 ? folder : folder.substr(0, folder.size() - 1));
  }
  std::ranges::sort(found.files, {}, &InputName::path);
  return found;
}

}  // namespace ptxkit::pack
