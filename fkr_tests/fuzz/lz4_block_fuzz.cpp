// Fuzzes LZ4 blocks, with liblz4 as the oracle. Any bytes as a block: the scalar decoder, which the kernels equal byte
// for byte, accepts what liblz4 accepts and gives the same bytes, with two exceptions (compare_decoders). Any bytes as
// raw data: liblz4 decodes the output of each scalar encoder. The first byte selects, the second and third give the
// room of a decoder. With clang: -fsanitize=fuzzer,address; with any compiler: lz4_block_smoke.cpp runs it on seeded
// inputs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <lz4.h>

#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace {

using namespace ptxkit::kernels;
using ByteVector = std::vector<uint8_t>;

int decode_with_liblz4(const ByteVector& block, ByteVector& raw) {
  return LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(raw.data()),
                             static_cast<int>(block.size()), static_cast<int>(raw.size()));
}

[[noreturn]] void complain(const char* what, long long ours, long long oracle) {
  std::fprintf(stderr, "%s: ours %lld, liblz4 %lld\n", what, ours, oracle);
  std::abort();
}

// Properties of `block`, which decodes to `raw_bytes`, with respect to the format's end-of-block rules.
struct Shape {
  bool has_zero_offset = false;
  bool keeps_end_rules = true;  // the last 5 bytes are literals, and no match starts in the last 12
};

Shape shape_of(const ByteVector& block, size_t raw_bytes) {
  Shape shape;
  size_t in = 0, out = 0, literals = 0, last_match = 0;
  bool has_match = false;
  const auto extended = [&](size_t length) {
    if (length < kNibbleMax) return length;
    while (in < block.size()) {
      length += block[in];
      if (block[in++] != 255) break;
    }
    return length;
  };
  while (in < block.size()) {
    const uint8_t token = block[in++];
    literals = extended(token >> 4);
    in += literals;
    out += literals;
    if (in + 2 > block.size()) break;
    shape.has_zero_offset |= block[in] == 0 && block[in + 1] == 0;
    in += 2;
    has_match = true;
    last_match = out;
    out += extended(token & kNibbleMax) + kMinMatch;
  }
  shape.keeps_end_rules = !has_match || (literals >= kLastLiterals && last_match + kLastMatchStart <= raw_bytes);
  return shape;
}

// liblz4 accepts offset 0, against the format, and rejects some blocks that violate the end-of-block rules, which bind
// only encoders. Otherwise both decoders must agree.
void compare_decoders(const ByteVector& block, size_t room_bytes) {
  ByteVector ours(room_bytes), oracle(room_bytes);
  const DecompressedItem found = lz4_decompress_reference(block, ours);
  const int expected = decode_with_liblz4(block, oracle);
  if (found.status != Lz4Status::ok) {
    if (expected >= 0 && !shape_of(block, static_cast<size_t>(expected)).has_zero_offset)
      complain("refused, and liblz4 takes it: bytes", 0, expected);
    return;
  }
  if (expected < 0) {
    if (found.size_bytes + kLastLiterals <= room_bytes && shape_of(block, found.size_bytes).keeps_end_rules)
      complain("decoded, and liblz4 refuses it: bytes", found.size_bytes, expected);
    return;
  }
  if (found.size_bytes != static_cast<uint32_t>(expected)) complain("decoded bytes", found.size_bytes, expected);
  const auto [at, other] = std::mismatch(ours.begin(), ours.begin() + expected, oracle.begin());
  if (at != ours.begin() + expected) complain("a byte", *at, *other);
}

void read_back(const ByteVector& raw, const Lz4CompressVariant& variant) {
  ByteVector block(raw.size()), back(raw.size());
  const CompressedItem item = lz4_compress_reference(raw, block, variant);
  if (item.flag != PageFlag::compressed) return;
  block.resize(item.size_bytes);
  const int expected = decode_with_liblz4(block, back);
  if (expected != static_cast<int>(raw.size()))
    complain("bytes read back", static_cast<long long>(raw.size()), expected);
  if (back != raw) complain("bytes read back differ", 0, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  // A copy of the exact size, so that a sanitizer sees an access one byte too far.
  const ByteVector bytes(data + 3, data + size);
  switch (data[0] % 4) {
    case 0:
      compare_decoders(bytes, data[1] | data[2] << 8);
      break;
    case 1:
      read_back(bytes, kPageVariant);
      break;
    case 2:
      read_back(bytes, kChunkVariant);
      break;
    case 3:
      read_back(bytes, kHighVariant);
      break;
  }
  return 0;
}
