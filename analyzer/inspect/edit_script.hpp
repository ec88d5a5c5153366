// The shortest edit from one sequence to another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptxkit::inspect {

// Elements that correspond, as indices into both, ascending in both.
struct Match {
  uint32_t before = 0, after = 0;
};

// A longest common subsequence by E. W. Myers's greedy algorithm ("An O(ND) Difference Algorithm and Its Variations",
// 1986). Where the two differ in more than a few thousand elements, what lies between their common head and tail is
// taken as replaced: correct still, but not the shortest.
std::vector<Match> common_subsequence(std::span<const std::string> before, std::span<const std::string> after);

}  // namespace ptxkit::inspect
