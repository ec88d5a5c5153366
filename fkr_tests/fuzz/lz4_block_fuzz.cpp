// Fuzzes LZ4 blocks, with liblz4 as the oracle. Any bytes as a block: the scalar decoder, which the kernels equal byte
// for byte, accepts what liblz4 accepts and gives the same bytes, with two exceptions (compare_decoders). Any bytes as
// raw data: liblz4 decodes the output of each scalar encoder. Any bytes and flag as a stored item: they give the bytes
// that the flag asks for, or a status; and raw data comes back. The first byte selects, the second and third give the
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
#include "runtime/library/stored_item.hpp"

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

using namespace ptxkit::codec;
using ptxkit::library::StoredItem;

ItemStatus restored(ChunkFlag flag, const ByteVector& stored, ByteVector& output) {
  StoredItem item{.flag = flag, .stored = stored, .output = output};
  const auto done = ptxkit::library::restore({&item, 1}, [](std::span<DecompressItem> blocks) -> ptxkit::Result<void> {
    const DecompressedItem found = lz4_decompress_reference(blocks[0].block, blocks[0].output);
    blocks[0].status = static_cast<ItemStatus>(found.status);
    blocks[0].raw_bytes = found.size_bytes;
    return {};
  });
  if (!done) complain("an error of a batch", 0, 0);
  return item.status;
}

void restore_any(uint8_t flag, const ByteVector& stored, size_t raw_bytes) {
  ByteVector output(raw_bytes, 0xcb), expected;
  const bool is_ok = restored(static_cast<ChunkFlag>(flag), stored, output) == ItemStatus::ok;
  switch (flag) {
    case 0:
      return;  // compare_decoders() looks at blocks
    case 1:
      expected = stored;
      break;
    case 2:
      if (stored.empty()) expected.resize(raw_bytes);
      break;
    case 4:
      if (stored.size() == 1) expected.assign(raw_bytes, stored[0]);
      break;
    default:
      if (is_ok) complain("a flag that does not exist was taken", flag, -1);
      return;
  }
  const bool fits = expected.size() == raw_bytes && (flag != 2 || stored.empty()) && (flag != 4 || stored.size() == 1);
  if (is_ok != fits) complain("a stored item was taken or refused", is_ok, fits);
  if (is_ok && output != expected) complain("restored bytes differ", flag, 0);
}

void store_and_restore(const ByteVector& raw) {
  ByteVector room(raw.size()), back(raw.size(), 0xcb);
  const CompressedItem encoded = lz4_compress_reference(raw, room, kChunkVariant);
  if (encoded.flag == PageFlag::refused) return;
  CompressItem item;
  item.raw = raw;
  item.output = room;
  item.flag = static_cast<ChunkFlag>(encoded.flag);
  item.compressed_bytes = encoded.size_bytes;
  ptxkit::library::flag_filled_items({&item, 1});
  const bool one_byte = raw.size() > 1 && raw[0] != 0 && std::equal(raw.begin() + 1, raw.end(), raw.begin());
  if (one_byte != (item.flag == ChunkFlag::filled)) complain("flagged as one repeated byte", one_byte, -1);
  room.resize(item.compressed_bytes);
  if (restored(item.flag, room, back) != ItemStatus::ok || back != raw) complain("an item came back wrong", 0, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  // A copy of the exact size, so that a sanitizer sees an access one byte too far.
  const ByteVector bytes(data + 3, data + size);
  switch (data[0] % 6) {
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
    case 4:
      restore_any(data[0] / 6, bytes, data[1] | data[2] << 8);
      break;
    case 5:
      store_and_restore(bytes);
      break;
  }
  return 0;
}
