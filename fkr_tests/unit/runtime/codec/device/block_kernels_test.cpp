// Runs the kernels of the block codecs on the emulator.
#include "runtime/codec/device/block_kernels.hpp"

#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>

#include "fkr_tests/cases/block_cases.hpp"
#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "fkr_tests/cases/recording_machine.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/images.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/device/emulator_machine.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {
namespace {

using testing::Bytes;

std::unique_ptr<Machine> emulator() { return make_emulator_machine(kernels::find_kernel_image, 2); }
Executor& executor() {
  static Executor copies(2);
  return copies;
}
BlockKernels kernels_on(std::unique_ptr<Machine> machine) { return BlockKernels(std::move(machine), executor()); }
BlockKernels emulated() { return kernels_on(emulator()); }

// A device with a limit on the memory of a queue and a preferred size of a launch.
class SmallMachine final : public testing::RecordingMachine {
 public:
  SmallMachine(std::vector<testing::RecordedLaunch>& launches, size_t queue_bytes, size_t launch_bytes = 256u << 10)
      : RecordingMachine(emulator(), launches), queue_bytes_(queue_bytes), launch_bytes_(launch_bytes) {}
  size_t queue_memory_bytes() const override { return queue_bytes_; }
  size_t slice_bytes() const override { return launch_bytes_; }

 private:
  size_t queue_bytes_, launch_bytes_;
};

std::vector<uint32_t> grids_of(const std::vector<testing::RecordedLaunch>& launches, std::string_view kernel) {
  std::vector<uint32_t> grids;
  for (const testing::RecordedLaunch& launch : launches) {
    if (launch.kernel == kernel) grids.push_back(launch.grid_blocks);
  }
  return grids;
}

// A machine of two queues, each an emulator. Records its calls with the number of their queue, and fails at a chosen
// call.
class TwoQueues final : public Machine {
 public:
  struct Log {
    std::vector<std::string> calls;
    size_t failing_call = 0;  // counted from 1; 0: none
  };
  static constexpr size_t kLaunchBytes = 1400;

  explicit TwoQueues(Log& log) : log_(log) {}

  std::string_view name() const override { return "two queues"; }
  std::string description() const override { return "two queues"; }
  unsigned queue_count() const override { return 2; }
  size_t slice_bytes() const override { return kLaunchBytes; }
  size_t queue_memory_bytes() const override { return queues_[0]->queue_memory_bytes(); }
  Result<const kernels::KernelImage*> image(std::string_view kernel) const override {
    return queues_[0]->image(kernel);
  }
  Result<void> prepare(std::string_view kernel) override {
    return queues_[0]->prepare(kernel).and_then([&] { return queues_[1]->prepare(kernel); });
  }
  Result<HostMemory> host_memory(size_t size_bytes) override { return queues_[0]->host_memory(size_bytes); }
  bool is_page_locked(codec::Bytes) const override { return false; }
  Result<void> arrange(unsigned queue, std::span<const Region> regions) override {
    return called("arrange", queue).and_then([&] { return queues_[queue]->arrange(0, regions); });
  }
  MutableBytes host(unsigned queue, size_t region) override { return queues_[queue]->host(0, region); }
  uint64_t address(unsigned queue, size_t region) override { return queues_[queue]->address(0, region); }
  Result<void> upload(unsigned queue, size_t region) override {
    return called("up", queue).and_then([&] { return queues_[queue]->upload(0, region); });
  }
  Result<void> download(unsigned queue, size_t region) override {
    return called("down", queue).and_then([&] { return queues_[queue]->download(0, region); });
  }
  Result<void> upload_parts(unsigned queue, std::span<const PartUp> parts) override {
    return called("up", queue).and_then([&] { return queues_[queue]->upload_parts(0, parts); });
  }
  Result<void> clear(unsigned queue, size_t region) override {
    return called("up", queue).and_then([&] { return queues_[queue]->clear(0, region); });
  }
  Result<void> download_parts(unsigned queue, std::span<const PartDown> parts) override {
    return called("down", queue).and_then([&] { return queues_[queue]->download_parts(0, parts); });
  }
  Result<void> upload_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) override {
    return called("up", queue).and_then([&] { return queues_[queue]->upload_rows(0, region, rows); });
  }
  Result<void> download_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) override {
    return called("down", queue).and_then([&] { return queues_[queue]->download_rows(0, region, rows); });
  }
  Result<void> launch(unsigned queue, std::string_view kernel, uint32_t grid_blocks, uint32_t block_threads,
                      std::span<const driver::LaunchArgument> arguments) override {
    return called("launch", queue).and_then([&] {
      return queues_[queue]->launch(0, kernel, grid_blocks, block_threads, arguments);
    });
  }
  Result<void> begin_chain(unsigned queue) override { return called("chain", queue); }
  Result<void> end_chain(unsigned queue) override { return called("end", queue); }
  Result<void> wait(unsigned queue) override { return called("wait", queue); }

 private:
  Result<void> called(const char* what, unsigned queue) {
    log_.calls.push_back(what + std::to_string(queue));
    if (log_.calls.size() != log_.failing_call) return {};
    return fail("failure of " + log_.calls.back());
  }

  Log& log_;
  std::unique_ptr<Machine> queues_[2] = {emulator(), emulator()};
};

std::vector<Bytes> coded_blocks(const format::PtzCoding& codec, size_t count, size_t raw_bytes) {
  std::vector<Bytes> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(encode_block(codec, testing::matchable_bytes(raw_bytes, static_cast<int>(i))));
  }
  return all;
}

TEST(BlockKernels, GiveTheBytesOfTheCpu) {
  BlockKernels kernels = emulated();
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    for (const MatchSearch search : {MatchSearch::chains, MatchSearch::tables}) {
      testing::expect_blocks_as_on_the_cpu(
          kernels, codec,
          {{7}, Bytes(33, 'x'), testing::matchable_bytes(4097, 1), testing::random_bytes(3000, 1), Bytes(9000, 0)},
          search);
    }
  }
}

// Literals of several chunks that shrink, so that lanes and chunk sizes are in the bytes.
TEST(BlockKernels, ChunkedStreamsAreOfTheLanesAndChunksAskedFor) {
  BlockKernels kernels = emulated();
  Bytes raw = testing::random_bytes(40000, 1);
  for (uint8_t& byte : raw) byte = static_cast<uint8_t>((byte & 15) * (byte >> 4));
  std::set<Bytes> seen;
  for (const format::ChunkedRans form :
       {format::ChunkedRans{4, 1024}, {8, 4096}, {32, 8192}, {4, 16384}, {8, 16384}, {32, 16384}}) {
    const format::PtzCoding coding(format::PtzCodec::lzr, form);
    testing::expect_blocks_as_on_the_cpu(kernels, coding, {raw});
    EXPECT_TRUE(seen.insert(encode_block(coding, raw)).second) << format::name_of(coding);
  }
  testing::expect_damage_as_on_the_cpu(kernels, {format::PtzCodec::lzr, format::ChunkedRans{8, 4096}}, raw, 4);
}

// A batch has as many blocks as all machines take together, so every machine has work.
TEST(BlockKernels, OfTwoMachinesGiveTheSameBytes) {
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    std::vector<testing::RecordedLaunch> launches[2];
    std::vector<std::unique_ptr<Machine>> machines;
    for (auto& of_one : launches) machines.push_back(std::make_unique<SmallMachine>(of_one, 1u << 30, 1400));
    BlockKernels kernels(std::move(machines), executor());
    const size_t count = kernels.batch_blocks(codec, 700);
    std::vector<Bytes> blocks;
    for (size_t i = 0; i < 2 * count; ++i) blocks.push_back(testing::matchable_bytes(700 - i % 5, int(i)));
    testing::expect_blocks_as_on_the_cpu(kernels, codec, blocks);
    EXPECT_EQ(count % 2, 0u);
  }
}

TEST(BlockKernels, JudgeDamageAsTheCpuDoes) {
  BlockKernels kernels = emulated();
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    testing::expect_damage_as_on_the_cpu(kernels, codec, testing::shrinking_bytes(3000, 2), 24);
  }
}

// Blocks whose sizes are multiples of strides and segments, and others that are not.
TEST(BlockKernels, AllocateWhatTheKernelsDeclare) {
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels = kernels_on(std::make_unique<SmallMachine>(launches, 1u << 30));
  std::set<std::string> seen;
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    testing::expect_declared_blocks(kernels, codec, launches, 9, 0, {4096, 4112, 700, 9001});
    for (const auto& launch : launches) seen.insert(launch.kernel);
  }
  EXPECT_EQ(seen.size(), 25u);  // the number of kernels in the pipelines of `.ptz`
  CpuBlocks cpu(executor());
  testing::expect_declared_items(kernels, cpu, {ZstdCoding{1}, ZstdCoding{2}}, ZstdCoding(), launches, 9, 0,
                                 {70'000, 4'112});
  for (const auto& launch : launches) seen.insert(launch.kernel);
  EXPECT_EQ(seen.size(), 25u + 13u);  // and of Zstandard
  testing::expect_declared_items(kernels, cpu, {GzipCoding{1}, GzipCoding{6}}, GzipCoding(), launches, 9, 0,
                                 {65'280, 4'112});
  for (const auto& launch : launches) seen.insert(launch.kernel);
  EXPECT_EQ(seen.size(), 25u + 13u + 4u);  // and of gzip
}

// Region indices: stream sizes of the demultiplexer; sizes and statuses of typed rANS, of Zstandard and of gzip;
// statuses of the sort, statuses and sizes of the zero runs.
TEST(BlockKernels, SizesThatCannotBeAreNotBelieved) {
  const auto message_of = [](const BlockCoding& codec, size_t region) {
    BlockKernels kernels = kernels_on(std::make_unique<testing::LyingMachine>(emulator(), region));
    const Bytes raw(1000, 'x');
    BlockToEncode blocks[] = {{raw}};
    const auto done = kernels.encode(codec, blocks);
    return done ? "encoded" : done.error().message();
  };
  for (const size_t region : {5u, 6u}) {
    EXPECT_THAT(message_of(format::PtzCodec::rans, region),
                ::testing::HasSubstr("a kernel refused a block that is within its limits"))
        << region;
  }
  for (const size_t region : {5u, 6u}) {
    for (const BlockCoding& coding : {BlockCoding(ZstdCoding{1}), BlockCoding(GzipCoding{1})}) {
      EXPECT_THAT(message_of(coding, region),
                  ::testing::HasSubstr("a kernel refused a block that is within its limits"))
          << region;
    }
  }
  EXPECT_THAT(message_of(format::PtzCodec::lzr, 8),
              ::testing::HasSubstr("demux reported more bytes than its block can have"));
  for (const size_t region : {4u, 14u, 15u}) {
    EXPECT_THAT(message_of(format::PtzCodec::bbw, region),
                ::testing::HasSubstr("a kernel refused a block that is within its limits"))
        << region;
  }
}

TEST(BlockKernels, NameEveryMachine) {
  EXPECT_EQ(emulated().description(), "PTX emulator, sm_90, every access checked");
  std::vector<std::unique_ptr<Machine>> machines;
  for (int i = 0; i < 2; ++i) machines.push_back(emulator());
  EXPECT_EQ(BlockKernels(std::move(machines), executor()).description(),
            "PTX emulator, sm_90, every access checked; PTX emulator, sm_90, every access checked");
}

// A group of LZ77 blocks is one submission from the match finder to the entropy coder, and needs little more memory
// than the match finder alone.
TEST(BlockKernels, AGroupIsOneSubmissionOfBuffersThatAreUsedAgain) {
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels = kernels_on(std::make_unique<SmallMachine>(launches, 1u << 30, 11000));
  const Bytes raw = testing::matchable_bytes(5000, 1);
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    if (format::row_of(codec).model != format::PtzModel::lz77) continue;
    launches.clear();
    BlockToEncode blocks[] = {{raw}, {raw}, {raw}};
    ASSERT_TRUE(kernels.encode(codec, blocks));
    ASSERT_EQ(launches.size(), 12u);
    for (size_t i = 0; i < launches.size(); ++i) {
      EXPECT_NE(launches[i].chain, 0u);
      EXPECT_EQ(launches[i].chain == launches[0].chain, i < 6);
    }
    EXPECT_EQ(grids_of(launches, kernels::kLz77Link),
              (std::vector<uint32_t>{2 * kernels::kLzLinkBlocks, kernels::kLzLinkBlocks}));
    // The match finder uses raw, matches and resolved matches.
    const auto& bytes = launches[0].region_bytes;
    const auto finder = static_cast<double>(bytes[0] + bytes[1] + bytes[2]);
    EXPECT_LE(static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), size_t{0})), 1.5 * finder);
  }
}

// A bbw block of 2000 bytes takes 60 KB, mostly scratch memory of the sort.
TEST(BlockKernels, GroupsOfBbwAreWhatFitsAQueue) {
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels = kernels_on(std::make_unique<SmallMachine>(launches, 170 << 10));
  testing::expect_blocks_as_on_the_cpu(kernels, format::PtzCodec::bbw,
                                       std::vector<Bytes>(5, testing::matchable_bytes(2000, 1)));
  EXPECT_EQ(grids_of(launches, kernels::kBwtRank), (std::vector<uint32_t>{2, 2, 1}));
}

// lz77_decode uses one warp for each block: a group has as many blocks as a launch should carry, or as a queue can
// hold.
TEST(BlockKernels, BlocksOfLz77AreDecodedInGroups) {
  const std::vector<uint32_t> twos = {2, 2, 1};
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    if (format::row_of(codec).model != format::PtzModel::lz77) continue;
    for (const auto& [queue_bytes, launch_bytes] :
         {std::pair(size_t{1} << 30, size_t{5000}), std::pair(size_t{30000}, size_t{1} << 20)}) {
      std::vector<testing::RecordedLaunch> launches;
      BlockKernels kernels = kernels_on(std::make_unique<SmallMachine>(launches, queue_bytes, launch_bytes));
      const auto coded = coded_blocks(codec, 5, 2000);
      std::vector<Bytes> rooms(5, Bytes(2000));
      std::vector<BlockToDecode> blocks;
      for (size_t i = 0; i < 5; ++i) blocks.push_back({coded[i], rooms[i]});
      ASSERT_TRUE(kernels.decode(codec, blocks));
      EXPECT_EQ(grids_of(launches, kernels::kLz77Decode), twos) << launch_bytes;
      for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(blocks[i].good && decode_block(codec, coded[i], rooms[i])) << i;
    }
  }
}

TEST(BlockKernels, AQueueBeginsItsNextGroupAsSoonAsItsLastIsCollected) {
  const auto order_of = [](size_t count) {
    TwoQueues::Log log;
    BlockKernels kernels = kernels_on(std::make_unique<TwoQueues>(log));
    const auto coded = coded_blocks(format::PtzCodec::lzr, count, TwoQueues::kLaunchBytes / 2);
    std::vector<Bytes> rooms(count, Bytes(TwoQueues::kLaunchBytes / 2));
    std::vector<BlockToDecode> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back({coded[i], rooms[i]});
    EXPECT_TRUE(kernels.decode(format::PtzCodec::lzr, blocks));
    std::string order;
    for (const std::string& call : log.calls) {
      if (call.starts_with("arrange") || call.starts_with("wait")) order += call + " ";
    }
    return order;
  };
  EXPECT_EQ(order_of(9), "arrange0 arrange1 wait0 arrange0 wait1 arrange1 wait0 arrange0 wait1 wait0 ");
  // A group could hold both blocks, but then the other queue would be idle.
  EXPECT_EQ(order_of(2), "arrange0 arrange1 wait0 wait1 ");
  EXPECT_EQ(order_of(0), "");
}

// The copies up of all queues share a stream: one that waits for a kernel would delay the other queues.
TEST(BlockKernels, NoCopyUpWaitsForAKernelOfItsGroup) {
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    TwoQueues::Log log;
    BlockKernels kernels = kernels_on(std::make_unique<TwoQueues>(log));
    testing::expect_blocks_as_on_the_cpu(kernels, codec, std::vector<Bytes>(3, testing::matchable_bytes(600, 1)));
    std::map<char, bool> has_launched;
    for (const std::string& call : log.calls) {
      bool& launched = has_launched[call.back()];
      if (call.starts_with("launch")) launched = true;
      if (call.starts_with("wait")) launched = false;
      EXPECT_FALSE(launched && call.starts_with("up")) << call;
    }
  }
}

TEST(BlockKernels, AFailureOfAnyCallIsTheResultAndLeavesNothingUnderWay) {
  for (const format::PtzCoding codec : {format::PtzCodec::lzr, format::PtzCodec::bbw, format::PtzCodec::rans}) {
    TwoQueues::Log log;
    const std::vector<Bytes> raws(3, testing::shrinking_bytes(2000, 1));
    const Bytes coded = encode_block(codec, raws[0]);
    std::vector<Bytes> rooms(raws.size(), Bytes(2000));
    const auto there = [&](BlockKernels& kernels) {
      std::vector<BlockToEncode> blocks(raws.begin(), raws.end());
      return kernels.encode(codec, blocks);
    };
    const auto back = [&](BlockKernels& kernels) {
      std::vector<BlockToDecode> blocks;
      for (Bytes& room : rooms) blocks.push_back({coded, room});
      return kernels.decode(codec, blocks);
    };
    using Run = std::function<Result<void>(BlockKernels&)>;
    for (const Run& run : {Run(there), Run(back)}) {
      log = {};
      BlockKernels good = kernels_on(std::make_unique<TwoQueues>(log));
      ASSERT_TRUE(run(good));
      const size_t call_count = log.calls.size();
      ASSERT_GE(call_count, 20u);
      for (size_t failing = 1; failing <= call_count; ++failing) {
        log = {{}, failing};
        BlockKernels kernels = kernels_on(std::make_unique<TwoQueues>(log));
        const auto failed = run(kernels);
        ASSERT_FALSE(failed.has_value()) << failing;
        EXPECT_EQ(failed.error().what, "failure of " + log.calls[failing - 1]);
        // After the failure nothing is begun, and both queues are waited for.
        EXPECT_EQ(std::vector<std::string>(log.calls.begin() + static_cast<ptrdiff_t>(failing), log.calls.end()),
                  (std::vector<std::string>{"wait0", "wait1"}));
        // The device may still copy into memory of its queues: no later call uses it.
        log = {};
        EXPECT_EQ(run(kernels).error().what, failed.error().what);
        EXPECT_TRUE(log.calls.empty());
      }
    }
  }
}

TEST(BlockKernels, ABlockThatFitsNoQueueIsAnError) {
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    std::vector<testing::RecordedLaunch> launches;
    BlockKernels kernels = kernels_on(std::make_unique<SmallMachine>(launches, 10000));
    const Bytes raw = testing::matchable_bytes(3000, 1), coded = encode_block(codec, raw);
    Bytes back(raw.size());
    std::vector<BlockToEncode> to_encode = {{raw}};
    const auto encoded = kernels.encode(codec, to_encode);
    ASSERT_FALSE(encoded.has_value());
    EXPECT_THAT(encoded.error().message(), ::testing::HasSubstr("bytes of device memory, a queue may take 10000"));
    EXPECT_THAT(encoded.error().message(), ::testing::HasSubstr("use --backend cpu"));
    if (format::row_of(codec).model != format::PtzModel::bwt) continue;  // the other codecs need less memory to decode
    std::vector<BlockToDecode> to_decode = {{coded, back}};
    const auto decoded = kernels.decode(codec, to_decode);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_THAT(decoded.error().message(), ::testing::HasSubstr("a block needs "));
  }
}

}  // namespace
}  // namespace ptxkit::codec
