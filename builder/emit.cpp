// Emission of a kernel: trace, verify, optimise, print, finish the text.
#include "builder/emit.hpp"

#include <llvm/IR/Module.h>

#include "builder/error.hpp"
#include "builder/trace_state.hpp"

namespace ptxkit::dsl {
namespace {

void check_options(const EmitOptions& options, Where where) {
  if (options.sm != 75 && options.sm != 80 && options.sm != 90) {
    throw DslError("unknown target sm_" + std::to_string(options.sm), where, "emit for sm_75, sm_80 or sm_90");
  }
  if (!detail::is_power_of_two(options.debug_records)) {
    throw DslError("the debug ring has " + std::to_string(options.debug_records) + " records", where,
                   "use a power of two, so that an index can be masked");
  }
}

std::unique_ptr<Trace> trace_kernel(const KernelDefinition& definition, const EmitOptions& options) {
  check_options(options, definition.where);
  auto trace = std::make_unique<Trace>(std::make_unique<Trace::State>(definition, options));
  Kernel kernel(*trace, definition.spec.block);
  definition.body(kernel);
  trace->state().finish();
  return trace;
}

}  // namespace

std::vector<Parameter> parameters_of(const KernelDefinition& definition, Variant variant) {
  std::vector<Parameter> parameters = definition.parameters;
  if (variant == Variant::debug) {
    Parameter buffer;
    buffer.name = "debug_buffer";
    buffer.kind = ParameterKind::pointer;
    buffer.align = 16;
    buffer.writable = true;
    parameters.push_back(std::move(buffer));
  }
  return parameters;
}

Emitted emit(const KernelDefinition& definition, const EmitOptions& options) {
  const std::unique_ptr<Trace> trace = trace_kernel(definition, options);
  Trace::State& state = trace->state();
  std::string launch = launch_file(definition, state);
  return {finish_ptx(compile(state.module, options), definition, state), std::move(launch)};
}

}  // namespace ptxkit::dsl
