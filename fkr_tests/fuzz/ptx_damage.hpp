// PTX that no compiler wrote, for the fuzz targets that read PTX: the repository's own files, and changes to them drawn
// by a generator. Changes of bytes test the front end; changes of words keep most texts free of mistakes, so that what
// stands behind the front end sees them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ptxkit::testing {

// Longer texts are not fuzzed: the time that the analyses of one take grows with its length.
inline constexpr size_t kMaxFuzzedBytes = 6000;

// The .ptx files below a folder in the order of their paths, those of `max_bytes` and more left out.
std::vector<std::string> ptx_files(const std::string& folder, size_t max_bytes);

// One to six bytes, or pieces of up to 40, replaced, taken out, doubled, or put in from another of `all`.
std::string damage_bytes(std::string text, const std::vector<std::string>& all, std::mt19937& random);

// One to six changes of statements: a word replaced by another of its kind in the text (a register, a number, a label,
// a modifier), a statement taken out, doubled, moved or put in from `other`, a guard put before it or taken away.
std::string damage_words(std::string text, const std::string& other, std::mt19937& random);

}  // namespace ptxkit::testing
