// Scalar reference of the second half of `deflate_encode`: the codes of tokens, and the one block of an item.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::kernels {

// The last block of a stream, to a whole byte: stored, by the fixed codes or by its own, whichever is smallest. Of
// equal ones the stored comes first, then the fixed one. `tokens` are those of `src`. Own codes have the lengths of
// code_lengths_of (huffman_reference.hpp). Bytes that one stored block cannot take become two.
std::vector<uint8_t> deflate_block_reference(std::span<const uint8_t> src, std::span<const uint32_t> tokens);

// The lengths of codes as a dynamic block has them: a symbol of the code-length code, and the value of its extra bits.
// A run of zeros takes symbol 18 while it has 11 or more, then 17 for 3 or more. Of a run of another length the first
// stands alone, then 16 repeats it while 3 or more are left.
struct DeflateLengthField {
  uint8_t symbol, extra;

  bool operator==(const DeflateLengthField&) const = default;
};
std::vector<DeflateLengthField> deflate_length_fields(std::span<const uint8_t> lengths);

}  // namespace ptxkit::kernels
