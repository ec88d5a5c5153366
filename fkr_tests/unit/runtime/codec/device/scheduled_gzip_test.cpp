// gzip through the scheduler, on a driver whose GPU is the emulator: files of every policy have the same content,
// members of BGZF are decoded by kernels, what kernels refuse has libdeflate's verdict, failures of the driver.
#include <map>
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
#include "runtime/codec/threads/ledger.hpp"
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
  // What has been written, and the error that ended it.
  std::pair<ByteVector, std::string> unpacked(const ByteVector& file, BlockCoder* coder,
                                              const StreamLimits& limits = {}) {
    format::MemorySource source(file, "file");
    format::MemorySink sink;
    DeflateCoder libdeflate(executor_);
    const auto done = decompress_gzip(source, sink, executor_, libdeflate, {.member_coder = coder, .limits = limits});
    return {sink.take(), done ? "" : done.error().message()};
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
  const ByteVector file = file_of_the_cpu();
  for (const auto& [name, policy, uses_driver] : kWays) {
    state_ = testing::FakeCuda{};
    const auto of = coder(name, policy);
    const auto [content, error] = unpacked(file, of.get());
    EXPECT_TRUE(content == raw_) << name << error;
    EXPECT_EQ(has_launched(), uses_driver) << name;
    EXPECT_TRUE(notices_.empty());
  }
}

TEST_F(ScheduledGzip, WhatKernelsRefuseHasTheVerdictOfLibdeflate) {
  const ByteVector good = file_of_the_cpu();
  constexpr size_t kEmptyMember = 28;
  // A code, a CRC-32, and a size.
  for (const size_t at : {size_t{300}, good.size() - kEmptyMember - 8, good.size() - kEmptyMember - 4}) {
    ByteVector file = good;
    file[at] ^= 0x10;
    const auto [expected, error] = unpacked(file, nullptr);
    EXPECT_NE(error, "");
    for (const char* name : {"cuda", "emulator"}) {
      const auto of = coder(name, Policy::gpu);
      const auto found = unpacked(file, of.get());
      EXPECT_EQ(found.second, error) << at;
      EXPECT_TRUE(found.first == expected) << at;
    }
  }
}

TEST_F(ScheduledGzip, AFailureOfTheDriverChangesNoContent) {
  inject("", 0, 0);
  const ByteVector of_cpu = file_of_the_cpu();
  ASSERT_TRUE(packed(*coder("cuda", Policy::gpu), {.level = 1}));
  for (const auto& [function, count] : std::map(state_.calls)) {
    for (const int code : {2, 719}) {
      SCOPED_TRACE(function);
      for (const Policy policy : {Policy::gpu, Policy::mixed}) {
        inject(function, (count + 1) / 2, code);
        const auto to_encode = coder("auto", policy);
        const auto file = packed(*to_encode, {.level = 1});
        EXPECT_TRUE(unpacked(file.value(), nullptr).first == raw_);
        inject(function, 1, code);
        const auto to_decode = coder("auto", policy);
        EXPECT_TRUE(unpacked(of_cpu, to_decode.get()).first == raw_);
        EXPECT_LE(notices_.size(), 1u);
      }
    }
  }
}

TEST_F(ScheduledGzip, OtherLevelsAreForTheCpu) {
  EXPECT_THAT(packed(*coder("cuda", Policy::gpu), {.level = 9}).error().message(),
              HasSubstr("there are no kernels for this level of gzip"));
  EXPECT_TRUE(packed(*coder("auto", Policy::gpu), {.level = 9}).value() == file_of_the_cpu());
  EXPECT_EQ(notices_.size(), 1u);
}

TEST_F(ScheduledGzip, KeepsToItsBudget) {
  const ByteVector file = file_of_the_cpu();
  for (const Policy policy : {Policy::gpu, Policy::mixed}) {
    scheduler::Ledger memory("memory", 6'000'000);
    const auto of = coder("auto", policy);
    const auto written = packed(*of, {.level = 1, .limits = {.memory = &memory}});
    ASSERT_TRUE(written) << written.error().message();
    EXPECT_TRUE(unpacked(*written, nullptr).first == raw_);
    const auto [content, error] = unpacked(file, of.get(), {.memory = &memory});
    EXPECT_TRUE(content == raw_) << error;
    EXPECT_LE(memory.peak_bytes(), 6'000'000u);
    EXPECT_EQ(memory.reserved_bytes(), 0u);
  }
}

}  // namespace
}  // namespace ptxkit::codec
