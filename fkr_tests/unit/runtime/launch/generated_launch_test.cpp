// Tests of generated launches: the values of scalars and buffers.
#include "runtime/launch/generated_launch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/generated_bytes.hpp"
#include "runtime/launch/generated_scalars.hpp"
#include "runtime/launch/sized_launch.hpp"

namespace ptxkit {
namespace {

using ::testing::HasSubstr;

constexpr unsigned kSearches = 16;  // searching variants of gen-fkr (FKR: falsification kernel regression)
constexpr unsigned kPlaces = 9;     // scalars of a kernel
constexpr size_t kMaxValues = 40;

std::vector<size_t> choices(unsigned place, size_t count) {
  std::vector<size_t> chosen;
  for (unsigned search = 0; search < kSearches; ++search) chosen.push_back(scalar_choice(search, place, count));
  return chosen;
}

TEST(GeneratedScalars, EveryScalarSeesEveryValueThatThereAreLaunchesFor) {
  for (size_t count = 1; count <= kMaxValues; ++count)
    for (unsigned place = 0; place < kPlaces; ++place) {
      const auto chosen = choices(place, count);
      const std::set<size_t> different(chosen.begin(), chosen.end());
      EXPECT_LT(*different.rbegin(), count);
      EXPECT_EQ(different.size(), std::min<size_t>(count, kSearches)) << count << " values, place " << place;
    }
}

TEST(GeneratedScalars, TwoScalarsSeeMorePairsOfValuesThanEqualOnes) {
  for (size_t count = 2; count <= kMaxValues; ++count)
    for (unsigned place = 0; place < kPlaces; ++place)
      for (unsigned other = 0; other < place; ++other) {
        const auto ones = choices(place, count), others = choices(other, count);
        std::set<std::pair<size_t, size_t>> pairs;
        for (unsigned i = 0; i < kSearches; ++i) pairs.insert({ones[i], others[i]});
        const auto at = [&] { return ::testing::Message() << count << " values, places " << other << ", " << place; };
        EXPECT_GE(pairs.size(), std::min<size_t>(2 * count - 1, 15)) << at();
        EXPECT_TRUE(std::ranges::any_of(pairs, [](const auto& pair) { return pair.first < pair.second; })) << at();
        EXPECT_TRUE(std::ranges::any_of(pairs, [](const auto& pair) { return pair.first > pair.second; })) << at();
      }
}

TEST(GeneratedScalars, InEverySecondLaunchAllHaveTheSameChoice) {
  for (unsigned search = 0; search < kSearches; search += 2)
    for (unsigned place = 1; place < kPlaces; ++place)
      EXPECT_EQ(scalar_choice(search, place, 9), scalar_choice(search, 0, 9));
}

ptx::ParseResult kernel_of(std::string_view parameters, std::string_view body) {
  auto parsed = ptx::parse(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry kernel(" +
                               std::string(parameters) + ")\n{\n.reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n" +
                               ".local .align 8 .b8 spilled[8];\n" + std::string(body) + "ret; }\n",
                           "kernel.ptx");
  EXPECT_TRUE(parsed.diagnostics.empty());
  return parsed;
}

// Whether each parameter of a kernel with the 64-bit parameters `p`, a pointer, and `n` has a buffer.
std::vector<bool> has_buffers(std::string_view body, const flow::LaunchFacts* facts = nullptr) {
  const auto parsed = kernel_of(".param .u64 p, .param .u64 n",
                                "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [n];\n" + std::string(body));
  const auto launch = generate_launch(parsed.module, parsed.module.functions.back(), facts, kFirstSearchVariant);
  EXPECT_TRUE(launch);
  std::vector<bool> has;
  for (const GeneratedParameter& parameter : launch->parameters) has.push_back(!parameter.buffers.empty());
  return has;
}

TEST(GeneratedLaunch, AParameterNotUsedAsAnAddressIsAScalar) {
  const std::vector<bool> number = {true, false}, pointer = {true, true};
  const std::string_view counted =
      "cvta.to.global.u64 %rd3, %rd1; setp.lt.u64 %p, %rd2, 9; @%p ld.global.u32 %r1, [%rd3];";
  EXPECT_EQ(has_buffers(counted), number);
  EXPECT_EQ(has_buffers("mad.lo.s64 %rd3, %rd2, 4, %rd1; ld.global.u32 %r1, [%rd3];"), number) << "a product";
  EXPECT_EQ(has_buffers("add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r1, [%rd3];"), pointer)
      << "either may be the pointer";
  EXPECT_EQ(has_buffers("cvta.to.global.u64 %rd4, %rd1; add.s64 %rd3, %rd4, %rd2; ld.global.u32 %r1, [%rd3];"), number);
  EXPECT_EQ(has_buffers("ld.global.u32 %r1, [%rd1]; st.global.u64 [%rd1], %rd2;"), number) << "stored as a result";
  EXPECT_EQ(has_buffers("ld.global.u32 %r1, [%rd1]; st.local.u64 [spilled], %rd2;"), pointer)
      << "what loads it is not known";
  EXPECT_EQ(has_buffers("ld.global.u32 %r1, [%rd1]; add.s64 %rd3, %rd2, 8; st.local.u64 [spilled], %rd3;"), pointer);
  flow::LaunchFacts facts;
  facts.parameters["n"].size_bytes = 64;
  EXPECT_EQ(has_buffers(counted, &facts), pointer) << "the launch file says so";
}

// Reads word 20,000 of a buffer that is generated with 64 KiB.
TEST(SizedLaunch, ABufferGrowsUntilTheKernelStaysInside) {
  const auto parsed = kernel_of(".param .u64 p", "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1+80000];\n");
  const ptx::Function& kernel = parsed.module.functions.back();
  const auto size_up_to = [&](uint64_t most_bytes, const flow::LaunchFacts* facts) {
    const auto launch = generate_sized_launch(parsed.module, kernel, facts, 0, most_bytes);
    EXPECT_TRUE(launch);
    return launch->parameters[0].buffers[0].bytes.size();
  };
  EXPECT_EQ(size_up_to(1 << 20, nullptr), 131072u);
  EXPECT_EQ(size_up_to(80003, nullptr), 65536u) << "more than it may have";
  flow::LaunchFacts facts;
  facts.parameters["p"].size_bytes = 256;
  EXPECT_EQ(size_up_to(1 << 20, &facts), 256u) << "what a launch file promises stays";
}

// What lies behind the first buffer is not the second one.
TEST(SizedLaunch, AnIndexThatLeavesABufferDoesNotGetIntoAnother) {
  const auto parsed = kernel_of(".param .u64 p, .param .u64 q",
                                "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
                                "ld.global.u32 %r1, [%rd1+98304]; st.global.u32 [%rd2], %r1;\n");
  const auto launch = generate_sized_launch(parsed.module, parsed.module.functions.back(), nullptr, 0, 1 << 20);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->parameters[0].buffers[0].bytes.size(), 131072u);
}

TEST(GeneratedLaunch, EveryScalarSeesEveryChoice) {
  const auto parsed = kernel_of(
      ".param .u32 a, .param .u32 b, .param .u64 .ptr .global .align 16 out, .param .u32 c, .param .u32 d", "");
  for (const uint32_t high : {9u, 15u}) {
    flow::LaunchFacts facts;
    for (const char* name : {"a", "b", "c", "d"}) {
      facts.parameters[name].low = 0;
      facts.parameters[name].high = high;
    }
    std::map<std::string, std::set<uint32_t>> seen;
    for (unsigned variant = kFirstSearchVariant; variant < kFirstSearchVariant + kSearches; ++variant) {
      const auto launch = generate_launch(parsed.module, parsed.module.functions.back(), &facts, variant);
      ASSERT_TRUE(launch);
      for (const GeneratedParameter& parameter : launch->parameters) {
        if (!parameter.buffers.empty()) continue;
        uint32_t value = 0;
        std::memcpy(&value, parameter.value.data(), 4);
        seen[parameter.name].insert(value);
      }
    }
    for (const auto& [name, values] : seen) EXPECT_EQ(values.size(), seen["a"].size()) << name << " up to " << high;
  }
}

// Objects and variables of the launch file; the memory of objects is generated like that of buffers.
TEST(GeneratedLaunch, ObjectsAndVariablesOfTheFacts) {
  const auto parsed = ptx::parse(R"(.version 8.0
.target sm_90
.address_size 64
.const .align 4 .b8 table[12];
.global .texref named;
.visible .entry other() { ret; }
.visible .entry kernel(.param .u64 picture, .param .align 64 .b8 both[192])
{ ret; }
)",
                                 "kernel.ptx");
  const ptx::Module& module = parsed.module;
  const ptx::Function& kernel = module.functions.back();
  flow::LaunchFacts facts;
  facts.parameters["picture"].object = "tex:2d,8x4,f32x2";
  facts.parameters["both"].members = {
      {0, 0, {}, "tensor:u8,32x16,box16x4"}, {128, 0, {}, "sampler:clamp"}, {136, 64, {}, {}}};
  facts.variables["table"].content = {std::byte{1}, std::byte{2}};
  facts.variables["named"].object = "tex:1d,4,u8";
  const auto made = [&] { return generate_launch(module, kernel, &facts, 0); };
  const auto launch = made();
  ASSERT_TRUE(launch) << launch.error().message();
  std::vector<size_t> sizes;
  for (const GeneratedBuffer* buffer : all_buffers(*launch)) sizes.push_back(buffer->bytes.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{8 * 4 * 8, 32 * 16, 0, 64, 4})) << "a sampler has no memory";
  ASSERT_EQ(launch->variables.size(), 2u);
  EXPECT_EQ(launch->variables[0].value, repeated_bytes("0102", 12));
  emulator::Device device;
  const auto run = emulate(device, module, kernel, *launch, {});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_TRUE(run->outcome.ok());
  EXPECT_EQ(run->program.entries().size(), 1u) << "of a module of several, the kernel alone is decoded";
  std::vector<std::byte> table(12), named(8);
  ASSERT_TRUE(run->program.read("table", table));
  EXPECT_EQ(table, repeated_bytes("0102", 12));
  ASSERT_TRUE(run->program.read("named", named));
  EXPECT_NE(named, std::vector<std::byte>(8)) << "a handle";

  facts.parameters["picture"].object = "tensor:u8,32x16,box16x4";
  EXPECT_THAT(made().error().message(),
              HasSubstr("'picture' has 8 bytes, too few for an object at offset 0 of 128 bytes"));
  facts.parameters["picture"].object = "tex:2d,8x4,f31";
  EXPECT_THAT(made().error().message(), HasSubstr("'f31' is not a word of a texture"));
  facts.parameters["picture"].object = "tex:2d,65536x65536,f32";
  EXPECT_THAT(made().error().message(), HasSubstr("a buffer of 17179869184 bytes exceeds"));
}

}  // namespace
}  // namespace ptxkit
