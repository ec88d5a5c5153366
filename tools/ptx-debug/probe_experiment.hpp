// The experiment behind F021, F081 and F082: runs every probe of kernels/probes/ on the local GPU, at every offset and
// every level of the driver's compiler. Each run has a process of its own, because a misaligned access destroys its
// context.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/evidence/evidence.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

inline constexpr uint32_t kProbeOffsets[] = {0, 1, 2};  // bytes added to the aligned base

struct ProbeCase {
  std::string probe;
  uint32_t offset_bytes = 0;
  int level = 4;  // of the driver's compiler, 0 to 4
};

// Runs one probe in this process, on device $PTXKIT_DEVICE (default 0). Returns the line that read_probe_line reads:
// the CUresult of the wait, the device and the driver. The context may be dead afterwards: leave with std::_Exit.
Result<std::string> run_probe(const ProbeCase& which);

struct ProbeOutcome {
  int status = 0;  // CUresult
  uint32_t family_sm = 0;
  std::string driver, device;
};
// Parses the line of run_probe out of `text`. Error: there is none; its message is `text`.
Result<ProbeOutcome> read_probe_line(const std::string& text);

struct Experiment {
  rules::EvidenceFile evidence;       // of the last level in `levels`; its name is empty
  std::vector<std::string> by_level;  // sentences, one per result that differs between levels
  size_t run_count = 0;
};

// Runs command(case), a shell command that prints run_probe's line, for all cases, several in parallel. `date` goes
// into the evidence. Error: a probe could not be run.
Result<Experiment> run_probes(const std::vector<int>& levels, const std::string& date,
                              const std::function<std::string(const ProbeCase&)>& command);

std::string to_json(const Experiment& experiment);  // an evidence file, docs/ptx-debug.md

// Sentences on each result of `mine` that differs from `other`; empty where `mine` has every result of `other`.
std::vector<std::string> differences(const rules::EvidenceFile& mine, const rules::EvidenceFile& other);

}  // namespace ptxkit::tools
