// Launches made up: what scalars and buffers are given.
#include "runtime/generated_launch.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "runtime/generated_scalars.hpp"

namespace ptxkit {
namespace {

constexpr unsigned kSearches = 16;  // searching variants of gen-fkr
constexpr unsigned kPlaces = 9;     // scalars of a kernel
constexpr size_t kMostValues = 40;

std::vector<size_t> choices(unsigned place, size_t count) {
  std::vector<size_t> chosen;
  for (unsigned search = 0; search < kSearches; ++search) chosen.push_back(scalar_choice(search, place, count));
  return chosen;
}

TEST(GeneratedScalars, EveryScalarSeesEveryValueThatThereAreLaunchesFor) {
  for (size_t count = 1; count <= kMostValues; ++count)
    for (unsigned place = 0; place < kPlaces; ++place) {
      const auto chosen = choices(place, count);
      const std::set<size_t> different(chosen.begin(), chosen.end());
      EXPECT_LT(*different.rbegin(), count);
      EXPECT_EQ(different.size(), std::min<size_t>(count, kSearches)) << count << " values, place " << place;
    }
}

TEST(GeneratedScalars, TwoScalarsSeeMorePairsOfValuesThanEqualOnes) {
  for (size_t count = 2; count <= kMostValues; ++count)
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

TEST(GeneratedLaunch, EveryScalarSeesEveryChoice) {
  const auto parsed = ptx::parse(R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u32 a, .param .u32 b, .param .u64 .ptr .global .align 16 out, .param .u32 c, .param .u32 d)
{ ret; }
)",
                                 "kernel.ptx");
  ASSERT_TRUE(parsed.diagnostics.empty());
  for (const uint32_t high : {9u, 15u}) {
    flow::LaunchFacts facts;
    for (const char* name : {"a", "b", "c", "d"}) {
      facts.parameters[name].low = 0;
      facts.parameters[name].high = high;
    }
    std::map<std::string, std::set<uint32_t>> seen;
    for (unsigned variant = kSearching; variant < kSearching + kSearches; ++variant) {
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

}  // namespace
}  // namespace ptxkit
