// Huffman decoder for CPUs with AVX-512.
#pragma once

#include "kernels/entropy/huffman_reference.hpp"
#include "runtime/codec/coders/coders.hpp"

namespace ptxkit::cpu {

// Decodes a stream of `src` whose code is complete into `dst`. Returns whether every lane ended exactly at its last
// byte. Requires `vectors` == Vectors::avx512.
bool huffman_decode_avx512(const kernels::HuffmanStream& stream, Bytes src, MutableBytes dst);

}  // namespace ptxkit::cpu
