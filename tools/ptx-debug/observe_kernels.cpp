#include "tools/ptx-debug/observe_kernels.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "runtime/launch/made_launch.hpp"
#include "runtime/launch/observe.hpp"
#include "tools/ptx-debug/shell_command.hpp"

namespace ptxkit::tools {
namespace {

using rules::Severity;
using rules::Verdict;

// Warp instructions with all checks that a second stands for; about as many as one core of a server executes.
constexpr double kStepsPerSecond = 2 * kMadeLaunches * kMadeSteps;  // 980,000
// Buffers that the launch file sizes, for each second of a kernel's runs: they are filled and compared in every launch.
constexpr double kBytesPerSecond = 128 << 20;
constexpr double kTextKernels = 20;  // a text may take the time of so many kernels

bool has_fault(std::string_view rule) {
  static constexpr std::string_view kRules[] = {
#define FAULT(id, rule, stops, words) rule,
#include "runtime/emulator/fault_kinds.def"
#undef FAULT
  };
  return std::ranges::find(kRules, rule) != std::end(kRules);
}

bool is_shape_given(const ptx::Function& kernel, const flow::LaunchFacts* facts) {
  return facts != nullptr && facts->grid[0] != 0 && (facts->block[0] != 0 || kernel.attributes.req_ntid[0] != 0);
}

// A word of a shell command, quoted where it has to be.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/' || c == ':' || c == ',';
  };
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, is_plain) ? text : shell_quoted(text);
}

// Rules that name one defect by different signs, such as the barrier that is missed and the thread that has left.
constexpr std::string_view kFamilies[][5] = {{"F036", "F102", "F042", "F050"},
                                             {"F037", "F038", "F039", "F041", "F045"},
                                             {"F051", "F021", "F081", "F082"},
                                             {"F071", "F060"}};

bool is_related(std::string_view one, std::string_view other) {
  return one == other || std::ranges::any_of(kFamilies, [&](const auto& family) {
           return std::ranges::find(family, one) != std::end(family) &&
                  std::ranges::find(family, other) != std::end(family);
         });
}

// The finding of a rule at the place of `observed`; of a race either place counts.
rules::Finding* finding_at_place(rules::RuleResult& result, const rules::Finding& observed) {
  const auto is_there = [&](const rules::Finding& finding) {
    return finding.at == observed.at || (!observed.path.empty() && finding.at == observed.path.front().at);
  };
  const auto found = std::ranges::find_if(result.findings, is_there);
  return found == result.findings.end() ? nullptr : &*found;
}

// Adds what a run showed to the finding that the rule has at this place.
void confirm(rules::Finding& finding, const rules::Finding& observed) {
  if (observed.severity >= finding.severity && observed.tier > finding.tier) {
    finding.severity = observed.severity;
    finding.tier = observed.tier;
    finding.assumptions = observed.assumptions;
  }
  if (!finding.witness) finding.witness = observed.witness;
  if (finding.path.empty()) finding.path = observed.path;
  finding.evidence += (finding.evidence.empty() ? "" : "; ") + observed.evidence;
  finding.command = observed.command;
}

void settle(rules::RuleResult& result, Severity severity, bool is_certain) {
  if (severity == Severity::info || result.verdict == Verdict::refuted) return;
  result.verdict = is_certain ? Verdict::refuted : Verdict::undecided;
  result.loses_points = is_certain;
  result.basis = is_certain ? "the emulator ran a launch that shows it"
                            : "the emulator ran launches that show it, and others that do not";
}

// Adds a finding to its rule, or confirms what that rule or a related one says of the place.
void add(report::KernelAnalysis& kernel, ObservedFinding observed) {
  const Severity severity = observed.finding.severity;
  const auto own = std::ranges::find(kernel.verdicts, observed.rule, [](const auto& entry) { return entry.rule->id; });
  const auto has_place = [&](report::RuleVerdict& entry) {
    return is_related(entry.rule->id, observed.rule) && finding_at_place(entry.result, observed.finding) != nullptr;
  };
  auto verdict =
      own != kernel.verdicts.end() && has_place(*own) ? own : std::ranges::find_if(kernel.verdicts, has_place);
  if (verdict != kernel.verdicts.end()) {
    rules::Finding& known = *finding_at_place(verdict->result, observed.finding);
    if (known.command.empty()) confirm(known, observed.finding);
  } else if (own != kernel.verdicts.end()) {
    verdict = own;
    own->result.findings.push_back(std::move(observed.finding));
    std::ranges::stable_sort(own->result.findings, {}, &rules::Finding::at);
  } else {
    return;  // a rule that was not asked for
  }
  settle(verdict->result, severity, observed.is_certain);
}

// What the buffers of a launch take that the facts give a size.
uint64_t stated_bytes(const flow::LaunchFacts* facts) {
  uint64_t bytes = 0;
  if (facts == nullptr) return 0;
  for (const auto& [name, parameter] : facts->parameters) {
    bytes += parameter.size_bytes;
    for (const flow::MemberFacts& member : parameter.members) bytes += member.size_bytes;
  }
  return bytes;
}

uint64_t variable_bytes(const ptx::Module& module) {
  uint64_t bytes = 0;
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space != ptx::Space::global) continue;
    const uint64_t sum = bytes + variable.size_bytes;
    bytes = sum < bytes ? ~uint64_t{0} : sum;
  }
  return bytes;
}

}  // namespace

void observe_kernels(report::FileAnalysis& file, const report::AnalysisOptions& options, const RunChoice& choice) {
  if (choice.is_off) return;
  const ptx::Module& module = file.parsed.module;
  const auto kernel_steps = static_cast<uint64_t>(choice.kernel_seconds * kStepsPerSecond);
  uint64_t text_steps = static_cast<uint64_t>(kTextKernels) * kernel_steps;
  const uint64_t own_bytes = variable_bytes(module);
  bool has_run = false;
  for (report::KernelAnalysis& kernel : file.kernels) {
    if (kernel.function == ptx::kNone) continue;
    const ptx::Function& function = module.functions[kernel.function];
    const auto found = options.rules.launch->find(function.name);
    const flow::LaunchFacts* const facts = found == options.rules.launch->end() ? nullptr : &found->second;
    if (!choice.with_made_up && !is_shape_given(function, facts)) continue;
    if (std::ranges::none_of(kernel.verdicts, [](const auto& verdict) { return has_fault(verdict.rule->id); }))
      continue;
    if (text_steps < kernel_steps || kernel_steps == 0) {
      kernel.run = rules::ObservedRun{.not_run = "the time for runs of this text is spent; --run-seconds gives more"};
      continue;
    }
    const auto most_bytes = static_cast<uint64_t>(choice.kernel_seconds * kBytesPerSecond);
    const uint64_t stated = stated_bytes(facts), bytes = stated + std::min(own_bytes, ~stated);
    if (bytes > most_bytes) {
      kernel.run = rules::ObservedRun{
          .not_run = fmt::format("module variables and the buffers of the launch file take {} bytes, runs take at most "
                                 "{}; --run-seconds gives more",
                                 bytes, most_bytes)};
      continue;
    }
    const double share = static_cast<double>(bytes) / static_cast<double>(most_bytes);
    text_steps -= std::min(text_steps, static_cast<uint64_t>(share * static_cast<double>(kernel_steps)));
    Observations observations = observe(module, kernel.function, facts, kernel_steps);
    text_steps -= std::min(text_steps, observations.steps);
    kernel.run = std::move(observations.run);
    has_run = true;
    for (ObservedFinding& each : observations.findings) {
      each.finding.command = fmt::format("ptx-debug run {} --entry {} {}", shell_word(file.path),
                                         shell_word(std::string(function.name)), each.finding.command);
      for (const std::string& path : choice.launch_paths) each.finding.command += " --launch " + shell_word(path);
      add(kernel, std::move(each));
    }
  }
  if (has_run && file.score) report::rescore(file, options);
}

}  // namespace ptxkit::tools
