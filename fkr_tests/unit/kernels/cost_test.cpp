// The @pz_cost grammar, and the memory that the original formulas give.
#include "kernels/cost.hpp"

#include <algorithm>
#include <cstring>

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
  return parsed->evaluate({input_bytes}).value();
}

TEST(CostExpression, EveryFormOfTheGrammar) {
  EXPECT_EQ(bytes_of("131072", 9), 131072u);
  EXPECT_EQ(bytes_of("N", 9), 9u);
  EXPECT_EQ(bytes_of("N*12", 9), 108u);
  EXPECT_EQ(bytes_of("N*2+4096", 9), 4114u);
  EXPECT_EQ(bytes_of("N/4", 9), 3u);
  EXPECT_EQ(bytes_of("N/4", 8), 2u);
  EXPECT_EQ(bytes_of("N/4*16", 9), 48u);
  EXPECT_EQ(bytes_of("N+N/4*16+N*2+7", 9), 9u + 48 + 18 + 7);
}

TEST(CostExpression, ADivisionCountsForEachItem) {
  const auto bytes = parse_cost_expression("N/4096*16+N*2+8+M").value();
  EXPECT_EQ(bytes.text(), "N/4096*16+N*2+8+M");
  EXPECT_EQ(bytes.evaluate({.input_bytes = 3 * 4112, .item_count = 3, .coded_bytes = 100}).value(),
            3 * 2 * 16 + 2 * 3 * 4112 + 3 * 8 + 100u);
  EXPECT_EQ(bytes.evaluate({.input_bytes = 0, .item_count = 0}).value(), 0u);
  for (const uint64_t item_count : {0u, 5u}) {
    const auto unequal = bytes.evaluate({.input_bytes = 3 * 4112, .item_count = item_count});
    ASSERT_FALSE(unequal);
    EXPECT_THAT(unequal.error().message(), HasSubstr("12336 bytes are not as large as each other"));
  }
}

TEST(CostExpression, AnythingElseIsAnError) {
  for (const char* text :
       {"",    "L",     "n",     "N+",    "N*",  "N*x", "N*2+", "N*2+x", "N/0",     "N/",
        "N/x", "N*2*3", "N-1",   "2*N",   "N N", "-1",  "1.5",  "0x10",  "N*2 + 1", "18446744073709551616",
        "+N",  "N/2*",  "N/2/3", "N*2/3", "NM",  "N++1"}) {
    const auto parsed = parse_cost_expression(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("is no sum of: integer, N, N*integer"));
  }
}

TEST(CostExpression, OverflowIsAnError) {
  EXPECT_FALSE(parse_cost_expression("N*4")->evaluate({uint64_t{1} << 63}));
  EXPECT_FALSE(parse_cost_expression("N*1+1")->evaluate({~uint64_t{0}}));
  EXPECT_FALSE(parse_cost_expression("8")->evaluate({.item_count = uint64_t{1} << 61}));
  EXPECT_FALSE(parse_cost_expression("M*2")->evaluate({.coded_bytes = uint64_t{1} << 63}));
  EXPECT_FALSE(parse_cost_expression("N/2*8")->evaluate({~uint64_t{0}}));
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
  EXPECT_EQ(*cost->thread_count(4 << 20), 2 * 131072u);  // of two passes
}

// The fifteen kernel files of libpz that have the block, with the values of libpz's cost plan ("GPU Kernel Cost
// Annotations and Runtime Scheduling"; hash, top-k, Huffman, rank and radix exist in OpenCL and in WGSL), and the
// memory that a block of 256 KiB and one of 4 MiB need.
struct Annotation {
  const char* files;  // separated by spaces
  const char* threads_per_element;
  uint32_t passes;
  const char* buffers;
  uint64_t local_mem_bytes;
  const char* note;  // nullptr: the block has no note
  uint64_t at_256_kib, at_4_mib, threads_at_4_mib;
};
constexpr Annotation kOriginalAnnotations[] = {
    {"lz77_hash.cl lz77_hash.wgsl", "1", 2, "input=N, hash_counts=131072, hash_table=8388608, output=N*12", 0, nullptr,
     11927552, 63045632, 8388608},
    {"lz77_lazy.wgsl", "1", 3, "input=N, hash_counts=131072, hash_table=8388608, raw_matches=N*12, resolved=N*12", 0,
     nullptr, 15073280, 113377280, 12582912},
    {"lz77.cl", "1", 1, "input=N, output=N*12", 0, nullptr, 3407872, 54525952, 4194304},
    {"lz77_batch.cl", "0.03125", 1, "input=N, output=N*12", 0, nullptr, 3407872, 54525952, 131072},
    {"lz77_topk.cl lz77_topk.wgsl", "1", 2, "input=N, hash_counts=131072, hash_table=8388608, output=N*48", 0, nullptr,
     21364736, 214040576, 8388608},
    {"huffman_encode.cl huffman_encode.wgsl", "1", 4, "input=N, lut=1024, bit_lengths=N*4, output=N, block_sums=32768",
     2048, nullptr, 1606656, 25199616, 16777216},
    {"bwt_rank.cl bwt_rank.wgsl", "1", 4, "sa=N*8, rank=N*8, diff=N*4, prefix=N*4", 2048,
     "called per doubling step (log2(N) steps)", 24 << 18, 24 << 22, 16777216},
    {"bwt_radix.cl bwt_radix.wgsl", "1", 3, "keys=N*4, histogram=N*4, sa_in=N*4, sa_out=N*4", 1024,
     "4 radix passes per doubling step", 16 << 18, 16 << 22, 12582912},
    {"bwt_sort.cl", "0.5", 1, "sa=N*4, data=N", 0, "O(log^2 N) dispatches for full bitonic sort", 5 << 18, 5 << 22,
     2097152},
    {"fse_decode.wgsl", "1", 1, "input=N, output=N, table=4096", 0, nullptr, 528384, 8392704, 4194304},
};

TEST(KernelCost, TheOriginalsFifteenAnnotationsGiveTheGoldenNumbers) {
  size_t file_count = 0;
  for (const Annotation& original : kOriginalAnnotations) {
    SCOPED_TRACE(original.files);
    // In the form of those files: no commas between the lines, no quotes around the note.
    std::string text = "// @pz_cost {\n//   threads_per_element: " + std::string(original.threads_per_element) +
                       "\n//   passes: " + std::to_string(original.passes) + "\n//   buffers: " + original.buffers +
                       "\n//   local_mem: " + std::to_string(original.local_mem_bytes) + "\n";
    if (original.note != nullptr) text += "//   note: " + std::string(original.note) + "\n";
    text += "// }\n\n__kernel void Encode(__global const unsigned char* input) {}\n";
    const auto cost = parse_kernel_cost(text);
    ASSERT_TRUE(cost) << cost.error().message();
    EXPECT_EQ(cost->memory_bytes({256 << 10}).value(), original.at_256_kib);
    EXPECT_EQ(cost->memory_bytes({4 << 20}).value(), original.at_4_mib);
    EXPECT_EQ(*cost->thread_count(4 << 20), original.threads_at_4_mib);
    EXPECT_EQ(cost->local_mem_bytes, original.local_mem_bytes);
    EXPECT_EQ(cost->note, original.note == nullptr ? "" : original.note);
    file_count += 1 + std::count(original.files, original.files + std::strlen(original.files), ' ');
  }
  EXPECT_EQ(file_count, 15u);
}

TEST(KernelCost, ThreadsAreRoundedDownInAPass) {
  const auto cost = parse_kernel_cost(block("a=N", "0.4"));
  ASSERT_TRUE(cost) << cost.error().message();
  EXPECT_EQ(*cost->thread_count(9), 2 * 3u);
  EXPECT_EQ(*cost->thread_count(2), 0u);
}

std::string message_of(const std::string& ptx) {
  const auto cost = parse_kernel_cost(ptx);
  return cost ? "parsed" : cost.error().message();
}

TEST(KernelCost, MoreThreadsThanANumberHoldsAreRefused) {
  auto cost = parse_kernel_cost(block("a=N", "1e10"));
  ASSERT_TRUE(cost) << cost.error().message();
  EXPECT_THAT(cost->thread_count(1'000'000'000).error().message(), HasSubstr("more than 2^64 threads"));
  cost->passes = 1;
  EXPECT_EQ(*cost->thread_count(1'000'000'000), 10'000'000'000'000'000'000u);
  EXPECT_THAT(cost->thread_count(2'000'000'000).error().message(), HasSubstr("more than 2^64 threads"));
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
