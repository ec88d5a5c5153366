// Correct kernels, written as libraries write them, run clean with every check and in every schedule.
#include <bit>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/file.hpp"

namespace ptxkit::emulator {
namespace {

using Words = std::vector<uint32_t>;

// One buffer of a launch: its initial words, and those that the last launch left.
struct Buffer {
  const char* name;
  Words words;
};

// Runs an entry of patterns.ptx in several schedules, each on fresh buffers and then once more on `last`. `check` gets
// the contents of the buffers after each run.
void run_pattern(std::string_view entry, const LaunchShape& shape, const std::vector<Buffer>& buffers,
                 const Words& last, const std::function<void(const std::vector<Words>&)>& check) {
  const auto text = read_file(std::string(EMULATOR_TEST_FOLDER) + "/compiled/patterns.ptx");
  ASSERT_TRUE(text) << text.error().message();
  for (const bool adversarial : {false, true})
    for (uint64_t seed = adversarial; seed < 4; ++seed) {
      SCOPED_TRACE(std::string(entry) + (adversarial ? ", adversarial " : ", seed ") + std::to_string(seed));
      Device device;
      auto program = Program::load_text(device, *text, "patterns.ptx");
      ASSERT_TRUE(program) << program.error().message();
      std::vector<Argument> arguments;
      std::vector<Address> addresses;
      for (const Buffer& each : buffers) {
        addresses.push_back(*device.allocate(each.words.size() * 4, each.name));
        ASSERT_TRUE(device.write(addresses.back(), std::as_bytes(std::span(each.words))));
        arguments.push_back(Argument::of(addresses.back()));
      }
      for (const uint32_t word : last) arguments.push_back(Argument::of(word));
      auto outcome = launch(*program, entry, shape, arguments,
                            {.schedule_seed = seed, .adversarial = adversarial, .max_steps = 20'000'000});
      ASSERT_TRUE(outcome) << outcome.error().message();
      EXPECT_TRUE(outcome->ok()) << render(*outcome, "patterns.ptx");
      std::vector<Words> after;
      for (size_t i = 0; i < buffers.size(); ++i) {
        after.emplace_back(buffers[i].words.size());
        (void)device.read(addresses[i], std::as_writable_bytes(std::span(after.back())));
      }
      check(after);
    }
}

Words counting(size_t count) {
  Words words(count);
  for (size_t i = 0; i < count; ++i) words[i] = static_cast<uint32_t>(i * 7 % 61);
  return words;
}

TEST(Patterns, TheLastBlockAddsUp) {
  const Words in = counting(1024);
  run_pattern("last_block", {.grid = {8}, .block = {128}}, {{"in", in}, {"out", Words(9)}, {"count", Words(1)}}, {},
              [&](const auto& after) { EXPECT_EQ(after[1][0], std::accumulate(in.begin(), in.end(), 0u)); });
}

TEST(Patterns, LookBack) {
  const Words in = counting(1024);
  Words sums(1024);
  std::partial_sum(in.begin(), in.end(), sums.begin());
  run_pattern("look_back", {.grid = {8}, .block = {128}}, {{"in", in}, {"out", Words(1024)}, {"status", Words(16)}}, {},
              [&](const auto& after) { EXPECT_EQ(after[1], sums); });
}

TEST(Patterns, TilesOfAWarpAndOfSeveral) {
  Words first;
  run_pattern("tiles", {.block = {128}}, {{"in", counting(128)}, {"out", Words(128)}}, {}, [&](const auto& after) {
    if (first.empty()) first = after[1];
    EXPECT_EQ(after[1], first);
  });
}

TEST(Patterns, PipelineOfCopies) {
  const Words in = counting(1024);
  run_pattern("pipelined", {.block = {128}}, {{"in", in}, {"out", Words(128)}}, {8}, [&](const auto& after) {
    for (size_t i = 0; i < 128; ++i) {
      uint32_t sum = 0;
      for (size_t round = 0; round < 8; ++round) sum += in[round * 128 + 127 - i];
      EXPECT_EQ(after[1][i], sum);
    }
  });
}

TEST(Patterns, ArrivalsWithTokens) {
  const Words in = counting(128);
  run_pattern("arrivals", {.block = {128}}, {{"in", in}, {"out", Words(128)}}, {}, [&](const auto& after) {
    for (size_t i = 0; i < 128; ++i) EXPECT_EQ(after[1][i], 6 * in[127 - i]);
  });
}

TEST(Patterns, RoundsOfAGrid) {
  run_pattern("grid_rounds", {.grid = {4}, .block = {64}}, {{"data", Words(256)}, {"out", Words(256)}}, {},
              [&](const auto& after) {
                for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(after[1][i], 3 * (255 - i));
              });
}

TEST(Patterns, NeighboursInACluster) {
  const Words in = counting(512);
  run_pattern("neighbours", {.grid = {4}, .block = {128}}, {{"in", in}, {"out", Words(512)}}, {},
              [&](const auto& after) {
                for (size_t i = 0; i < 512; ++i) EXPECT_EQ(after[1][i], in[(i / 128 ^ 1) * 128 + 127 - i % 128]);
              });
}

TEST(Patterns, SoftMaximum) {
  Words in(1024);
  for (uint32_t i = 0; i < 1024; ++i) in[i] = std::bit_cast<uint32_t>(static_cast<float>(i * 37 % 101) / 25);
  run_pattern("softmax", {.grid = {4}, .block = {128}, .dynamic_shared_bytes = (32 + 256) * 4},
              {{"x", in}, {"y", Words(1024)}}, {256}, [&](const auto& after) {
                for (size_t row = 0; row < 4; ++row) {
                  float sum = 0;
                  for (size_t i = 0; i < 256; ++i) sum += std::bit_cast<float>(after[1][row * 256 + i]);
                  EXPECT_NEAR(sum, 1, 1e-5);
                }
              });
}

TEST(Patterns, BuffersHandedOverByNamedBarriers) {
  const Words in = counting(6 * 64);
  run_pattern("named_barriers", {.block = {128}}, {{"in", in}, {"out", Words(64)}}, {6}, [&](const auto& after) {
    for (size_t i = 0; i < 64; ++i) {
      uint32_t sum = 0;
      for (size_t round = 0; round < 6; ++round) sum += in[round * 64 + 63 - i];
      EXPECT_EQ(after[1][i], sum);
    }
  });
}

TEST(Patterns, ALockBetweenBlocks) {
  run_pattern("locked", {.grid = {5}, .block = {32}}, {{"lock", Words(1)}, {"word", Words(1)}}, {},
              [&](const auto& after) { EXPECT_EQ(after[1][0], 121u); });
}

TEST(Patterns, Histogram) {
  run_pattern("histogram", {.grid = {2}, .block = {128}}, {{"in", counting(256)}, {"counts", Words(256)}}, {1024},
              [&](const auto& after) { EXPECT_EQ(std::accumulate(after[1].begin(), after[1].end(), 0u), 1024u); });
}

}  // namespace
}  // namespace ptxkit::emulator
