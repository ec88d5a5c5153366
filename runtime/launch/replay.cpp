#include "runtime/launch/replay.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/generated_launch.hpp"
#include "runtime/launch/sized_launch.hpp"
#include "runtime/launch/witness_visit.hpp"
#include "support/plural.hpp"
#include "support/result.hpp"
#include "support/saturating.hpp"

namespace ptxkit {
namespace {

using rules::Witness;

constexpr unsigned kVariants = kFirstSearchVariant + 10;
constexpr uint64_t kMaxSteps = 500'000;
constexpr size_t kMaxFaults = 1000;  // the fault may come after many others
constexpr uint32_t kLargestBlock = 1024, kWarp = 32;
constexpr uint64_t kLargestGrownBytes = 64 << 20;
constexpr unsigned kMaxGrowths = 6;  // of the buffers of one launch

std::string_view dynamic_rule(std::string_view rule) {
  return rule == "F021" || rule == "F081" || rule == "F082" ? "F051" : rule;
}

// Whether a fault is the one that a finding predicts. A race has one of four rules, by its two threads: of a block
// (F036, in global memory F102), lanes of a warp (F050), of a grid (F042). Threads that do not come to a barrier leave
// before it (F037), wait elsewhere (F039), or are of the same warp (F038): that depends on what the others do after the
// branch that the finding names.
bool is_predicted(std::string_view finding, std::string_view fault) {
  static constexpr std::string_view kRaces[] = {"F036", "F042", "F050", "F102"};
  static constexpr std::string_view kAbsent[] = {"F038", "F039", "F045"}, kBarrierFaults[] = {"F037", "F038", "F039"};
  const auto is_in = [](std::string_view rule, const auto& rules) {
    return std::ranges::find(rules, rule) != std::end(rules);
  };
  return dynamic_rule(finding) == fault || (is_in(finding, kRaces) && is_in(fault, kRaces)) ||
         (is_in(finding, kAbsent) && is_in(fault, kBarrierFaults));
}

// The check that detects the faults of a rule. 0 if no check is needed: the emulator always stops at them.
uint32_t check_of(std::string_view rule) {
  static constexpr std::pair<std::string_view, uint32_t> kChecks[] = {
      {"F025", emulator::kCheckBounds},    {"F026", emulator::kCheckBounds},
      {"F029", emulator::kCheckBounds},    {"F036", emulator::kCheckRaces},
      {"F037", emulator::kCheckBarriers},  {"F038", emulator::kCheckBarriers},
      {"F039", emulator::kCheckBarriers},  {"F045", emulator::kCheckBarriers},
      {"F042", emulator::kCheckRaces},     {"F050", emulator::kCheckRaces},
      {"F051", emulator::kCheckAlignment}, {"F054", emulator::kCheckBounds},
      {"F055", emulator::kCheckBounds},    {"F060", emulator::kCheckUninitialised},
      {"F067", emulator::kCheckBarriers},  {"F071", emulator::kCheckUninitialised},
      {"F085", emulator::kCheckBarriers}};
  const auto* const found =
      std::ranges::find(kChecks, dynamic_rule(rule), &std::pair<std::string_view, uint32_t>::first);
  return found == std::end(kChecks) ? 0 : found->second;
}

// Sets a block that contains the witness's threads, if nothing fixes the block: along x whole warps, or, if the kernel
// does not take so many threads, the fewest possible.
void apply_witness_threads(const Witness& witness, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                           emulator::LaunchShape& shape) {
  if (kernel.attributes.req_ntid[0] || (facts != nullptr && facts->block[0])) return;
  const auto extent = [&](unsigned d) {
    return std::max(witness.tid[d].value_or(0), witness.other_tid[d].value_or(0)) + 1;
  };
  const auto& most = kernel.attributes.max_ntid;
  const uint64_t limit =
      most[0] ? saturating_product(most[0], std::max(most[1], 1u), std::max(most[2], 1u)) : kLargestBlock;
  emulator::Dim3 block{std::max(shape.block.x, (extent(0) + kWarp - 1) / kWarp * kWarp),
                       std::max(shape.block.y, extent(1)), std::max(shape.block.z, extent(2))};
  if (block.count() > limit) block.x = extent(0);
  if (block.count() <= limit) shape.block = block;
}

void apply_witness_bytes(const Witness& witness, GeneratedLaunch& launch) {
  for (GeneratedParameter& parameter : launch.parameters)
    for (GeneratedBuffer& buffer : parameter.buffers) std::ranges::fill(buffer.bytes, std::byte{*witness.loaded_byte});
}

bool is_named(const std::optional<uint32_t> (&named)[3], const std::array<uint32_t, 3>& thread) {
  for (unsigned d = 0; d < 3; ++d)
    if (named[d] && *named[d] != thread[d]) return false;
  return named[0] || named[1] || named[2];
}

bool is_thread_of(const Witness& witness, const emulator::Fault& fault) {
  for (unsigned d = 0; d < 3; ++d) {
    if (!witness.tid[d] || *witness.tid[d] != fault.thread.thread[d]) return false;
  }
  return true;
}

// Describes the fault that the finding predicts, and compares it with the witness.
std::string text_of(const emulator::Fault& fault, const Witness* witness) {
  const auto& [block, thread] = fault.thread;
  std::string text = fmt::format("{}, thread ({},{},{}) of block ({},{},{})", fault.message, thread[0], thread[1],
                                 thread[2], block[0], block[1], block[2]);
  if (witness == nullptr) return text;
  const bool has_thread = is_thread_of(*witness, fault);
  const bool has_offset =
      witness->address && !fault.object.empty() && static_cast<uint64_t>(fault.object_offset) == *witness->address;
  if (has_thread || has_offset)
    text += fmt::format(": the witness's {}{}{}", has_thread ? "thread" : "", has_thread && has_offset ? " and " : "",
                        has_offset ? "address" : "");
  return text;
}

std::string text_of_other(const emulator::Fault& fault) {
  return fmt::format("in line {}: {}", fault.site.line, fault.message);
}

bool names_two(const Witness& witness) { return witness.other_tid[0] || witness.other_tid[1] || witness.other_tid[2]; }

// What the launches show about a finding.
struct Observed {
  std::optional<emulator::Fault> fault;        // the fault of the finding
  std::optional<emulator::Fault> other_first;  // another fault that ended a launch
  bool has_reached = false;                    // the finding's line was executed
  unsigned witness_run_count = 0;              // launches without a fault that reached the line as the witness says
};

// The finding under replay, and what its launches have shown.
class Replayer {
 public:
  Replayer(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
           std::string_view rule, const rules::Finding& finding)
      : module_(module),
        kernel_(kernel),
        facts_(facts),
        rule_(rule),
        finding_(finding),
        lines_(lines_to_watch(module, rule, finding)) {}

  rules::Replay run();

 private:
  const Witness* witness() const { return finding_.witness ? &*finding_.witness : nullptr; }
  Result<void> try_launch(GeneratedLaunch launch, bool has_witness_bytes);
  Result<EmulatedLaunch> run_emulator(const GeneratedLaunch& launch, bool only) const;
  void record(const EmulatedLaunch& run);
  bool is_behind_the_branch(const emulator::Fault& fault) const;

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  const flow::LaunchFacts* facts_;
  std::string_view rule_;
  const rules::Finding& finding_;
  std::vector<uint32_t> lines_;
  std::vector<Growth> growths_;
  Observed observed_;
};

Result<EmulatedLaunch> Replayer::run_emulator(const GeneratedLaunch& launch, bool only) const {
  emulator::Device device;
  emulator::LaunchOptions options;
  options.max_steps = kMaxSteps;
  options.max_faults = kMaxFaults;
  options.checks = emulator::kCheckStandard & ~emulator::kCheckOutputs;  // the contents of buffers are generated
  if (only) {
    options.checks = check_of(rule_);
    options.only_checked_line = lines_.front();
  }
  return emulate(device, module_, kernel_, launch, options, {.watched_lines = lines_});
}

// F039 names a branch. One of its two threads must be the one that the fault shows waiting, at a barrier behind it.
bool Replayer::is_behind_the_branch(const emulator::Fault& fault) const {
  return rule_ == "F039" && witness() != nullptr &&
         (is_named(witness()->tid, fault.thread.thread) || is_named(witness()->other_tid, fault.thread.thread));
}

void Replayer::record(const EmulatedLaunch& run) {
  const uint32_t line = lines_.front();
  observed_.has_reached |= std::ranges::any_of(run.visits, [&](const auto& visit) { return visit.line == line; });
  for (const emulator::Fault& fault : run.outcome.faults) {
    const bool is_other_side = fault.has_other && fault.other_site.line == line;
    if (is_predicted(rule_, emulator::rule(fault.kind)) &&
        (fault.site.line == line || is_other_side || is_behind_the_branch(fault))) {
      observed_.fault = fault;
      return;
    }
  }
  for (const emulator::Fault& fault : run.outcome.faults)
    if (emulator::stops(fault.kind) && !observed_.other_first) observed_.other_first = fault;
}

// Runs one launch: unchanged, with larger buffers as long as that helps, and past another fault that occurs first.
Result<void> Replayer::try_launch(GeneratedLaunch launch, bool has_witness_bytes) {
  const bool is_about_bounds = check_of(rule_) == emulator::kCheckBounds;
  for (unsigned growth = 0;; ++growth) {
    for (const Growth& each : growths_) grow(launch, each);
    if (has_witness_bytes) apply_witness_bytes(*witness(), launch);
    const auto first = run_emulator(launch, false);
    if (!first) return tl::unexpected(first.error());
    const emulator::Outcome& outcome = first->outcome;
    const auto before = observed_.other_first;
    record(*first);
    if (observed_.fault) {
      observed_.other_first.reset();
      return {};
    }
    const auto stop = std::ranges::find_if(outcome.faults, emulator::stops, &emulator::Fault::kind);
    if (stop == outcome.faults.end()) {
      const bool is_witness_run = has_witness_bytes || (witness() != nullptr && !witness()->loaded_byte);
      observed_.witness_run_count +=
          outcome.ok() && is_witness_run && matches_witness(module_, rule_, finding_, first->visits);
      return {};
    }
    if (is_about_bounds || growth == kMaxGrowths) break;
    const auto wanted = growth_for(*stop, *first, launch, facts_, kLargestGrownBytes);
    if (!wanted) break;
    std::erase_if(growths_, [&](const Growth& each) {
      return each.parameter == wanted->parameter && each.offset == wanted->offset;
    });
    growths_.push_back(*wanted);
    observed_.other_first = before;
  }
  const auto past = run_emulator(launch, true);
  if (!past) return tl::unexpected(past.error());
  record(*past);
  return {};
}

rules::Replay Replayer::run() {
  using Outcome = rules::Replay::Outcome;
  for (unsigned attempt = 0; attempt < 2 * kVariants; ++attempt) {
    const bool is_witness = attempt % 2 == 0;  // block and bytes of the witness with scalars of the variant
    if (is_witness && witness() == nullptr) continue;
    auto launch = generate_launch(module_, kernel_, facts_, attempt / 2);
    if (!launch) return {Outcome::not_run, launch.error().message()};
    if (is_witness) apply_witness_threads(*witness(), kernel_, facts_, launch->shape);
    const bool has_witness_bytes = is_witness && witness()->loaded_byte;
    if (auto tried = try_launch(std::move(*launch), has_witness_bytes); !tried)
      return {Outcome::not_run, tried.error().message()};
    if (!observed_.fault) continue;
    std::string what = text_of(*observed_.fault, witness());
    if (observed_.other_first) what += fmt::format("; past another fault {}", text_of_other(*observed_.other_first));
    return {Outcome::confirmed, std::move(what)};
  }
  if (observed_.witness_run_count > 0)
    return {Outcome::refuted, fmt::format("{} ran clean although {} reached its line as the witness says",
                                          plural(observed_.witness_run_count, "launch", "launches"),
                                          names_two(*witness()) ? "its threads" : "its thread")};
  std::string what = fmt::format(
      "{} generated launches did not show it{}; {}", kVariants,
      witness() != nullptr ? ", nor as many with the witness's threads" : "",
      observed_.has_reached ? "its line was reached, but not as the witness says" : "none reached its line");
  if (observed_.other_first)
    what += fmt::format("; another fault comes first, {}", text_of_other(*observed_.other_first));
  return {observed_.has_reached ? Outcome::reached : Outcome::unreached, std::move(what)};
}

}  // namespace

rules::Replay replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                     std::string_view rule, const rules::Finding& finding) {
  return Replayer(module, module.functions[kernel], facts, rule, finding).run();
}

}  // namespace ptxkit
