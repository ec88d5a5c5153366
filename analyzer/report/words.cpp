#include "analyzer/report/words.hpp"

#include <vector>

#include <fmt/format.h>

#include "support/plural.hpp"

namespace ptxkit::report {
namespace {

std::string thread_text(const std::optional<uint32_t> (&tid)[3]) {
  const auto part = [](const std::optional<uint32_t>& value) { return value ? std::to_string(*value) : "any"; };
  return fmt::format("({}, {}, {})", part(tid[0]), part(tid[1]), part(tid[2]));
}

bool is_named(const std::optional<uint32_t> (&tid)[3]) { return tid[0] || tid[1] || tid[2]; }

}  // namespace

std::string witness_text(const rules::Witness& witness) {
  std::vector<std::string> parts;
  if (is_named(witness.tid)) parts.push_back("thread " + thread_text(witness.tid));
  if (is_named(witness.other_tid)) parts.push_back("against thread " + thread_text(witness.other_tid));
  if (witness.iteration) parts.push_back(fmt::format("iteration {}", *witness.iteration));
  if (witness.address) parts.push_back(fmt::format("address {}", *witness.address));
  if (!witness.note.empty()) parts.push_back(witness.note);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string_view replay_word(rules::Replay::Outcome outcome) {
  static constexpr std::string_view kWords[] = {"confirmed", "refuted", "reached", "unreached", "not run"};
  return kWords[static_cast<size_t>(outcome)];
}

std::string_view outputs_word(rules::ObservedRun::Outputs outputs) {
  static constexpr std::string_view kWords[] = {"unknown", "none written", "follow inputs", "ignore inputs"};
  return kWords[static_cast<size_t>(outputs)];
}

std::string run_text(const rules::ObservedRun& run) {
  if (!run.not_run.empty()) return "not run: " + run.not_run;
  std::string text = fmt::format("{} executed {} of {}", plural(run.launch_count, "launch", "launches"),
                                 run.executed_count, plural(run.instruction_count, "instruction"));
  constexpr size_t kMostRanges = 8;
  std::vector<std::string> ranges;
  const std::vector<uint32_t>& lines = run.unexecuted_lines;
  for (size_t begin = 0; begin < lines.size() && ranges.size() <= kMostRanges;) {
    size_t end = begin + 1;
    while (end < lines.size() && lines[end] == lines[end - 1] + 1) ++end;
    ranges.push_back(end == begin + 1 ? std::to_string(lines[begin])
                                      : fmt::format("{} to {}", lines[begin], lines[end - 1]));
    begin = end;
  }
  if (ranges.size() > kMostRanges) ranges.back() = "…";
  if (!ranges.empty())
    text += fmt::format(", not those of {} {}", lines.size() == 1 ? "line" : "lines", fmt::join(ranges, ", "));
  switch (run.outputs) {
    case rules::ObservedRun::Outputs::unknown:
      return text;
    case rules::ObservedRun::Outputs::none_written:
      return text + "; nothing is written to buffers";
    case rules::ObservedRun::Outputs::follow_inputs:
      return text + "; outputs follow inputs";
    case rules::ObservedRun::Outputs::ignore_inputs:
      return text + "; outputs do not depend on what the buffers hold";
  }
  return text;
}

std::string cap_text(const rules::Score& score) {
  if (!score.is_capped()) return "";
  const std::string_view finding = score.cap_percent == rules::kCriticalCapPercent ? "critical finding"
                                   : score.cap_percent == rules::kHighCapPercent
                                       ? "high finding that is proved or observed"
                                       : "high finding that is likely";
  return fmt::format("; at most {} with a {}", score.cap_percent, finding);
}

}  // namespace ptxkit::report
