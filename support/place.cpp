#include "support/place.hpp"

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace ptxkit {
namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr std::string_view kOwnDescriptors = "/proc/self/fd";

std::string name_in(std::string_view path) {
  const std::string_view name = path.substr(folder_of(path).size());
  return name.empty() ? "." : std::string(name);
}

// Opens `folder` relative to the folder `at`.
std::optional<Place> place_in(int at, std::string folder_path, std::string_view path) {
  const std::string folder(folder_of(path));
  Descriptor opened(::openat(at, folder.empty() ? "." : folder.c_str(), kFolderFlags));
  if (!opened) return std::nullopt;
  if (folder.starts_with('/')) folder_path.clear();
  return Place{std::make_shared<const Descriptor>(std::move(opened)), folder_path + folder, name_in(path)};
}

bool is_own_descriptors(const Place& place) {
  struct stat own{}, folder{};
  return ::stat(kOwnDescriptors.data(), &own) == 0 && ::fstat(place.at(), &folder) == 0 &&
         FileIdentity(own) == FileIdentity(folder);
}

bool is_of_proc(int descriptor) {
  struct statfs system{};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// The rule of fs.protected_symlinks, which the kernel applies only to links that it follows itself.
bool may_follow(const Place& place, const struct stat& link) {
  struct stat folder{};
  if (::fstat(place.at(), &folder) != 0) return false;
  const bool is_shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return !is_shared || link.st_uid == ::geteuid() || link.st_uid == folder.st_uid;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

bool Place::status(struct stat& info, int flags) const { return ::fstatat(at(), name.c_str(), &info, flags) == 0; }

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/') + 1); }

std::optional<Place> place_of(const std::string& path) { return place_in(AT_FDCWD, {}, path); }

std::optional<Place> place_below(const Descriptor& root, const std::string& root_path, std::string_view path) {
  Descriptor at(::openat(root.number(), ".", kFolderFlags));
  std::string folder_path = root_path;
  while (at) {
    if (!folder_path.ends_with('/')) folder_path += '/';
    const size_t slash = path.find('/');
    const std::string part(path.substr(0, slash));
    if (part == "..") {
      errno = EXDEV;
      return std::nullopt;
    }
    if (slash == path.npos) return Place{std::make_shared<const Descriptor>(std::move(at)), folder_path, part};
    path.remove_prefix(slash + 1);
    if (part.empty()) continue;
    at = Descriptor(::openat(at.number(), part.c_str(), kFolderFlags | O_NOFOLLOW));
    folder_path += part;
  }
  return std::nullopt;
}

std::optional<Target> follow(Place place) {
  constexpr int kMostLinks = 40;  // the kernel's limit
  Target target{.place = std::move(place), .info = {}, .descriptor = {}};
  for (int links = 0; links <= kMostLinks; ++links) {
    const Place& here = target.place;
    struct stat info{};
    if (is_own_descriptors(here)) {
      int number = 0;
      const char *const begin = here.name.data(), *const end = begin + here.name.size();
      if (std::from_chars(begin, end, number).ptr == end) {
        target.descriptor = number;
        if (::fstat(number, &info) == 0) target.info = info;
        return target;
      }
    }
    const Descriptor found(::openat(here.at(), here.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!found && errno == ENOENT) return target;
    if (!found || ::fstat(found.number(), &info) != 0) return std::nullopt;
    if (!S_ISLNK(info.st_mode)) {
      target.info = info;
      return target;
    }
    target.is_link = true;
    if (!may_follow(here, info)) {
      errno = EACCES;
      return std::nullopt;
    }
    struct stat behind{};
    if (is_of_proc(found.number()) && here.status(behind, 0) && !S_ISREG(behind.st_mode) && !S_ISDIR(behind.st_mode)) {
      target.info = behind;
      target.is_of_process = true;
      return target;
    }
    char text[PATH_MAX];
    const ssize_t length = ::readlinkat(found.number(), "", text, sizeof text);
    if (length < 0) return std::nullopt;
    auto next = place_in(here.at(), here.folder_path, {text, static_cast<size_t>(length)});
    if (!next) return std::nullopt;
    target.place = std::move(*next);
  }
  errno = ELOOP;
  return std::nullopt;
}

Result<Descriptor> open_existing(const Target& target, const std::string& path) {
  const auto failed = [&] { return fail(fmt::format("cannot open: {}", std::strerror(errno)), path); };
  if (target.descriptor) {
    Descriptor own(::fcntl(*target.descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!own) return failed();
    return own;
  }
  const int links = target.is_of_process ? 0 : O_NOFOLLOW;
  Descriptor opened(::openat(target.place.at(), target.place.name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | links));
  struct stat info{};
  if (!opened || ::fstat(opened.number(), &info) != 0) return failed();
  if (!target.info || FileIdentity(info) != FileIdentity(*target.info) || S_ISREG(info.st_mode))
    return fail("another file has taken its place while it was opened", path, "try again when nobody changes it");
  return opened;
}

std::optional<Target> target_of(const std::string& path, int standard) {
  if (path != "-") {
    auto place = place_of(path);
    return place ? follow(std::move(*place)) : std::nullopt;
  }
  Target target{.place = {}, .info = {}, .descriptor = standard};
  struct stat info{};
  if (::fstat(standard, &info) == 0) target.info = info;
  return target;
}

bool is_same_file(const Target& a, const Target& b) {
  if (a.info.has_value() != b.info.has_value()) return false;
  if (a.info) return S_ISREG(a.info->st_mode) && FileIdentity(*a.info) == FileIdentity(*b.info);
  struct stat folder_a{}, folder_b{};
  return !a.descriptor && !b.descriptor && a.place.name == b.place.name && ::fstat(a.place.at(), &folder_a) == 0 &&
         ::fstat(b.place.at(), &folder_b) == 0 && FileIdentity(folder_a) == FileIdentity(folder_b);
}

}  // namespace ptxkit
