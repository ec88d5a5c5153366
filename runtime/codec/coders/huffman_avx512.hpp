// Huffman's decoder for CPUs that have AVX-512.
#pragma once

#include "kernels/entropy/huffman_reference.hpp"
#include "runtime/codec/coders/coders.hpp"

namespace ptxkit::cpu {

// Writes the symbols of a stream of `src` whose code is complete. Whether each lane had the bytes it needed, and no
// more. Only where `vectors` is Vectors::avx512.
bool huffman_decode_avx512(const kernels::HuffmanStream& stream, Bytes src, MutableBytes dst);

}  // namespace ptxkit::cpu
