// PTX that no compiler wrote, for fuzz targets that read PTX: files of the repository with random changes. Changes of
// bytes test the front end. Changes of words leave most texts free of errors, so that the code behind the front end
// sees them.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace ptxkit::testing {

// Longer texts are not fuzzed, because the time of the analyses grows with the length.
inline constexpr size_t kMaxFuzzedBytes = 6000;

// The contents of the .ptx files below `folder` that are shorter than `max_bytes`, in the order of their paths.
std::vector<std::string> ptx_files(const std::string& folder, size_t max_bytes);

// Makes one to six changes: a byte, or a piece of up to 40 bytes, is replaced, removed, duplicated, or inserted from
// another text of `all`.
std::string damage_bytes(std::string text, const std::vector<std::string>& all, std::mt19937& random);

// Makes one to six changes of statements: replaces a word by another of its kind in the text (a register, a number, a
// label, a modifier); removes, duplicates or moves a statement, or inserts one from `other`; adds or removes a guard
// predicate.
std::string damage_words(std::string text, const std::string& other, std::mt19937& random);

}  // namespace ptxkit::testing
