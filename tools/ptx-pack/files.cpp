#include "tools/ptx-pack/files.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace ptxkit::pack {
namespace {

// The one unfinished output, where a signal handler can see it. Files are handled one after another, so one is enough.
char unfinished_output[PATH_MAX];

extern "C" void remove_unfinished_output(int signal) {
  if (unfinished_output[0] != '\0') ::unlink(unfinished_output);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// While one lives, no signal can see the file created but its name not recorded.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

tl::unexpected<Error> system_error(const std::string& doing, const std::string& where, std::string todo = {}) {
  return fail(fmt::format("cannot {}: {}", doing, std::strerror(errno)), where, std::move(todo));
}

}  // namespace

void install_interrupt_cleanup() {
  struct sigaction action{};
  action.sa_handler = remove_unfinished_output;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    // A signal that the parent ignores (nohup) stays ignored.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);
  }
}

Result<InputFile> InputFile::open(const std::string& path) {
  const bool is_stdin = path == "-";
  const int descriptor = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error("open", path);
  InputFile file(descriptor, is_stdin ? "standard input" : path);
  if (::fstat(descriptor, &file.info_) != 0) return system_error("read", file.name_);
  if (S_ISDIR(file.info_.st_mode))
    return fail("expected a file, found a directory", path, "add -r to take the files in it");
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)), info_(other.info_) {}

InputFile::~InputFile() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

std::optional<std::uint64_t> InputFile::size_bytes() const {
  if (!S_ISREG(info_.st_mode)) return std::nullopt;
  const off_t position = ::lseek(descriptor_, 0, SEEK_CUR);  // standard input may be a file that was partly read
  if (position < 0 || position > info_.st_size) return std::nullopt;
  return static_cast<std::uint64_t>(info_.st_size - position);
}

Result<OutputFile> OutputFile::create(const std::string& path, const InputFile& input, bool overwrite) {
  OutputFile file;
  file.path_ = path;
  if (path == "-") {
    file.name_ = "standard output";
    file.descriptor_ = STDOUT_FILENO;
    return file;
  }
  file.name_ = path;
  struct stat existing{};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) return fail("expected a file to write, found a directory", path);
  if (exists && existing.st_dev == input.info().st_dev && existing.st_ino == input.info().st_ino) {
    return fail("the output is the input", path, "name another output with -o");
  }
  if (exists && !S_ISREG(existing.st_mode)) {
    file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return system_error("open", path);
    return file;
  }
  if (exists && !overwrite) return fail("the output exists already", path, "add -f to overwrite it");
  std::string temporary = path + ".XXXXXX";
  if (temporary.size() >= sizeof unfinished_output) return fail("the path is too long", path);
  {
    SignalsBlocked blocked;
    file.descriptor_ = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (file.descriptor_ >= 0) std::memcpy(unfinished_output, temporary.c_str(), temporary.size() + 1);
  }
  if (file.descriptor_ < 0) return system_error("create a file beside it", path);
  file.temporary_ = std::move(temporary);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})) {}

OutputFile::~OutputFile() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
  if (!temporary_.empty()) {
    SignalsBlocked blocked;
    ::unlink(temporary_.c_str());
    unfinished_output[0] = '\0';
  }
}

Result<void> OutputFile::commit(const InputFile& input) {
  if (descriptor_ <= STDERR_FILENO) return {};
  if (!temporary_.empty()) {
    if (S_ISREG(input.info().st_mode)) {
      // Owner first: chown clears the set-id bits. Only root may give files away, so a refusal is no error.
      if (::fchown(descriptor_, input.info().st_uid, input.info().st_gid) != 0 && errno != EPERM) {
        return system_error("set the owner", name_);
      }
      if (::fchmod(descriptor_, input.info().st_mode & 07777) != 0) return system_error("set the mode", name_);
      const timespec times[2] = {input.info().st_atim, input.info().st_mtim};
      if (::futimens(descriptor_, times) != 0) return system_error("set the times", name_);
    } else {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      if (::fchmod(descriptor_, 0666 & ~mask) != 0) return system_error("set the mode", name_);
    }
  }
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) return system_error("write", name_);
  if (temporary_.empty()) return {};
  SignalsBlocked blocked;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return system_error("put the finished file in place", name_);
  temporary_.clear();
  unfinished_output[0] = '\0';
  return {};
}

Result<std::vector<std::string>> files_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(path, error), end;
  for (; !error && at != end; at.increment(error)) {
    std::error_code kind_error;
    if (at->is_regular_file(kind_error) && !at->is_symlink(kind_error)) files.push_back(at->path().string());
  }
  if (error) return fail("cannot read the directory: " + error.message(), path);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace ptxkit::pack
