// Code that nvcc made of ordinary CUDA, optimised and not, gives the results of the host compiler for the same
// functions.
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/compiled/functions.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/file.hpp"

namespace ptxkit::emulator {
namespace {

class Compiled : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = std::string(EMULATOR_TEST_FOLDER) + "/compiled/" + GetParam();
    auto text = read_file(path);
    ASSERT_TRUE(text) << text.error().message();
    auto loaded = Program::load_text(device_, std::move(*text), GetParam());
    ASSERT_TRUE(loaded) << loaded.error().message();
    program_.emplace_back(std::move(*loaded));
  }

  template <class T>
  Address upload(const char* name, const std::vector<T>& values) {
    Address address = *device_.allocate(values.size() * sizeof(T), name);
    EXPECT_TRUE(device_.write(address, std::as_bytes(std::span(values))));
    return address;
  }
  template <class T>
  std::vector<T> download(Address address, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(device_.read(address, std::as_writable_bytes(std::span(values))));
    return values;
  }
  void run(std::string_view entry, const LaunchShape& shape, const std::vector<Argument>& arguments,
           uint64_t seed = 0) {
    auto outcome = launch(program_.front(), entry, shape, arguments, {.schedule_seed = seed, .max_steps = 50'000'000});
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_TRUE(outcome->ok()) << render(*outcome, GetParam());
  }

  Device device_;
  std::vector<Program> program_;
};

INSTANTIATE_TEST_SUITE_P(Nvcc, Compiled, ::testing::Values("optimised.ptx", "plain.ptx"), [](const auto& each) {
  return std::string(each.param, std::string_view(each.param).find('.'));
});

TEST_P(Compiled, FunctionsEqualTheHosts) {
  const int count = 2000;
  std::vector<uint64_t> a(count), b(count), expected(count);
  for (int i = 0; i < count; ++i) {
    a[i] = functions::mix(static_cast<uint64_t>(2 * i + 1)) >> i % 50;
    b[i] = functions::mix(static_cast<uint64_t>(7 * i + 3)) >> i % 47;
    expected[i] = functions::call(i % functions::kCount, a[i], b[i]);
  }
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const Address out = *device_.allocate(count * 8, "out");
    run("functions_of_lanes", {.grid = {16}, .block = {128}},
        {Argument::of(upload("a", a)), Argument::of(upload("b", b)), Argument::of(out), Argument::of(count)}, seed);
    const auto got = download<uint64_t>(out, count);
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(got[i], expected[i]) << "function " << i % functions::kCount << " of " << a[i] << ", " << b[i];
  }
}

TEST_P(Compiled, SumOfAllBlocks) {
  std::vector<uint32_t> in(10000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(functions::mix(i));
  const Address out = upload<uint32_t>("out", {0});
  run("sum", {.grid = {5}, .block = {256}},
      {Argument::of(upload("in", in)), Argument::of(out), Argument::of(static_cast<int>(in.size()))});
  EXPECT_EQ(download<uint32_t>(out, 1)[0], std::accumulate(in.begin(), in.end(), 0u));
}

TEST_P(Compiled, PrefixSum) {
  std::vector<uint32_t> data(1024);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint32_t>(functions::mix(i));
  const Address address = upload("data", data);
  run("prefix_sum", {.block = {1024}}, {Argument::of(address)}, 7);
  std::partial_sum(data.begin(), data.end(), data.begin());
  EXPECT_EQ(download<uint32_t>(address, data.size()), data);
}

TEST_P(Compiled, ALockAmongAllThreads) {
  const Address lock = upload<int>("lock", {0}), counter = upload<int>("counter", {0});
  run("locked_counter", {.grid = {3}, .block = {64}}, {Argument::of(lock), Argument::of(counter)});
  EXPECT_EQ(download<int>(counter, 1)[0], 192);
}

}  // namespace
}  // namespace ptxkit::emulator
