// LZ4 over generated inputs: round trips, agreement with liblz4, and decoders that survive damaged blocks.
//
// Buffers have exactly the size that the interface names, on the heap, so that a sanitizer build sees one byte too far.
#include <algorithm>

#include <gtest/gtest.h>
#include <lz4.h>
#include <rapidcheck.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

// Pieces of runs, copies and noise: what a compressor meets, at sizes around the format's limits.
rc::Gen<Bytes> any_item(uint32_t max_bytes) {
  return rc::gen::exec([max_bytes] {
    const auto size = *rc::gen::weightedOneOf<uint32_t>({{3, rc::gen::inRange<uint32_t>(0, 70)},
                                                         {3, rc::gen::inRange<uint32_t>(0, max_bytes + 1)},
                                                         {1, rc::gen::just(max_bytes)}});
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    Bytes bytes = *rc::gen::element(ptxkit::testing::matchable_bytes(size, seed),
                                    ptxkit::testing::random_bytes(size, seed), Bytes(size, static_cast<uint8_t>(seed)));
    if (size != 0 && seed % 3 == 0) std::fill(bytes.begin() + seed % size, bytes.end(), uint8_t{0});
    return bytes;
  });
}

void check_round_trip(const Lz4CompressVariant& variant) {
  EXPECT_TRUE(rc::check([&variant] {
    const Bytes raw = *any_item(variant.max_item_bytes);
    Bytes room(raw.size());
    const auto item = lz4_compress_reference(raw, room, variant);
    RC_ASSERT(item.size_bytes <= raw.size());
    RC_CLASSIFY(item.flag == PageFlag::compressed, "compressed");
    room.resize(item.size_bytes);
    const bool zero = std::all_of(raw.begin(), raw.end(), [](uint8_t byte) { return byte == 0; });
    RC_ASSERT(zero == (item.flag == PageFlag::zero));
    if (item.flag == PageFlag::incompressible) RC_ASSERT(room == raw);
    if (item.flag != PageFlag::compressed) return;
    RC_ASSERT(item.size_bytes < raw.size());
    Bytes decoded(raw.size());
    RC_ASSERT(lz4_decompress_reference(room, decoded).status == Lz4Status::ok);
    RC_ASSERT(decoded == raw);
    std::fill(decoded.begin(), decoded.end(), uint8_t{0xcb});
    RC_ASSERT(LZ4_decompress_safe(reinterpret_cast<const char*>(room.data()), reinterpret_cast<char*>(decoded.data()),
                                  static_cast<int>(room.size()),
                                  static_cast<int>(decoded.size())) == static_cast<int>(raw.size()));
    RC_ASSERT(decoded == raw);
    // The same input gives the same bytes.
    Bytes again(raw.size());
    RC_ASSERT(lz4_compress_reference(raw, again, variant).size_bytes == item.size_bytes);
    RC_ASSERT(std::equal(room.begin(), room.end(), again.begin()));
  }));
}

TEST(Lz4Property, PagesRoundTrip) { check_round_trip(kPageVariant); }
TEST(Lz4Property, ChunksRoundTrip) { check_round_trip(kChunkVariant); }
TEST(Lz4Property, ChunksOfHighRatioRoundTrip) { check_round_trip(kHighVariant); }

// A block of liblz4's with bytes changed, cut off or added.
Bytes damaged_block(const Bytes& raw) {
  Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  block.resize(static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char*>(raw.data()),
                                                        reinterpret_cast<char*>(block.data()),
                                                        static_cast<int>(raw.size()), static_cast<int>(block.size()))));
  const auto change_count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < change_count && !block.empty(); ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, block.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        block[at] = *rc::gen::arbitrary<uint8_t>();
        break;
      case 1:
        block[at] = *rc::gen::element<uint8_t>(0, 15, 0xf0, 255);
        break;
      case 2:
        block.resize(at);
        break;
      default:
        block.insert(block.begin() + at, *rc::gen::arbitrary<uint8_t>());
    }
  }
  block.shrink_to_fit();
  return block;
}

TEST(Lz4Property, DamagedBlocksGiveAStatusAndNoByteOutside) {
  EXPECT_TRUE(rc::check([] {
    const Bytes raw = *any_item(5000);
    const Bytes block = damaged_block(raw);
    const auto capacity = *rc::gen::element(raw.size(), raw.size() / 2, raw.size() + 20, size_t{0});
    Bytes ours(capacity), theirs(capacity);
    const auto item = lz4_decompress_reference(block, ours);
    const int expected =
        LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(theirs.data()),
                            static_cast<int>(block.size()), static_cast<int>(theirs.size()));
    RC_CLASSIFY(item.status == Lz4Status::ok, "ok");
    RC_CLASSIFY(item.status == Lz4Status::input_overrun, "input_overrun");
    RC_CLASSIFY(item.status == Lz4Status::output_overrun, "output_overrun");
    RC_CLASSIFY(item.status == Lz4Status::offset_zero, "offset_zero");
    RC_CLASSIFY(item.status == Lz4Status::offset_out_of_range, "offset_out_of_range");
    RC_ASSERT(item.status == Lz4Status::ok || item.size_bytes == 0);
    // What liblz4 takes, we take; but it copies memory that nobody wrote for offset 0, which the format forbids.
    if (expected < 0 || item.status == Lz4Status::offset_zero) return;
    RC_ASSERT(item.status == Lz4Status::ok);
    RC_ASSERT(item.size_bytes == static_cast<uint32_t>(expected));
    RC_ASSERT(std::equal(ours.begin(), ours.begin() + expected, theirs.begin()));
  }));
}

TEST(Lz4Property, NoiseAsABlockNeverLeavesItsBuffers) {
  EXPECT_TRUE(rc::check([] {
    Bytes block = *rc::gen::arbitrary<Bytes>();
    block.shrink_to_fit();
    Bytes room(*rc::gen::inRange<size_t>(0, 600));
    const auto item = lz4_decompress_reference(block, room);
    RC_ASSERT(item.size_bytes <= room.size());
  }));
}

}  // namespace
}  // namespace ptxkit::kernels
