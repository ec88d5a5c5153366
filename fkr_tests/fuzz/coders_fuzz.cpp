// Fuzzes the CPU's fast transforms against their references, with any bytes as coded stream and as input to encode. The
// first byte selects the transform, the second the room of a decoder. With clang: -fsanitize=fuzzer,address; with any
// compiler: coders_smoke.cpp runs it on seeded mutations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/entropy/fse_reference.hpp"
#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/entropy/rans_chunked_reference.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"
#include "kernels/lz77/lz77_reference.hpp"
#include "runtime/codec/coders/coders.hpp"

namespace {

using namespace ptxkit;
using cpu::Bytes;
using cpu::MutableBytes;
using kernels::TransformOutcome;

struct Pair {
  TransformOutcome (*fast)(Bytes, MutableBytes);
  TransformOutcome (*reference)(Bytes, MutableBytes);
};

constexpr kernels::RansWarpOptions kWarp{11, 9};
constexpr kernels::RansChunkedOptions kChunked{12, 4, 700};

const Pair kDecoders[] = {{cpu::rans_warp_decode, kernels::rans_warp_decode_reference},
                          {cpu::rans_chunked_decode, kernels::rans_chunked_decode_reference},
                          {cpu::huffman_decode, kernels::huffman_decode_reference},
                          {cpu::fse_decode, kernels::fse_decode_reference},
                          {cpu::lz77_decode, kernels::lz77_decode_reference}};

TransformOutcome parsed(Bytes raw, const kernels::LzMatches& matches, MutableBytes room) {
  const auto block = kernels::demux_reference(raw, kernels::lz77_lazy_reference(matches));
  if (block.size() > room.size()) return {kernels::StreamStatus::output_overrun, 0};
  std::copy(block.begin(), block.end(), room.begin());
  return {kernels::StreamStatus::ok, static_cast<uint32_t>(block.size())};
}

const Pair kEncoders[] = {
    {[](Bytes raw, MutableBytes room) { return cpu::rans_warp_encode(raw, room, kWarp); },
     [](Bytes raw, MutableBytes room) { return kernels::rans_warp_encode_reference(raw, room, kWarp); }},
    {[](Bytes raw, MutableBytes room) { return cpu::rans_chunked_encode(raw, room, kChunked); },
     [](Bytes raw, MutableBytes room) { return kernels::rans_chunked_encode_reference(raw, room, kChunked); }},
    {cpu::huffman_encode, kernels::huffman_encode_reference},
    {[](Bytes raw, MutableBytes room) { return cpu::fse_encode(raw, room, {}); },
     [](Bytes raw, MutableBytes room) { return kernels::fse_encode_reference(raw, room, {}); }},
    {cpu::lz77_encode,
     [](Bytes raw, MutableBytes room) { return parsed(raw, kernels::lz77_hash_reference(raw), room); }},
    {cpu::lz77_encode_fast,
     [](Bytes raw, MutableBytes room) { return parsed(raw, kernels::lz77_table_reference(raw), room); }}};

void expect_same(const Pair& pair, Bytes src, size_t room_bytes) {
  std::vector<uint8_t> fast(room_bytes), reference(room_bytes);
  const TransformOutcome found = pair.fast(src, fast), expected = pair.reference(src, reference);
  if (found == expected && std::equal(fast.begin(), fast.begin() + found.size_bytes, reference.begin())) return;
  std::fprintf(stderr, "%s with %u bytes, but the reference %s with %u\n",
               std::string(kernels::status_text(found.status)).c_str(), found.size_bytes,
               std::string(kernels::status_text(expected.status)).c_str(), expected.size_bytes);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  // A copy of the exact size, so that a sanitizer sees an access one byte too far.
  const std::vector<uint8_t> src(data + 2, data + size);
  expect_same(kDecoders[data[0] % std::size(kDecoders)], src, size_t{64} * data[1]);
  expect_same(kEncoders[data[0] % std::size(kEncoders)], src, data[1] % 2 == 0 ? 4 * size + 2000 : size);
  return 0;
}
