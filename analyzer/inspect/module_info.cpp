// See module_info.hpp.
#include "analyzer/inspect/module_info.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/inspect/statistics.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"

namespace ptxkit::inspect {
namespace {

using ptx::Function;
using ptx::Linkage;
using ptx::Module;
using ptx::Variable;

std::string_view text(Linkage linkage) {
  switch (linkage) {
    case Linkage::visible:
      return "visible";
    case Linkage::external:
      return "extern";
    case Linkage::weak:
      return "weak";
    case Linkage::common:
      return "common";
    case Linkage::internal:
      break;
  }
  return "internal";
}

// "b8[16]", ".v4 f32": the type as declared.
std::string type_text(const Variable& variable) {
  std::string out = variable.vector > 1 ? fmt::format("v{} ", variable.vector) : "";
  out += ptx::text(variable.type);
  for (const uint64_t dimension : variable.dimensions) out += dimension ? fmt::format("[{}]", dimension) : "[]";
  return out;
}

bool has(const uint32_t (&dimensions)[3]) { return dimensions[0] != 0; }

std::string dimensions_text(const uint32_t (&dimensions)[3]) {
  return fmt::format("{}, {}, {}", dimensions[0], dimensions[1], dimensions[2]);
}

// The directives of a function as name and value, in the order of section 11.4 of the PTX ISA.
std::vector<std::pair<std::string, std::string>> directives(const ptx::FunctionAttributes& attributes) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto number = [&](const char* name, uint32_t value) {
    if (value) all.emplace_back(name, std::to_string(value));
  };
  number(".maxnreg", attributes.max_registers);
  if (has(attributes.max_ntid)) all.emplace_back(".maxntid", dimensions_text(attributes.max_ntid));
  if (has(attributes.req_ntid)) all.emplace_back(".reqntid", dimensions_text(attributes.req_ntid));
  number(".minnctapersm", attributes.min_ctas_per_sm);
  number(".maxnctapersm", attributes.max_ctas_per_sm);
  if (attributes.no_return) all.emplace_back(".noreturn", "");
  if (attributes.blocks_are_clusters) all.emplace_back(".blocksareclusters", "");
  if (attributes.explicit_cluster) all.emplace_back(".explicitcluster", "");
  if (has(attributes.req_cluster)) all.emplace_back(".reqnctapercluster", dimensions_text(attributes.req_cluster));
  number(".maxclusterrank", attributes.max_cluster_rank);
  for (const std::string_view other : attributes.others) all.emplace_back(other, "");
  return all;
}

// The facts that a launch needs, in words.
std::vector<std::string> launch_facts(const Function& function, const FunctionStatistics& statistics) {
  std::vector<std::string> facts;
  const ptx::FunctionAttributes& attributes = function.attributes;
  if (has(attributes.req_ntid)) {
    facts.push_back(fmt::format("block of exactly {} threads", dimensions_text(attributes.req_ntid)));
  } else if (has(attributes.max_ntid)) {
    facts.push_back(fmt::format("block of at most {} threads",
                                uint64_t{attributes.max_ntid[0]} * attributes.max_ntid[1] * attributes.max_ntid[2]));
  }
  if (has(attributes.req_cluster)) {
    facts.push_back(fmt::format("cluster of exactly {} blocks", dimensions_text(attributes.req_cluster)));
  }
  if (statistics.shared_bytes)
    facts.push_back(fmt::format("{} bytes of static shared memory", statistics.shared_bytes));
  if (statistics.uses_dynamic_shared) facts.emplace_back("dynamic shared memory");
  return facts;
}

std::string pointer_text(const Variable& variable) {
  if (!variable.is_pointer) return "";
  std::string out = ", pointer";
  if (variable.pointer_space != ptx::Space::generic) out += fmt::format(" to {}", ptx::text(variable.pointer_space));
  if (variable.pointer_align) out += fmt::format(", target aligned to {}", variable.pointer_align);
  return out;
}

void write_parameters(const Module& module, const Function& function, std::string& out) {
  const ParameterLayout layout = parameter_layout(module, function);
  for (const ParameterLayout::Parameter& parameter : layout.parameters) {
    const Variable& variable = module.variables[parameter.id];
    out += fmt::format("    {:>5} {:>5} {:>3}  {} {}{}\n", parameter.offset_bytes, variable.size_bytes, variable.align,
                       type_text(variable), variable.name.empty() ? "_" : variable.name, pointer_text(variable));
  }
}

void write_kernel(const Module& module, const Function& function, std::string& out) {
  out += fmt::format("kernel {} ({})\n", function.name, text(function.linkage));
  if (!function.parameters.empty()) {
    out += "  parameters: offset, bytes, alignment, type\n";
    write_parameters(module, function, out);
  }
  for (const auto& [name, value] : directives(function.attributes)) {
    out += fmt::format("  {}{}{}\n", name, value.empty() ? "" : " ", value);
  }
  const std::vector<std::string> facts = launch_facts(function, statistics_of(module, function));
  if (!facts.empty()) out += fmt::format("  launch: {}\n", fmt::join(facts, "; "));
}

OrderedJson variable_json(const Variable& variable) {
  return {{"name", variable.name},
          {"space", ptx::text(variable.space)},
          {"type", type_text(variable)},
          {"linkage", text(variable.linkage)},
          {"bytes", variable.size_bytes},
          {"align", variable.align},
          {"initialised", !variable.initializer.empty()}};
}

OrderedJson function_json(const Module& module, const Function& function) {
  OrderedJson json = {{"name", function.name},
                      {"entry", function.is_entry},
                      {"linkage", text(function.linkage)},
                      {"defined", function.has_body},
                      {"parameters", OrderedJson::array()},
                      {"parameter_bytes", 0},
                      {"directives", OrderedJson::object()},
                      {"launch", OrderedJson::array()}};
  const ParameterLayout layout = parameter_layout(module, function);
  for (const ParameterLayout::Parameter& parameter : layout.parameters) {
    const Variable& variable = module.variables[parameter.id];
    OrderedJson entry = {
        {"name", variable.name},        {"type", type_text(variable)}, {"offset", parameter.offset_bytes},
        {"bytes", variable.size_bytes}, {"align", variable.align},     {"pointer", nullptr}};
    if (variable.is_pointer) {
      entry["pointer"] = {{"space", ptx::text(variable.pointer_space)}, {"align", variable.pointer_align}};
    }
    json["parameters"].push_back(std::move(entry));
  }
  json["parameter_bytes"] = layout.size_bytes;
  for (const auto& [name, value] : directives(function.attributes)) json["directives"][name] = value;
  if (function.is_entry && function.has_body) json["launch"] = launch_facts(function, statistics_of(module, function));
  return json;
}

bool is_global(const Variable& variable) {
  return variable.function == ptx::kNone && variable.parameter_index == ptx::kNone;
}

}  // namespace

ParameterLayout parameter_layout(const Module& module, const Function& function) {
  ParameterLayout layout;
  for (const ptx::VariableId id : function.parameters) {
    const Variable& variable = module.variables[id];
    const uint64_t align = std::max(variable.align, 1u);
    const uint64_t offset = (layout.size_bytes + align - 1) / align * align;
    layout.parameters.push_back({id, offset});
    layout.size_bytes = offset + variable.size_bytes;
    layout.align_bytes = std::max(layout.align_bytes, variable.align);
  }
  return layout;
}

std::string producer_of(std::string_view text) {
  static constexpr std::string_view kBy = "Generated by ", kTools = "Cuda compilation tools, release ";
  std::string producer;
  const std::string_view comments = text.substr(0, text.find(".version"));
  for (size_t at = 0; at < comments.size();) {
    const size_t end = std::min(comments.find('\n', at), comments.size());
    std::string_view line = comments.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const size_t by = line.find(kBy); by != line.npos) producer = line.substr(by + kBy.size());
    if (const size_t tools = line.find(kTools); tools != line.npos) {
      producer += fmt::format("{}CUDA {}", producer.empty() ? "" : ", ", line.substr(tools + kTools.size()));
    }
  }
  return producer;
}

std::string info_text(const Module& module) {
  std::string out;
  const std::string producer = producer_of(module.text);
  if (!producer.empty()) out += fmt::format("produced by {}\n", printable(producer));
  for (const Function& function : module.functions) {
    if (function.is_entry && function.has_body) write_kernel(module, function, out);
  }
  for (const Function& function : module.functions) {
    if (function.is_entry) continue;
    out += fmt::format("function {} ({}{})\n", function.name, text(function.linkage),
                       function.has_body ? "" : ", declared only");
    write_parameters(module, function, out);
  }
  for (const Variable& variable : module.variables) {
    if (!is_global(variable)) continue;
    out += fmt::format("variable {} ({}): {} {}, {} bytes, aligned to {}{}\n", variable.name, text(variable.linkage),
                       ptx::text(variable.space), type_text(variable), variable.size_bytes, variable.align,
                       variable.initializer.empty() ? "" : ", initialised");
  }
  for (const ptx::SourceFile& file : module.files)
    out += fmt::format("source {} {}\n", file.number, printable(file.path));
  return out;
}

std::string info_json(const Module& module) {
  OrderedJson json = {{"path", module.path},
                      {"version", fmt::format("{}.{}", module.version_major, module.version_minor)},
                      {"target", module.target},
                      {"target_options", module.target_options},
                      {"address_size", module.address_size},
                      {"producer", producer_of(module.text)},
                      {"functions", OrderedJson::array()},
                      {"variables", OrderedJson::array()},
                      {"sources", OrderedJson::array()}};
  for (const Function& function : module.functions) json["functions"].push_back(function_json(module, function));
  for (const Variable& variable : module.variables) {
    if (is_global(variable)) json["variables"].push_back(variable_json(variable));
  }
  for (const ptx::SourceFile& file : module.files) json["sources"].push_back(file.path);
  return printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace ptxkit::inspect
