// `ptx-debug reduce FILE --when COMMAND`: finds a smaller PTX for which the command still fails. Exit codes: 0 reduced,
// 10 the text does not parse, 11 a file cannot be read or written, 64 wrong usage, including a command that does not
// fail on FILE.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/reduce/reduce.hpp"
#include "analyzer/rules/score.hpp"
#include "support/file.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/outputs.hpp"
#include "tools/ptx-debug/scratch_folder.hpp"
#include "tools/ptx-debug/shell_command.hpp"
#include "tools/ptx-debug/stop_request.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Exit statuses of a shell: the program cannot be executed, or does not exist.
constexpr int kCannotStart = 126, kNotFound = 127;

struct ReduceOptions {
  std::string file, command, out = "-";
  std::optional<int> status;
  unsigned seconds = 600, command_seconds = 10;
};

std::string with_file(std::string command, const std::string& file) {
  // As it is where no shell changes it: then {} may stand in quotes, too.
  const bool is_plain =
      file.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-") == std::string::npos;
  const std::string word = is_plain ? file : shell_quoted(file);
  for (size_t at = command.find("{}"); at != command.npos; at = command.find("{}", at + word.size())) {
    command.replace(at, 2, word);
  }
  return command;
}

size_t line_count(std::string_view text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

int fail_with(const Error& error, rules::Status status) {
  complain(error.message());
  return rules::exit_code(status);
}

int reduce_file(const ReduceOptions& options) {
  if (options.command.find("{}") == std::string::npos)
    return usage_error("reduce", fmt::format("--when: expected a command that contains {{}} for the file, found '{}'",
                                             options.command));
  const Output output{"-o", options.out};
  if (const auto what = fault({&output, 1}, {&options.file, 1})) return usage_error("reduce", *what);
  if (const auto can = check_writable(options.out); !can) return fail_with(can.error(), rules::Status::unreadable);
  const auto image = read_one_image(options.file);
  if (!image) return fail_with(image.error(), rules::Status::unreadable);
  const std::string& text = image->text;
  if (const ptx::ParseResult parsed = ptx::parse(text, image->name); !parsed.diagnostics.empty()) {
    print(report::rendered(parsed));
    return rules::exit_code(rules::Status::unparsable);
  }

  const ScratchFolder scratch("ptx-reduce");
  // Without it the candidates would be written into the working folder, under the name of the input.
  if (scratch.path().empty()) return fail_with(scratch.error(), rules::Status::unreadable);
  // Not the input's name, which may be a stranger's: a command with "{}" in quotes would have the shell expand it.
  const std::string candidate = scratch.path() / "candidate.ptx";
  const std::string command = with_file(options.command, candidate);
  const std::atomic<bool>& stop = stop_request();
  const auto deadline = Clock::now() + std::chrono::seconds(options.seconds);
  std::optional<Error> broken;  // a file cannot be written or a process not started; the search ends
  std::optional<int> first_status;
  const auto still_fails = [&](const std::string& ptx) {
    if (const auto written = write_file(candidate, ptx); !written) {
      broken = written.error();
      return false;
    }
    const auto status = run_shell(command, std::chrono::seconds(options.command_seconds));
    if (!status) {
      broken = status.error();
      return false;
    }
    if (!first_status) first_status = status->value_or(-1);
    if (!*status) return false;
    return options.status ? **status == *options.status : **status != 0;
  };
  const auto reduced =
      reduce::reduce(text, image->name, still_fails, [&] { return broken || stop || Clock::now() >= deadline; });
  if (broken) return fail_with(*broken, rules::Status::unreadable);
  if (first_status == kNotFound || first_status == kCannotStart)
    return usage_error("reduce", fmt::format("--when: the shell cannot run '{}'", options.command));
  if (!reduced && stop)
    return fail_with({"stopped before the command had failed once", options.file, ""}, rules::Status::unreadable);
  if (!reduced && first_status == -1)
    return usage_error("reduce", fmt::format("--when: the command runs longer than {} s on {}; see --command-seconds",
                                             options.command_seconds, options.file));
  if (!reduced)
    return usage_error(
        "reduce", fmt::format("--when: the command exits {} on {}, which is no failure: expected {}", *first_status,
                              options.file, options.status ? std::to_string(*options.status) : "another status"));
  if (const auto written = write_file(options.out, reduced->text); !written)
    return fail_with(written.error(), rules::Status::unreadable);
  fmt::print(stderr, "{}: {} lines, now {}; the command ran {} times{}\n", printable_path(options.file),
             line_count(text), line_count(reduced->text), reduced->tested_count,
             reduced->is_minimal ? ""
             : stop              ? "; stopped by a signal, may not be minimal"
                                 : fmt::format("; stopped after {} s, may not be minimal", options.seconds));
  return 0;
}

}  // namespace

void add_reduce(CLI::App& app, Action& action) {
  Verb verb(app, "reduce", "shrink FILE while a command still fails on it");
  const auto options = std::make_shared<ReduceOptions>();
  verb.option("FILE", options->file, std::string(kOneFile)).required();
  verb.option("--when", options->command, "shell command; {} is replaced by the file to test")
      .required()
      .type_name("COMMAND");
  verb.option("--status", options->status, "exit status that counts as the failure (default: any but 0)")
      .type_name("N")
      .check(whole_number(255));
  verb.option("-o,--output", options->out, "where to write the reduced text; standard output by default")
      .check(file_name())
      .type_name("OUT");
  verb.option("--seconds", options->seconds, "stop after this many seconds and keep the best text (default 600)")
      .type_name("N")
      .check(whole_number(std::numeric_limits<uint32_t>::max()));
  verb.option("--command-seconds", options->command_seconds,
              "kill a run that takes longer; it counts as no failure (default 10)")
      .type_name("N")
      .check(whole_number(std::numeric_limits<uint32_t>::max()));
  verb.callback([options, &action] { action = [options] { return reduce_file(*options); }; });
}

}  // namespace ptxkit::tools
