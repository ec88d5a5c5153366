// The probes: eighteen small kernels that each show one pattern of shared or global access at a byte offset added to an
// aligned base. They are the experiment behind F021, F081 and F082 (analyzer/evidence/), and the analyzer's own test:
// what it says of them must agree with what the hardware did.
//
// A probe is PTX text (.version 8.0, .target sm_70) made of one frame and one body. Every probe has the entry
//   NAME(.param .u64 out, .param .u64 scratch, .param .u32 offset), one CTA of 32 threads,
// out and scratch 256-byte aligned and 1024 bytes large, no dynamic shared memory. `offset` acts only in the variant
// `parameter`; the others have it as a constant, for static analysis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxkit::kernels {

enum class ProbeOffset : uint8_t { zero, one, two, parameter };

// Names in alphabetical order, each that of its entry.
std::vector<std::string_view> probe_names();

// The module of one probe. Precondition: `name` is one of probe_names().
std::string probe_ptx(std::string_view name, ProbeOffset offset);

}  // namespace ptxkit::kernels
