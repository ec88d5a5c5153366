#include "analyzer/ptx/levels.hpp"

#include <algorithm>
#include <iterator>

namespace ptxkit::ptx {
namespace {

constexpr TargetLevel kTargets[] = {
    {10, 0, 10},    {11, 0, 10},    {12, 0, 12},    {13, 0, 12},    {20, 0, 20},    {21, 0, 20},    {30, 0, 30},
    {32, 0, 40},    {35, 0, 31},    {37, 0, 41},    {50, 0, 40},    {52, 0, 41},    {53, 0, 42},    {60, 0, 50},
    {61, 0, 50},    {62, 0, 50},    {70, 0, 60},    {72, 0, 61},    {75, 0, 63},    {80, 0, 70},    {86, 0, 71},
    {87, 0, 74},    {88, 0, 73},    {89, 0, 78},    {90, 0, 78},    {90, 'a', 80},  {100, 0, 86},   {100, 'a', 86},
    {100, 'f', 88}, {101, 0, 86},   {101, 'a', 86}, {101, 'f', 88}, {103, 0, 88},   {103, 'a', 88}, {103, 'f', 88},
    {110, 0, 90},   {110, 'a', 90}, {110, 'f', 90}, {120, 0, 87},   {120, 'a', 87}, {120, 'f', 88}, {121, 0, 88},
    {121, 'a', 88}, {121, 'f', 88}};

// Last minor version of each major version; PTX went from 1.5 to 2.0, 2.3 to 3.0, ...
constexpr uint32_t kLastMinor[] = {0, 5, 3, 2, 3, 0, 5, 8, 8, 0};

constexpr DirectiveLevel kDirectives[] = {
#define DIRECTIVE(feature, version, targets) {feature, version, targets},
#include "analyzer/ptx/directive_levels.def"
#undef DIRECTIVE
};

}  // namespace

const DirectiveLevel* level_of_directive(std::string_view feature) {
  const auto* found = std::find_if(std::begin(kDirectives), std::end(kDirectives),
                                   [&](const DirectiveLevel& d) { return d.feature == feature; });
  return found != std::end(kDirectives) ? found : nullptr;
}

const TargetLevel* find_target(std::string_view text) {
  if (text.substr(0, 3) != "sm_") return nullptr;
  uint16_t sm = 0;
  size_t at = 3;
  while (at < text.size() && at < 6 && text[at] >= '0' && text[at] <= '9') {
    sm = static_cast<uint16_t>(sm * 10 + (text[at++] - '0'));
  }
  const char suffix = at < text.size() ? text[at++] : '\0';
  if (at != text.size()) return nullptr;
  const auto* found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const TargetLevel& t) { return t.sm == sm && t.suffix == suffix; });
  return found != std::end(kTargets) ? found : nullptr;
}

bool is_known_version(uint32_t major, uint32_t minor) {
  return major >= 1 && major < std::size(kLastMinor) && minor <= kLastMinor[major];
}

bool is_later_version(uint32_t major, uint32_t minor) {
  constexpr uint32_t kLastMajor = std::size(kLastMinor) - 1;
  return major < 100 && minor < 10 && (major > kLastMajor || (major == kLastMajor && minor > kLastMinor[kLastMajor]));
}

}  // namespace ptxkit::ptx
