#include "tools/ptx-pack/run_files.hpp"

#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>

#include "runtime/codec/format/file_format.hpp"

namespace ptxkit::pack {
namespace {

namespace fs = std::filesystem;

// Of a regular file; links are followed.
std::optional<std::pair<dev_t, ino_t>> identity_of(const std::string& path) {
  struct stat found{};
  if (path == "-" || ::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return std::pair(found.st_dev, found.st_ino);
}

// Where `path` leads to, whether it exists or not.
fs::path place_of(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(path), error);
  return error ? fs::absolute(path).lexically_normal() : place;
}

}  // namespace

Result<void> RunFiles::check(const std::string& output, const std::string& input) {
  const auto replaced = identity_of(output);
  if (!replaced) return {};
  if (written_.contains(*replaced)) {
    return fail("this run has written the output already, from another input", output,
                fmt::format("name another output of {} with -o", input));
  }
  if (!std::exchange(has_looked_, true)) {
    for (const std::string& path : inputs_) {
      if (const auto found = identity_of(path)) inputs_found_.insert(*found);
    }
  }
  if (!inputs_found_.contains(*replaced) || identity_of(input) == replaced) return {};
  return fail("the output is another input of this run", output,
              fmt::format("name another output of {} with -o", input));
}

void RunFiles::add_written(const std::string& output) {
  if (const auto written = identity_of(output)) written_.insert(*written);
}

Result<void> check_time_line(const Options& options, const std::vector<std::string>& inputs) {
  const std::string& trace = *options.trace;
  std::error_code ignored;
  if (fs::exists(trace, ignored) && !fs::is_regular_file(trace, ignored)) return {};
  const fs::path place = place_of(trace);
  const auto identity = identity_of(trace);
  const auto is_it = [&](const std::string& path) {
    return path != "-" && ((identity && identity_of(path) == identity) || place_of(path) == place);
  };
  for (const std::string& input : inputs) {
    if (is_it(input)) return fail("--trace names an input, which would be overwritten", trace, "name another file");
    if (options.mode != Mode::compress && options.mode != Mode::decompress) continue;
    std::vector<format::FileFormat> formats = {options.format};
    if (options.chooses != Chooses::named) formats.push_back(format::FileFormat::ptz);
    for (const format::FileFormat format : formats) {
      const auto output = output_path(options, input, format);
      if (output && is_it(*output)) return fail("--trace and an output are the same file", trace, "name another file");
    }
  }
  if (identity && !options.force) return fail("the file of --trace exists already", trace, "add -f to overwrite it");
  return {};
}

}  // namespace ptxkit::pack
