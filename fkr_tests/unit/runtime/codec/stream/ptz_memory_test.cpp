// Measures the memory of `.ptz` at the allocator: coders stay within their declared sizes, streams within their budget.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/generated_source.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "fkr_tests/cases/stopping_sink.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace {

std::atomic<size_t> allocated_bytes{0}, peak_bytes{0};

void* counted(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const size_t now = allocated_bytes += ::malloc_usable_size(memory);
  for (size_t peak = peak_bytes; peak < now && !peak_bytes.compare_exchange_weak(peak, now);) continue;
  return memory;
}
void uncounted(void* memory) {
  allocated_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

// Counts every allocation of this program.
void* operator new(size_t size) { return counted(size); }
void* operator new[](size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, size_t) noexcept { uncounted(memory); }

namespace ptxkit::codec {
namespace {

using format::PtzCodec;
using format::PtzCoding;
using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

constexpr uint64_t kMiB = 1 << 20;

// The largest number of bytes that `run` had allocated at a time.
template <class Run>
size_t peak_of(const Run& run) {
  const size_t before = allocated_bytes;
  peak_bytes = before;
  run();
  return peak_bytes - before;
}

TEST(PtzMemory, CodersTakeNoMoreThanTheySay) {
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    for (const size_t size : {size_t{4096}, size_t{1} << 18, size_t{1} << 20}) {
      ByteVector alternating(size);  // the sort examines every second suffix first
      for (size_t i = 0; i < size; ++i) alternating[i] = static_cast<uint8_t>(i % 2 * (1 + i % 253));
      for (const ByteVector& raw :
           {testing::matchable_bytes(size, 1), testing::random_bytes(size, 2), ByteVector(size), alternating}) {
        ByteVector coded;
        const size_t encoding = peak_of([&] { coded = encode_block(codec, raw); });
        EXPECT_LE(encoding, encoding_bytes(codec, size)) << size;
        if (coded.empty()) continue;
        ByteVector back(size);
        const size_t decoding = peak_of([&] { EXPECT_TRUE(decode_block(codec, coded, back)); });
        EXPECT_LE(decoding, decoding_bytes(codec, size)) << size;
      }
    }
  }
}

class PtzStreamMemory : public ::testing::Test {
 protected:
  // 9 blocks of lzr, 3 of bbw, and no multiple of any block size.
  static constexpr uint64_t kRawBytes = 9 * (kMiB / 4) - 77;

  Result<ByteVector> packed(const PtzCoding& codec, scheduler::Ledger& memory, unsigned prefetch = 2) {
    testing::GeneratedSource source(testing::matchable_bytes(700'001, 3), kRawBytes);
    format::MemorySink sink;
    const auto totals = compress_ptz(source, sink, executor_, {codec, format::row_of(codec).block_bits},
                                     {.progress = {}, .limits = {&memory, prefetch, {}}});
    if (!totals) return tl::unexpected(totals.error());
    return sink.take();
  }

  Executor executor_{3};
};

TEST_F(PtzStreamMemory, StreamsKeepToTheirBudgetAndTheBytesAreTheSame) {
  for (const PtzCoding codec : {PtzCodec::lzr, PtzCodec::bbw}) {
    scheduler::Ledger unlimited("memory");
    const ByteVector expected = packed(codec, unlimited).value();
    for (const uint64_t budget : {(codec == PtzCodec::bbw ? 31 : 7) * kMiB, 60 * kMiB}) {
      scheduler::Ledger memory("memory", budget);
      ByteVector file;
      const size_t packing = peak_of([&] { file = packed(codec, memory).value(); });
      EXPECT_EQ(file, expected);
      EXPECT_LE(memory.peak_bytes(), budget);
      EXPECT_GT(memory.peak_bytes(), 0u);
      // The pattern of the source, the growing sink, threads and queues do not count for the stream.
      EXPECT_LE(packing, budget + 700'001 + 3 * expected.size() + 100'000);

      format::MemorySource source(file, "file");
      format::NullSink sink;
      scheduler::Ledger reading("memory", budget);
      const size_t unpacking = peak_of([&] {
        const auto totals = decompress_ptz(source, sink, executor_, {.progress = {}, .limits = {&reading, 2, {}}});
        EXPECT_EQ(totals.value().raw_bytes, kRawBytes);
      });
      EXPECT_LE(unpacking, budget + 100'000);
      EXPECT_EQ(memory.reserved_bytes() + reading.reserved_bytes(), 0u);
    }
  }
}

TEST_F(PtzStreamMemory, ABlockThatCannotFitIsRefused) {
  scheduler::Ledger memory("memory", 10 * kMiB);
  EXPECT_TRUE(packed(PtzCodec::lzr, memory));
  EXPECT_THAT(packed(PtzCodec::bbw, memory).error().message(),
              ::testing::MatchesRegex("a block of 1048576 bytes needs [0-9]+ bytes of memory, the budget is 10485760; "
                                      "raise the budget, or take a codec with smaller blocks"));
}

TEST_F(PtzStreamMemory, ATableWithoutRoomIsAnErrorAndNoWrongFile) {
  format::MemorySink sink;
  format::PtzWriter writer(sink, {PtzCodec::lzr, 12}, 2 * format::kPtzBlockHeaderBytes + 15);
  const ByteVector raw(4096, 1);
  const format::PtzBlock block{4096, 4096, true, format::ptz_checksum(raw)};
  ASSERT_TRUE(writer.begin());
  ASSERT_TRUE(writer.write(block, raw) && writer.write(block, raw));
  EXPECT_EQ(writer.write(block, raw).error().message(),
            "the table of blocks has room for 47 bytes, and after 8192 bytes of input it is full; raise the memory "
            "budget");
}

TEST_F(PtzStreamMemory, ACancelledStreamHasWrittenABeginningAndNothingElse) {
  const ByteVector raw = testing::matchable_bytes(40 * 4096, 5);
  Executor one(1);
  for (size_t enough = 1; enough < raw.size(); enough += 9000) {
    format::MemorySource source(raw, "raw");
    format::MemorySink whole;
    ASSERT_TRUE(compress_ptz(source, whole, one, {PtzCodec::lzr, 12}));
    format::MemorySource file(whole.bytes(), "file");
    testing::StoppingSink sink(enough);
    const auto totals =
        decompress_ptz(file, sink, one, {.progress = {}, .limits = {nullptr, 2, sink.stop.get_token()}});
    ASSERT_LE(sink.written.size(), raw.size());
    EXPECT_TRUE(std::equal(sink.written.begin(), sink.written.end(), raw.begin())) << enough;
    if (!totals) {
      EXPECT_EQ(totals.error().what, "cancelled");
    }
  }
}

}  // namespace
}  // namespace ptxkit::codec
