// ptxkit.hpp: results, owners, and the same bytes as the functions below it.
#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <ptxkit.hpp>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/unit/runtime/c_api/c_api.hpp"

namespace ptxkit::testing {
namespace {

using ::testing::HasSubstr;

api::Context cpu() {
  auto options = api::context_options();
  options.policy = PTXKIT_POLICY_CPU;
  auto context = api::Context::create(options);
  EXPECT_TRUE(context) << context.error().text;
  return std::move(*context);
}

TEST(Wrapper, ItemsComeBack) {
  api::Context context = cpu();
  EXPECT_THAT(*context.description(), HasSubstr("cpu"));
  const Bytes raw = words(10000);
  for (const auto framing : {PTXKIT_FRAMING_RAW, PTXKIT_FRAMING_FRAME, PTXKIT_FRAMING_HDF5}) {
    const auto options = api::batch_options(PTXKIT_CODEC_LZ4, framing);
    const auto packed = context.compress(raw, options);
    ASSERT_TRUE(packed) << packed.error().text;
    EXPECT_EQ(*api::decompressed_size(*packed, options), raw.size());
    EXPECT_EQ(*context.decompress(*packed, raw.size(), options), raw);
    const auto small = context.decompress(*packed, raw.size() - 1, options);
    ASSERT_FALSE(small);
    EXPECT_EQ(small.error().status, PTXKIT_OUTPUT_TOO_SMALL);
    EXPECT_THAT(small.error().text, HasSubstr("item 0"));
  }
}

TEST(Wrapper, BatchesComeBack) {
  api::Context context = cpu();
  const std::vector<Bytes> items = {words(5000), Bytes(300), random_bytes(100, 1)};
  std::vector<Bytes> rooms(3, Bytes(6000)), backs;
  std::vector<api::Bytes> inputs(items.begin(), items.end()), packed;
  std::vector<api::MutableBytes> outputs(rooms.begin(), rooms.end()), back_rooms;
  std::vector<size_t> sizes(3), back_sizes(3);
  ASSERT_TRUE(context.compress(inputs, outputs, sizes));
  for (size_t i = 0; i < 3; ++i) packed.push_back(api::Bytes(rooms[i]).first(sizes[i]));
  for (const Bytes& item : items) backs.emplace_back(item.size());
  back_rooms.assign(backs.begin(), backs.end());
  std::vector<ptxkit_status> statuses(3, 9);
  ASSERT_TRUE(context.decompress(packed, back_rooms, back_sizes, api::batch_options(), statuses));
  EXPECT_EQ(backs, items);
  EXPECT_EQ(statuses, std::vector<ptxkit_status>(3));
  EXPECT_EQ(context.compress(inputs, outputs, std::span(sizes).first(2)).error().status, PTXKIT_INVALID_VALUE);
}

TEST(Wrapper, MemoryAndTimesOfAContext) {
  api::Context context = cpu();
  auto memory = context.host_memory(5000);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_EQ(memory->bytes().size(), 5000u);
  memory->bytes()[4999] = 1;
  EXPECT_EQ(context.device_times()->kernel, 0);
}

TEST(Wrapper, MemoryThatCannotBeIsRefused) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends a process that asks for too much memory";
#endif
  api::Context context = cpu();
  EXPECT_EQ(context.host_memory(~size_t{0}).error().status, PTXKIT_NO_MEMORY);
}

// The calls themselves are tested through the functions, in device_test.cpp.
TEST(Wrapper, DevicesRefuseAndLaunchNothing) {
  EXPECT_EQ(api::Device::query(65'537, 1)->temp_bytes, 2u * (65'536 + 32));
  EXPECT_EQ(api::Device::query(size_t{1} << 40, 1).error().status, PTXKIT_ITEM_TOO_LARGE);
  EXPECT_EQ(api::Device::create(0, "/nowhere/libcuda.so").error().status, PTXKIT_NO_DEVICE);
  auto device = api::Device::create(0, EMULATED_CUDA);
  ASSERT_TRUE(device) << device.error().text;
  EXPECT_TRUE(device->compress(nullptr, nullptr, 100, 0, nullptr, 0, nullptr, nullptr, nullptr));
  EXPECT_TRUE(device->decompress(nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_TRUE(device->decompressed_sizes(nullptr, nullptr, nullptr, 0, nullptr));
  EXPECT_EQ(device->compress(nullptr, nullptr, 100, 1, nullptr, 0, nullptr, nullptr, nullptr).error().status,
            PTXKIT_INVALID_VALUE);
  EXPECT_EQ(device->decompress(nullptr, nullptr, nullptr, nullptr, 1, nullptr, nullptr).error().status,
            PTXKIT_INVALID_VALUE);
  EXPECT_EQ(device->decompressed_sizes(nullptr, nullptr, nullptr, 1, nullptr).error().status, PTXKIT_INVALID_VALUE);
}

TEST(Wrapper, StreamsComeBack) {
  api::Context context = cpu();
  const Bytes raw = words(300000);
  Bytes packed, back;
  const auto reader = [](const Bytes& from) {
    return [&from, at = size_t{0}](api::MutableBytes into) mutable {
      const size_t count = std::min(into.size(), from.size() - at);
      std::copy_n(from.begin() + static_cast<ptrdiff_t>(at), count, into.begin());
      at += count;
      return count;
    };
  };
  const auto writer = [](Bytes& to) {
    return [&to](api::Bytes bytes) {
      to.insert(to.end(), bytes.begin(), bytes.end());
      return true;
    };
  };
  const auto codec = api::find_codec("lzf");
  ASSERT_TRUE(codec);
  EXPECT_STREQ(api::query(*codec)->extension, ".ptz");
  const auto totals = context.compress_stream(reader(raw), writer(packed), api::stream_options(*codec));
  ASSERT_TRUE(totals) << totals.error().text;
  EXPECT_EQ(totals->stored_bytes, packed.size());
  ASSERT_TRUE(context.decompress_stream(reader(packed), writer(back)));
  EXPECT_EQ(back, raw);
  EXPECT_EQ(context.compress_stream(reader(raw), [](api::Bytes) { return false; }).error().status, PTXKIT_IO);
  EXPECT_EQ(context.compress_file("/nowhere/a", "/nowhere/b").error().status, PTXKIT_IO);
  EXPECT_EQ(api::find_codec("zip").error().status, PTXKIT_INVALID_VALUE);
}

TEST(Wrapper, KernelsRun) {
  constexpr std::string_view kFill = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
    .reg .b32 %v, %i; .reg .b64 %b, %o;
    ld.param.u64 %b, [out];
    cvta.to.global.u64 %b, %b;
    ld.param.u32 %v, [value];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %b, %b, %o;
    st.global.u32 [%b], %v;
    ret;
}
)";
  EXPECT_EQ(api::analyze(kFill, R"({"kernels": ["fill"]})")->exit_code, 0);
  EXPECT_EQ(api::analyze(kFill, "{").error().status, PTXKIT_INVALID_VALUE);
  auto module = api::Module::load(kFill);
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_THAT(*module->description(), HasSubstr("\"fill\""));
  std::vector<uint32_t> out(32);
  ptxkit_launch_shape shape{};
  shape.block[0] = 32;
  const uint32_t seven = 7;
  const ptxkit_argument arguments[] = {api::out(std::span(out)), api::value(seven)};
  const auto report = module->launch("fill", shape, arguments);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_EQ(report->fault_count, 0u);
  EXPECT_EQ(out, std::vector<uint32_t>(32, 7));
  EXPECT_EQ(api::Module::load("x").error().status, PTXKIT_INVALID_VALUE);
}

}  // namespace
}  // namespace ptxkit::testing
