#include "tools/ptx-debug/kept_promises.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/plural.hpp"
#include "support/suggest.hpp"
#include "tools/ptx-debug/verb.hpp"

namespace ptxkit::tools {
namespace {

// Why what a launch file says a parameter holds is not what it can hold; empty where it is.
std::string misfit(const ptx::Variable& parameter, const flow::ParameterFacts& facts, uint32_t address_bits) {
  const uint64_t size_bytes = parameter.is_array ? parameter.size_bytes : ptx::byte_width(parameter.type);
  const bool is_pointer = !parameter.is_array && size_bytes == address_bits / 8;
  if (!facts.content.empty() && !is_pointer && facts.content.size() != size_bytes)
    return fmt::format("'hex' of {}, the parameter has {}", plural(facts.content.size(), "byte"), size_bytes);
  if (!facts.members.empty() && !parameter.is_array) return "'members', and is no aggregate";
  for (const flow::MemberFacts& member : facts.members)
    if (member.offset + address_bits / 8 > size_bytes)
      return fmt::format("a member at {} that is not within its {}", member.offset, plural(size_bytes, "byte"));
  return {};
}

}  // namespace

void KeptPromises::look_at(const ptx::Module& module) {
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
        complain(fmt::format("launch file: '{}' of {} has no parameter '{}'{}", function.name, module.path, name,
                             did_you_mean(name, known)));
        continue;
      }
      const ptx::Variable& parameter = module.variables[function.parameters[found - known.begin()]];
      if (const std::string why = misfit(parameter, facts, module.address_size); !why.empty())
        complain(fmt::format("launch file: '{}' of '{}' has {}", name, function.name, why));
    }
  }
}

void KeptPromises::complain_of_none() const {
  if (launch_.empty() || !entries_.empty() || names_.empty()) return;
  complain(fmt::format("launch file: none of its entries is a kernel of these files: found '{}'{}",
                       launch_.begin()->first, did_you_mean(launch_.begin()->first, names_)));
}

}  // namespace ptxkit::tools
