// The experiment behind F021, F081 and F082: every probe of kernels/probes/ on the GPU at hand, at every offset and
// every level of the driver's compiler, each in a process of its own, because a misaligned access ends its context.
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
  int level = 4;  // 0 to 4
};

// Runs one probe in this process, on device $PTXKIT_DEVICE (default 0), and gives the line that read_probe_line reads:
// the CUresult of the wait and what the device is. The context may be dead afterwards: leave with std::_Exit.
Result<std::string> run_probe(const ProbeCase& which);

struct ProbeOutcome {
  int status = 0;  // CUresult
  uint32_t family_sm = 0;
  std::string driver, device;
};
// The line among `text` that run_probe gave. Error: there is none; what was printed instead.
Result<ProbeOutcome> read_probe_line(const std::string& text);

struct Experiment {
  rules::EvidenceFile evidence;       // of the highest level; its name is empty
  std::vector<std::string> by_level;  // probes whose results differ between levels, as sentences
  size_t run_count = 0;
};

// Runs `command(case)`, shell commands that print run_probe's line, several at a time. `date` is that of the evidence.
// Errors: a probe that could not be run.
Result<Experiment> run_probes(const std::vector<int>& levels, const std::string& date,
                              const std::function<std::string(const ProbeCase&)>& command);

std::string to_json(const Experiment& experiment);  // an evidence file, docs/ptx-debug.md

// What `mine` gives otherwise than `other`, as sentences; empty where every result of `other` is here too.
std::vector<std::string> differences(const rules::EvidenceFile& mine, const rules::EvidenceFile& other);

}  // namespace ptxkit::tools
