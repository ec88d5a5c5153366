// What a rule of the falsification catalogue is: a hypothesis about one kernel, a function that tries to refute it,
// and the result that reports, scores and exit codes are made of. docs/rules/ has a page for each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::rules {

enum class Verdict : uint8_t { survived, refuted, undecided, not_applicable };
enum class Severity : uint8_t { info, low, medium, high, critical };

// proved: holds on every run that reaches it, or a concrete witness exists. likely: a witness under a named assumption.
// possible: neither; at most medium.
enum class Tier : uint8_t { possible, likely, proved };

// One row of the catalogue, rules/rules.def.
struct RuleInfo {
  std::string_view id;                 // "F051"
  std::string_view name;               // "UnalignedMemoryAccess"
  std::string_view category;           // "Memory"
  uint8_t points = 0;                  // 0: advice only
  Severity severity = Severity::info;  // of a refutation, where the rule does not say otherwise per site
  bool must_prove = false;             // undecided loses the points too
  std::string_view property;           // one sentence: what holds when the hypothesis survives
};

// A step of a data-flow path or a related place: "value loaded here", "the cursor advances by 3 here".
struct Step {
  ptx::Offset at = 0;
  std::string what;
};

// A concrete run that shows the bug. Fields that do not matter to the finding stay empty.
struct Witness {
  std::optional<uint32_t> tid[3];
  std::optional<uint32_t> other_tid[3];  // the second thread of a race
  std::optional<uint64_t> iteration;
  std::optional<uint64_t> address;     // relative to the object named in `note`
  std::optional<uint8_t> loaded_byte;  // what every byte of the buffers is
  std::string note;
};

// What came of running a finding (runtime/launch/replay.hpp).
struct Replay {
  // `refuted`: in runs without a fault the witness's threads came to the finding's line with all that the witness says
  // of them. `reached`, `unreached`: its line was executed, but not so, or it was not; other inputs may show the fault.
  enum class Outcome : uint8_t { confirmed, refuted, reached, unreached, not_run } outcome = Outcome::not_run;
  std::string what;  // the fault, or what happened in its place, or why it was not run
};

struct Finding {
  Severity severity = Severity::info;
  Tier tier = Tier::possible;
  ptx::InstructionId instruction = ptx::kNone;  // kNone: of the module or kernel as a whole
  ptx::LocationId location = ptx::kNone;        // the `.loc` in force there
  ptx::Offset at = 0;                           // start of the instruction or directive
  std::string message;                          // "4-byte load at an address that is 1 modulo 4"
  std::vector<Step> path;                       // how the value came there, in order of flow
  std::vector<std::string> assumptions;  // "parameter 'src' is 4-aligned: a 4-byte access through it at offset 0"
  std::optional<Witness> witness;
  std::string remedy;            // "load bytes, or read the aligned words and funnel-shift"
  std::string evidence;          // which evidence decided the site; empty where none was needed
  std::optional<Replay> replay;  // where it was asked for
};

struct RuleResult {
  Verdict verdict = Verdict::not_applicable;
  bool loses_points =
      false;          // set with refuted (unless every finding is info), and with undecided where the rule must prove
  std::string basis;  // what the verdict rests on, or what could not be proved and why
  std::vector<Finding> findings;  // in program order
};

enum class Profile : uint8_t { root_cause, pattern };

// What the user said about the run, and what hardware has shown.
struct EvidenceSet;  // analyzer/evidence/evidence.hpp

// Facts per entry, from launch files; rules/launch_file.hpp reads them.
using LaunchSet = std::map<std::string, flow::LaunchFacts, std::less<>>;

// What running a kernel in several ways on generated inputs showed: for F084.
struct Differential {
  enum class Outcome : uint8_t { same, different, not_run } outcome = Outcome::not_run;
  std::string what;  // "the emulator and sm_90 at -O0 and -O3, 4 inputs", the difference, or why it did not run
};
using DifferentialRunner = std::function<Differential(const ptx::Module& module, ptx::FunctionId kernel)>;

// Registers of a thread as an assembler gives them out: for F092. Nothing where it does not take the kernel.
using RegisterCounter = std::function<std::optional<uint32_t>(const ptx::Module& module, ptx::FunctionId kernel)>;

struct Options {
  Profile profile = Profile::root_cause;
  uint32_t assume_align_bytes = 0;        // --assume-align N: every pointer parameter; 0 without
  const EvidenceSet* evidence = nullptr;  // shipped files plus --evidence
  const LaunchSet* launch = nullptr;      // --launch
  bool release = false;                   // --release: a debug buffer is not asked for
  DifferentialRunner differential;        // --differential; empty without
  RegisterCounter registers;              // --ptxas; empty without
};

}  // namespace ptxkit::rules
