// gzip through the scheduler, on a driver whose GPU is the emulator: files of every policy have the same content,
// members of BGZF are decoded by kernels, what kernels refuse has libdeflate's verdict, failures of the driver.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/codec/device/scheduled_streams.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;

class ScheduledGzip : public ScheduledStreams {
 protected:
  Result<ByteVector> packed(BlockCoder& coder, const GzipCompressOptions& options) {
    format::MemorySource source(raw_, "raw");
    format::MemorySink sink;
    if (auto done = compress_gzip(source, sink, executor_, coder, options); !done) return tl::unexpected(done.error());
    return sink.take();
  }
  Files unpacked(const ByteVector& file, BlockCoder* coder, const StreamLimits& limits = {}) {
    format::MemorySource source(file, "file");
    format::MemorySink sink;
    DeflateCoder libdeflate(executor_);
    const auto done = decompress_gzip(source, sink, executor_, libdeflate, {.member_coder = coder, .limits = limits});
    return {sink.take(), done ? "" : done.error().message()};
  }
  auto unpack() {
    return [this](const ByteVector& file, BlockCoder* coder, const StreamLimits& limits = {}) {
      return unpacked(file, coder, limits);
    };
  }
  ByteVector file_of_the_cpu() {
    CpuBlocks cpu(executor_);
    return packed(cpu, {.level = 9}).value();
  }
};

TEST_F(ScheduledGzip, FilesOfEveryPolicyAreOfTheSameContent) {
  for (const auto& [name, policy, uses_driver] : kWays) {
    for (const int level : {1, 6}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(static_cast<int>(policy)) + " " + std::to_string(level));
      state_ = testing::FakeCuda{};
      const auto file = packed(*coder(name, policy), {.level = level, .content_bytes = raw_.size()});
      ASSERT_TRUE(file) << file.error().message();
      EXPECT_EQ(has_launched(), uses_driver) << "the device took members";
      const auto [content, error] = unpacked(*file, nullptr);
      EXPECT_TRUE(content == raw_) << error;
      EXPECT_LT(file->size(), raw_.size() / 3);
      EXPECT_TRUE(notices_.empty());
    }
  }
}

TEST_F(ScheduledGzip, MembersOfLibdeflateAreDecodedOnEverySide) {
  expect_decoded_on_every_side(file_of_the_cpu(), unpack());
}

TEST_F(ScheduledGzip, WhatKernelsRefuseHasTheVerdictOfLibdeflate) {
  const ByteVector good = file_of_the_cpu();
  constexpr size_t kEmptyMember = 28;
  // A code, a CRC-32, and a size.
  expect_verdicts_of_the_cpu(good, {300, good.size() - kEmptyMember - 8, good.size() - kEmptyMember - 4}, unpack());
}

TEST_F(ScheduledGzip, AFailureOfTheDriverChangesNoContent) {
  expect_content_in_spite_of_failures(
      file_of_the_cpu(), [&](BlockCoder& coder) { return packed(coder, {.level = 1}); }, unpack());
}

TEST_F(ScheduledGzip, OtherLevelsAreForTheCpu) {
  EXPECT_THAT(packed(*coder("cuda", Policy::gpu), {.level = 9}).error().message(),
              HasSubstr("there are no kernels for this level of gzip"));
  EXPECT_TRUE(packed(*coder("auto", Policy::gpu), {.level = 9}).value() == file_of_the_cpu());
  EXPECT_EQ(notices_.size(), 1u);
}

TEST_F(ScheduledGzip, KeepsToItsBudget) {
  const auto pack = [&](BlockCoder& coder, const StreamLimits& limits) {
    return packed(coder, {.level = 1, .limits = limits});
  };
  expect_within(6'000'000, file_of_the_cpu(), pack, unpack());
}

}  // namespace
}  // namespace ptxkit::codec
