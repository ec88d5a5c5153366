// From a definition to PTX. The text is a pure function of the definition and the options, byte for byte.
#pragma once

#include <string>
#include <vector>

#include "builder/define.hpp"
#include "builder/trace.hpp"
#include "builder/types.hpp"

namespace ptxkit::dsl {

struct EmitOptions {
  unsigned sm = 75;  // 75, 80 or 90; newer GPUs accept that PTX
  Variant variant = Variant::release;
  u32 debug_records = 4096;      // records in the ring of debug builds, a power of two
  bool uniform_branches = true;  // emit bra.uni for branches that all lanes of a warp take together
};

struct Emitted {
  std::string ptx;
  std::string launch;  // the launch file: JSON with the conditions that a launch must satisfy (docs/dsl.md)
};

// Traces the definition's body and compiles it. Throws DslError for misuse that tracing detects and for invalid
// options.
Emitted emit(const KernelDefinition& definition, const EmitOptions& options = {});
inline std::string emit_ptx(const KernelDefinition& definition, const EmitOptions& options = {}) {
  return emit(definition, options).ptx;
}

// The PTX parameters of the variant: debug builds have `debug_buffer` as an additional last one.
std::vector<Parameter> parameters_of(const KernelDefinition& definition, Variant variant);

}  // namespace ptxkit::dsl
