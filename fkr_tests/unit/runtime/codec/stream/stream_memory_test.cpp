// Tests streams under a memory budget: reservations stay below it for any length, a stream that does not fit is an
// error, and a cancelled or failed stream gives everything back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/generated_source.hpp"
#include "fkr_tests/cases/stopping_sink.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;
using scheduler::Ledger;

constexpr uint64_t kMiB = 1 << 20;

ByteVector pattern() {
  ByteVector bytes(kMiB);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 251 == 0 ? i >> 8 : 7);
  return bytes;
}

// A slow sink, so that all queues before it fill up. Can fail or cancel after a number of bytes.
class SlowSink final : public format::ByteSink {
 public:
  Result<void> write(format::Bytes bytes) override {
    std::this_thread::sleep_for(std::chrono::microseconds(delay_microseconds));
    written_bytes += bytes.size();
    if (written_bytes > cancel_after_bytes) stop.request_stop();
    if (written_bytes > fail_after_bytes) return fail("the sink is full");
    return {};
  }
  unsigned delay_microseconds = 20;
  uint64_t written_bytes = 0;
  uint64_t cancel_after_bytes = ~uint64_t{0}, fail_after_bytes = ~uint64_t{0};
  std::stop_source stop;
};

// Blocks the first batch until the expected number of bytes is reserved; blocks forever if it never is.
class HoldingSink final : public format::ByteSink {
 public:
  HoldingSink(const Ledger& memory, uint64_t expected_bytes) : memory_(memory), expected_bytes_(expected_bytes) {}
  Result<void> write(format::Bytes) override {
    if (++writes_ == 2) {  // the first write is the frame header
      while (memory_.reserved_bytes() < expected_bytes_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  }

 private:
  const Ledger& memory_;
  const uint64_t expected_bytes_;
  int writes_ = 0;
};

format::FrameHeader blocks_of(int size_id) {
  format::FrameHeader header;
  header.block_size_id = size_id;
  header.content_checksum = false;
  return header;
}

class StreamMemory : public ::testing::Test {
 protected:
  Result<StreamTotals> compress(uint64_t size_bytes, Ledger& memory, format::ByteSink& sink, int size_id = 4,
                                unsigned prefetch = 2, std::stop_token stop = {}) {
    testing::GeneratedSource source(pattern(), size_bytes);
    return compress_stream(source, sink, *backend_,
                           {.header = blocks_of(size_id),
                            .encoder = Encoder::fast,
                            .progress = {},
                            .limits = {.memory = &memory, .prefetch = prefetch, .stop = std::move(stop)}});
  }
  Result<StreamTotals> decompress(const ByteVector& frame, Ledger& memory, unsigned prefetch = 2) {
    format::MemorySource source(frame, "frame");
    format::NullSink sink;
    return decompress_stream(source, sink, *backend_,
                             {.progress = {}, .limits = {.memory = &memory, .prefetch = prefetch, .stop = {}}});
  }

  Executor executor_{8};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(executor_);
};

TEST_F(StreamMemory, AStreamOfAnyLengthStaysBelowItsBudget) {
  // On 8 threads the backend prefers batches of 8 MiB, three at a time with three buffers each: 72 MiB.
  for (const auto& [budget, length] :
       {std::pair(1 * kMiB, 40 * kMiB), std::pair(7 * kMiB, 400 * kMiB), std::pair(64 * kMiB, 4096 * kMiB + 1)}) {
    Ledger memory("memory", budget);
    HoldingSink sink(memory, budget / 3 + 1);  // more than one batch, which takes a third at most
    const auto totals = compress(length, memory, sink);
    ASSERT_TRUE(totals) << totals.error().message();
    EXPECT_EQ(totals->raw_bytes, length);
    EXPECT_LE(memory.peak_bytes(), budget);
    EXPECT_GT(memory.peak_bytes(), budget / 3);
    EXPECT_EQ(memory.reserved_bytes(), 0u);
  }
}

TEST_F(StreamMemory, WithoutABudgetBatchesAreAsTheBackendPrefers) {
  Ledger memory("memory");
  HoldingSink sink(memory, 72 * kMiB);
  ASSERT_TRUE(compress(100 * kMiB, memory, sink));
  EXPECT_GT(memory.peak_bytes(), 72 * kMiB);
  EXPECT_LT(memory.peak_bytes(), 80 * kMiB);
}

TEST_F(StreamMemory, PrefetchIsTheNumberOfBatchesAhead) {
  for (const unsigned prefetch : {0u, 1u, 4u}) {
    Ledger memory("memory");
    HoldingSink sink(memory, (prefetch + 1) * 24 * kMiB);
    ASSERT_TRUE(compress(100 * kMiB, memory, sink, 4, prefetch));
    EXPECT_EQ(memory.peak_bytes() / (24 * kMiB), prefetch + 1);
  }
}

TEST_F(StreamMemory, ABlockThatCannotFitIsRefusedBeforeAnythingIsRead) {
  Ledger memory("memory", 12 * kMiB);
  SlowSink sink;
  const auto totals = compress(100 * kMiB, memory, sink, 7);
  ASSERT_FALSE(totals);
  EXPECT_THAT(totals.error().message(), HasSubstr("a block of 4194304 bytes needs "));
  EXPECT_THAT(totals.error().message(),
              HasSubstr("bytes of memory, the budget is 12582912; raise the budget, or use smaller blocks"));
  EXPECT_EQ(sink.written_bytes, 0u);
  Ledger enough("memory", 13 * kMiB);  // for one batch of one block
  EXPECT_TRUE(compress(20 * kMiB, enough, sink, 7));
}

TEST_F(StreamMemory, DecompressionKeepsToItsBudgetWhateverTheFramesHold) {
  format::MemorySink small, large;
  Ledger unlimited("memory");
  ASSERT_TRUE(compress(30 * kMiB, unlimited, small, 4));
  ASSERT_TRUE(compress(30 * kMiB, unlimited, large, 7));
  Ledger memory("memory", 10 * kMiB);
  EXPECT_EQ(decompress(small.bytes(), memory)->raw_bytes, 30 * kMiB);
  EXPECT_EQ(decompress(large.bytes(), memory)->raw_bytes, 30 * kMiB);
  EXPECT_LE(memory.peak_bytes(), 10 * kMiB);
  Ledger tight("memory", 5 * kMiB);
  EXPECT_EQ(decompress(small.bytes(), tight)->raw_bytes, 30 * kMiB);
  EXPECT_THAT(decompress(large.bytes(), tight).error().message(), HasSubstr("a block of 4194304 bytes needs"));
  // Later frames with larger blocks, after batches were planned for small ones.
  ByteVector both = small.bytes();
  both.insert(both.end(), large.bytes().begin(), large.bytes().end());
  EXPECT_THAT(decompress(both, tight).error().message(), HasSubstr("a block of 4194304 bytes needs"));
  EXPECT_EQ(decompress(both, unlimited)->raw_bytes, 60 * kMiB);
  EXPECT_EQ(decompress(both, memory)->raw_bytes, 60 * kMiB);
  EXPECT_LE(memory.peak_bytes(), 10 * kMiB);
  EXPECT_EQ(tight.reserved_bytes() + memory.reserved_bytes() + unlimited.reserved_bytes(), 0u);
}

// Valid frames in any order of block sizes, with any budget that holds a block of the largest size.
TEST_F(StreamMemory, FramesOfAnyBlockSizeFollowEachOther) {
  format::MemorySink frames[4];
  Ledger unlimited("memory");
  for (int id = 4; id <= 7; ++id) ASSERT_TRUE(compress(9 * kMiB, unlimited, frames[id - 4], id));
  const ByteVector skippable = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9};
  std::minstd_rand random(2);
  for (int round = 0; round < 12; ++round) {
    ByteVector all = skippable;
    int largest = 4;
    for (int i = 0; i < 6; ++i) {
      const int id = 4 + static_cast<int>(random() % (round < 6 ? 4 : 2));
      largest = std::max(largest, id);
      const ByteVector& frame = frames[id - 4].bytes();
      all.insert(all.end(), frame.begin(), frame.end());
      if (i == 2) all.insert(all.end(), skippable.begin(), skippable.end());
    }
    const uint64_t block_bytes = format::block_bytes_of_id(largest);
    for (const uint64_t budget : {2 * block_bytes + (96 << 10), 7 * block_bytes, 8u * 1024 * kMiB}) {
      Ledger memory("memory", budget);
      const auto totals = decompress(all, memory);
      ASSERT_TRUE(totals) << budget << ": " << totals.error().message();
      EXPECT_EQ(totals->raw_bytes, 54 * kMiB);
      EXPECT_EQ(totals->frame_count, 6u);
      EXPECT_EQ(totals->stored_bytes, all.size());
      EXPECT_LE(memory.peak_bytes(), budget);
      EXPECT_EQ(memory.reserved_bytes(), 0u);
    }
    Ledger tight("memory", 2 * block_bytes);
    EXPECT_THAT(decompress(all, tight).error().message(),
                HasSubstr("a block of " + std::to_string(block_bytes) + " bytes needs"));
  }
}

// Many small blocks share calls of source and sink, and batches.
TEST_F(StreamMemory, ManyBlocksOfAByteAreFewCalls) {
  constexpr size_t kBlocks = 100'000;
  struct Source final : format::ByteSource {
    Result<size_t> read(format::MutableBytes into) override { return read_some(into, into.size()); }
    Result<size_t> read_some(format::MutableBytes into, size_t) override {
      ++calls;
      return memory.read(into);
    }
    const std::string& name() const override { return memory.name(); }
    explicit Source(format::Bytes bytes) : memory(bytes, "frame") {}
    format::MemorySource memory;
    size_t calls = 0;
  };
  struct Sink final : format::ByteSink {
    Result<void> write(format::Bytes some) override {
      ++calls;
      bytes += some.size();
      return {};
    }
    size_t calls = 0, bytes = 0;
  };
  for (const auto& [id, threads] : {std::pair(4, 1u), {4, 2u}, {7, 1u}, {7, 2u}}) {
    Executor executor(threads);
    const auto cpu = make_cpu_backend(executor);
    for (const bool is_linked : {false, true}) {
      format::FrameHeader header;
      header.block_size_id = id;
      header.independent_blocks = !is_linked;
      header.content_checksum = false;
      ByteVector frame;
      format::append_frame_header(header, frame);
      const uint8_t coded[] = {0x10, 'x'}, plain[] = {'y'};
      for (size_t i = 0; i < kBlocks; ++i) {
        format::append_block(header, i % 2 == 0 ? format::Bytes(coded) : format::Bytes(plain), i % 2 != 0, frame);
      }
      format::append_frame_end(header, 0, frame);
      Source source(frame);
      Sink sink;
      size_t batches = 0;
      DecompressOptions options;
      options.progress = [&](uint64_t, uint64_t) { ++batches; };
      const auto totals = decompress_stream(source, sink, *cpu, options);
      ASSERT_TRUE(totals) << totals.error().message();
      EXPECT_EQ(sink.bytes, kBlocks);
      EXPECT_EQ(totals->block_count, kBlocks);
      EXPECT_LT(source.calls, frame.size() / 8000);
      EXPECT_LT(batches, 100u);
      EXPECT_LT(sink.calls, 200u);
    }
  }
}

TEST_F(StreamMemory, CancellingReturnsEverything) {
  std::minstd_rand random(1);
  for (int round = 0; round < 20; ++round) {
    Ledger memory("memory", 8 * kMiB);
    SlowSink sink;
    sink.delay_microseconds = static_cast<unsigned>(random() % 300);
    sink.cancel_after_bytes = random() % 300'000;
    const auto totals =
        compress(100 * kMiB, memory, sink, 4, static_cast<unsigned>(random() % 4), sink.stop.get_token());
    ASSERT_FALSE(totals);
    EXPECT_EQ(totals.error().what, "cancelled");
    EXPECT_EQ(memory.reserved_bytes(), 0u);
  }
}

TEST_F(StreamMemory, AFailedSinkReturnsEverything) {
  Ledger memory("memory", 8 * kMiB);
  SlowSink sink;
  sink.fail_after_bytes = 100'000;
  EXPECT_EQ(compress(100 * kMiB, memory, sink).error().what, "the sink is full");
  EXPECT_EQ(memory.reserved_bytes(), 0u);
}

// Fails after `good_bytes` bytes.
class FailingSource final : public format::ByteSource {
 public:
  explicit FailingSource(uint64_t good_bytes) : source_(pattern(), good_bytes) {}
  Result<size_t> read(format::MutableBytes into) override {
    const auto count = source_.read(into);
    return *count == into.size() ? count : fail("the disk is gone");
  }
  const std::string& name() const override { return source_.name(); }

 private:
  testing::GeneratedSource source_;
};

// Buffers are reused: a batch that gets no data must not write its previous content again.
TEST_F(StreamMemory, AnEndThatIsNoneWritesABeginningAndNothingElse) {
  Ledger unlimited("memory");
  format::MemorySink whole;
  ASSERT_TRUE(compress(20 * kMiB, unlimited, whole));
  const ByteVector& expected = whole.bytes();
  const auto is_beginning = [&](const ByteVector& written) {
    return written.size() < expected.size() && std::equal(written.begin(), written.end(), expected.begin());
  };
  for (uint64_t blocks = 1; blocks < 30; ++blocks) {
    Ledger memory("memory", kMiB);
    FailingSource source(blocks * 65536);
    format::MemorySink sink;
    const CompressOptions options{.header = blocks_of(4),
                                  .encoder = Encoder::fast,
                                  .progress = {},
                                  .limits = {.memory = &memory, .prefetch = 2, .stop = {}}};
    EXPECT_EQ(compress_stream(source, sink, *backend_, options).error().what, "the disk is gone");
    EXPECT_TRUE(is_beginning(sink.bytes())) << blocks;

    Ledger other("memory", kMiB);
    testing::StoppingSink stopping(blocks * 500);
    EXPECT_EQ(compress(20 * kMiB, other, stopping, 4, 2, stopping.stop.get_token()).error().what, "cancelled");
    EXPECT_TRUE(is_beginning(stopping.written)) << blocks;
  }
}

TEST_F(StreamMemory, StreamsThatShareABudgetAllComeThrough) {
  // The budget holds five batches of one block; four streams want three each.
  Ledger memory("memory", 5 * (3 * 65536 + 65536 + 200));
  std::vector<std::thread> streams;
  std::atomic<int> complete{0};
  for (int i = 0; i < 4; ++i) {
    streams.emplace_back([&] {
      SlowSink sink;
      sink.delay_microseconds = 20;
      if (compress(20 * kMiB, memory, sink)) ++complete;
    });
  }
  for (auto& stream : streams) stream.join();
  EXPECT_EQ(complete, 4);
  EXPECT_EQ(memory.reserved_bytes(), 0u);
  EXPECT_LE(memory.peak_bytes(), memory.budget_bytes());
}

}  // namespace
}  // namespace ptxkit::codec
