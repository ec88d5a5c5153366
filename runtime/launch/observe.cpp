#include "runtime/launch/observe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/rules/table.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/watch.hpp"
#include "runtime/launch/generated_launch.hpp"
#include "runtime/launch/made_launch.hpp"
#include "runtime/launch/sized_launch.hpp"
#include "support/plural.hpp"

namespace ptxkit {
namespace {

using emulator::Fault;
using emulator::FaultKind;
using rules::Severity;

constexpr uint64_t kLanes = 32;
constexpr unsigned kEnoughLaunches = 3;       // that show a fault of which all is made up
constexpr int64_t kFarthestBefore = 1 << 12;  // bytes before a buffer that an index below zero reaches

bool is_race(FaultKind kind) {
  return kind == FaultKind::shared_race || kind == FaultKind::global_race || kind == FaultKind::warp_race ||
         kind == FaultKind::grid_race;
}

// The rule of a fault. An output that holds bits of shared memory shows that these were read before they were written.
std::string_view rule_of(const Fault& fault) {
  const bool is_shared = fault.kind == FaultKind::undefined_output && fault.undefined.space == "shared";
  return is_shared ? emulator::rule(FaultKind::uninitialised_shared) : emulator::rule(fault.kind);
}

// Faults that one warp cannot show in a kernel for several.
bool is_between_warps(FaultKind kind) {
  return is_race(kind) || kind == FaultKind::barrier_exited || kind == FaultKind::barrier_divergence ||
         kind == FaultKind::barrier_deadlock;
}

// Faults that say nothing of the kernel: limits of the run, objects that nothing describes, the kernel's own traps.
bool is_of_the_run(FaultKind kind) {
  switch (kind) {
    case FaultKind::trap:
    case FaultKind::breakpoint:
    case FaultKind::unsupported:
    case FaultKind::leak:
    case FaultKind::out_of_steps:
    case FaultKind::no_progress:
    case FaultKind::interrupted:
    case FaultKind::texture_handle:
    case FaultKind::surface_handle:
      return true;
    default:
      return emulator::rule(kind).empty();
  }
}

// An instruction of the module, by function and index.
using Place = std::pair<ptx::FunctionId, uint32_t>;

// A fault seen in one or several launches. The two places of a race are in order, for either may be the later access.
struct Key {
  bool is_race = false;
  FaultKind kind{};
  Place first{}, second{};
  auto operator<=>(const Key&) const = default;
};

struct Seen {
  Key key;
  Fault fault;
  unsigned launch = 0;  // the first that shows it
  unsigned seen_count = 0, reached_count = 0;
  bool is_everywhere = true;  // no launch came there without it
  bool has_zeros = false;     // the launch whose buffers hold zeros shows it
  bool is_cut = false;        // the first launch had to be ended
  std::vector<std::string> assumptions;
};

class Observer {
 public:
  Observer(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts, uint64_t max_steps)
      : module_(module),
        id_(kernel),
        kernel_(module.functions[kernel]),
        facts_(facts),
        steps_each_(std::max<uint64_t>(max_steps / kMadeLaunches, 1)),
        is_block_given_(kernel_.attributes.req_ntid[0] != 0 || (facts != nullptr && facts->block[0] != 0)),
        has_block_barrier_(std::ranges::any_of(
            kernel_.instructions, [&](const ptx::Instruction& each) { return ptx::is_cta_barrier(kernel_, each); })) {}

  Observations run();

 private:
  struct Ran {
    EmulatedLaunch launch;
    std::set<Place> executed;
    std::vector<Key> keys;  // of all faults
    bool is_stopped = false;
    bool has_blocks = false;
    bool is_lone_warp = false;  // by choice, although the kernel has a barrier of the block
    bool is_zeros = false;
  };

  struct Byte {
    std::byte value{};
    bool is_changed = false;
  };

  bool run_launch(unsigned number);
  bool is_repetition(const GeneratedLaunch& launch, unsigned number);
  void compare_outputs(unsigned number, const emulator::Device& device, const GeneratedLaunch& launch, const Ran& ran);
  bool is_of_chance(const Fault& fault, const MadeLaunch& made) const;
  void note(const MadeLaunch& made, unsigned number, const Ran& ran);
  void count_launches();
  bool is_certain(const Seen& seen) const;
  Severity severity_of(const Seen& seen) const;
  rules::Finding finding_of(const Seen& seen) const;
  void summarise();

  std::optional<Place> place_of(const emulator::Site& site) const {
    if (site.instruction == ptx::kNone) return std::nullopt;
    for (ptx::FunctionId id = 0; id < module_.functions.size(); ++id)
      if (module_.functions[id].has_body && module_.functions[id].name == site.entry)
        return Place{id, site.instruction};
    return std::nullopt;
  }
  Key key_of(const Fault& fault) const {
    Key key{is_race(fault.kind), is_race(fault.kind) ? FaultKind::shared_race : fault.kind, {}, {}};
    key.first = key.second = place_of(fault.site).value_or(Place{id_, ptx::kNone});
    if (key.is_race) key.second = place_of(fault.other_site).value_or(key.first);
    if (key.second < key.first) std::swap(key.first, key.second);
    return key;
  }
  ptx::Offset offset_of(const Place& place) const {
    const ptx::Function& function = module_.functions[place.first];
    return place.second < function.instructions.size() ? function.instructions[place.second].at : function.at;
  }

  const ptx::Module& module_;
  const ptx::FunctionId id_;
  const ptx::Function& kernel_;
  const flow::LaunchFacts* facts_;
  const uint64_t steps_each_;
  Observations result_;
  std::vector<GeneratedLaunch> launches_;
  std::vector<Ran> ran_;
  std::vector<Seen> seen_;
  std::vector<Byte> first_outputs_;  // of launch 0
  std::set<uint32_t> executed_;
  bool is_shape_given_ = false;
  const bool is_block_given_, has_block_barrier_;
};

// Whether an earlier launch is the same; only its schedule differs then, which is worth a second and a third run.
bool Observer::is_repetition(const GeneratedLaunch& launch, unsigned number) {
  const auto is_same_buffer = [](const GeneratedBuffer& a, const GeneratedBuffer& b) {
    return a.offset == b.offset && a.bytes == b.bytes;
  };
  const auto is_same = [&](const GeneratedParameter& a, const GeneratedParameter& b) {
    return a.value == b.value && std::ranges::equal(a.buffers, b.buffers, is_same_buffer);
  };
  const auto key = [](const emulator::LaunchShape& shape) {
    return std::array{shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z};
  };
  return number != 1 && number != kZerosLaunch && std::ranges::any_of(launches_, [&](const GeneratedLaunch& earlier) {
           return key(earlier.shape) == key(launch.shape) &&
                  std::ranges::equal(earlier.parameters, launch.parameters, is_same);
         });
}

// Launches 0 and 1 differ in what buffers hold before. What either leaves in bytes that one of them changes is
// compared.
void Observer::compare_outputs(unsigned number, const emulator::Device& device, const GeneratedLaunch& launch,
                               const Ran& ran) {
  if (number > 1) return;
  using Outputs = rules::ObservedRun::Outputs;
  std::vector<Byte> outputs;
  size_t buffer_number = 0;
  bool is_given = true;
  for (const GeneratedBuffer* buffer : all_buffers(launch)) {
    const emulator::Address address = ran.launch.addresses[buffer_number++];
    std::vector<std::byte> after(buffer->bytes.size());
    if (!buffer->object.empty() || after.empty() || !device.read(address, after)) continue;
    is_given &= !buffer->hex.empty();
    for (size_t i = 0; i < after.size(); ++i) outputs.push_back({after[i], after[i] != buffer->bytes[i]});
  }
  if (number == 0) {
    first_outputs_ = std::move(outputs);
    return;
  }
  if (is_given || ran.is_stopped || ran_.empty() || ran_.front().is_stopped || outputs.size() != first_outputs_.size())
    return;
  result_.run.outputs = Outputs::none_written;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_changed && !first_outputs_[i].is_changed) continue;
    result_.run.outputs = Outputs::ignore_inputs;
    if (outputs[i].value == first_outputs_[i].value) continue;
    result_.run.outputs = Outputs::follow_inputs;
    return;
  }
}

bool Observer::run_launch(unsigned number) {
  auto made = make_launch(module_, kernel_, facts_, number, steps_each_);
  if (!made) {
    result_.run.not_run = made.error().message();
    return false;
  }
  is_shape_given_ = made->is_shape_given;
  if (is_repetition(made->launch, number)) return true;
  const MadeSchedule schedule = made_schedule(number);
  emulator::Device device;
  auto launched =
      emulate(device, module_, kernel_, made->launch,
              {.schedule_seed = schedule.seed, .adversarial = schedule.is_adversarial, .max_steps = steps_each_},
              {.counts = true});
  if (!launched) {
    result_.run.not_run = launched.error().message();
    return false;
  }
  Ran ran{std::move(*launched), {}, {}};
  for (const emulator::InstructionCount& each : ran.launch.counts) {
    if (each.threads == 0) continue;
    ran.executed.insert({each.function, each.instruction});
    if (each.function == id_) executed_.insert(each.instruction);
  }
  for (const Fault& fault : ran.launch.outcome.faults) {
    ran.is_stopped |= emulator::stops(fault.kind);
    ran.keys.push_back(key_of(fault));
  }
  ran.has_blocks = made->launch.shape.grid.count() > 1;
  ran.is_lone_warp = made->launch.shape.block.count() <= kLanes && !is_block_given_ && has_block_barrier_;
  ran.is_zeros = number == kZerosLaunch;
  result_.steps += ran.launch.outcome.statistics.warp_instructions;
  compare_outputs(number, device, made->launch, ran);
  note(*made, number, ran);
  launches_.push_back(std::move(made->launch));
  ran_.push_back(std::move(ran));
  return true;
}

// Whether sizes that were made up explain the fault.
bool Observer::is_of_chance(const Fault& fault, const MadeLaunch& made) const {
  if (is_of_the_run(fault.kind)) return true;
  const auto parameter = std::ranges::find(made.launch.parameters, fault.object, &GeneratedParameter::name);
  const bool is_made_up =
      parameter != made.launch.parameters.end() && !parameter->buffers.empty() && !has_given_size(fault.object, facts_);
  // Two buffers that should be farther apart.
  if (fault.kind == FaultKind::global_race || fault.kind == FaultKind::grid_race || fault.kind == FaultKind::warp_race)
    return is_made_up && !made.is_sized;
  // The host passes the addresses of functions.
  if (const auto place = place_of(fault.site); place && fault.kind == FaultKind::bad_branch_index)
    return module_.functions[place->first].instructions[place->second].op == ptx::Op::call;
  if (fault.kind != FaultKind::out_of_bounds) return false;
  if (parameter != made.launch.parameters.end())
    return is_made_up && (fault.object_offset >= 0 || fault.object_offset < -kFarthestBefore);
  const auto variable = std::ranges::find(module_.variables, fault.object, &ptx::Variable::name);
  if (variable == module_.variables.end()) return true;
  const bool is_dynamic = variable->is_unsized || variable->size_bytes == 0;
  return is_dynamic && (facts_ == nullptr || facts_->dynamic_shared_bytes == 0);
}

void Observer::note(const MadeLaunch& made, unsigned number, const Ran& ran) {
  const std::vector<Fault>& faults = ran.launch.outcome.faults;
  for (size_t i = 0; i < faults.size(); ++i) {
    if (is_of_chance(faults[i], made)) continue;
    if (std::ranges::find(seen_, ran.keys[i], &Seen::key) != seen_.end()) continue;
    Seen seen;
    seen.key = ran.keys[i];
    seen.fault = faults[i];
    seen.launch = number;
    seen.is_cut = std::ranges::find(faults, FaultKind::out_of_steps, &Fault::kind) != faults.end();
    seen.assumptions = made.assumptions;
    seen_.push_back(std::move(seen));
  }
}

// Says of each fault which launches show it, and whether one comes to its place without it.
void Observer::count_launches() {
  for (Seen& seen : seen_) {
    const auto [is_race, kind, first, second] = seen.key;
    for (const Ran& ran : ran_) {
      const bool is_seen = std::ranges::any_of(ran.keys, [&](const Key& key) {
        if (!is_race) return key == seen.key;
        return key.is_race &&
               (key.first == first || key.second == first || key.first == second || key.second == second);
      });
      // Several blocks are needed, or several warps. A kernel without a barrier of the block may be for one warp.
      const bool is_possible = (seen.fault.kind != FaultKind::grid_race || ran.has_blocks) &&
                               (!ran.is_lone_warp || !is_between_warps(seen.fault.kind));
      const bool has_place =
          first.second == ptx::kNone || (ran.executed.contains(first) && ran.executed.contains(second));
      seen.seen_count += is_seen;
      seen.has_zeros |= is_seen && ran.is_zeros;
      if (!is_seen && (!is_possible || !has_place)) continue;
      ++seen.reached_count;
      if (!is_seen) {
        // Another fault at the place, such as null instead of misaligned, comes of other contents.
        const bool is_other_fault = std::ranges::any_of(ran.keys, [&](const Key& key) { return key.first == first; });
        seen.is_everywhere &= ran.is_stopped && !is_other_fault;
      }
    }
  }
}

// Whether nothing that was made up decides.
bool Observer::is_certain(const Seen& seen) const {
  const unsigned enough = std::min<unsigned>(kEnoughLaunches, static_cast<unsigned>(ran_.size()));
  return seen.is_everywhere && seen.has_zeros && seen.seen_count >= enough;
}

Severity Observer::severity_of(const Seen& seen) const {
  const rules::RuleInfo* const rule = rules::find_rule(rule_of(seen.fault));
  Severity severity = rule == nullptr ? Severity::medium : rule->severity;
  switch (seen.fault.kind) {
    case FaultKind::shared_race:
    case FaultKind::global_race:
    case FaultKind::grid_race:
      severity = Severity::high;
      break;
    case FaultKind::warp_race:
      // Lanes that store different values by one instruction race wherever they run.
      severity = seen.key.first == seen.key.second ? Severity::high : Severity::medium;
      break;
    case FaultKind::out_of_bounds:
      if (seen.fault.object_offset < 0 && !has_given_size(seen.fault.object, facts_) &&
          std::ranges::any_of(
              kernel_.parameters, [&](ptx::VariableId id) { return module_.variables[id].name == seen.fault.object; }))
        severity = Severity::medium;
      break;
    case FaultKind::undefined_output:
    case FaultKind::endless_loop:
    case FaultKind::stack_overflow:
      severity = std::min(severity, Severity::medium);
      break;
    default:
      break;
  }
  if (!is_shape_given_) severity = std::min(severity, Severity::high);
  if (is_certain(seen)) return severity;
  return std::min(severity, is_shape_given_ ? Severity::medium : Severity::info);
}

rules::Finding Observer::finding_of(const Seen& seen) const {
  const Fault& fault = seen.fault;
  rules::Finding finding;
  finding.severity = severity_of(seen);
  finding.tier = is_certain(seen)  ? rules::Tier::observed
                 : is_shape_given_ ? rules::Tier::likely
                                   : rules::Tier::possible;
  const Place place = place_of(fault.site).value_or(Place{id_, ptx::kNone});
  finding.at = offset_of(place);
  if (place.second != ptx::kNone) {
    finding.instruction = place.second;
    finding.location = module_.functions[place.first].instructions[place.second].location;
  }
  finding.message = fault.message;
  rules::Witness witness;
  for (unsigned d = 0; d < 3; ++d) witness.tid[d] = fault.thread.thread[d];
  const auto block_text = [](const emulator::ThreadId& thread) {
    return fmt::format("({}, {}, {})", thread.block[0], thread.block[1], thread.block[2]);
  };
  witness.note = "block " + block_text(fault.thread);
  if (fault.has_other) {
    for (unsigned d = 0; d < 3; ++d) witness.other_tid[d] = fault.other_thread.thread[d];
    if (fault.other_thread.block != fault.thread.block)
      witness.note += " against block " + block_text(fault.other_thread);
    if (const auto other = place_of(fault.other_site))
      finding.path.push_back({offset_of(*other), fault.other_message.empty() ? "the other side" : fault.other_message});
  }
  if (fault.has_address && !fault.object.empty())
    witness.note += fmt::format(", '{}' of {} {} {}", fault.object, plural(fault.object_bytes, "byte"),
                                fault.object_offset < 0 ? "-" : "+", std::abs(fault.object_offset));
  finding.witness = std::move(witness);
  finding.assumptions = seen.assumptions;
  finding.evidence = fmt::format("seen on the emulator in {} of the {} that come there", seen.seen_count,
                                 plural(seen.reached_count, "launch", "launches"));
  finding.remedy = fmt::format("see `ptx-debug explain {}`", rule_of(fault));
  finding.command = fmt::format("--made {} --schedule {}", seen.launch, made_schedule(seen.launch).word);
  if (seen.is_cut || steps_each_ != kMadeSteps) finding.command += fmt::format(" --max-steps {}", steps_each_);
  return finding;
}

void Observer::summarise() {
  rules::ObservedRun& run = result_.run;
  run.launch_count = static_cast<unsigned>(ran_.size());
  run.instruction_count = static_cast<uint32_t>(kernel_.instructions.size());
  run.executed_count = static_cast<uint32_t>(executed_.size());
  std::set<uint32_t> lines;
  for (uint32_t i = 0; i < run.instruction_count; ++i)
    if (!executed_.contains(i)) lines.insert(module_.position(kernel_.instructions[i].at).line);
  run.unexecuted_lines.assign(lines.begin(), lines.end());
}

Observations Observer::run() {
  for (unsigned number = 0; number < kMadeLaunches; ++number)
    if (!run_launch(number)) return std::move(result_);
  count_launches();
  for (const Seen& seen : seen_)
    result_.findings.push_back({std::string(rule_of(seen.fault)), is_certain(seen), finding_of(seen)});
  summarise();
  return std::move(result_);
}

}  // namespace

Observations observe(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                     uint64_t max_steps) {
  return Observer(module, kernel, facts, max_steps).run();
}

}  // namespace ptxkit
