#include "runtime/replay.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/backend/emulator/emulator.hpp"
#include "runtime/generated_launch.hpp"

namespace ptxkit {
namespace {

using rules::Witness;

constexpr unsigned kVariants = kSearching + 10;
constexpr uint64_t kMaxSteps = 500'000;
constexpr size_t kMaxFaults = 1000;  // the one that is looked for may be behind many
constexpr uint32_t kLargestBlock = 1024, kWarp = 32;

std::string_view dynamic_rule(std::string_view rule) {
  return rule == "F021" || rule == "F081" || rule == "F082" ? "F051" : rule;
}

// Whether a fault is what a finding foretells. One race has three rules, after who the two threads are: two of a block,
// two lanes of a warp (F050), two of a grid.
bool is_foretold(std::string_view finding, std::string_view fault) {
  static constexpr std::string_view kRaces[] = {"F036", "F042", "F050"};
  const auto is_race = [](std::string_view rule) { return std::ranges::find(kRaces, rule) != std::end(kRaces); };
  return dynamic_rule(finding) == fault || (is_race(finding) && is_race(fault));
}

// What looks for the faults of a rule, and for no others. Of 0 nothing needs to look: the emulator cannot go on.
uint32_t check_of(std::string_view rule) {
  static constexpr std::pair<std::string_view, uint32_t> kChecks[] = {
      {"F025", emulator::kCheckBounds},        {"F026", emulator::kCheckBounds},
      {"F029", emulator::kCheckBounds},        {"F036", emulator::kCheckRaces},
      {"F037", emulator::kCheckBarriers},      {"F042", emulator::kCheckRaces},
      {"F050", emulator::kCheckRaces},         {"F051", emulator::kCheckAlignment},
      {"F054", emulator::kCheckBounds},        {"F055", emulator::kCheckBounds},
      {"F060", emulator::kCheckUninitialised}, {"F067", emulator::kCheckBarriers},
      {"F071", emulator::kCheckUninitialised}, {"F085", emulator::kCheckBarriers}};
  const auto* const found =
      std::ranges::find(kChecks, dynamic_rule(rule), &std::pair<std::string_view, uint32_t>::first);
  return found == std::end(kChecks) ? 0 : found->second;
}

// A block that has the witness's threads, where nothing fixes it: along x whole warps, or, where those are more than
// the kernel takes, no more than needed.
void take_threads(const Witness& witness, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                  emulator::LaunchShape& shape) {
  if (kernel.attributes.req_ntid[0] || (facts != nullptr && facts->block[0])) return;
  const auto extent = [&](unsigned d) {
    return std::max(witness.tid[d].value_or(0), witness.other_tid[d].value_or(0)) + 1;
  };
  const auto& most = kernel.attributes.max_ntid;
  const uint32_t limit = most[0] ? most[0] * std::max(most[1], 1u) * std::max(most[2], 1u) : kLargestBlock;
  emulator::Dim3 block{std::max(shape.block.x, (extent(0) + kWarp - 1) / kWarp * kWarp),
                       std::max(shape.block.y, extent(1)), std::max(shape.block.z, extent(2))};
  if (block.x * block.y * block.z > limit) block.x = extent(0);
  if (block.x * block.y * block.z <= limit) shape.block = block;
}

void take_witness(const Witness& witness, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                  GeneratedLaunch& launch) {
  take_threads(witness, kernel, facts, launch.shape);
  if (!witness.loaded_byte) return;
  for (GeneratedParameter& parameter : launch.parameters)
    for (GeneratedBuffer& buffer : parameter.buffers) std::ranges::fill(buffer.bytes, std::byte{*witness.loaded_byte});
}

bool is_thread_of(const Witness& witness, const emulator::Fault& fault) {
  for (unsigned d = 0; d < 3; ++d) {
    if (!witness.tid[d] || *witness.tid[d] != fault.thread.thread[d]) return false;
  }
  return true;
}

// The fault that `finding` foretells, and how it compares with the witness.
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

// What launches show of a finding: the fault of its rule at its line, and what came in between.
struct Shown {
  std::optional<emulator::Fault> fault;
  std::optional<emulator::Fault> other_first;  // that ended a launch
  bool has_reached = false;                    // an access in the line was made
};

// The launch needs its own device. With `only`, other faults than the rule's are passed over.
Result<Shown> run(const ptx::Module& module, const ptx::Function& kernel, const GeneratedLaunch& launch,
                  std::string_view rule, uint32_t line, bool only) {
  emulator::Device device;
  emulator::LaunchOptions options;
  options.max_steps = kMaxSteps;
  options.max_faults = kMaxFaults;
  if (only) {
    options.checks = check_of(rule);
    options.watched_line = line;
  }
  const auto emulated = emulate(device, module, kernel, launch, options);
  if (!emulated) return tl::unexpected(emulated.error());
  Shown shown;
  shown.has_reached = emulated->outcome.has_reached_watched_line;
  for (const emulator::Fault& fault : emulated->outcome.faults) {
    const bool is_other_side = fault.has_other && fault.other_site.line == line;
    if (is_foretold(rule, emulator::rule(fault.kind)) && (fault.site.line == line || is_other_side)) {
      shown.fault = fault;
      return shown;
    }
    if (emulator::stops(fault.kind) && !shown.other_first) shown.other_first = fault;
  }
  return shown;
}

// Adds to `all` what a launch shows, past another fault where one comes first.
Result<void> look(const ptx::Module& module, const ptx::Function& kernel, const GeneratedLaunch& launch,
                  std::string_view rule, uint32_t line, Shown& all) {
  for (const bool only : {false, true}) {
    auto shown = run(module, kernel, launch, rule, line, only);
    if (!shown) return tl::unexpected(shown.error());
    all.has_reached |= shown->has_reached;
    all.fault = std::move(shown->fault);
    if (all.fault) {
      if (!only) all.other_first.reset();
      return {};
    }
    if (!all.other_first) all.other_first = std::move(shown->other_first);
  }
  return {};
}

std::string text_of_other(const emulator::Fault& fault) {
  return fmt::format("in line {}: {}", fault.site.line, fault.message);
}

}  // namespace

Replayed replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                std::string_view rule, const rules::Finding& finding) {
  const ptx::Function& function = module.functions[kernel];
  const uint32_t line = module.position(finding.at).line;
  const Witness* const witness = finding.witness ? &*finding.witness : nullptr;
  Shown all;
  for (unsigned attempt = 0; attempt < 2 * kVariants; ++attempt) {
    const bool is_witness = attempt % 2 == 0;  // the witness's block and bytes with the variant's scalars
    if (is_witness && witness == nullptr) continue;
    auto launch = generate_launch(module, function, facts, attempt / 2);
    if (!launch) return {Replayed::Outcome::not_run, launch.error().message()};
    if (is_witness) take_witness(*witness, function, facts, *launch);
    if (auto looked = look(module, function, *launch, rule, line, all); !looked)
      return {Replayed::Outcome::not_run, looked.error().message()};
    if (!all.fault) continue;
    std::string what = text_of(*all.fault, witness);
    if (all.other_first) what += fmt::format("; past another fault {}", text_of_other(*all.other_first));
    return {Replayed::Outcome::confirmed, std::move(what)};
  }
  std::string what = fmt::format("{} generated launches did not show it{}; {}", kVariants,
                                 witness != nullptr ? ", nor as many with the witness's threads" : "",
                                 all.has_reached ? "its line was reached" : "none reached its line");
  if (all.other_first) what += fmt::format("; another fault comes first, {}", text_of_other(*all.other_first));
  return {Replayed::Outcome::unseen, std::move(what)};
}

}  // namespace ptxkit
