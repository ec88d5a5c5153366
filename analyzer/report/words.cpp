#include "analyzer/report/words.hpp"

#include <vector>

#include <fmt/format.h>

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

std::string cap_text(const rules::Score& score) {
  if (!score.is_capped()) return "";
  const std::string_view finding = score.cap_percent == rules::kCriticalCapPercent ? "critical finding"
                                   : score.cap_percent == rules::kHighCapPercent   ? "high finding that is proved"
                                                                                   : "high finding that is likely";
  return fmt::format("; at most {} with a {}", score.cap_percent, finding);
}

}  // namespace ptxkit::report
