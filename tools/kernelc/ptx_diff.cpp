// Works on lines, not on a syntax tree: the texts are our own compiler's output, one instruction a line, and a diff has
// to show what is there even when it does not parse.
#include "tools/kernelc/ptx_diff.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace ptxkit::kernelc {
namespace {

constexpr size_t kContextLines = 3;

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    lines.push_back(text.substr(0, newline));
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
  }
  return lines;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// A label that marks a source position ("$L__tmp3:") rather than a block.
bool is_position_label(std::string_view line) { return starts_with(line, "$L__tmp") && line.back() == ':'; }

// The opcode of a line with an instruction, "" for any other line.
std::string_view opcode_of(std::string_view line) {
  line = trim(line.substr(0, line.find("//")));
  if (line.empty() || line.back() != ';') return {};
  if (!line.empty() && line[0] == '@') line = trim(line.substr(std::min(line.find_first_of(" \t"), line.size())));
  if (line.empty() || line[0] < 'a' || line[0] > 'z') return {};
  return line.substr(0, line.find_first_of(" \t;"));
}

// "ld.shared.u16" -> "ld.shared": modifiers up to the first that is a type or a vector.
std::string kind_of(std::string_view opcode) {
  static const std::set<std::string_view> kTypes = {"b8",  "b16", "b32",  "b64", "b128", "u8",  "u16",
                                                    "u32", "u64", "s8",   "s16", "s32",  "s64", "f16",
                                                    "f32", "f64", "pred", "v2",  "v4"};
  std::string kind;
  while (!opcode.empty()) {
    const size_t dot = opcode.find('.');
    const std::string_view part = opcode.substr(0, dot);
    opcode = dot == std::string_view::npos ? std::string_view{} : opcode.substr(dot + 1);
    if (kTypes.count(part) != 0) continue;
    if (!kind.empty()) kind += '.';
    kind += part;
  }
  return kind;
}

// The integer after `key` in `line`, 0 where there is none.
uint32_t number_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return 0;
  line = trim(line.substr(at + key.size()));
  uint32_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

// Bytes of a declaration ".shared .align 16 .b8 table[16384];".
uint32_t declared_bytes(std::string_view line) {
  const size_t bracket = line.find('[');
  const size_t type = line.find(" .b");
  if (type == std::string_view::npos) return 0;
  const uint32_t element_bytes = number_after(line, " .b") / 8;
  return bracket == std::string_view::npos ? element_bytes : element_bytes * number_after(line, "[");
}

enum class Change : char { none = ' ', removed = '-', added = '+' };
struct DiffLine {
  Change change;
  std::string_view text;
};

// A line without the numbers of registers and blocks: those shift with every change before them and mean nothing.
std::string shape_of(std::string_view line) {
  std::string shape;
  for (size_t i = 0; i < line.size(); ++i) {
    shape += line[i];
    const bool is_register = line[i] == '%' && i + 1 < line.size() && line[i + 1] >= 'a' && line[i + 1] <= 'z';
    if (!is_register && !starts_with(line.substr(i), "$L__BB")) continue;
    size_t end = i + 1;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_')) ++end;
    for (const char c : line.substr(i + 1, end - i - 1)) {
      if (c < '0' || c > '9') shape += c;
    }
    i = end - 1;
  }
  return shape;
}

// The shortest edit by longest common subsequence of the lines' shapes; what both ends share is set aside first.
std::vector<DiffLine> diff(const std::vector<std::string_view>& before_lines,
                           const std::vector<std::string_view>& after_lines) {
  std::vector<std::string> before, after;
  for (const auto line : before_lines) before.push_back(shape_of(line));
  for (const auto line : after_lines) after.push_back(shape_of(line));
  size_t head = 0, tail = 0;
  const size_t shorter = std::min(before.size(), after.size());
  while (head < shorter && before[head] == after[head]) ++head;
  while (tail < shorter - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
  const size_t rows = before.size() - head - tail, columns = after.size() - head - tail;

  std::vector<DiffLine> result;
  for (size_t i = 0; i < head; ++i) result.push_back({Change::none, before_lines[i]});
  std::vector<uint32_t> common((rows + 1) * (columns + 1), 0);
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (columns + 1) + j]; };
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      at(i, j) = before[head + i] == after[head + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  for (size_t i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && before[head + i] == after[head + j]) {
      result.push_back({Change::none, after_lines[head + j]});
      ++i, ++j;
    } else if (i < rows && (j == columns || at(i + 1, j) >= at(i, j + 1))) {
      result.push_back({Change::removed, before_lines[head + i++]});
    } else {
      result.push_back({Change::added, after_lines[head + j++]});
    }
  }
  for (size_t i = before.size() - tail; i < before.size(); ++i) result.push_back({Change::none, before_lines[i]});
  return result;
}

std::string render(const std::vector<DiffLine>& lines) {
  std::string text;
  size_t shown_end = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].change == Change::none) continue;
    const size_t begin = std::max(shown_end, i - std::min(i, kContextLines));
    if (begin > shown_end || text.empty()) text += fmt::format("@@ line {}\n", begin + 1);
    for (size_t at = begin; at < i; ++at) text += fmt::format("  {}\n", lines[at].text);
    size_t end = i;
    while (end < lines.size() && lines[end].change != Change::none) {
      text += fmt::format("{} {}\n", static_cast<char>(lines[end].change), lines[end].text);
      ++end;
    }
    shown_end = end;
    // Lines after the change, as far as the next change lets them.
    for (size_t at = end; at < std::min(end + kContextLines, lines.size()) && lines[at].change == Change::none; ++at) {
      text += fmt::format("  {}\n", lines[at].text);
      shown_end = at + 1;
    }
    i = shown_end - 1;
  }
  return text;
}

void add_row(std::string& text, std::string_view name, uint32_t before, uint32_t after) {
  if (before == after) {
    text += fmt::format("  {:<28} {:>6}\n", name, before);
  } else {
    text += fmt::format("  {:<28} {:>6} -> {:<6} ({:+d})\n", name, before, after,
                        static_cast<int64_t>(after) - static_cast<int64_t>(before));
  }
}

}  // namespace

std::string normalise(std::string_view ptx) {
  std::string kept;
  for (const std::string_view line : lines_of(ptx)) {
    const std::string_view content = trim(line);
    if (starts_with(content, ".loc") || starts_with(content, ".file") || is_position_label(content)) continue;
    kept += line;
    kept += '\n';
  }
  return kept;
}

std::map<std::string, uint32_t> instruction_mix(std::string_view ptx) {
  std::map<std::string, uint32_t> mix;
  for (const std::string_view line : lines_of(ptx)) {
    if (const auto opcode = opcode_of(line); !opcode.empty()) ++mix[kind_of(opcode)];
  }
  return mix;
}

Resources resources_of(std::string_view ptx) {
  Resources resources;
  for (const std::string_view line : lines_of(ptx)) {
    const std::string_view content = trim(line);
    if (starts_with(content, ".reg")) resources.register_count += number_after(content, "<");
    if (content.find(".shared ") != std::string_view::npos && content.find('[') != std::string_view::npos &&
        opcode_of(content).empty()) {
      resources.shared_bytes += declared_bytes(content);
    }
    if (starts_with(content, ".local")) resources.local_bytes += declared_bytes(content);
    if (starts_with(content, ".reqntid")) resources.block_threads = number_after(content, ".reqntid");
    resources.instruction_count += !opcode_of(line).empty();
  }
  return resources;
}

std::string describe_difference(std::string_view before, std::string_view after) {
  const std::string old_text = normalise(before), new_text = normalise(after);
  if (old_text == new_text) return {};
  std::string text = "resources, before -> after\n";
  const Resources old_resources = resources_of(old_text), new_resources = resources_of(new_text);
  add_row(text, "instructions", old_resources.instruction_count, new_resources.instruction_count);
  add_row(text, "virtual registers", old_resources.register_count, new_resources.register_count);
  add_row(text, "shared bytes", old_resources.shared_bytes, new_resources.shared_bytes);
  add_row(text, "local bytes", old_resources.local_bytes, new_resources.local_bytes);
  add_row(text, "threads of a CTA", old_resources.block_threads, new_resources.block_threads);

  auto old_mix = instruction_mix(old_text), new_mix = instruction_mix(new_text);
  std::set<std::string> kinds;
  for (const auto& [kind, count] : old_mix) kinds.insert(kind);
  for (const auto& [kind, count] : new_mix) kinds.insert(kind);
  text += "instruction mix, kinds that changed\n";
  for (const std::string& kind : kinds) {
    if (old_mix[kind] != new_mix[kind]) add_row(text, kind, old_mix[kind], new_mix[kind]);
  }
  const std::string lines = render(diff(lines_of(old_text), lines_of(new_text)));
  if (lines.empty()) return text + "only the numbers of registers and blocks differ\n";
  return text + "lines, - before, + after, the numbers of registers and blocks apart\n" + lines;
}

}  // namespace ptxkit::kernelc
