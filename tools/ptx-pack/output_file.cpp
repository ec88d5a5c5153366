#include "tools/ptx-pack/output_file.hpp"

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include "support/check.hpp"

namespace ptxkit::pack {
namespace {

constexpr std::string_view kUnfinishedPrefix = ".ptx-pack.";
constexpr size_t kRandomDigits = 16;

// The name of the unfinished output, for the signal handler. Files are processed one after another, so one name is
// enough. It is recorded before the file is created.
char unfinished_output[PATH_MAX];

extern "C" void remove_unfinished_output(int signal) {
  if (unfinished_output[0] != '\0') ::unlink(unfinished_output);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Blocks signals during its lifetime, so that no handler sees a half-done change. Pool threads block signals themselves
// (support/thread.hpp).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

tl::unexpected<Error> system_error(const std::string& doing, const std::string& where, std::string todo = {}) {
  return fail(fmt::format("cannot {}: {}", doing, std::strerror(errno)), where, std::move(todo));
}

// The directory with its slash, or an empty string.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string unfinished_name(const std::string& folder) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = static_cast<uint64_t>(now.tv_nsec) << 32 ^ static_cast<uint64_t>(::getpid());
  }
  return fmt::format("{}{}{:016x}", folder, kUnfinishedPrefix, number);
}

// Records `name` for the signal handler. False if it is too long.
bool record(const std::string& name) {
  if (name.size() >= sizeof unfinished_output) return false;
  std::memcpy(unfinished_output, name.c_str(), name.size() + 1);
  return true;
}

using Resolved = std::unique_ptr<char, decltype(&std::free)>;
Resolved real(const std::string& path) { return {::realpath(path.c_str(), nullptr), &std::free}; }

struct Place {
  std::string path;               // after links are followed
  std::optional<int> descriptor;  // set if the path names a descriptor of this process
};

// Follows symbolic links in the last component of `path`. The target need not exist.
Result<Place> follow(const std::string& path) {
  constexpr int kMostLinks = 40;  // the kernel's limit
  const Resolved own_folder = real("/proc/self/fd");
  Place place{path, std::nullopt};
  for (int links = 0; links <= kMostLinks; ++links) {
    const std::string folder = folder_of(place.path);
    const Resolved real_folder = real(folder.empty() ? "." : folder);
    if (own_folder && real_folder && std::strcmp(own_folder.get(), real_folder.get()) == 0) {
      const char *const begin = place.path.data() + folder.size(), *const end = place.path.data() + place.path.size();
      int number = 0;
      if (std::from_chars(begin, end, number).ptr == end) place.descriptor = number;
      return place;
    }
    char target[PATH_MAX];
    const ssize_t length = ::readlink(place.path.c_str(), target, sizeof target);
    if (length < 0) return place;  // not a link; opening it reports any other problem
    const std::string_view leads_to(target, static_cast<size_t>(length));
    place.path = leads_to.starts_with('/') ? std::string(leads_to) : folder + std::string(leads_to);
  }
  errno = ELOOP;
  return system_error("open", path);
}

mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// Gives an unnamed file a name. Fails with EEXIST if the name is taken.
int link_unnamed(int descriptor, const std::string& path) {
  if (::linkat(descriptor, "", AT_FDCWD, path.c_str(), AT_EMPTY_PATH) == 0) return 0;
  if (errno == EEXIST) return -1;
  return ::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", descriptor).c_str(), AT_FDCWD, path.c_str(),
                  AT_SYMLINK_FOLLOW);
}

// Renames without replacing anything, on old file systems, too.
int rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (::link(from.c_str(), to.c_str()) == 0) return ::unlink(from.c_str());
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return -1;
  // File systems with neither (FAT on old kernels): checking first is the best that can be done.
  struct stat existing{};
  if (::lstat(to.c_str(), &existing) == 0) {
    errno = EEXIST;
    return -1;
  }
  return ::rename(from.c_str(), to.c_str());
}

}  // namespace

void install_interrupt_cleanup() {
  struct sigaction action{};
  action.sa_handler = remove_unfinished_output;
  sigfillset(&action.sa_mask);
  const auto install = [&](int signal) {
    struct sigaction before{};
    // A signal that the parent ignores (nohup) stays ignored.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);
  };
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGSTKFLT,
                           SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR}) {
    install(signal);
  }
}

bool is_unfinished_name(std::string_view name) {
  return name.starts_with(kUnfinishedPrefix) && name.size() == kUnfinishedPrefix.size() + kRandomDigits &&
         name.find_first_not_of("0123456789abcdef", kUnfinishedPrefix.size()) == name.npos;
}

bool remove_if_interrupted(const std::string& unfinished_name) {
  SignalsBlocked blocked;
  return record(unfinished_name);
}

Result<OutputFile> OutputFile::create(const std::string& path, const InputFile& input, bool overwrite,
                                      const Announce& announce) {
  OutputFile file;
  file.overwrite_ = overwrite;
  const auto is_input = [&](const struct stat& found) {
    return found.st_dev == input.info().st_dev && found.st_ino == input.info().st_ino &&
           (S_ISREG(found.st_mode) || S_ISBLK(found.st_mode));
  };
  struct stat existing{};
  if (path == "-") {
    file.kind_ = Kind::standard_output;
    file.name_ = "standard output";
    file.descriptor_ = STDOUT_FILENO;
    if (::fstat(STDOUT_FILENO, &existing) == 0 && is_input(existing))
      return fail("the output is the input", file.name_);
    return file;
  }
  file.name_ = path;
  auto place = follow(path);
  if (!place) return tl::unexpected(place.error());
  file.path_ = std::move(place->path);
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) return system_error("write", path);
  if (exists && S_ISDIR(existing.st_mode)) return fail("expected a file to write, found a directory", path);
  if (exists && is_input(existing)) {
    return fail("the output is the input", path, "name another output with -o");
  }
  if (place->descriptor || (exists && !S_ISREG(existing.st_mode))) {
    file.kind_ = Kind::existing;
    file.descriptor_ = place->descriptor ? ::fcntl(*place->descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                         : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file.descriptor_ < 0) return system_error("open", path);
    return file;
  }
  struct stat link{};
  if (!overwrite && ::lstat(path.c_str(), &link) == 0) {  // lstat: a dangling link exists, too
    return fail("the output exists already", path, "add -f to overwrite it");
  }
  if (auto opened = file.open_new(announce); !opened) return tl::unexpected(opened.error());
  return file;
}

Result<void> OutputFile::open_new(const Announce& announce) {
  const std::string folder = folder_of(path_);
  if (!announce) descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // Without root, the file can be linked only through /proc.
  if (descriptor_ >= 0 && ::access(fmt::format("/proc/self/fd/{}", descriptor_).c_str(), F_OK) == 0) return {};
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  const int most_attempts = announce ? 1 : 100;  // a name is announced once
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    temporary_ = unfinished_name(folder);
    if (announce) announce(temporary_);
    SignalsBlocked blocked;
    if (!record(temporary_)) return fail("the path is too long", path_);
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor_ >= 0) return {};
    unfinished_output[0] = '\0';
    temporary_.clear();
    if (errno != EEXIST) break;
  }
  return system_error("create a file beside it", name_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : kind_(other.kind_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      overwrite_(other.overwrite_),
      is_committed_(other.is_committed_),
      remarks_(std::move(other.remarks_)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0 && kind_ != Kind::standard_output) ::close(descriptor_);
  if (!temporary_.empty()) {
    SignalsBlocked blocked;
    ::unlink(temporary_.c_str());
    unfinished_output[0] = '\0';
  }
}

// Owner and group come first, because changing them clears the set-id bits. Only root may change the owner, and only to
// owners that exist in the user namespace, so a refusal is not an error. But the mode was granted to that owner and
// that group: without both, set-id bits are dropped; without the group, group and others get only the rights that both
// had.
void OutputFile::take_over_attributes(const InputFile& input) {
  const auto remark = [&](const char* what) { remarks_.push_back(fmt::format("{}: {}", what, std::strerror(errno))); };
  if (!S_ISREG(input.info().st_mode)) {
    (void)::fchmod(descriptor_, usual_mode());
    return;
  }
  const struct stat& info = input.info();
  if (::fchown(descriptor_, info.st_uid, info.st_gid) != 0) {
    remark("the owner is not taken over");
    // Changing the group may still be allowed, if the caller is a member. fstat() below finds out whether it worked.
    [[maybe_unused]] const int refused = ::fchown(descriptor_, static_cast<uid_t>(-1), info.st_gid);
  }
  struct stat got{};
  const bool is_known = ::fstat(descriptor_, &got) == 0;
  const bool has_owner = is_known && got.st_uid == info.st_uid, has_group = is_known && got.st_gid == info.st_gid;
  mode_t mode = info.st_mode & 07777;
  if (!has_owner || !has_group) mode &= 01777;
  if (!has_group) {
    const mode_t common = (mode >> 3) & mode & 0007;
    mode = (mode & 01700) | common << 3 | common;
  }
  if (::fchmod(descriptor_, mode) != 0) remark("the mode is not taken over");
  const timespec times[2] = {info.st_atim, info.st_mtim};
  if (::futimens(descriptor_, times) != 0) remark("the times are not taken over");
}

Result<void> OutputFile::commit(const InputFile& input, bool durable) {
  PTXKIT_CHECK(!is_committed_, "an output is put in place once");
  if (kind_ == Kind::standard_output) {
    is_committed_ = true;
    return {};
  }
  if (kind_ == Kind::existing) {
    if (::close(std::exchange(descriptor_, -1)) != 0) return system_error("write", name_);
    is_committed_ = true;
    return {};
  }
  take_over_attributes(input);
  if (durable && ::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOSYS) return system_error("write", name_);
  // Some file systems report a full disk only on close(). Closes a duplicate, because the descriptor is still needed
  // for the name.
  const int other = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other >= 0 && ::close(other) != 0) return system_error("write", name_);
  if (auto done = put_in_place(); !done) return done;
  is_committed_ = true;
  if (!durable) return {};
  const std::string folder = folder_of(path_);
  const int folder_descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A directory that is writable but not readable, or a file system without directory sync (EINVAL), is accepted: the
  // file itself has reached the disk.
  if (folder_descriptor < 0) return {};
  const bool reached = ::fsync(folder_descriptor) == 0 || errno == EINVAL;
  ::close(folder_descriptor);
  if (!reached) return system_error("write the folder", name_);
  return {};
}

Result<void> OutputFile::put_in_place() {
  SignalsBlocked blocked;
  if (temporary_.empty()) {
    if (link_unnamed(descriptor_, path_) == 0) return {};
    if (errno != EEXIST || !overwrite_) return not_in_place();
    // Only a named file can replace another one.
    temporary_ = unfinished_name(folder_of(path_));
    if (!record(temporary_)) return fail("the path is too long", name_);
    if (link_unnamed(descriptor_, temporary_) != 0) return not_in_place();
  }
  const int renamed = overwrite_ ? ::rename(temporary_.c_str(), path_.c_str()) : rename_to_new(temporary_, path_);
  if (renamed != 0) return not_in_place();
  temporary_.clear();
  unfinished_output[0] = '\0';
  return {};
}

tl::unexpected<Error> OutputFile::not_in_place() const {
  if (errno == EEXIST) return fail("the output exists already", name_, "add -f to overwrite it");
  return system_error("put the finished file in place", name_);
}

bool OutputFile::lies_in_place() const {
  struct stat written{}, named{};
  return kind_ == Kind::new_file && is_committed_ && ::fstat(descriptor_, &written) == 0 &&
         ::stat(path_.c_str(), &named) == 0 && written.st_dev == named.st_dev && written.st_ino == named.st_ino &&
         written.st_size == named.st_size;
}

}  // namespace ptxkit::pack
