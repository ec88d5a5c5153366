// The probes: eighteen small kernels, each with one pattern of shared or global access at a byte offset added to an
// aligned base. They are the experiments behind the rules F021, F081 and F082 (analyzer/evidence/). They also test the
// analyzer: its findings for them must agree with the measured behaviour of the hardware.
//
// A probe is PTX text (.version 8.0, .target sm_70) made of a common frame and a body. Every probe has the entry
//   NAME(.param .u64 out, .param .u64 scratch, .param .u32 offset), one CTA of 32 threads,
// with `out` and `scratch` 256-byte aligned and 1024 bytes large, and no dynamic shared memory. Only the variant
// `parameter` uses `offset`; the others have it as a constant, for static analysis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxkit::kernels {

enum class ProbeOffset : uint8_t { zero, one, two, parameter };

// The names in alphabetical order. Each is the name of its entry.
std::vector<std::string_view> probe_names();

// The PTX module of one probe. `name` must be one of probe_names().
std::string probe_ptx(std::string_view name, ProbeOffset offset);

}  // namespace ptxkit::kernels
