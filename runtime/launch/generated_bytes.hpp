// The contents of generated buffers. Golden outputs (ptx-debug gen-fkr; FKR: falsification kernel regression) depend on
// it: the same arguments give the same bytes in every version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxkit {

// The seed modulo kContents selects the contents; the quotient selects where they begin.
inline constexpr unsigned kContents = 16;
enum class Content : unsigned {
  counting = 0,       // little-endian words that count to 60 repeatedly
  random = 1,         // pseudo-random bytes; also 2 to 4 and values without a name
  floats = 5,         // f32, evenly from -2 to 2
  doubles = 6,        // f64, as floats
  rising_floats = 7,  // f32 in steps of 0.75
  equal_floats = 8,   // f32, all equal
  edge_floats = 9,    // f32: zeros of both signs, subnormal, largest, infinite, NaN
  edge_doubles = 10,  // f64, as edge_floats
  small_words = 11,   // pseudo-random words below 256
  zeros = 12,
  rising_words = 13,  // consecutive words
  halves = 14,        // f16 of both signs, 2^-7 to 4
};

std::vector<std::byte> generated_bytes(size_t size_bytes, unsigned seed);

// Words that stay small when they are used as offsets.
enum class Offsets : unsigned {
  anywhere,   // pseudo-random numbers below 64 or, by the seed, 16: for gathers
  each_once,  // each 64 words are a permutation of their own indices: for stores by one thread each
  rising,     // from 0 in steps of 0 to 3: for row bounds
};
// `word_bytes` is 2, 4 or 8. The same arguments give the same bytes in every version.
std::vector<std::byte> generated_offsets(size_t size_bytes, Offsets offsets, unsigned word_bytes, unsigned seed);

// Repeats the bytes that `hex` spells up to `size_bytes`; zeros if it is empty.
std::vector<std::byte> repeated_bytes(std::string_view hex, size_t size_bytes);

// An address as the bytes of a parameter.
std::vector<std::byte> address_value(uint64_t address, uint32_t address_bytes);

}  // namespace ptxkit
