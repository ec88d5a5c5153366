// `ptx-debug trace -- PROGRAM...`: runs a CUDA program, saves every PTX that it passes to the driver, and analyzes
// each. Exit codes: as of `analyze` over the PTX found; 11 where the program cannot be started or a file cannot be
// written.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/rules/score.hpp"
#include "support/embedded.hpp"
#include "support/file.hpp"
#include "support/plural.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/scratch_folder.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

extern const EmbeddedFile trace_library[];

namespace {

namespace fs = std::filesystem;

struct TraceWords {
  std::string folder;  // empty: kFolder
  std::vector<std::string> program;
};

constexpr const char* kFolder = "trace";

int fail_with(const Error& error) {
  complain(error.message());
  return rules::exit_code(rules::Status::unreadable);
}

// Ignores Ctrl-C in this process, as system(3) does: it ends the traced program, and the images loaded until then are
// still reported.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() {
    for (size_t i = 0; i < std::size(kSignals); ++i) before_[i] = ::signal(kSignals[i], SIG_IGN);
  }
  ~IgnoredInterrupts() { restore(); }
  void restore() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::signal(kSignals[i], before_[i]);
  }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT};
  sighandler_t before_[std::size(kSignals)];
};

// Runs the program with the library preloaded. Returns its exit status as a shell reports it. A failed exec is reported
// through a pipe, which a successful exec closes; an exit status could not be told from the program's own.
Result<int> run_traced(const std::vector<std::string>& program, const fs::path& library, const fs::path& images) {
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int failure[2];
  if (::pipe2(failure, O_CLOEXEC) != 0) return fail(std::string("cannot make a pipe: ") + std::strerror(errno));
  IgnoredInterrupts keyboard;
  const pid_t child = ::fork();
  if (child == 0) {
    keyboard.restore();
    const char* before = std::getenv("LD_PRELOAD");
    const std::string preload = library.string() + (before != nullptr ? std::string(":") + before : "");
    ::setenv("LD_PRELOAD", preload.c_str(), 1);
    ::setenv("PTXKIT_TRACE_FOLDER", images.c_str(), 1);
    ::execvp(words[0], words.data());
    const int why = errno;
    (void)!::write(failure[1], &why, sizeof why);
    ::_exit(1);
  }
  const int fork_error = errno;
  ::close(failure[1]);
  int why = 0;
  const bool started = child > 0 && ::read(failure[0], &why, sizeof why) != sizeof why;
  ::close(failure[0]);
  if (child < 0) return fail(std::string("cannot start a process: ") + std::strerror(fork_error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(std::string("cannot wait for a process: ") + std::strerror(errno));
  }
  if (!started) return fail(fmt::format("cannot run {}: {}", program[0], std::strerror(why)));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A distinct text that was loaded.
struct Loaded {
  std::string path;  // in the output folder
  std::string call;  // "cuModuleLoadData", of the first time
  std::string ptx;
  size_t count = 0;
};

// "4711.00001.cuModuleLoadData" -> "cuModuleLoadData"
std::string call_of(const fs::path& image) {
  const std::string extension = image.extension().string();
  return extension.empty() ? "" : extension.substr(1);
}

bool is_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(fs::symlink_status(path, ignored));
}
Error leads_elsewhere(const std::string& path) {
  return {"is a link, which the PTX would not be written through", path, "remove it, or name another folder with -o"};
}

int trace(const TraceWords& words) {
  const ScratchFolder scratch("ptx-trace");
  if (scratch.path().empty()) return fail_with(scratch.error());
  const fs::path library = scratch.path() / "libptxkit_trace.so", images = scratch.path() / "images";
  if (library.string().find_first_of(" :") != std::string::npos)
    return fail_with({"LD_PRELOAD takes no space and no colon", scratch.path().string(), "set TMPDIR"});
  // The working folder may be a stranger's: only a link that the user names leads elsewhere.
  const std::string folder = words.folder.empty() ? kFolder : words.folder;
  if (words.folder.empty() && is_link(folder)) return fail_with(leads_elsewhere(folder));
  std::error_code error;
  fs::create_directory(images, error);
  if (const auto written = write_file(library, trace_library[0].content); !written) return fail_with(written.error());
  fs::create_directories(folder, error);
  if (error) return fail_with({error.message(), folder, ""});
  const auto status = run_traced(words.program, library, images);
  if (!status) return fail_with(status.error());

  std::vector<Loaded> all;
  std::map<std::string, size_t> by_text;
  size_t image_count = 0, without_count = 0;
  std::vector<fs::path> paths;
  fs::directory_iterator entry(images, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) paths.push_back(entry->path());
  if (error) return fail_with({error.message(), images.string(), "the program has removed what was saved for it"});
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    ++image_count;
    ImageReader reader({path.string()});
    for (auto batch = reader.next(); !batch.empty(); batch = reader.next()) {
      for (Input& input : batch) {
        if (input.error) {  // a cubin, or an image that the driver rejects
          ++without_count;
          continue;
        }
        const auto [at, is_new] = by_text.try_emplace(input.image.text, all.size());
        if (is_new) {
          const std::string name = fmt::format("{:04}.ptx", all.size() + 1);
          all.push_back({(fs::path(folder) / name).string(), call_of(path), input.image.text, 0});
        }
        ++all[at->second].count;
      }
    }
  }

  rules::Status worst = rules::Status::good;
  std::string out = fmt::format("{}: exit {}, {} loaded, {} of them without PTX, {}\n", words.program[0], *status,
                                plural(image_count, "image"), without_count, plural(all.size(), "different text"));
  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  for (const Loaded& loaded : all) {
    if (is_link(loaded.path)) return fail_with(leads_elsewhere(loaded.path));
    if (const auto written = write_file(loaded.path, loaded.ptx); !written) return fail_with(written.error());
    const report::FileAnalysis analysis = report::analyze(loaded.ptx, loaded.path, options);
    worst = std::max(worst, analysis.status);
    std::string kernels;
    for (const report::KernelAnalysis& kernel : analysis.kernels) kernels += (kernels.empty() ? "" : " ") + kernel.name;
    out += fmt::format("{}: {} x {}, {}: {}\n", loaded.path, loaded.count, loaded.call,
                       analysis.score ? fmt::format("score {:.0f}, {}", analysis.score->percent(),
                                                    plural(analysis.critical_count(), "critical finding"))
                                      : "does not parse",
                       kernels);
  }
  if (image_count == 0)
    out += "nothing was loaded: the program made no call that loads a module, or is linked statically\n";
  if (!print(out)) return rules::exit_code(rules::Status::unreadable);
  return rules::exit_code(worst);
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  Verb verb(app, "trace", "run a CUDA program, save and analyze every PTX that it loads");
  const auto words = std::make_shared<TraceWords>();
  verb.option("-o,--output", words->folder, "folder for the PTX (default: trace)").type_name("FOLDER");
  verb.option("PROGRAM", words->program, "the program and its arguments, after --").required();
  verb.callback([words, &action] { action = [words] { return trace(*words); }; });
}

}  // namespace ptxkit::tools
