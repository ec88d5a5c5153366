// KF-000A: shfl.sync broadcasts lane 0's value to 32 lanes, and each stores it.
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "builder/dsl.hpp"
#include "builder/types.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit {
namespace {

using namespace dsl;

TEST(Broadcast, ThirtyTwoLanesStoreTheValueOfLaneZero) {
  const auto kernel = define(KernelSpec{.name = "broadcast",
                                        .block = 32,
                                        .budget = {.registers = 16},
                                        .cost = {.threads_per_element = 0.25, .buffers = {{"out", N}}}},
                             [](Kernel& k, Arg<"out", Ptr<global, u32>> out) {
                               const auto mine = select(k.lane() == 0, 100, k.lane());
                               out.at(k.lane()).store(broadcast(mine));
                             });
  emulator::Device device;
  const auto program = emulator::Program::load_text(device, emit_ptx(kernel), "broadcast.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const auto out = device.allocate(32 * sizeof(u32), "out").value();
  const emulator::Argument arguments[] = {emulator::Argument::of(out)};
  const auto outcome = emulator::launch(*program, "broadcast", {.grid = {1}, .block = {32}}, arguments);
  ASSERT_TRUE(outcome) << outcome.error().message();
  ASSERT_TRUE(outcome->ok()) << emulator::render(*outcome, "broadcast.ptx");
  std::vector<u32> values(32);
  ASSERT_TRUE(device.read(out, std::as_writable_bytes(std::span(values))));
  EXPECT_EQ(values, std::vector<u32>(32, 100));
}

}  // namespace
}  // namespace ptxkit
