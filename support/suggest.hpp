// "did you mean": the known word that is nearest to a mistyped one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ptxkit {

// The candidate with the least edit distance to `word`, letter case aside (insertions, deletions, substitutions and
// swaps of neighbours count 1 each), if at most a third of the word is wrong; of equally near ones the first.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'x'?", or nothing where no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace ptxkit
