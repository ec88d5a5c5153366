// The references of the kernels of batches, beside liblz4.
#include "kernels/lz4/lz4_batch_reference.hpp"

#include <gtest/gtest.h>
#include <lz4.h>

#include "fkr_tests/cases/corpus.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

Bytes block_of(const Bytes& raw) {
  Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  block.resize(static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char*>(raw.data()),
                                                        reinterpret_cast<char*>(block.data()),
                                                        static_cast<int>(raw.size()), static_cast<int>(block.size()))));
  return block;
}

TEST(Lz4BatchReference, DecodesBlocksOfLiblz4) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5000}, size_t{(1 << 24) + 5}}) {
    const Bytes raw = size > 100'000 ? Bytes(size, 'x') : ptxkit::testing::matchable_bytes(size, 1);
    Bytes block = block_of(raw), output(size + 3);
    const BatchItem item = lz4_batch_decompress_reference(block, output, BatchFraming::raw);
    EXPECT_EQ(item.status, BatchStatus::ok);
    output.resize(item.size_bytes);
    EXPECT_TRUE(output == raw);
    block.insert(block.begin(), {static_cast<uint8_t>(size), static_cast<uint8_t>(size >> 8),
                                 static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 24)});
    output.assign(size + 3, 0);
    EXPECT_EQ(lz4_batch_decompress_reference(block, output, BatchFraming::numcodecs).size_bytes, size);
    output.resize(size);
    EXPECT_TRUE(output == raw);
  }
}

TEST(Lz4BatchReference, SaysWhatIsWrong) {
  const Bytes raw = ptxkit::testing::matchable_bytes(100, 1), block = block_of(raw);
  Bytes output(100);
  const auto status = [&](const Bytes& coded, size_t capacity, BatchFraming framing = BatchFraming::raw) {
    const BatchItem item = lz4_batch_decompress_reference(coded, std::span(output).first(capacity), framing);
    EXPECT_EQ(item.status != BatchStatus::ok, item.size_bytes == 0);
    return item.status;
  };
  EXPECT_EQ(status(block, 100), BatchStatus::ok);
  EXPECT_EQ(status(block, 99), BatchStatus::output_too_small);
  EXPECT_EQ(status({}, 100), BatchStatus::cannot_decompress);
  EXPECT_EQ(status({0x10, 'a', 0, 0, 0x00}, 100), BatchStatus::cannot_decompress);
  EXPECT_EQ(status({1, 0, 0}, 100, BatchFraming::numcodecs), BatchStatus::cannot_decompress);
  EXPECT_EQ(status({101, 0, 0, 0, 0}, 100, BatchFraming::numcodecs), BatchStatus::output_too_small);
  EXPECT_EQ(status({1, 0, 0, 0, 0}, 100, BatchFraming::numcodecs), BatchStatus::cannot_decompress);
  EXPECT_EQ(status({1, 0, 0, 0, 0x20, 'a', 'b'}, 100, BatchFraming::numcodecs), BatchStatus::cannot_decompress);
}

// 2^32 and more must not wrap around to a length that fits.
TEST(Lz4BatchReference, RefusesLengthsThatDoNotFit32Bits) {
  Bytes block = {0x1f, 'a', 1, 0};
  block.insert(block.end(), (uint64_t{1} << 32) / 255, 255);
  block.insert(block.end(), {0, 0x20, 'x', 'y'});
  Bytes output(40);
  EXPECT_EQ(lz4_batch_decompress_reference(block, output, BatchFraming::raw).status, BatchStatus::output_too_small);
}

}  // namespace
}  // namespace ptxkit::kernels
