// Zstandard through the scheduler, on a driver whose GPU is the emulator: files of every policy have the same content,
// frames of libzstd are decoded by kernels, what kernels refuse has libzstd's verdict, failures of the driver.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/codec/device/scheduled_streams.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ScheduledZstd : public ScheduledStreams {
 protected:
  Result<ByteVector> packed(BlockCoder& coder, const ZstdCompressOptions& options) {
    format::MemorySource source(raw_, "raw");
    format::MemorySink sink;
    if (auto done = compress_zstd(source, sink, executor_, coder, options); !done) return tl::unexpected(done.error());
    return sink.take();
  }
  Files unpacked(const ByteVector& file, BlockCoder* coder, const StreamLimits& limits = {}) {
    format::MemorySource source(file, "file");
    format::MemorySink sink;
    ZstdCoder libzstd(executor_);
    const auto done = decompress_zstd(source, sink, executor_, libzstd, {.frame_coder = coder, .limits = limits});
    return {sink.take(), done ? "" : done.error().message()};
  }
  auto unpack() {
    return [this](const ByteVector& file, BlockCoder* coder, const StreamLimits& limits = {}) {
      return unpacked(file, coder, limits);
    };
  }
  ByteVector seekable_file() {
    CpuBlocks cpu(executor_);
    return packed(cpu, {.level = 3, .is_seekable = true}).value();
  }
};

TEST_F(ScheduledZstd, FilesOfEveryPolicyAreOfTheSameContent) {
  for (const auto& [name, policy, uses_driver] : kWays) {
    for (const int level : {1, 2}) {
      for (const bool is_seekable : {false, true}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(static_cast<int>(policy)) + " " + std::to_string(level));
        state_ = testing::FakeCuda{};
        const auto file =
            packed(*coder(name, policy), {.level = level, .content_bytes = raw_.size(), .is_seekable = is_seekable});
        EXPECT_EQ(has_launched(), uses_driver) << "the device took ranges";
        const auto [content, error] = unpacked(file.value(), nullptr);
        EXPECT_TRUE(content == raw_) << error;
        EXPECT_LT(file->size(), raw_.size() / 3);
        EXPECT_TRUE(notices_.empty());
      }
    }
  }
}

TEST_F(ScheduledZstd, FramesOfLibzstdAreDecodedOnEverySide) { expect_decoded_on_every_side(seekable_file(), unpack()); }

// A frame of no known size, an empty one, and one that is longer than kernels are given: libzstd decodes them.
TEST_F(ScheduledZstd, OtherFramesAreForTheCpu) {
  CpuBlocks cpu(executor_);
  ByteVector file = packed(cpu, {.level = 1}).value();
  const ByteVector sized = packed(cpu, {.level = 1, .content_bytes = raw_.size()}).value();
  file.insert(file.end(), {0x28, 0xB5, 0x2F, 0xFD, 0x20, 0, 1, 0, 0});
  file.insert(file.end(), sized.begin(), sized.end());
  const auto of = coder("cuda", Policy::gpu);
  const auto [content, error] = unpacked(file, of.get());
  ByteVector twice = raw_;
  twice.insert(twice.end(), raw_.begin(), raw_.end());
  EXPECT_TRUE(content == twice) << error;
}

TEST_F(ScheduledZstd, WhatKernelsRefuseHasTheVerdictOfLibzstd) {
  const ByteVector good = seekable_file();
  const size_t table_bytes = 17 + 2 * format::kZstdSeekEntryBytes;
  expect_verdicts_of_the_cpu(good, {30, good.size() / 2, good.size() - table_bytes - 1}, unpack());
}

TEST_F(ScheduledZstd, AFailureOfTheDriverChangesNoContent) {
  expect_content_in_spite_of_failures(
      seekable_file(), [&](BlockCoder& coder) { return packed(coder, {.level = 1}); }, unpack());
}

TEST_F(ScheduledZstd, OtherLevelsAreForTheCpu) {
  EXPECT_THAT(packed(*coder("cuda", Policy::gpu), {.level = 3}).error().message(),
              HasSubstr("there are no kernels for this level of Zstandard"));
  CpuBlocks cpu(executor_);
  EXPECT_TRUE(packed(*coder("auto", Policy::gpu), {.level = 3}).value() == packed(cpu, {.level = 3}).value());
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0],
              AllOf(HasSubstr("continuing on the CPU: "), HasSubstr("there are no kernels for this level")));
}

TEST_F(ScheduledZstd, KeepsToItsBudget) {
  const auto pack = [&](BlockCoder& coder, const StreamLimits& limits) {
    return packed(coder, {.level = 1, .limits = limits});
  };
  for (const uint64_t budget : {6'000'000, 30'000'000}) expect_within(budget, seekable_file(), pack, unpack());
}

}  // namespace
}  // namespace ptxkit::codec
