// Tests the batch API on the cpu backend, streams, the thread pool, the order of errors in the pipeline, and the
// fallback.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"
#include "runtime/codec/policy/shared_work.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

TEST(Executor, RunsEveryIndexOnceOnEveryPoolSize) {
  for (unsigned threads : {1u, 2u, 5u}) {
    Executor executor(threads);
    EXPECT_EQ(executor.thread_count(), threads);
    for (size_t count : {0u, 1u, 7u, 1000u}) {
      std::vector<std::atomic<int>> runs(count);
      executor.for_each(count, [&](size_t index, unsigned worker) {
        EXPECT_LT(worker, threads);
        ++runs[index];
      });
      for (const auto& run : runs) EXPECT_EQ(run, 1);
    }
  }
}

TEST(Pipeline, KeepsOrderAndReportsTheFirstErrorOfTheData) {
  struct Batch {
    int number = 0;
  };
  for (const auto& [read_fails, work_fails, write_fails, expected] :
       {std::tuple(9, 7, 99, "work 7"), std::tuple(7, 9, 99, "read 7"), std::tuple(9, 7, 5, "write 5"),
        std::tuple(99, 99, 99, "")}) {
    int next = 0, written = 0;
    scheduler::Ledger memory("memory");
    const auto done = run_pipeline<Batch>(
        PipelineLimits{memory, 10, 3, {}},
        [&, fails = read_fails](Batch& batch) -> Result<bool> {
          batch.number = next++;
          if (batch.number == fails) return fail("read " + std::to_string(fails));
          return batch.number < 20;
        },
        [fails = work_fails](Batch& batch) {
          return finished_batch(batch.number == fails ? Result<void>(fail("work " + std::to_string(fails)))
                                                      : Result<void>());
        },
        [&, fails = write_fails](Batch& batch) -> Result<void> {
          if (batch.number == fails) return fail("write " + std::to_string(fails));
          EXPECT_EQ(batch.number, written++);
          return {};
        });
    EXPECT_EQ(done ? "" : done.error().what, expected);
    EXPECT_EQ(memory.reserved_bytes(), 0u);
    EXPECT_LE(memory.peak_bytes(), 30u);
  }
}

format::FrameHeader small_blocks(bool independent = true) {
  format::FrameHeader header;
  header.block_size_id = 4;
  header.independent_blocks = independent;
  return header;
}

class CpuBackend : public ::testing::Test {
 protected:
  Executor executor_{3};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(executor_);

  ByteVector frame_of(const ByteVector& raw, format::FrameHeader header, Encoder encoder) {
    format::MemorySource source(raw, "raw");
    format::MemorySink sink;
    const auto totals =
        compress_stream(source, sink, *backend_, {.header = header, .encoder = encoder, .progress = {}});
    EXPECT_TRUE(totals.has_value());
    EXPECT_EQ(totals->raw_bytes, raw.size());
    EXPECT_EQ(totals->stored_bytes, sink.bytes().size());
    return sink.take();
  }
  ByteVector raw_of(const ByteVector& frame) {
    format::MemorySource source(frame, "frame");
    format::MemorySink sink;
    const auto totals = decompress_stream(source, sink, *backend_);
    EXPECT_TRUE(totals.has_value()) << totals.error().message();
    return sink.take();
  }
};

TEST_F(CpuBackend, FlagsFollowTheDataForBothEncoders) {
  for (const Encoder encoder : {Encoder::fast, Encoder::reproducible, Encoder::high}) {
    const ByteVector zeros(4096), noise = testing::random_bytes(4096, 1), many_as(40, 'A');
    ByteVector room[4];
    std::vector<CompressItem> items(4);
    const ByteVector nothing;
    int i = 0;
    for (const ByteVector* raw : {&zeros, &noise, &many_as, &nothing}) {
      room[i].resize(raw->size());
      items[i].raw = *raw;
      items[i].output = room[i];
      ++i;
    }
    ASSERT_TRUE(backend_->compress(items, encoder));
    EXPECT_EQ(items[0].flag, ChunkFlag::zero);
    EXPECT_EQ(items[0].compressed_bytes, 0u);
    EXPECT_EQ(items[1].flag, ChunkFlag::incompressible);
    EXPECT_EQ(items[1].compressed_bytes, 4096u);
    EXPECT_EQ(items[2].flag, ChunkFlag::compressed);
    EXPECT_LT(items[2].compressed_bytes, 40u);
    EXPECT_EQ(items[3].flag, ChunkFlag::zero);
    ByteVector decoded(40);
    DecompressItem back;
    back.block = Bytes(room[2]).first(items[2].compressed_bytes);
    back.output = decoded;
    ASSERT_TRUE(backend_->decompress({&back, 1}));
    EXPECT_EQ(back.status, ItemStatus::ok);
    EXPECT_EQ(decoded, many_as);
  }
}

TEST_F(CpuBackend, BadItemsHaveAStatusAndSpareTheOthers) {
  const ByteVector good = {0x10, 'x'}, offset_zero = {0x10, 'x', 0, 0, 0x50, 1, 2, 3, 4, 5},
                   far = {0x10, 'x', 9, 0, 0x50, 1, 2, 3, 4, 5}, cut = {0xf0}, nothing;
  ByteVector rooms[6] = {ByteVector(9), ByteVector(99), ByteVector(99), ByteVector(99), ByteVector(99), ByteVector(0)};
  std::vector<DecompressItem> items(6);
  const ByteVector* blocks[6] = {&good, &offset_zero, &far, &cut, &nothing, &good};
  for (int i = 0; i < 6; ++i) {
    items[i].block = *blocks[i];
    items[i].output = rooms[i];
  }
  ASSERT_TRUE(backend_->decompress(items));
  EXPECT_EQ(items[0].status, ItemStatus::ok);
  EXPECT_EQ(items[0].raw_bytes, 1u);
  EXPECT_EQ(items[1].status, ItemStatus::offset_zero);
  EXPECT_EQ(items[2].status, ItemStatus::offset_out_of_range);
  EXPECT_EQ(items[3].status, ItemStatus::input_overrun);
  EXPECT_EQ(items[4].status, ItemStatus::input_overrun);
  EXPECT_EQ(items[5].status, ItemStatus::output_overrun);
  for (const ItemStatus status : {ItemStatus::offset_zero, ItemStatus::malformed, ItemStatus::unsupported})
    EXPECT_FALSE(text(status).empty());
}

TEST_F(CpuBackend, StreamsRoundTripInEveryShape) {
  const ByteVector text = testing::matchable_bytes(3'000'000, 7);
  ByteVector mixed = text;
  const ByteVector noise = testing::random_bytes(700'000, 3);
  mixed.insert(mixed.end(), noise.begin(), noise.end());
  mixed.resize(mixed.size() + 600'000);
  for (const Encoder encoder : {Encoder::fast, Encoder::reproducible, Encoder::high}) {
    for (int size_id = 4; size_id <= 7; ++size_id) {
      for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, mixed.size()}) {
        format::FrameHeader header;
        header.block_size_id = size_id;
        header.block_checksum = size_id % 2;
        header.content_bytes = size;
        const ByteVector raw(mixed.begin(), mixed.begin() + static_cast<ptrdiff_t>(size));
        EXPECT_EQ(raw_of(frame_of(raw, header, encoder)), raw) << size_id << " " << size;
      }
    }
  }
}

TEST_F(CpuBackend, LinkedBlocksReachBackAcrossBatches) {
  // Period 50,000: with blocks of 64 KiB only a linked block reaches the previous period.
  ByteVector raw = testing::random_bytes(50'000, 1);
  while (raw.size() < 9'000'000) raw.insert(raw.end(), raw.begin(), raw.begin() + 50'000);
  format::FrameHeader header;
  header.block_size_id = 4;
  const size_t independent_bytes = frame_of(raw, header, Encoder::fast).size();
  header.independent_blocks = false;
  const ByteVector linked = frame_of(raw, header, Encoder::fast);
  EXPECT_LT(linked.size() * 10, independent_bytes);
  EXPECT_EQ(raw_of(linked), raw);
  // Independent frames before and after it do not affect the history.
  header.independent_blocks = true;
  const ByteVector plain = frame_of(raw, header, Encoder::fast);
  ByteVector all = plain;
  all.insert(all.end(), linked.begin(), linked.end());
  all.insert(all.end(), plain.begin(), plain.end());
  all.insert(all.end(), linked.begin(), linked.end());
  ByteVector expected;
  for (int i = 0; i < 4; ++i) expected.insert(expected.end(), raw.begin(), raw.end());
  EXPECT_EQ(raw_of(all), expected);
}

TEST_F(CpuBackend, LinkedFramesEndAnywhereInABatch) {
  // A batch of this backend holds 48 blocks of 64 KiB: frames of 46 to 50 blocks put the end mark before, at and after
  // the end of a batch.
  for (size_t blocks = 46; blocks <= 50; ++blocks) {
    const ByteVector raw = testing::matchable_bytes(blocks * 65536, static_cast<uint32_t>(blocks));
    EXPECT_TRUE(raw_of(frame_of(raw, small_blocks(false), Encoder::fast)) == raw) << blocks;
  }
}

TEST_F(CpuBackend, ManySmallFramesRoundTrip) {
  ByteVector frames, expected;
  for (unsigned i = 0; i < 400; ++i) {
    format::FrameHeader header;
    header.block_size_id = static_cast<int>(4 + i % 4);
    header.independent_blocks = i % 3 != 0;
    const ByteVector raw = testing::matchable_bytes(i * 37, i);
    const ByteVector frame = frame_of(raw, header, Encoder::fast);
    frames.insert(frames.end(), frame.begin(), frame.end());
    expected.insert(expected.end(), raw.begin(), raw.end());
  }
  EXPECT_EQ(raw_of(frames), expected);
}

TEST_F(CpuBackend, AnInputThatIsNotAsLongAsAnnouncedIsRefused) {
  for (const uint64_t announced : {99u, 101u}) {
    const ByteVector raw(100, 'x');
    format::MemorySource source(raw, "growing.log");
    format::MemorySink sink;
    CompressOptions options;
    options.header.content_bytes = announced;
    const auto done = compress_stream(source, sink, *backend_, options);
    ASSERT_FALSE(done.has_value());
    EXPECT_THAT(done.error().message(),
                HasSubstr("growing.log: the input changed while it was read: expected " + std::to_string(announced)));
  }
  // If a batch ends exactly at the announced length, one more byte is requested, without memory for another batch.
  const ByteVector raw = testing::random_bytes(65537, 1);
  CompressOptions options;
  options.header.block_size_id = 4;
  options.header.content_bytes = 65536;
  format::MemorySource longer(raw, "growing.log");
  format::MemorySink sink;
  const auto done = compress_stream(longer, sink, *backend_, options);
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message(), HasSubstr("expected 65536 bytes, found at least 65537"));
  EXPECT_LT(sink.bytes().size(), 70'000u) << "the block was written twice";
}

TEST_F(CpuBackend, BytesDoNotDependOnTheNumberOfThreads) {
  const ByteVector raw = testing::matchable_bytes(5'000'000, 11);
  for (const Encoder encoder : {Encoder::fast, Encoder::reproducible, Encoder::high}) {
    const ByteVector frame = frame_of(raw, {}, encoder);
    Executor one(1);
    const auto alone = make_cpu_backend(one);
    format::MemorySource source(raw, "raw");
    format::MemorySink sink;
    ASSERT_TRUE(compress_stream(source, sink, *alone, {.header = {}, .encoder = encoder, .progress = {}}));
    EXPECT_EQ(sink.bytes(), frame);
  }
}

// Fails every batch from the third on, and lacks some operations from the start.
class FailingBackend final : public Backend {
 public:
  FailingBackend(std::unique_ptr<Backend> inner, int good_batches)
      : inner_(std::move(inner)), good_batches_(good_batches) {}
  std::string_view name() const override { return "failing"; }
  std::string description() const override { return "failing"; }
  bool supports(Operation operation) const override {
    return operation == Operation::compress_reproducible || operation == Operation::decompress;
  }
  Encoder default_encoder() const override { return Encoder::reproducible; }
  size_t preferred_batch_bytes(size_t) const override { return 1 << 17; }
  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    if (good_batches_-- <= 0) {
      // A lost device may have overwritten outputs before it failed.
      for (auto& item : items) std::fill(item.output.begin(), item.output.end(), uint8_t{0xee});
      return fail("the device is lost");
    }
    return inner_->compress(items, encoder);
  }
  Result<void> decompress(std::span<DecompressItem> items) override {
    if (good_batches_-- <= 0) return fail("the device is lost");
    return inner_->decompress(items);
  }

 private:
  std::unique_ptr<Backend> inner_;
  int good_batches_;
};

TEST_F(CpuBackend, AFailingBackendIsReplacedWithOneNoticeAndTheSameBytes) {
  const ByteVector raw = testing::matchable_bytes(1'000'000, 5);
  const ByteVector expected = frame_of(raw, small_blocks(), Encoder::reproducible);
  std::vector<std::string> notices;
  const auto backend =
      schedule(std::make_unique<FailingBackend>(make_cpu_backend(executor_), 2), make_cpu_backend(executor_),
               Sharing::device_only, [&](const std::string& message, bool) { notices.push_back(message); });
  EXPECT_EQ(backend->name(), "failing");
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  ASSERT_TRUE(compress_stream(source, sink, *backend,
                              {.header = small_blocks(), .encoder = Encoder::reproducible, .progress = {}}));
  EXPECT_EQ(sink.bytes(), expected);
  EXPECT_EQ(notices, std::vector<std::string>{"continuing on the CPU: the device is lost"});
  EXPECT_EQ(backend->name(), "cpu");
  format::MemorySource back(expected, "frame");
  format::MemorySink out;
  ASSERT_TRUE(decompress_stream(back, out, *backend));
  EXPECT_EQ(out.bytes(), raw);
  EXPECT_EQ(notices.size(), 1u);
}

TEST_F(CpuBackend, ABackendThatLacksAnOperationSaysSo) {
  FailingBackend backend(make_cpu_backend(executor_), 100);
  format::MemorySink sink;
  const ByteVector raw(100, 'x');
  format::MemorySource source(raw, "raw");
  auto done = compress_stream(source, sink, backend, {.header = {}, .encoder = Encoder::fast, .progress = {}});
  EXPECT_EQ(done.error().message(), "the failing backend lacks the fast encoder; use --backend cpu");
  done = compress_stream(source, sink, backend,
                         {.header = small_blocks(false), .encoder = Encoder::reproducible, .progress = {}});
  EXPECT_EQ(done.error().message(),
            "the reproducible encoder has no linked blocks; use independent blocks or the fast encoder");
  const ByteVector linked = frame_of(ByteVector(300'000, 'x'), small_blocks(false), Encoder::fast);
  format::MemorySource frames(linked, "frame");
  done = decompress_stream(frames, sink, backend);
  EXPECT_EQ(done.error().message(), "the failing backend lacks decompression of linked blocks; use --backend cpu");
  // With a fallback, the CPU silently does what the other backend lacks, because nothing failed.
  const auto both =
      schedule(std::make_unique<FailingBackend>(make_cpu_backend(executor_), 100), make_cpu_backend(executor_),
               Sharing::device_only, [](const std::string& message, bool) { ADD_FAILURE() << message; });
  format::MemorySource again(linked, "frame");
  EXPECT_TRUE(decompress_stream(again, sink, *both));
}

TEST_F(CpuBackend, TheReproducibleEncoderRefusesLinkedBlocks) {
  ByteVector raw(100, 'x'), out(100);
  CompressItem item;
  item.raw = item.history = raw;
  item.output = out;
  EXPECT_EQ(backend_->compress({&item, 1}, Encoder::reproducible).error().what,
            "the reproducible encoder has no linked blocks");
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  const auto done = compress_stream(source, sink, *backend_,
                                    {.header = small_blocks(false), .encoder = Encoder::reproducible, .progress = {}});
  EXPECT_EQ(done.error().what, "the reproducible encoder has no linked blocks");
}

TEST_F(CpuBackend, UnknownNamesAreRefused) {
  BackendRequest request;
  request.name = "tpu";
  const auto backend = select_backend(request, executor_);
  EXPECT_EQ(backend.error().what, "there is no backend named tpu: expected auto, cpu, cuda or emulator");
}

}  // namespace
}  // namespace ptxkit::codec
