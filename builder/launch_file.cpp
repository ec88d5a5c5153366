// The launch file: JSON with the kernel's launch bounds, parameters and assumptions. docs/dsl.md describes it.
#include <nlohmann/json.hpp>

#include "builder/error.hpp"
#include "builder/trace_state.hpp"

namespace ptxkit::dsl {

std::string launch_file(const KernelDefinition& definition, const Trace::State& state) {
  using Json = nlohmann::ordered_json;
  const KernelSpec& spec = definition.spec;
  Json parameters = Json::array();
  for (const Parameter& parameter : state.parameters) {
    Json entry = {{"name", state.name + "_" + parameter.name}};
    if (parameter.kind == ParameterKind::pointer) {
      entry["kind"] = "pointer";
      entry["space"] = "global";
      entry["element"] = name_of(parameter.scalar);
      entry["align"] = parameter.align;
      entry["access"] = parameter.writable ? "read_write" : parameter.space == Space::read_only ? "read_only" : "read";
      if (!parameter.size_parameter.empty()) entry["count_parameter"] = state.name + "_" + parameter.size_parameter;
      if (parameter.name == "debug_buffer") entry["bytes"] = 16 * (u64{state.options.debug_records} + 1);
    } else {
      entry["kind"] = "scalar";
      entry["type"] = name_of(parameter.scalar);
    }
    parameters.push_back(std::move(entry));
  }
  Json shared = Json::array();
  u64 shared_bytes = 0;
  for (const SharedArray& array : state.shared_arrays) {
    shared.push_back({{"name", array.name}, {"bytes", array.bytes}, {"align", array.align}});
    shared_bytes += array.bytes;
  }
  Json assumptions = Json::array();
  for (const Assumption& assumption : state.assumptions) {
    assumptions.push_back({{"align", assumption.align}, {"why", assumption.why}, {"where", place(assumption.where)}});
  }
  Json markers = Json::array();
  for (const Marker& marker : state.markers) markers.push_back({{"id", marker.id}, {"where", place(marker.where)}});
  Json entry = {{"block", {spec.block, 1, 1}},
                {"min_blocks", spec.min_blocks},
                {"dynamic_shared_bytes", 0},
                {"static_shared_bytes", shared_bytes},
                {"budget",
                 {{"registers", spec.budget.registers},
                  {"shared_bytes", spec.budget.shared_bytes},
                  {"spill_bytes", spec.budget.spill_bytes}}},
                {"parameters", std::move(parameters)},
                {"shared", std::move(shared)},
                {"assumptions", std::move(assumptions)}};
  if (!state.markers.empty()) entry["markers"] = std::move(markers);
  Json file = {{"entries", {{state.name, std::move(entry)}}}};
  return file.dump(2) + "\n";
}

}  // namespace ptxkit::dsl
