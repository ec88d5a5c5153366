// `ptx-debug new kernel-project DIR`: writes the small project of new_project/, which is compiled in. Exit codes: 0
// written, 11 a file cannot be written or DIR is in use, 64 wrong usage. After an error nothing of the project is left.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "analyzer/rules/score.hpp"
#include "support/embedded.hpp"
#include "support/file.hpp"
#include "support/result.hpp"
#include "support/suggest.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/shell_command.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

extern const EmbeddedFile project_files[];
extern const size_t project_files_count;

namespace {

constexpr std::string_view kKernelProject = "kernel-project";

// A folder with the files written so far. Unless keep() was called, they go with it.
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path path) : path_(std::move(path)) {}
  ~NewFolder() {
    std::error_code ignored;
    for (const auto& file : files_) std::filesystem::remove(file, ignored);
    if (is_made_) std::filesystem::remove(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Makes the folder, or takes an empty one.
  Result<void> make() {
    is_made_ = ::mkdir(path_.c_str(), 0777) == 0;
    if (is_made_) return {};
    if (errno != EEXIST) return fail(fmt::format("cannot make the folder: {}", std::strerror(errno)), path_.string());
    std::error_code error;
    const bool is_empty = std::filesystem::is_directory(path_, error) && std::filesystem::is_empty(path_, error);
    if (error) return fail("cannot read: " + error.message(), path_.string());
    if (!is_empty) return fail("exists and is no empty folder", path_.string(), "name a folder that does not exist");
    return {};
  }
  Result<void> write(std::string_view name, std::string_view content) {
    const std::filesystem::path file = path_ / name;
    auto done = write_file(file.string(), content);
    if (done) files_.push_back(file);
    return done;
  }
  void keep() {
    files_.clear();
    is_made_ = false;
  }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> files_;
  bool is_made_ = false;
};

int fail_with(const Error& error) {
  complain(error.message());
  return rules::exit_code(rules::Status::unreadable);
}

// As a word of a shell command, quoted only where it must be.
std::string shell_word(const std::string& text) {
  static constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./";
  return text.find_first_not_of(kPlain) == text.npos ? text : shell_quoted(text);
}

int make_project(const std::string& kind, const std::string& path) {
  if (kind != kKernelProject) {
    const std::vector<std::string> kinds{std::string(kKernelProject)};
    return usage_error("new",
                       fmt::format("expected {}, found '{}'{}", kKernelProject, kind, did_you_mean(kind, kinds)));
  }
  NewFolder folder(path);
  if (const auto made = folder.make(); !made) return fail_with(made.error());
  std::string names;
  for (const EmbeddedFile& file : std::span(project_files, project_files_count)) {
    // In the repository it has no dot: git would obey it there.
    const std::string_view name = file.name == "gitignore" ? ".gitignore" : file.name;
    if (const auto written = folder.write(name, file.content); !written) return fail_with(written.error());
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  folder.keep();
  const std::string source = shell_word(path), build = shell_word((std::filesystem::path(path) / "build").string());
  const bool is_printed =
      print(fmt::format("{}: {}\nnext: cmake -S {} -B {} && cmake --build {} && ctest --test-dir {}\n", path, names,
                        source, build, build, build));
  return is_printed ? 0 : rules::exit_code(rules::Status::unreadable);
}

}  // namespace

void add_new(CLI::App& app, Action& action) {
  Verb verb(app, "new", "write a small project: a kernel in the DSL, its scalar reference, and a test on the emulator");
  const auto kind = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  verb.option("KIND", *kind, "what to write: kernel-project").required().type_name(std::string(kKernelProject));
  verb.option("DIR", *folder, "the project's folder: a new or an empty one").required().check(file_name());
  verb.callback([kind, folder, &action] { action = [kind, folder] { return make_project(*kind, *folder); }; });
}

}  // namespace ptxkit::tools
