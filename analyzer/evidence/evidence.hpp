// Evidence: results of the probe kernels on real GPUs, and what they say about the hypotheses F021, F081 and F082.
//
// The hypotheses blame the compiler: "a value loaded from shared memory and stored faults even where every access is
// aligned". A probe runs one such pattern at byte offsets added to an aligned base. A file of results *refutes* the
// hypothesis of a rule when, for all probes of that rule,
//   - every one ran at every offset that keeps its accesses aligned, and
//   - every one with a word access gave CUDA_ERROR_MISALIGNED_ADDRESS (716) at every offset that does not, which shows
//     that the probe can see a fault at all, and that the fault is the misalignment.
// It *confirms* the hypothesis when an aligned probe failed. Otherwise it decides nothing.
//
// The format is documented in docs/ptx-debug.md; analyzer/evidence/*.json is compiled into every program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::rules {

// CUresult values in the order of EvidenceFile::offsets_bytes.
struct ProbeResult {
  std::string probe;
  std::vector<uint32_t> status;
};

struct EvidenceFile {
  std::string name;        // file name without folder and extension, "h200-r580"
  std::string device;      // "NVIDIA H200"
  uint32_t family_sm = 0;  // 90
  std::string driver, date, method;
  std::vector<uint32_t> offsets_bytes;  // first is 0
  std::vector<ProbeResult> probes;
};

// "h200-r580: NVIDIA H200 (sm_90), driver 580.159.04, 2026-11-20"
std::string description(const EvidenceFile& file);

// All available evidence. A file covers modules whose target is not above the device's: a device runs the PTX of every
// target up to its own, compiled by the driver that was measured.
struct EvidenceSet {
  std::vector<EvidenceFile> files;

  // Names the evidence that refutes the rule's hypothesis for modules of `target_sm`, as a phrase for a report:
  // "h200-r580: NVIDIA H200 (sm_90), driver 580.159.04, 2026-11-20: 4 probes run aligned and give 716 misaligned".
  // Returns nothing where no file covers the target, or where one that covers it confirms the hypothesis.
  std::optional<std::string> refuted_by(std::string_view rule, uint32_t target_sm) const;

  // The same for a confirmation: an aligned probe of the rule failed on a device that covers the target.
  std::optional<std::string> confirmed_by(std::string_view rule, uint32_t target_sm) const;
};

// Validates `json`. Errors name `path`, the field, the expected and the actual value.
Result<EvidenceFile> parse_evidence(std::string_view json, const std::string& path);
Result<EvidenceFile> load_evidence(const std::string& path);

// The files of analyzer/evidence/, sorted by name.
const EvidenceSet& shipped_evidence();

// A probe that evidence may name, and its rule ("" for the controls).
struct ProbeInfo {
  std::string_view name;
  std::string_view rule;
  bool word_access = false;  // has an observed 4-byte access at the base plus the offset
};
// Null where there is no probe of this name.
const ProbeInfo* find_probe(std::string_view name);

}  // namespace ptxkit::rules
