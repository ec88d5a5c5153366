// The last step: turns the backend's text into the text that is shipped. Parameters get names, state spaces and
// alignments, which the backend prints for OpenCL only. The @pz_cost block is put before the entry. The backend's
// comments are removed.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "builder/error.hpp"
#include "builder/trace_state.hpp"

namespace ptxkit::dsl {
namespace {

bool is_word(char c) {
  return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string cost_block(const KernelSpec& spec) {
  std::string buffers;
  for (const Buffer& buffer : spec.cost.buffers) {
    if (!buffers.empty()) buffers += ", ";
    buffers += buffer.name + "=" + buffer.size.text();
  }
  return fmt::format(
      "// @pz_cost {{\n//   threads_per_element: {}\n//   passes: {}\n//   buffers: {}\n//   local_mem: {}\n//   note: "
      "{}\n// }}\n",
      spec.cost.threads_per_element, spec.cost.passes, buffers, spec.budget.shared_bytes, spec.cost.note);
}

// Adds ".ptr .global .align 4" to "\t.param .u64 k_param_0" where parameter 0 is a pointer.
std::string annotate(std::string_view line, const std::vector<Parameter>& parameters, const std::string& prefix) {
  constexpr std::string_view declaration = "\t.param .u64 ";
  if (!line.starts_with(declaration)) return std::string(line);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const std::string name = prefix + std::to_string(i);
    const std::string_view found = line.substr(declaration.size(), name.size());
    const std::string_view rest = line.substr(std::min(line.size(), declaration.size() + name.size()));
    if (parameter.kind != ParameterKind::pointer || found != name || !(rest.empty() || rest == ",")) continue;
    return fmt::format("{}.ptr .global .align {} {}{}", declaration, parameter.align, name, rest);
  }
  return std::string(line);
}

// Replaces every word `prefix`<number> by <kernel>_<name of that parameter>.
std::string rename(const std::string& line, const std::vector<Parameter>& parameters, const std::string& prefix,
                   const std::string& kernel) {
  std::string out;
  size_t i = 0;
  while (i < line.size()) {
    const bool starts_word = i == 0 || !is_word(line[i - 1]);
    if (starts_word && line.compare(i, prefix.size(), prefix) == 0) {
      size_t end = i + prefix.size();
      size_t number = 0;
      while (end < line.size() && line[end] >= '0' && line[end] <= '9') number = number * 10 + (line[end++] - '0');
      if (end > i + prefix.size() && number < parameters.size() && (end == line.size() || !is_word(line[end]))) {
        out += kernel + "_" + parameters[number].name;
        i = end;
        continue;
      }
    }
    out += line[i++];
  }
  return out;
}

// Splits ".loc 1 17 32790" of a uniform branch (see mark_uniform_branches) into the true line and the mark.
struct Location {
  std::string text;
  bool is_uniform = false;
};
Location location_of(std::string_view line) {
  const size_t last = line.rfind(' ');
  unsigned column = 0;
  for (const char digit : line.substr(last + 1)) column = column * 10 + static_cast<unsigned>(digit - '0');
  if (column < kUniformColumn) return {std::string(line), false};
  return {std::string(line.substr(0, last + 1)) + std::to_string(column - kUniformColumn), true};
}

// Lines that only the backend needs: comments about inline assembly and demoted variables, an empty debug section, and
// ".loc" with line 0, which names no line (the previous one stays in force).
bool is_noise(std::string_view content) {
  if (content == "// begin inline asm" || content == "// end inline asm" || content == "// demoted variable")
    return true;
  if (content.starts_with("//") && content.ends_with("has been demoted")) return true;
  if (content.starts_with("// .globl") || content.starts_with(".section\t.debug_loc")) return true;
  if (!content.starts_with(".loc\t")) return false;
  const size_t line = content.find(' ');
  return line != std::string_view::npos && content.substr(line + 1).starts_with("0 ");
}

// The bytes of ".shared .align 16 .b8 lz77_link_heads[8192];"; 0 for any other line.
u64 shared_bytes_of(std::string_view content) {
  const size_t open = content.rfind('[');
  u64 bytes = 0;
  if (!content.starts_with(".shared ") || open == std::string_view::npos) return 0;
  for (const char digit : content.substr(open + 1)) {
    if (digit == ']') break;
    bytes = bytes * 10 + static_cast<u64>(digit - '0');
  }
  return bytes;
}

// The cost block states the budget's shared bytes, so they must be those of the text, which lacks the arrays that the
// kernel does not use.
void check_shared_budget(const KernelDefinition& definition, u64 shared_bytes) {
  const KernelSpec& spec = definition.spec;
  if (spec.cost.buffers.empty() || shared_bytes == spec.budget.shared_bytes) return;
  throw DslError(fmt::format("the shared arrays of {} take {} bytes, its budget has {}", spec.name, shared_bytes,
                             spec.budget.shared_bytes),
                 definition.where, fmt::format("declare .budget.shared_bytes = {}", shared_bytes));
}

}  // namespace

std::string finish_ptx(const std::string& text, const KernelDefinition& definition, const Trace::State& state) {
  const std::string prefix = state.name + "_param_";
  std::string out =
      fmt::format("// {} for sm_{}, {} build\n", state.name, state.options.sm, name_of(state.options.variant));
  size_t begin = 0;
  bool in_header = true;
  bool is_uniform = false;  // whether a branch at this location is uniform
  std::string last_location;
  u64 shared_bytes = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    const size_t first = line.find_first_not_of(" \t");
    const std::string_view content = first == std::string_view::npos ? std::string_view{} : line.substr(first);
    if (content.starts_with(".loc\t")) is_uniform = false;
    if (is_noise(content) || (in_header && (content.starts_with("//") || content.empty()))) continue;
    if (content.starts_with(".address_size")) in_header = false;
    if (line.starts_with(".visible .entry")) out += cost_block(definition.spec);
    if (content.empty() && out.ends_with("\n\n")) continue;
    shared_bytes += shared_bytes_of(content);
    if (content.starts_with(".loc\t")) {
      const Location location = location_of(line);
      is_uniform = location.is_uniform;
      if (location.text != last_location) out += location.text + "\n";
      last_location = location.text;
      continue;
    }
    if (content.starts_with("@") && is_uniform) {
      const size_t branch = line.find(" bra ");
      if (branch != std::string_view::npos) {
        out += std::string(line.substr(0, branch)) + " bra.uni " + std::string(line.substr(branch + 5)) + "\n";
        continue;
      }
    }
    out += rename(annotate(line, state.parameters, prefix), state.parameters, prefix, state.name);
    out += '\n';
  }
  check_shared_budget(definition, shared_bytes);
  return out;
}

}  // namespace ptxkit::dsl
