// `ptx-debug probe [-o F]`: runs the experiment behind F021, F081 and F082 on the local GPU. Exit codes: 0 results as
// in the shipped evidence, 1 otherwise, 11 no GPU, or a file cannot be written; 64 wrong usage.
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/rules/score.hpp"
#include "support/file.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/probe_experiment.hpp"
#include "tools/ptx-debug/shell_command.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

constexpr int kDiffersExitCode = 1, kHighestLevel = 4;

struct ProbeWords {
  std::string out, one;
  std::vector<int> levels = {0, 1, 2, 3, 4};
};

int fail_with(const Error& error) {
  complain(error.message());
  return rules::exit_code(rules::Status::unreadable);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// "NAME,OFFSET,LEVEL"
bool parse_case(std::string_view word, ProbeCase& which) {
  const size_t first = word.find(','), second = word.find(',', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  which.probe = word.substr(0, first);
  const auto number = [](std::string_view text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  return number(word.substr(first + 1, second - first - 1), which.offset_bytes) &&
         number(word.substr(second + 1), which.level) && which.level >= 0 && which.level <= kHighestLevel;
}

int run_one(const std::string& word) {
  ProbeCase which;
  if (!parse_case(word, which))
    return usage_error("probe", fmt::format("--one: expected NAME,OFFSET,LEVEL, found '{}'", word));
  const auto line = run_probe(which);
  if (!line) return fail_with(line.error());
  print(*line);
  std::_Exit(0);  // the context may be dead: release nothing
}

int run_experiment(const ProbeWords& words) {
  if (!words.one.empty()) return run_one(words.one);
  if (const auto can = check_writable(words.out); !can) return fail_with(can.error());
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return fail_with({"cannot find this program", "/proc/self/exe", ""});
  const std::string program = shell_quoted({self, static_cast<size_t>(length)});
  const auto experiment = run_probes(words.levels, today(), [&](const ProbeCase& which) {
    return fmt::format("{} probe --one {},{},{} 2>&1", program, which.probe, which.offset_bytes, which.level);
  });
  if (!experiment) return fail_with(experiment.error());
  if (!words.out.empty()) {
    if (const auto written = write_file(words.out, to_json(*experiment)); !written) return fail_with(written.error());
  }

  const rules::EvidenceFile& mine = experiment->evidence;
  std::string out = fmt::format("{} (sm_{}), driver {}: {} runs of {} probes\n", mine.device, mine.family_sm,
                                mine.driver, experiment->run_count, mine.probes.size());
  for (const std::string& line : experiment->by_level) out += fmt::format("levels differ: {}\n", line);
  const rules::EvidenceSet only_mine{{mine}};
  for (const std::string_view rule : {"F021", "F081", "F082"}) {
    const auto refuted = only_mine.refuted_by(rule, mine.family_sm);
    const auto confirmed = only_mine.confirmed_by(rule, mine.family_sm);
    out += fmt::format("{}: the hypothesis is {} here\n", rule,
                       confirmed ? "confirmed"
                       : refuted ? "refuted"
                                 : "neither refuted nor confirmed");
  }
  bool is_same = true;
  for (const rules::EvidenceFile& shipped : rules::shipped_evidence().files) {
    const auto found = differences(mine, shipped);
    is_same = is_same && found.empty();
    out += found.empty() ? fmt::format("all results are those of {}\n", shipped.name)
                         : fmt::format("{} results differ from {}:\n  {}\n", found.size(), shipped.name,
                                       fmt::join(found, "\n  "));
  }
  if (!(words.out == "-" || print(out))) return rules::exit_code(rules::Status::unreadable);
  return is_same ? 0 : kDiffersExitCode;
}

}  // namespace

void add_probe(CLI::App& app, Action& action) {
  Verb verb(app, "probe", "measure on this GPU whether F021, F081 and F082 are the compiler's fault");
  const auto words = std::make_shared<ProbeWords>();
  verb.option("-o,--output", words->out, "where to write the evidence file; - is standard output").type_name("F");
  verb.option("--levels", words->levels, "levels of the driver's compiler, 0 to 4 (default: all)")
      .type_name("LIST")
      .check(whole_number(kHighestLevel))
      .repeated()
      .comma_separated();
  verb.option("--one", words->one, "run one probe in this process and print its status").type_name("NAME,OFFSET,LEVEL");
  verb.callback([words, &action] { action = [words] { return run_experiment(*words); }; });
}

}  // namespace ptxkit::tools
