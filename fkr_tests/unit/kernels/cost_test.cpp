// The @pz_cost grammar, and the memory that the original formulas give.
#include "kernels/cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ptxkit::kernels {
namespace {

using ::testing::HasSubstr;

uint64_t bytes_of(std::string_view expression, uint64_t input_bytes) {
  const auto parsed = parse_cost_expression(expression);
  if (!parsed) {
    ADD_FAILURE() << parsed.error().message();
    return 0;
  }
  return parsed->evaluate(input_bytes).value();
}

TEST(CostExpression, EveryFormOfTheGrammar) {
  EXPECT_EQ(bytes_of("131072", 9), 131072u);
  EXPECT_EQ(bytes_of("N", 9), 9u);
  EXPECT_EQ(bytes_of("N*12", 9), 108u);
  EXPECT_EQ(bytes_of("N*2+4096", 9), 4114u);
  EXPECT_EQ(bytes_of("N/4", 9), 3u);
  EXPECT_EQ(bytes_of("N/4", 8), 2u);
}

TEST(CostExpression, AnythingElseIsAnError) {
  for (const char* text :
       {"",    "M",     "n",   "N+",  "N*",  "N*x", "N*2+", "N*2+x", "N/0",     "N/",
        "N/x", "N*2*3", "N-1", "2*N", "N N", "-1",  "1.5",  "0x10",  "N*2 + 1", "18446744073709551616",
        "N+1"}) {
    const auto parsed = parse_cost_expression(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("is not one of: integer, N, N*integer"));
  }
}

TEST(CostExpression, OverflowIsAnError) {
  EXPECT_FALSE(parse_cost_expression("N*4")->evaluate(uint64_t{1} << 63));
  EXPECT_FALSE(parse_cost_expression("N*1+1")->evaluate(~uint64_t{0}));
}

std::string block(std::string_view buffers, std::string_view threads = "1") {
  return "// @pz_cost {\n//   threads_per_element: " + std::string(threads) +
         ",\n//   passes: 2,\n//   buffers: " + std::string(buffers) +
         ",\n//   local_mem: 16,\n//   note: \"a, b\"\n// }\n.version 8.0\n";
}

TEST(KernelCost, FieldsOfABlock) {
  const auto cost = parse_kernel_cost(block("input=N, table=N*2+4096", "0.03125"));
  ASSERT_TRUE(cost) << cost.error().message();
  EXPECT_EQ(cost->threads_per_element, 0.03125);
  EXPECT_EQ(cost->passes, 2u);
  ASSERT_EQ(cost->buffers.size(), 2u);
  EXPECT_EQ(cost->buffers[1].name, "table");
  EXPECT_EQ(cost->local_mem_bytes, 16u);
  EXPECT_EQ(cost->note, "a, b");
  EXPECT_EQ(cost->thread_count(4 << 20), 131072u);
}

TEST(KernelCost, GoldenMemory) {
  struct Row {
    const char* buffers;
    uint64_t at_256_kib, at_4_mib;
  };
  for (const Row& row : {
           Row{"input=N, heads=131072, chains=8388608, matches=N*12", 11927552, 63045632},
           Row{"input=N, heads=131072, chains=8388608, found=N*12, resolved=N*12", 15073280, 113377280},
           Row{"input=N, matches=N*12", 3407872, 54525952},
           Row{"input=N, heads=131072, chains=8388608, matches=N*48", 21364736, 214040576},
           Row{"input=N, histogram=1024, offsets=N*4, output=N, codes=32768", 1606656, 25199616},
           Row{"input=N*24", 24u << 18, 24u << 22},
           Row{"states=N*2+4096", 528384, 8392704},
       }) {
    const auto cost = parse_kernel_cost(block(row.buffers));
    ASSERT_TRUE(cost) << cost.error().message();
    EXPECT_EQ(cost->memory_bytes(256 << 10).value(), row.at_256_kib) << row.buffers;
    EXPECT_EQ(cost->memory_bytes(4 << 20).value(), row.at_4_mib) << row.buffers;
  }
  EXPECT_EQ(parse_kernel_cost(block("input=N", "2"))->thread_count(4 << 20), 8388608u);
}

std::string message_of(const std::string& ptx) {
  const auto cost = parse_kernel_cost(ptx);
  return cost ? "parsed" : cost.error().message();
}

TEST(KernelCost, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(message_of(".version 8.0\n"), HasSubstr("no @pz_cost block"));
  EXPECT_THAT(message_of(block("a=N") + block("a=N")), HasSubstr("a second @pz_cost block"));
  EXPECT_THAT(message_of(block("a=N*")), HasSubstr("line 4: cost expression `N*`"));
  EXPECT_THAT(message_of(block("N")), HasSubstr("expected `name=expression` in buffers, found `N`"));
  EXPECT_THAT(message_of(block("a=N", "0")), HasSubstr("threads_per_element is a number above 0, found `0`"));
  EXPECT_THAT(message_of("// @pz_cost {\n// speed: 1\n// }\n"), HasSubstr("line 2: unknown key `speed`"));
  EXPECT_THAT(message_of("// @pz_cost {\n// passes: 1\n.version 8.0\n"),
              HasSubstr("line 3: the @pz_cost block is not closed"));
  EXPECT_THAT(message_of("// @pz_cost {\n// passes: 1\n"), HasSubstr("not closed"));
  EXPECT_THAT(message_of("// @pz_cost {\n// passes 1\n// }\n"), HasSubstr("expected `key: value`, found `passes 1`"));
  EXPECT_THAT(message_of("// @pz_cost {\n// passes: 0\n// }\n"), HasSubstr("passes is an integer above 0"));
  EXPECT_THAT(message_of("// @pz_cost {\n// local_mem: x\n// }\n"), HasSubstr("local_mem is a byte count"));
  EXPECT_THAT(message_of("// @pz_cost {\n// buffers: a=N\n// }\n"), HasSubstr("no threads_per_element"));
  EXPECT_THAT(message_of("// @pz_cost {\n// threads_per_element: 1\n// }\n"), HasSubstr("no buffers"));
  EXPECT_THAT(message_of("// @pz_cost\n"), HasSubstr("expected `@pz_cost {`"));
}

}  // namespace
}  // namespace ptxkit::kernels
