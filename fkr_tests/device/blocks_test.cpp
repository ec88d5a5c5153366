// The pipelines lzr, lzf, deflate-like and bbw on a GPU: the bytes and verdicts of the CPU's code, for the corpus and
// for damaged blocks.
#include <filesystem>
#include <set>

#include "fkr_tests/cases/block_cases.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/device/block_kernels.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/select_backend.hpp"

namespace ptxkit::codec {
namespace {

using testing::Bytes;

void open_kernels(Executor& executor, std::unique_ptr<BlockCoder>& kernels) {
  BackendRequest request;
  request.name = "cuda";
  const char* device = std::getenv("PTXKIT_DEVICE");
  request.devices = {device != nullptr ? std::atoi(device) : 0};
  request.find_image = kernels::find_kernel_image;
  auto selected = select_block_coder(request, executor);
  ASSERT_TRUE(selected.has_value()) << selected.error().message();
  kernels = std::move(*selected);
}

// Small enough for an emulated GPU.
TEST(DeviceShortBlocks, GiveTheBytesOfTheCpu) {
  PTXKIT_REQUIRE_DEVICE();
  Executor executor;
  for (const MatchSearch search : {MatchSearch::chains, MatchSearch::tables}) {
    // created anew: a graph of other launches is refused, which memcheck would report
    std::unique_ptr<BlockCoder> kernels;
    open_kernels(executor, kernels);
    ASSERT_TRUE(kernels);
    for (const format::PtzCoding& codec : testing::ptz_codecs()) {
      testing::expect_blocks_as_on_the_cpu(*kernels, codec, {{7}, testing::matchable_bytes(700, 1), Bytes(500, 0)},
                                           search);
    }
  }
}

// Several segments, but small enough for compute-sanitizer's racecheck, which does not end with more.
TEST(DeviceShortBlocks, BwtBlocksOfSegments) {
  PTXKIT_REQUIRE_DEVICE();
  Executor executor;
  std::unique_ptr<BlockCoder> kernels;
  open_kernels(executor, kernels);
  ASSERT_TRUE(kernels);
  std::vector<Bytes> raws;
  for (const size_t size : {1u, 2u, 31u, 33u, 4095u, 4097u, 9001u}) {
    raws.push_back(testing::matchable_bytes(size, 1));
    raws.push_back(testing::random_bytes(size, 2));
    raws.emplace_back(size, 'x');
  }
  testing::expect_blocks_as_on_the_cpu(*kernels, format::PtzCodec::bbw, raws);
}

// From single segments to the largest launch of each pipeline; small enough for compute-sanitizer.
TEST(DeviceShortBlocks, AllocateWhatTheKernelsDeclare) {
  PTXKIT_REQUIRE_DEVICE();
  Executor executor;
  const driver::ContextPointer context = *testing::device();
  auto machine = make_cuda_machine(context, kernels::find_kernel_image);
  ASSERT_TRUE(machine.has_value()) << machine.error().message();
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels(std::make_unique<testing::RecordingMachine>(std::move(*machine), launches), executor);
  const auto& info = context->info();
  std::set<std::string> seen;
  for (const format::PtzCoding& codec : testing::ptz_codecs()) {
    testing::expect_declared_blocks(kernels, codec, launches, static_cast<uint32_t>(info.major),
                                    static_cast<uint32_t>(info.minor), {4096, 4112, 700, 9001});
    for (const auto& launch : launches) seen.insert(launch.kernel);
  }
  EXPECT_EQ(seen.size(), 25u);  // all kernels of the pipelines
}

class DeviceBlocks : public ::testing::TestWithParam<format::PtzCoding> {
 protected:
  void SetUp() override {
    PTXKIT_REQUIRE_DEVICE();
    open_kernels(executor_, kernels_);
    ASSERT_TRUE(kernels_);
  }

  Executor executor_;
  std::unique_ptr<BlockCoder> kernels_;
};

TEST_P(DeviceBlocks, GiveTheBytesOfTheCpu) {
  std::vector<Bytes> raws;
  for (const size_t size : {1u, 2u, 31u, 33u, 4095u, 4097u, 65537u, 1u << 18}) {
    raws.push_back(testing::matchable_bytes(size, 1));
    raws.push_back(testing::random_bytes(size, 2));
    raws.emplace_back(size, 'x');
  }
  for (const MatchSearch search : {MatchSearch::chains, MatchSearch::tables}) {
    testing::expect_blocks_as_on_the_cpu(*kernels_, GetParam(), raws, search);
    if (!format::row_of(GetParam()).has_match_search()) break;
  }
}

// The first block of each file; all of them for bbw, whose blocks are processed concurrently.
TEST_P(DeviceBlocks, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  const size_t block_bytes = size_t{1} << format::row_of(GetParam()).block_bits;
  const bool takes_all = GetParam() == format::PtzCodec::bbw;
  std::vector<Bytes> raws;
  for (const auto& path : testing::corpus_files()) {
    const Bytes file = testing::read_prefix(path, takes_all ? std::filesystem::file_size(path) : block_bytes);
    for (size_t at = 0; at < file.size(); at += block_bytes) {
      const auto begin = file.begin() + static_cast<ptrdiff_t>(at);
      raws.emplace_back(begin, begin + static_cast<ptrdiff_t>(std::min(block_bytes, file.size() - at)));
    }
  }
  for (const MatchSearch search : {MatchSearch::chains, MatchSearch::tables}) {
    testing::expect_blocks_as_on_the_cpu(*kernels_, GetParam(), raws, search);
    if (!format::row_of(GetParam()).has_match_search()) break;
  }
}

TEST_P(DeviceBlocks, JudgeDamageAsTheCpuDoes) {
  testing::expect_damage_as_on_the_cpu(*kernels_, GetParam(), testing::shrinking_bytes(20000, 2), 200);
}

std::string name_of_case(const ::testing::TestParamInfo<format::PtzCoding>& test) {
  std::string name = format::name_of(test.param);
  std::ranges::replace_if(name, [](char c) { return std::string_view("-:=,").find(c) != std::string_view::npos; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, DeviceBlocks, ::testing::ValuesIn(testing::ptz_codecs()), name_of_case);

}  // namespace
}  // namespace ptxkit::codec
