// From a definition to PTX: one call, a pure function of the definition and the options, byte for byte.
#pragma once

#include <string>
#include <vector>

#include "builder/define.hpp"

namespace ptxkit::dsl {

struct EmitOptions {
  unsigned sm = 75;  // 75, 80 or 90; newer GPUs take that PTX
  Variant variant = Variant::release;
  u32 debug_records = 4096;      // ring size of debug builds, a power of two
  bool uniform_branches = true;  // branches that the lanes of a warp take together are bra.uni
};

struct Emitted {
  std::string ptx;
  std::string launch;  // the launch file, JSON: what a launch must satisfy, see docs/dsl.md
};

// Traces the definition's body and compiles it. Throws DslError for misuse that shows while tracing.
Emitted emit(const KernelDefinition& definition, const EmitOptions& options = {});
inline std::string emit_ptx(const KernelDefinition& definition, const EmitOptions& options = {}) {
  return emit(definition, options).ptx;
}

// The parameters of the variant: debug builds add `debug_buffer` at the end.
std::vector<Parameter> parameters_of(const KernelDefinition& definition, Variant variant);

}  // namespace ptxkit::dsl
