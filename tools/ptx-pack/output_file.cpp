#include "tools/ptx-pack/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <iterator>
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
#include "support/file.hpp"

namespace ptxkit::pack {
namespace {

constexpr std::string_view kUnfinishedPrefix = ".ptx-pack.";
constexpr size_t kRandomDigits = 16;

// The unfinished outputs, for the signal handler: one of an input, since files are processed one after another, and the
// time line. Each is recorded before the file is created.
struct Unfinished {
  int folder;
  char name[PATH_MAX];  // empty: none
} unfinished[2];

extern "C" void remove_unfinished_outputs(int signal) {
  for (const Unfinished& each : unfinished) {
    if (each.name[0] != '\0') ::unlinkat(each.folder, each.name, 0);
  }
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

std::string unfinished_name() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = static_cast<uint64_t>(now.tv_nsec) << 32 ^ static_cast<uint64_t>(::getpid());
  }
  return fmt::format("{}{:016x}", kUnfinishedPrefix, number);
}

// Records a name for the signal handler. False if it is too long.
bool record(int folder, const std::string& name) {
  Unfinished* const free = std::ranges::find(unfinished, '\0', [](const Unfinished& each) { return each.name[0]; });
  if (free == std::end(unfinished) || name.size() >= sizeof free->name) return false;
  free->folder = folder;
  std::memcpy(free->name, name.c_str(), name.size() + 1);
  return true;
}

void forget(const std::string& name) {
  for (Unfinished& each : unfinished) {
    if (each.name == name) each.name[0] = '\0';
  }
}

// The folder of an input of the same folder, where it is the one that was opened; otherwise that of `path`.
std::optional<Place> output_place(const std::string& path, const InputFile* input) {
  if (input == nullptr || !input->place() || folder_of(input->name()) != folder_of(path)) return place_of(path);
  Place place = *input->place();
  place.name = path.substr(folder_of(path).size());
  return place;
}

mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// Gives an unnamed file a name. Fails with EEXIST if the name is taken.
int link_unnamed(int descriptor, int folder, const std::string& name) {
  if (::linkat(descriptor, "", folder, name.c_str(), AT_EMPTY_PATH) == 0) return 0;
  if (errno == EEXIST) return -1;
  return ::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", descriptor).c_str(), folder, name.c_str(),
                  AT_SYMLINK_FOLLOW);
}

// Renames within a folder without replacing anything, on old file systems, too.
int rename_to_new(int folder, const char* from, const char* to) {
  if (::renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (::linkat(folder, from, folder, to, 0) == 0) return ::unlinkat(folder, from, 0);
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return -1;
  // File systems with neither (FAT on old kernels): checking first is the best that can be done.
  struct stat existing{};
  if (::fstatat(folder, to, &existing, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return -1;
  }
  return ::renameat(folder, from, folder, to);
}

}  // namespace

void install_interrupt_cleanup() {
  struct sigaction action{};
  action.sa_handler = remove_unfinished_outputs;
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

bool remove_if_interrupted(const std::string& unfinished_path) {
  SignalsBlocked blocked;
  return record(AT_FDCWD, unfinished_path);
}

Result<OutputFile> OutputFile::create(const std::string& path, const InputFile& input, bool overwrite,
                                      const Announce& announce) {
  return create(path, &input, overwrite, announce);
}

Result<OutputFile> OutputFile::create(const std::string& path, const InputFile* input, bool overwrite,
                                      const Announce& announce) {
  OutputFile file;
  file.overwrite_ = overwrite;
  const auto is_input = [&](const struct stat& found) {
    return input != nullptr && FileIdentity(found) == FileIdentity(input->info()) &&
           (S_ISREG(found.st_mode) || S_ISBLK(found.st_mode));
  };
  if (path == "-") {
    file.kind_ = Kind::standard_output;
    file.name_ = "standard output";
    file.descriptor_ = STDOUT_FILENO;
    struct stat existing{};
    if (::fstat(STDOUT_FILENO, &existing) == 0 && is_input(existing))
      return fail("the output is the input", file.name_);
    return file;
  }
  file.name_ = path;
  auto place = output_place(path, input);
  if (!place) return system_error("create a file beside it", path);
  const auto target = follow(std::move(*place));
  if (!target) return system_error(errno == ELOOP ? "open" : "write", path);
  if (target->info && S_ISDIR(target->info->st_mode)) return fail("expected a file to write, found a directory", path);
  if (target->info && is_input(*target->info)) {
    return fail("the output is the input", path, "name another output with -o");
  }
  if (target->descriptor || (target->info && !S_ISREG(target->info->st_mode))) {
    file.kind_ = Kind::existing;
    auto opened = open_existing(*target, path);
    if (!opened) return tl::unexpected(opened.error());
    file.descriptor_ = opened->release();
    return file;
  }
  // A link without -f is not followed, whether it leads to a file or not: what it leads to may change at any time.
  if (!overwrite && (target->info || target->is_link))
    return fail("the output exists already", path, "add -f to overwrite it");
  file.place_ = target->place;
  file.is_behind_link_ = target->is_link;
  if (auto opened = file.open_new(announce); !opened) return tl::unexpected(opened.error());
  return file;
}

Result<void> OutputFile::open_new(const Announce& announce) {
  if (!announce) descriptor_ = ::openat(place_.at(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // Without root, the file can be linked only through /proc.
  if (descriptor_ >= 0 && ::access(fmt::format("/proc/self/fd/{}", descriptor_).c_str(), F_OK) == 0) return {};
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  const int most_attempts = announce ? 1 : 100;  // a name is announced once
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    temporary_ = unfinished_name();
    if (announce) announce(place_.folder_path + temporary_);
    SignalsBlocked blocked;
    if (!record(place_.at(), temporary_)) return fail("the path is too long", name_);
    descriptor_ = ::openat(place_.at(), temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor_ >= 0) return {};
    forget(std::exchange(temporary_, {}));
    if (errno != EEXIST) break;
  }
  return system_error("create a file beside it", name_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : kind_(other.kind_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      place_(std::move(other.place_)),
      temporary_(std::exchange(other.temporary_, {})),
      overwrite_(other.overwrite_),
      is_committed_(other.is_committed_),
      is_behind_link_(other.is_behind_link_),
      remarks_(std::move(other.remarks_)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0 && kind_ != Kind::standard_output) ::close(descriptor_);
  if (!temporary_.empty()) {
    SignalsBlocked blocked;
    ::unlinkat(place_.at(), temporary_.c_str(), 0);
    forget(temporary_);
  }
}

// Owner and group come first, because changing them clears the set-id bits. Only root may change the owner, and only to
// owners that exist in the user namespace, so a refusal is not an error. But the mode was granted to that owner and
// that group: without both, set-id bits are dropped; without the group, group and others get only the rights that both
// had.
void OutputFile::take_over_attributes(const InputFile* input) {
  const auto remark = [&](const char* what) { remarks_.push_back(fmt::format("{}: {}", what, std::strerror(errno))); };
  if (input == nullptr || !S_ISREG(input->info().st_mode)) {
    (void)::fchmod(descriptor_, usual_mode());
    return;
  }
  const struct stat& info = input->info();
  if (::fchown(descriptor_, info.st_uid, info.st_gid) != 0) {
    remark("the owner is not taken over");
    // Changing the group may still be allowed, if the caller is a member. fstat() below finds out whether it worked.
    [[maybe_unused]] const int refused = ::fchown(descriptor_, static_cast<uid_t>(-1), info.st_gid);
  }
  struct stat got{};
  const bool is_known = ::fstat(descriptor_, &got) == 0;
  const bool has_owner = is_known && got.st_uid == info.st_uid, has_group = is_known && got.st_gid == info.st_gid;
  mode_t mode = mode_of(input->descriptor(), info);
  if (!has_owner || !has_group) mode &= 01777;
  if (!has_group) {
    const mode_t common = (mode >> 3) & mode & 0007;
    mode = (mode & 01700) | common << 3 | common;
  }
  if (::fchmod(descriptor_, mode) != 0) remark("the mode is not taken over");
  const timespec times[2] = {info.st_atim, info.st_mtim};
  if (::futimens(descriptor_, times) != 0) remark("the times are not taken over");
}

Result<void> OutputFile::commit(const InputFile* input, bool durable) {
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
  const Descriptor folder(::openat(place_.at(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A directory that is writable but not readable, or a file system without directory sync (EINVAL), is accepted: the
  // file itself has reached the disk.
  if (folder && ::fsync(folder.number()) != 0 && errno != EINVAL) return system_error("write the folder", name_);
  return {};
}

std::optional<struct stat> OutputFile::existing() const {
  struct stat found{};
  const bool is_there =
      kind_ == Kind::new_file ? place_.status(found, AT_SYMLINK_NOFOLLOW) : ::fstat(descriptor_, &found) == 0;
  return is_there ? std::optional(found) : std::nullopt;
}

Result<void> OutputFile::put_in_place() {
  SignalsBlocked blocked;
  const int folder = place_.at();
  if (temporary_.empty()) {
    if (link_unnamed(descriptor_, folder, place_.name) == 0) return {};
    if (errno != EEXIST || !overwrite_) return not_in_place();
    // Only a named file can replace another one.
    temporary_ = unfinished_name();
    if (!record(folder, temporary_)) return fail("the path is too long", name_);
    if (link_unnamed(descriptor_, folder, temporary_) != 0) return not_in_place();
  }
  const int renamed = overwrite_ ? ::renameat(folder, temporary_.c_str(), folder, place_.name.c_str())
                                 : rename_to_new(folder, temporary_.c_str(), place_.name.c_str());
  if (renamed != 0) return not_in_place();
  forget(std::exchange(temporary_, {}));
  return {};
}

tl::unexpected<Error> OutputFile::not_in_place() const {
  if (errno == EEXIST) return fail("the output exists already", name_, "add -f to overwrite it");
  return system_error("put the finished file in place", name_);
}

bool OutputFile::lies_in_place() const {
  struct stat written{}, named{};
  return kind_ == Kind::new_file && is_committed_ && ::fstat(descriptor_, &written) == 0 &&
         place_.status(named, AT_SYMLINK_NOFOLLOW) && FileIdentity(written) == FileIdentity(named) &&
         written.st_size == named.st_size;
}

}  // namespace ptxkit::pack
