#include "tools/ptx-pack/run_files.hpp"

#include <optional>

#include <fmt/format.h>
#include <unistd.h>

namespace ptxkit::pack {
namespace {

// Of a regular file; links are followed.
std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat found{};
  const int status = path == "-" ? ::fstat(STDIN_FILENO, &found) : ::stat(path.c_str(), &found);
  if (status != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return FileIdentity(found);
}

}  // namespace

void RunFiles::look() {
  if (std::exchange(has_looked_, true)) return;
  for (const std::string& path : inputs_) {
    if (const auto found = identity_of(path)) inputs_found_.insert(*found);
  }
}

Result<void> RunFiles::check(const std::string& output, const std::string& input) {
  const auto replaced = identity_of(output);
  if (!replaced) return {};
  if (written_.contains(*replaced)) {
    return fail("this run has written the output already, from another input", output,
                fmt::format("name another output of {} with -o", input));
  }
  look();
  if (!inputs_found_.contains(*replaced) || identity_of(input) == replaced) return {};
  return fail("the output is another input of this run", output,
              fmt::format("name another output of {} with -o", input));
}

void RunFiles::add_written(const std::string& output) {
  if (const auto written = identity_of(output)) written_.insert(*written);
}

bool RunFiles::holds(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return false;
  look();
  const FileIdentity identity(file);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat found{};
    if (::fstat(standard, &found) == 0 && FileIdentity(found) == identity) return true;
  }
  return written_.contains(identity) || inputs_found_.contains(identity);
}

}  // namespace ptxkit::pack
