#include "runtime/launch/launch_file_use.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/launch/object_spec.hpp"
#include "support/plural.hpp"
#include "support/suggest.hpp"

namespace ptxkit {
namespace {

// The size of the handle or tensor map in bytes; 0 for an empty word. The word was checked when the file was read.
uint64_t bytes_of_object(const std::string& spelling) {
  const auto spec = spelling.empty() ? std::nullopt : std::optional(parse_object_spec(spelling));
  return spec && *spec ? (*spec)->value_bytes() : 0;
}

// Why the launch file's value does not fit the parameter; empty where it fits.
std::string mismatch(const ptx::Variable& parameter, const flow::ParameterFacts& facts, uint32_t address_bits) {
  const uint64_t size_bytes = parameter.is_array ? parameter.size_bytes : ptx::byte_width(parameter.type);
  const bool is_pointer = !parameter.is_array && size_bytes == address_bits / 8;
  if (!facts.content.empty() && !is_pointer && facts.object.empty() && facts.content.size() != size_bytes)
    return fmt::format("'hex' of {}, the parameter has {}", plural(facts.content.size(), "byte"), size_bytes);
  if (const uint64_t value_bytes = bytes_of_object(facts.object); value_bytes > size_bytes)
    return fmt::format("'object' of {}, the parameter has {}", plural(value_bytes, "byte"), size_bytes);
  if (facts.high && !parameter.is_array && size_bytes < 8 && *facts.high >> (8 * size_bytes) != 0)
    return fmt::format("the value {}, the parameter has {}", *facts.high, plural(size_bytes, "byte"));
  if (!facts.members.empty() && !parameter.is_array) return "'members', but is not an aggregate";
  for (const flow::MemberFacts& member : facts.members) {
    const uint64_t value_bytes = member.object.empty() ? address_bits / 8 : bytes_of_object(member.object);
    if (member.offset + value_bytes > size_bytes)
      return fmt::format("a member at {} that is not within its {}", member.offset, plural(size_bytes, "byte"));
  }
  return {};
}

void check_variables(const ptx::Module& module, const flow::LaunchFacts& facts, std::vector<std::string>& remarks) {
  std::vector<std::string> known;
  for (const ptx::Variable& variable : module.variables)
    if (variable.function == ptx::kNone) known.emplace_back(variable.name);
  for (const auto& [name, promised] : facts.variables) {
    const auto found = std::ranges::find_if(module.variables, [&](const ptx::Variable& variable) {
      return variable.function == ptx::kNone && variable.name == name;
    });
    if (found == module.variables.end()) {
      remarks.push_back(
          fmt::format("launch file: {} has no variable '{}'{}", module.path, name, did_you_mean(name, known)));
    } else if (const bool is_opaque = ptx::kind(found->type) == ptx::TypeKind::opaque;
               is_opaque == promised.object.empty()) {
      remarks.push_back(fmt::format("launch file: variable '{}' needs {}", name,
                                    is_opaque ? "an 'object'" : "'hex' instead of 'object'"));
    } else if (promised.content.size() > found->size_bytes && promised.object.empty()) {
      remarks.push_back(fmt::format("launch file: variable '{}' has 'hex' of {}, more than its {}", name,
                                    plural(promised.content.size(), "byte"), found->size_bytes));
    }
  }
}

}  // namespace

std::vector<std::string> LaunchFileUse::check_module(const ptx::Module& module) {
  std::vector<std::string> remarks;
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry) continue;
    names_.emplace_back(function.name);
    const auto promised = launch_.find(function.name);
    if (promised == launch_.end()) continue;
    entries_.insert(promised->first);
    std::vector<std::string> known;
    for (const ptx::VariableId id : function.parameters) known.emplace_back(module.variables[id].name);
    for (const auto& [name, facts] : promised->second.parameters) {
      const auto found = std::ranges::find(known, name);
      if (found == known.end()) {
        remarks.push_back(fmt::format("launch file: '{}' of {} has no parameter '{}'{}", function.name, module.path,
                                      name, did_you_mean(name, known)));
        continue;
      }
      const ptx::Variable& parameter = module.variables[function.parameters[found - known.begin()]];
      if (const std::string why = mismatch(parameter, facts, module.address_size); !why.empty())
        remarks.push_back(fmt::format("launch file: '{}' of '{}' has {}", name, function.name, why));
    }
    check_variables(module, promised->second, remarks);
  }
  return remarks;
}

std::vector<std::string> LaunchFileUse::unused_files() const {
  if (launch_.empty() || !entries_.empty() || names_.empty()) return {};
  return {fmt::format("launch file: none of its entries is a kernel of these files: found '{}'{}",
                      launch_.begin()->first, did_you_mean(launch_.begin()->first, names_))};
}

std::vector<std::string> launch_file_remarks(const rules::LaunchSet& launch, const ptx::Module& module) {
  LaunchFileUse use(launch);
  std::vector<std::string> remarks = use.check_module(module);
  for (std::string& remark : use.unused_files()) remarks.push_back(std::move(remark));
  return remarks;
}

}  // namespace ptxkit
