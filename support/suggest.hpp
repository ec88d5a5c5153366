// "did you mean": finds the known word that is nearest to a mistyped one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ptxkit {

// The candidate with the smallest edit distance to `word`, ignoring case (insertions, deletions, substitutions and
// transpositions count 1 each), the first of equally near ones. Nothing if the distance exceeds max(1, length / 3), or
// if `word` is empty or longer than 64 characters.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'x'?", or an empty string if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace ptxkit
