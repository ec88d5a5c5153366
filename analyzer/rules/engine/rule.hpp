// A rule of the falsification catalogue: a hypothesis about one kernel, a function that tries to refute it, and the
// result from which reports, scores and exit codes are made. docs/rules/ has a page for each rule.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/prove/solver.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::rules {

enum class Verdict : uint8_t { survived, refuted, undecided, not_applicable };
enum class Severity : uint8_t { info, low, medium, high, critical };

// proved: holds on every run that reaches it, or has a concrete witness. observed: the emulator ran a launch that shows
// it; what was made up of that launch is among the assumptions. likely: has a witness under a named assumption.
// possible: none of these; severity medium at most.
enum class Tier : uint8_t { possible, likely, observed, proved };

// One row of the catalogue, rules/rules.def.
struct RuleInfo {
  std::string_view id;                 // "F051"
  std::string_view name;               // "UnalignedMemoryAccess"
  std::string_view category;           // "Memory"
  uint8_t points = 0;                  // 0: advice only
  Severity severity = Severity::info;  // of a refutation, unless the rule sets it per site
  bool must_prove = false;             // undecided loses the points too
  std::string_view property;           // one sentence: the property that holds when the rule survives
};

// A step of a data-flow path, or a related place: "value loaded here", "the cursor advances by 3 here".
struct Step {
  ptx::Offset at = 0;
  std::string what;
};

// A concrete run that shows the bug. Fields that the finding does not need stay empty.
struct Witness {
  std::optional<uint32_t> tid[3];
  std::optional<uint32_t> other_tid[3];  // the second thread of a race
  std::optional<uint64_t> iteration;
  std::optional<uint64_t> address;     // relative to the object named in `note`
  std::optional<uint8_t> loaded_byte;  // value of every byte in the buffers
  std::string note;
};

// The outcome of running a finding (runtime/launch/replay.hpp).
struct Replay {
  // `refuted`: the witness's threads reached the finding's line in the state that the witness describes, and no run had
  // a fault. `reached`: its line was executed, but not in that state. `unreached`: its line was not executed. In the
  // last two cases other inputs may show the fault.
  enum class Outcome : uint8_t { confirmed, refuted, reached, unreached, not_run } outcome = Outcome::not_run;
  std::string what;  // the fault, or what happened instead, or why it was not run
};

struct Finding {
  Severity severity = Severity::info;
  Tier tier = Tier::possible;
  ptx::InstructionId instruction = ptx::kNone;  // kNone: the module or kernel as a whole
  ptx::LocationId location = ptx::kNone;        // the `.loc` in effect there
  ptx::Offset at = 0;                           // start of the instruction or directive
  std::string message;                          // "4-byte load at an address that is 1 modulo 4"
  std::vector<Step> path;                       // data flow to the value, in order
  std::vector<std::string> assumptions;  // "parameter 'src' is 4-aligned: a 4-byte access through it at offset 0"
  std::optional<Witness> witness;
  std::string remedy;            // "load bytes, or read the aligned words and funnel-shift"
  std::string evidence;          // evidence that decided the site; empty where none was needed
  std::optional<Replay> replay;  // set where a replay was requested
  std::string command;           // of an observed finding: the shell command that runs the launch again
};

// What running a kernel says besides its findings (runtime/launch/observe.hpp).
struct ObservedRun {
  std::string not_run;  // why no launch was run; the other fields are then unset
  unsigned launch_count = 0;
  uint32_t instruction_count = 0, executed_count = 0;  // of the kernel itself, without its callees
  std::vector<uint32_t> unexecuted_lines{};            // of the PTX, rising
  // Whether other contents of the buffers gave other outputs. `unknown`: the contents are given, or a run was cut off.
  enum class Outputs : uint8_t { unknown, none_written, follow_inputs, ignore_inputs } outputs = Outputs::unknown;
};

struct RuleResult {
  Verdict verdict = Verdict::not_applicable;
  bool loses_points =
      false;  // set with refuted (unless every finding is info), and with undecided where the rule must prove
  bool needs_launch_fact = false;  // undecided, and what the host passes alone decides: a launch file can settle it
  std::string basis;               // what the verdict rests on, or what could not be proved, and why
  std::vector<Finding> findings;   // in program order
};

enum class Profile : uint8_t { root_cause, pattern };

struct EvidenceSet;  // analyzer/evidence/evidence.hpp

// Launch facts per entry; rules/engine/launch_file.hpp reads them.
using LaunchSet = std::map<std::string, flow::LaunchFacts, std::less<>>;

// The outcome of running a kernel in several ways on generated inputs, for F084.
struct Differential {
  enum class Outcome : uint8_t { same, different, not_run } outcome = Outcome::not_run;
  std::string what;  // "the emulator and sm_90 at -O0 and -O3, 4 inputs", the difference, or why it did not run
};
using DifferentialRunner = std::function<Differential(const ptx::Module& module, ptx::FunctionId kernel)>;

// Registers per thread as allocated by an assembler, for F092; nothing where it rejects the kernel.
using RegisterCounter = std::function<std::optional<uint32_t>(const ptx::Module& module, ptx::FunctionId kernel)>;

inline constexpr uint32_t kProveSteps = 300'000;

// The user's options, and the evidence from hardware.
struct Options {
  Profile profile = Profile::root_cause;
  uint32_t assume_align_bytes = 0;        // --assume-align N, for every pointer parameter; 0: not set
  const EvidenceSet* evidence = nullptr;  // shipped files plus --evidence
  const LaunchSet* launch = nullptr;      // --launch
  bool release = false;                   // --release: do not ask for a debug buffer
  DifferentialRunner differential;        // --differential; empty: not set
  RegisterCounter registers;              // --ptxas; empty: not set
  const prove::Solver* solver = nullptr;  // null: --no-prove, or there is none
  uint32_t prove_steps = kProveSteps;     // --prove-steps, of each question to the solver
};

}  // namespace ptxkit::rules
