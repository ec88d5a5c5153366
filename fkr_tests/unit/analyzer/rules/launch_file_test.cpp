// Errors in a launch file name the field; docs/analyzer.md describes the format.
#include "analyzer/rules/engine/launch_file.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/flow/launch.hpp"

namespace ptxkit::rules {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& json) {
  LaunchSet set;
  const auto read = parse_launch_file(json, "launch.json", set);
  return read ? "" : read.error().message();
}

std::string entry(const std::string& fields) { return R"({"entries": {"k": {)" + fields + "}}}"; }
std::string parameter(const std::string& fields) { return entry(R"("parameters": [{"name": "p", )" + fields + "}]"); }

TEST(LaunchFile, SaysWhatItExpected) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"{", "the text is no JSON"},
      {std::string(2000, '[') + std::string(2000, ']'), "nested in more than"},
      {"[]", "the file: expected an object, found []"},
      {"{}", "'entries': expected an object of entries by name, found nothing"},
      {R"({"entries": 3})", "'entries': expected an object of entries by name, found 3"},
      {R"({"entries": {"k": 3}})", "'k': expected an object, found 3"},
      {entry(R"("block": 3)"), "'block' of 'k': expected one to three numbers, found 3"},
      {entry(R"("block": [])"), "'block' of 'k': expected one to three numbers, found []"},
      {entry(R"("grid": [1, 1, 1, 1])"), "'grid' of 'k': expected one to three numbers"},
      {entry(R"("grid": [0])"), "'grid' of 'k': expected numbers from 1 on, found [0]"},
      {entry(R"("block": [1025])"), "'block' of 'k': expected at most 1024 threads, found 1025"},
      {entry(R"("dynamic_shared_bytes": -1)"), "'dynamic_shared_bytes' of 'k': expected a number of bytes below 2^32"},
      {entry(R"("parameters": {})"), "'parameters' of 'k': expected an array, found {}"},
      {entry(R"("parameters": [3])"), "a parameter of 'k': expected an object with a 'name', found 3"},
      {entry(R"("parameters": [{}])"), "a parameter of 'k': expected an object with a 'name', found {}"},
      {parameter(R"("bytes": "many")"), "'bytes' of parameter 'p': expected a number from 0 on, found \"many\""},
      {parameter(R"("align": 3)"), "'align' of parameter 'p': expected a power of two up to"},
      {parameter(R"("access": "write")"), "'access' of parameter 'p': expected read_only, read or read_write"},
      {parameter(R"("min": 3, "max": 2)"), "'max' of parameter 'p': expected at least 'min', found 2"},
      {parameter(R"("hex": "0")"), "'hex' of parameter 'p': expected pairs of hexadecimal digits, found \"0\""},
      {parameter(R"("hex": "")"), "'hex' of parameter 'p': expected pairs of hexadecimal digits"},
      {parameter(R"("members": {})"), "'members' of parameter 'p': expected an array, found {}"},
      {parameter(R"("members": [{"bytes": 4}])"), "expected objects with numbers 'offset' and 'bytes'"},
      {parameter(R"("members": [{"offset": 4, "bytes": "x"}])"), "expected objects with numbers 'offset' and 'bytes'"},
      {parameter(R"("members": [{"offset": 4, "hex": "zz"}])"), "expected pairs of hexadecimal digits, found \"zz\""},
      {parameter(R"("object": 1)"), "'object' of parameter 'p': expected tex:LIST, surf:LIST, sampler:LIST or tensor:"},
      {parameter(R"("object": "")"), "'object' of parameter 'p': expected tex:LIST"},
      {parameter(R"("members": [{"offset": 4, "object": 1}])"), "'object' of parameter 'p': expected tex:LIST"},
      {entry(R"("block": [1], "grid": [1], "block": [2])"), "'block' in one object: expected once"},
      {entry(R"("parameters": [{"name": "p"}, {"name": "p"}])"), "parameter 'p' of 'k': expected once"},
      {entry(R"("variables": [{"name": "v", "hex": "00"}, {"name": "v", "hex": "00"}])"),
       "variable 'v' of 'k': expected once"},
      {entry(R"("variables": {})"), "'variables' of 'k': expected an array, found {}"},
      {entry(R"("variables": [3])"), "a variable of 'k': expected an object with a 'name', found 3"},
      {entry(R"("variables": [{"name": "v"}])"), "variable 'v': expected 'hex' or 'object', found {\"name\":\"v\"}"},
      {entry(R"("variables": [{"name": "v", "hex": "0"}])"), "'hex' of variable 'v': expected pairs of hexadecimal"},
  };
  for (const auto& [json, message] : mistakes) {
    EXPECT_THAT(error_of(json), HasSubstr("launch.json: launch file: ")) << json.substr(0, 99);
    EXPECT_THAT(error_of(json), HasSubstr(message)) << json.substr(0, 99);
    EXPECT_THAT(error_of(json), HasSubstr("docs/analyzer.md")) << json.substr(0, 99);
  }
}

TEST(LaunchFile, FieldsAreRead) {
  LaunchSet set;
  const std::string json = entry(
      R"("block": [32, 2], "grid": [7], "dynamic_shared_bytes": 64, "other": 1, "parameters": [)"
      R"({"name": "p", "align": 16, "bytes": 99, "access": "read_only", "hex": "0aff", "members": [{"offset": 8, "bytes": 4},)"
      R"( {"offset": 16, "object": "tex:8x8,u8"}]}, {"name": "t", "object": "surf:4x4,f32"},)"
      R"({"name": "n", "value": 5}, {"name": "m", "max": 9}, {"name": "l", "min": 3}],)"
      R"("variables": [{"name": "v", "hex": "01"}, {"name": "w", "object": "sampler:clamp"}])");
  ASSERT_EQ(parse_launch_file(json, "launch.json", set).has_value(), true) << error_of(json);
  const flow::LaunchFacts& facts = set.at("k");
  EXPECT_THAT(facts.block, ::testing::ElementsAre(32u, 2u, 1u));
  EXPECT_THAT(facts.grid, ::testing::ElementsAre(7u, 1u, 1u));
  EXPECT_EQ(facts.dynamic_shared_bytes, 64u);
  const flow::ParameterFacts& p = facts.parameters.at("p");
  EXPECT_EQ(p.align_bytes, 16u);
  EXPECT_EQ(p.size_bytes, 99u);
  EXPECT_TRUE(p.is_read_only);
  EXPECT_EQ(p.content, (std::vector{std::byte{0x0a}, std::byte{0xff}}));
  EXPECT_EQ(p.object, "");
  ASSERT_EQ(p.members.size(), 2u);
  EXPECT_EQ(p.members[0].offset, 8u);
  EXPECT_EQ(p.members[0].object, "");
  EXPECT_EQ(p.members[1].object, "tex:8x8,u8");
  EXPECT_EQ(facts.parameters.at("t").object, "surf:4x4,f32");
  EXPECT_EQ(facts.variables.at("v").content, std::vector{std::byte{1}});
  EXPECT_EQ(facts.variables.at("w").object, "sampler:clamp");
  EXPECT_EQ(facts.parameters.at("n").low, 5u);
  EXPECT_EQ(facts.parameters.at("n").high, 5u);
  EXPECT_EQ(facts.parameters.at("m").low, 0u);
  EXPECT_EQ(facts.parameters.at("m").high, 9u);
  EXPECT_FALSE(facts.parameters.at("l").low.has_value());  // nothing uses a lower bound without an upper bound
}

}  // namespace
}  // namespace ptxkit::rules
