// What is behind the contexts of the C ABI, on the fake driver: settings have their effect, errors say what to do,
// several objects coexist.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "fkr_tests/cases/no_threads.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/library/lz4.hpp"
#include "runtime/library/stored_item.hpp"
#include "support/result.hpp"

namespace ptxkit::library {
namespace {

using codec::CompressItem;
using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

class Library : public testing::FakeGpu {
 protected:
  Lz4Settings settings(Where where) {
    return {.where = where,
            .cpu_threads = 2,
            .log = [this](LogLevel level, std::string_view message) { log_.emplace_back(level, message); },
            .cuda_library = FAKE_CUDA};
  }
  // The frame of `raw`; checks that it decompresses to `raw`.
  static ByteVector frame_of(Lz4& lz4, const ByteVector& raw) {
    format::MemorySource source(raw, "raw");
    format::MemorySink sink;
    const auto packed = lz4.compress(source, sink);
    EXPECT_TRUE(packed) << packed.error().message();
    format::MemorySource back(sink.bytes(), "frame");
    format::MemorySink unpacked;
    EXPECT_TRUE(lz4.decompress(back, unpacked));
    EXPECT_TRUE(unpacked.bytes() == raw);
    return sink.take();
  }

  std::vector<std::pair<LogLevel, std::string>> log_;
};

TEST_F(Library, ObjectsWithOtherSettingsLiveSideBySide) {
  auto cpu = Lz4::open(settings(Where::cpu)), gpu = Lz4::open(settings(Where::gpu)),
       both = Lz4::open(settings(Where::both));
  ASSERT_TRUE(cpu && gpu && both);
  EXPECT_THAT(cpu->description(), HasSubstr("cpu, 2 threads"));
  EXPECT_THAT(gpu->description(), HasSubstr("Fake GPU"));
  const ByteVector raw = testing::mixed_content(700'000);
  std::vector<std::thread> jobs;
  for (Lz4* lz4 : {&*cpu, &*gpu, &*both, &*gpu}) jobs.emplace_back([lz4, &raw] { frame_of(*lz4, raw); });
  for (std::thread& job : jobs) job.join();
  EXPECT_TRUE(frame_of(*gpu, raw) == frame_of(*both, raw));
  EXPECT_TRUE(log_.empty());
}

TEST_F(Library, ABatchHasAStatusForEachItem) {
  auto lz4 = Lz4::open(settings(Where::gpu)).value();
  const ByteVector pages[] = {ByteVector(4096), testing::random_bytes(4096, 1), testing::matchable_bytes(4096, 1)};
  ByteVector rooms[3];
  std::vector<CompressItem> items(3);
  for (size_t i = 0; i < 3; ++i) {
    rooms[i].resize(4096);
    items[i].raw = pages[i];
    items[i].output = rooms[i];
  }
  ASSERT_TRUE(lz4.compress(items, codec::Encoder::reproducible));
  EXPECT_EQ(items[0].flag, codec::ChunkFlag::zero);
  EXPECT_EQ(items[1].flag, codec::ChunkFlag::incompressible);
  EXPECT_EQ(items[2].flag, codec::ChunkFlag::compressed);
  const ByteVector bad = {0x10, 'x', 0, 0, 0x50, 1, 2, 3, 4, 5};
  codec::DecompressItem back[2];
  ByteVector out[2] = {ByteVector(4096), ByteVector(99)};
  back[0].block = codec::Bytes(rooms[2]).first(items[2].compressed_bytes);
  back[1].block = bad;
  for (size_t i = 0; i < 2; ++i) back[i].output = out[i];
  ASSERT_TRUE(lz4.decompress(back));
  EXPECT_TRUE(out[0] == pages[2]);
  EXPECT_EQ(back[1].status, codec::ItemStatus::offset_zero);
  const ByteVector many_as(4096, 'A');
  items[0].raw = many_as;
  ASSERT_TRUE(lz4.compress(items));
  EXPECT_EQ(items[0].flag, codec::ChunkFlag::filled);
  StoredItem kept[3];
  ByteVector restored[3];
  for (size_t i = 0; i < 3; ++i) {
    restored[i].resize(4096);
    kept[i].flag = items[i].flag;
    kept[i].stored = i == 1 ? items[i].raw : codec::Bytes(rooms[i]).first(items[i].compressed_bytes);
    kept[i].output = restored[i];
  }
  EXPECT_EQ(kept[0].stored.size(), 1u);
  ASSERT_TRUE(restore(kept, [&](std::span<codec::DecompressItem> blocks) { return lz4.decompress(blocks); }));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::ranges::equal(restored[i], items[i].raw)) << i;
  items[1].output = codec::MutableBytes(rooms[1]).first(4095);
  EXPECT_THAT(lz4.compress(items).error().message(),
              HasSubstr("item 1: expected at most 4194304 bytes and an output as "
                        "large, found 4096 and 4095"));
}

// The default encoder of a GPU has no linked blocks. A caller that asks for them need not know where they are made.
TEST_F(Library, LinkedBlocksAndReproducibleStreamsAreHadAnywhere) {
  const ByteVector raw = testing::matchable_bytes(400'000, 7);
  std::vector<ByteVector> frames;
  for (const Where where : {Where::cpu, Where::gpu, Where::both}) {
    auto lz4 = Lz4::open(settings(where)).value();
    for (const bool is_linked : {true, false}) {
      format::FrameHeader header;
      header.block_size_id = 4;
      header.independent_blocks = !is_linked;
      format::MemorySource source(raw, "raw");
      format::MemorySink sink, back;
      const auto done = lz4.compress(source, sink, header, {.is_reproducible = !is_linked});
      ASSERT_TRUE(done) << done.error().message();
      frames.push_back(sink.bytes());
      format::MemorySource frame(sink.bytes(), "frame");
      ASSERT_TRUE(lz4.decompress(frame, back));
      EXPECT_TRUE(back.bytes() == raw);
    }
    ByteVector room(raw.size());
    codec::CompressItem item;
    item.history = codec::Bytes(raw).first(60'000);
    item.raw = codec::Bytes(raw).subspan(60'000, 60'000);
    item.output = room;
    const auto done = lz4.compress({&item, 1});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(item.flag, codec::ChunkFlag::compressed);
  }
  for (size_t i = 2; i < frames.size(); ++i) EXPECT_TRUE(frames[i] == frames[i - 2]);
}

// In both directions and on every backend, the reported bytes only grow, up to the total.
TEST_F(Library, AStreamTellsHowFarItIs) {
  const ByteVector raw = testing::mixed_content(3'000'000);
  for (const Where where : {Where::cpu, Where::gpu}) {
    auto lz4 = Lz4::open(settings(where)).value();
    scheduler::Ledger memory("memory", 4u << 20);
    std::vector<std::pair<uint64_t, uint64_t>> seen;
    const std::thread::id here = std::this_thread::get_id();
    const StreamOptions options{.limits = {.memory = &memory},
                                .progress = [&](uint64_t raw_bytes, uint64_t stored_bytes) {
                                  EXPECT_EQ(std::this_thread::get_id(), here);
                                  seen.emplace_back(raw_bytes, stored_bytes);
                                }};
    const auto check = [&](const codec::StreamTotals& totals) {
      EXPECT_GE(seen.size(), 3u);
      for (size_t i = 1; i < seen.size(); ++i) {
        EXPECT_GE(seen[i].first, seen[i - 1].first);
        EXPECT_GE(seen[i].second, seen[i - 1].second);
      }
      ASSERT_FALSE(seen.empty());
      EXPECT_EQ(seen.back(), std::pair(totals.raw_bytes, totals.stored_bytes));
      seen.clear();
    };
    format::MemorySource source(raw, "raw");
    format::MemorySink frame;
    const auto packed = lz4.compress(source, frame, {.block_size_id = 4}, options);
    ASSERT_TRUE(packed) << packed.error().message();
    check(*packed);
    format::MemorySource back(frame.bytes(), "frame");
    format::NullSink sink;
    const auto unpacked = lz4.decompress(back, sink, options);
    ASSERT_TRUE(unpacked) << unpacked.error().message();
    check(*unpacked);
  }
}

TEST_F(Library, WhoIsToldHowFarAStreamIsCanEndIt) {
  auto lz4 = Lz4::open(settings(Where::cpu)).value();
  scheduler::Ledger memory("memory", 1u << 20);
  std::stop_source stop;
  const ByteVector raw = testing::mixed_content(8'000'000);
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  const auto done = lz4.compress(
      source, sink, {.block_size_id = 4},
      {.limits = {.memory = &memory, .stop = stop.get_token()}, .progress = [&](uint64_t raw_bytes, uint64_t) {
         if (raw_bytes != 0) stop.request_stop();
       }});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "cancelled");
  EXPECT_EQ(memory.reserved_bytes(), 0u);
}

TEST_F(Library, SeveralDevicesWorkTogether) {
  state_.device_count = 2;
  auto both = settings(Where::gpu);
  both.devices = {};
  const auto lz4 = Lz4::open(std::move(both)).value();
  EXPECT_THAT(lz4.description(), HasSubstr("2 GPUs; cuda, device 0"));
}

TEST_F(Library, TheCallersLoggerHearsWhatHappens) {
  inject("cuLaunchKernel", 1, 719);
  auto lz4 = Lz4::open(settings(Where::gpu)).value();
  frame_of(lz4, testing::mixed_content(300'000));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].first, LogLevel::warning);
  EXPECT_THAT(log_[0].second, HasSubstr("continuing on the CPU: "));
  log_.clear();
  auto absent = settings(Where::gpu);
  absent.cuda_library = "/nowhere/libcuda.so.1";
  ASSERT_TRUE(Lz4::open(std::move(absent)));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].first, LogLevel::detail);
}

TEST_F(Library, TheCallersAllocatorIsAsked) {
  std::atomic<size_t> asked{0};
  auto with = settings(Where::gpu);
  with.allocate = [&](size_t size_bytes) {
    asked += size_bytes;
    return std::shared_ptr<uint8_t>(static_cast<uint8_t*>(std::malloc(size_bytes)), std::free);
  };
  auto lz4 = Lz4::open(with).value();
  frame_of(lz4, testing::mixed_content(300'000));
  EXPECT_GT(asked, 600'000u);
  with.allocate = [](size_t) { return nullptr; };
  auto without = Lz4::open(with).value();
  const ByteVector raw(10);
  format::MemorySource source(raw, "raw");
  format::NullSink sink;
  EXPECT_THAT(without.compress(source, sink).error().message(), HasSubstr("the caller's allocator gave no memory"));
}

// No argument or behaviour of a caller ends the process.
TEST_F(Library, AHeaderThatCannotBeWrittenIsAnError) {
  auto lz4 = Lz4::open(settings(Where::cpu)).value();
  const ByteVector raw = testing::mixed_content(100'000);
  const auto error_of = [&](const format::FrameHeader& header) {
    format::MemorySource source(raw, "raw");
    format::MemorySink sink;
    const auto done = lz4.compress(source, sink, header);
    EXPECT_FALSE(done);
    EXPECT_TRUE(sink.bytes().empty());
    return done ? std::string() : done.error().what;
  };
  for (const int id : {-1, 0, 3, 8, 12, 1000, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    format::FrameHeader header;
    header.block_size_id = id;
    EXPECT_EQ(error_of(header), "expected a block size id of 4 to 7, found " + std::to_string(id));
  }
  format::FrameHeader legacy;
  legacy.legacy = true;
  EXPECT_EQ(error_of(legacy), "legacy frames are read, never written");
  format::FrameHeader with_dictionary;
  with_dictionary.dictionary_id = 1;
  EXPECT_EQ(error_of(with_dictionary), "frames with a dictionary are not written");
}

TEST_F(Library, WhatTheCallersFunctionsThrowIsAnError) {
  const ByteVector raw = testing::mixed_content(3'000'000);
  struct ThrowingSource final : format::ByteSource {
    Result<size_t> read(format::MutableBytes) override { throw std::runtime_error("read"); }
    const std::string& name() const override { return name_; }
    std::string name_ = "source";
  } source;
  struct ThrowingSink final : format::ByteSink {
    Result<void> write(format::Bytes) override { throw std::runtime_error("write"); }
  } bad_sink;
  auto plain = Lz4::open(settings(Where::cpu)).value();
  const ByteVector frame = frame_of(plain, raw);
  for (const Where where : {Where::cpu, Where::gpu, Where::both}) {
    auto with_allocator = settings(where);
    with_allocator.allocate = [](size_t) -> std::shared_ptr<uint8_t> { throw std::bad_alloc(); };
    auto lz4 = Lz4::open(std::move(with_allocator)).value();
    format::MemorySource raw_source(raw, "raw"), frame_source(frame, "frame");
    format::MemorySink sink;
    for (const auto& done : {lz4.compress(raw_source, sink), lz4.decompress(frame_source, sink)}) {
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().what, HasSubstr("the caller's allocator gave no memory"));
      EXPECT_THAT(done.error().what, HasSubstr("no memory left"));
    }
    EXPECT_FALSE(lz4.host_memory(100));

    auto with_log = settings(where);
    with_log.log = [](LogLevel, std::string_view) { throw std::runtime_error("log"); };
    with_log.cuda_library = "/nowhere";
    auto told = Lz4::open(std::move(with_log));
    ASSERT_TRUE(told) << told.error().message();
    EXPECT_TRUE(frame_of(*told, raw).size() < raw.size());
    format::MemorySink kept;
    EXPECT_THAT(told->compress(source, kept).error().what, HasSubstr("stopped by an exception: read"));
    EXPECT_THAT(told->decompress(source, kept).error().what, HasSubstr("stopped by an exception: read"));
    format::MemorySource again(raw, "raw"), frame_again(frame, "frame"), once_more(raw, "raw");
    EXPECT_THAT(told->compress(again, bad_sink).error().what, HasSubstr("stopped by an exception: write"));
    EXPECT_THAT(told->decompress(frame_again, bad_sink).error().what, HasSubstr("stopped by an exception: write"));
    StreamOptions with_progress;
    with_progress.progress = [](uint64_t, uint64_t) { throw std::runtime_error("progress"); };
    EXPECT_THAT(told->compress(once_more, kept, {}, with_progress).error().what,
                HasSubstr("stopped by an exception: progress"));
  }
}

TEST_F(Library, NumbersWithoutASenseAreNoDivisionByZero) {
  const testing::NoThreads none;
  auto asked = settings(Where::cpu);
  asked.cpu_threads = std::numeric_limits<unsigned>::max();
  auto lz4 = Lz4::open(std::move(asked));
  ASSERT_TRUE(lz4);
  EXPECT_THAT(lz4->description(), HasSubstr("cpu, 1 thread"));
  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_.front().second, HasSubstr("threads are fewer than asked for: 1 of "));
  const ByteVector raw = testing::mixed_content(700'000);
  scheduler::Ledger memory("memory", 8u << 20);
  StreamOptions options;
  options.limits.memory = &memory;
  options.limits.prefetch = std::numeric_limits<unsigned>::max();
  format::MemorySource source(raw, "raw");
  format::MemorySink sink, back;
  const format::FrameHeader header{.block_size_id = 4};
  ASSERT_TRUE(lz4->compress(source, sink, header, options));
  format::MemorySource frame(sink.bytes(), "frame");
  ASSERT_TRUE(lz4->decompress(frame, back, options));
  EXPECT_TRUE(back.bytes() == raw);
}

// A size beyond what liblz4 can count; the bytes are not accessed.
TEST_F(Library, AnItemThatIsTooLargeSaysSo) {
  auto lz4 = Lz4::open(settings(Where::cpu)).value();
  uint8_t byte = 0;
  codec::DecompressItem item;
  item.block = codec::Bytes(&byte, size_t{3} << 30);
  item.output = codec::MutableBytes(&byte, 1);
  ASSERT_TRUE(lz4.decompress({&item, 1}));
  EXPECT_EQ(item.status, codec::ItemStatus::item_too_large);
  EXPECT_EQ(item.raw_bytes, 0u);
}

}  // namespace
}  // namespace ptxkit::library
