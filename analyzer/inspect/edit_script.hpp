// The shortest edit from one sequence to another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptxkit::inspect {

// Corresponding elements, as ascending indices into both sequences.
struct Match {
  uint32_t before = 0, after = 0;
};

// Returns a longest common subsequence by E. W. Myers's greedy algorithm ("An O(ND) Difference Algorithm and Its
// Variations", 1986). Where the sequences differ in more than a few thousand elements, everything between their common
// head and tail counts as replaced: the result is correct, but not the longest.
std::vector<Match> common_subsequence(std::span<const std::string> before, std::span<const std::string> after);

}  // namespace ptxkit::inspect
