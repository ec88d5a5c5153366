// What generated buffers hold. Golden outputs (ptx-debug gen-fkr) rest on it: the same arguments give the same bytes in
// every version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxkit {

// What a buffer holds is the rest of its seed by 16; how it begins, what is left of it.
inline constexpr unsigned kContents = 16;
enum class Content : unsigned {
  counting = 0,       // little-endian words that count up to 60 again and again
  random = 1,         // pseudo-random bytes; so are 2 to 4 and what has no name
  floats = 5,         // f32, evenly from -2 to 2
  doubles = 6,        // f64, the same
  rising_floats = 7,  // f32 in steps of 0.75
  equal_floats = 8,   // f32, one number
  edge_floats = 9,    // f32: zeros of both signs, subnormal, largest, infinite, NaN
  edge_doubles = 10,  // f64, the same
  small_words = 11,   // pseudo-random words below 256
  zeros = 12,
  rising_words = 13,  // words that count
  halves = 14,        // f16 of both signs from 2^-7 to 4
};

std::vector<std::byte> generated_bytes(size_t size_bytes, unsigned seed);

// Words that stay near where they are used as offsets.
enum class Offsets : unsigned {
  anywhere,   // pseudo-random numbers below 64 or, by the seed, 16: what is gathered
  each_once,  // each 64 words are a permutation of themselves: where is stored, by one thread each
  rising,     // from 0 in steps of 0 to 3: where rows begin and end
};
// `word_bytes` is 2, 4 or 8. The same promise: the same arguments, the same bytes.
std::vector<std::byte> generated_offsets(size_t size_bytes, Offsets offsets, unsigned word_bytes, unsigned seed);

// The bytes that `hex` spells, again and again; zeros where it spells none.
std::vector<std::byte> repeated_bytes(std::string_view hex, size_t size_bytes);

// An address as a parameter holds it.
std::vector<std::byte> address_value(uint64_t address, uint32_t address_bytes);

}  // namespace ptxkit
