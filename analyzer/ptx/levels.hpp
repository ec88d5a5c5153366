// PTX versions and targets: which ones exist, and the first version of each target.
// PTX ISA 9.0, table "PTX release history" and 11.1.2 (.target).
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxkit::ptx {

struct TargetLevel {
  uint16_t sm = 0;      // 90
  char suffix = 0;      // 'a': this architecture only; 'f': its family; 0: none
  uint8_t version = 0;  // first PTX version with this target, times ten: 80
};

// Finds a target such as "sm_90a"; null where there is none.
const TargetLevel* find_target(std::string_view text);
bool is_known_version(uint32_t major, uint32_t minor);
// Later than the last version of the tables: its texts are read with these.
bool is_later_version(uint32_t major, uint32_t minor);
inline constexpr std::string_view kLastVersion = "9.0";

// The level that a directive or a kind of declaration needs (directive_levels.def); null where every version and target
// has it.
struct DirectiveLevel {
  std::string_view feature;
  uint8_t version = 0;  // times ten
  std::string_view targets;
};
const DirectiveLevel* level_of_directive(std::string_view feature);

}  // namespace ptxkit::ptx
