// wmma as a whole, and the loads, stores and transposes of 8 x 8 matrices, each compared with a loop.
#include <bit>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/half.hpp"

namespace ptxkit::emulator {
namespace {

std::string list(const std::string& name, unsigned count) {
  std::string out;
  for (unsigned i = 0; i < count; ++i) out += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + out + "}";
}

std::string text_of(const std::string& body, const std::string& registers) {
  std::string text = entry_text(body, ".shared .align 128 .b8 tile[2048];\n");
  text.replace(text.find("  .reg .b32 %r<32>"), 0, registers);
  return text;
}

// A of 16 x 16 by rows of 24, B by columns of 20, C and D by rows of 16; elements are halves, sums are singles.
TEST(MatrixMoves, WmmaOfHalves) {
  constexpr unsigned kA = 0, kB = 16 * 24, kC = kB + 16 * 20;  // halves; C in words behind
  std::vector<uint32_t> in(kC / 2 + 256);
  const auto half = [&](unsigned at, int value) {
    in[at / 2] |= uint32_t{std::bit_cast<uint16_t>(static_cast<Half>(value))} << at % 2 * 16;
  };
  const auto a = [](unsigned row, unsigned k) { return static_cast<int>(row * 3 + k * 5) % 7 - 3; };
  const auto b = [](unsigned k, unsigned column) { return static_cast<int>(k * 2 + column * 11) % 5 - 2; };
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned k = 0; k < 16; ++k) {
      half(kA + i * 24 + k, a(i, k));
      half(kB + i * 20 + k, b(k, i));
      in[kC / 2 + i * 16 + k] = std::bit_cast<uint32_t>(static_cast<float>(i + k));
    }
  const std::string body =
      fmt::format("  mov.u32 %r1, 24;\n  mov.u32 %r2, 20;\n  add.u64 %rd4, %rd1, {};\n  add.u64 %rd5, %rd1, {};\n",
                  kB * 2, kC * 2) +
      "  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + list("a", 8) + ", [%rd1], %r1;\n" +
      "  wmma.load.b.sync.aligned.col.m16n16k16.global.f16 " + list("b", 8) + ", [%rd4], %r2;\n" +
      "  wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + list("c", 8) + ", [%rd5];\n" +
      "  wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 " + list("c", 8) + ", " + list("a", 8) + ", " + list("b", 8) +
      ", " + list("c", 8) + ";\n  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd0], " + list("c", 8) + ";\n";
  const std::string registers = "  .reg .b32 %a<8>, %b<8>;\n  .reg .f32 %c<8>;\n";
  const Ran ran = run_kernel(text_of(body, registers), {.block = {32}}, 256, in);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 16; ++column) {
      int sum = static_cast<int>(row + column);
      for (unsigned k = 0; k < 16; ++k) sum += a(row, k) * b(k, column);
      EXPECT_EQ(std::bit_cast<float>(ran.out[row * 16 + column]), static_cast<float>(sum)) << row << " " << column;
    }
  // Rows that run past the end of the buffer; a branch on undefined bits.
  std::string beyond = text_of(body, registers);
  beyond.replace(beyond.find("mov.u32 %r2, 20"), 15, "mov.u32 %r2, 99");
  const Ran outside = run_kernel(beyond, {.block = {32}}, 256, in);
  ASSERT_FALSE(outside.outcome.ok());
  EXPECT_EQ(outside.outcome.faults[0].kind, FaultKind::out_of_bounds);
  const Ran unwritten = run_kernel(text_of("  wmma.load.c.sync.aligned.col.m16n16k16.global.f32 " + list("c", 8) +
                                               ", [%rd0];\n  setp.eq.f32 %p1, %c3, 0f00000000;\n  @%p1 exit;\n",
                                           registers),
                                   {.block = {32}}, 256);
  ASSERT_FALSE(unwritten.outcome.ok());
  EXPECT_EQ(unwritten.outcome.faults[0].kind, FaultKind::uninitialised_branch);
}

// Doubles, and 4-bit elements by columns.
TEST(MatrixMoves, WmmaOfOtherTypes) {
  std::vector<uint32_t> in(2 * (32 + 32 + 64));
  const auto put = [&](unsigned at, double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    in[2 * at] = static_cast<uint32_t>(bits);
    in[2 * at + 1] = static_cast<uint32_t>(bits >> 32);
  };
  for (unsigned i = 0; i < 32; ++i) {
    put(i, i + 0.5);       // A: 8 x 4 by rows
    put(32 + i, 3.0 - i);  // B: 4 x 8 by columns
  }
  for (unsigned i = 0; i < 64; ++i) put(64 + i, i * 0.25);
  const Ran doubles = run_kernel(
      text_of("  add.u64 %rd4, %rd1, 256;\n  add.u64 %rd5, %rd1, 512;\n"
              "  wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%x0}, [%rd1];\n"
              "  wmma.load.b.sync.aligned.col.m8n8k4.global.f64 {%x1}, [%rd4];\n"
              "  wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {%x2, %x3}, [%rd5];\n"
              "  wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64 {%x2, %x3}, {%x0}, {%x1}, {%x2, %x3};\n"
              "  wmma.store.d.sync.aligned.col.m8n8k4.global.f64 [%rd0], {%x2, %x3};\n",
              "  .reg .f64 %x<4>;\n"),
      {.block = {32}}, 128, in);
  ASSERT_TRUE(doubles.outcome.ok()) << render(doubles.outcome, "test.ptx");
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      double sum = (row * 8 + column) * 0.25;
      for (unsigned k = 0; k < 4; ++k) sum += (row * 4 + k + 0.5) * (3.0 - (column * 4 + k));
      const unsigned at = column * 8 + row;
      EXPECT_EQ(std::bit_cast<double>(doubles.out[2 * at] | uint64_t{doubles.out[2 * at + 1]} << 32), sum);
    }
  // 8 x 32 by 32 x 8 of s4, eight in a word.
  std::vector<uint32_t> nibbles(64);
  for (unsigned i = 0; i < 512; ++i) nibbles[i / 8] |= (i * 7 % 16) << i % 8 * 4;
  const Ran narrow = run_kernel(
      text_of("  add.u64 %rd4, %rd1, 128;\n"
              "  wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%x0}, [%rd1];\n"
              "  wmma.load.b.sync.aligned.col.m8n8k32.global.s4 {%x1}, [%rd4];\n  mov.u32 %x2, 5;\n  mov.u32 %x3, 5;\n"
              "  wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%x2, %x3}, {%x0}, {%x1}, {%x2, %x3};\n"
              "  wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%rd0], {%x2, %x3};\n",
              "  .reg .b32 %x<4>;\n"),
      {.block = {32}}, 64, nibbles);
  ASSERT_TRUE(narrow.outcome.ok()) << render(narrow.outcome, "test.ptx");
  const auto nibble = [](unsigned i) { return static_cast<int>(i * 7 % 16 ^ 8) - 8; };
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      int sum = 5;
      for (unsigned k = 0; k < 32; ++k) sum += nibble(row * 32 + k) * nibble(256 + column * 32 + k);
      EXPECT_EQ(static_cast<int32_t>(narrow.out[row * 8 + column]), sum) << row << " " << column;
    }
}

// Rows of 16 bytes in shared memory, as written and transposed, through registers and back.
TEST(MatrixMoves, RowsAndTransposes) {
  std::vector<uint32_t> in(128);
  for (unsigned i = 0; i < 256; ++i) in[i / 2] |= (1000 + i) << i % 2 * 16;
  const std::string fill =
      "  mov.u32 %r1, tile;\n  mul.lo.u32 %r2, %r0, 16;\n  add.u32 %r3, %r1, %r2;\n  mul.wide.u32 %rd4, %r0, 16;\n"
      "  add.u64 %rd5, %rd1, %rd4;\n  ld.global.v4.u32 {%x0, %x1, %x2, %x3}, [%rd5];\n"
      "  st.shared.v4.u32 [%r3], {%x0, %x1, %x2, %x3};\n  bar.warp.sync -1;\n";
  const auto run = [&](const std::string& move) {
    return run_kernel(text_of(fill + move +
                                  "  bar.warp.sync -1;\n  ld.shared.v4.u32 {%x0, %x1, %x2, %x3}, [%r3+1024];\n"
                                  "  add.u64 %rd5, %rd0, %rd4;\n  st.global.v4.u32 [%rd5], {%x0, %x1, %x2, %x3};\n",
                              "  .reg .b32 %x<8>;\n"),
                      {.block = {32}}, 128, in);
  };
  const std::string load = "  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x4, %x5, %x6, %x7}, [%r3];\n";
  const std::string loaded_across = "  ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%x4, %x5, %x6, %x7}, [%r3];\n";
  const std::string store = "  stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3+1024], {%x4, %x5, %x6, %x7};\n";
  const std::string stored_across =
      "  stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r3+1024], {%x4, %x5, %x6, %x7};\n";
  std::string turned;
  for (unsigned i = 4; i < 8; ++i) turned += fmt::format("  movmatrix.sync.aligned.m8n8.trans.b16 %x{0}, %x{0};\n", i);
  struct Case {
    std::string move;
    bool across;
  };
  for (const Case& each : std::vector<Case>{{load + store, false},
                                            {loaded_across + store, true},
                                            {load + stored_across, true},
                                            {load + turned + store, true},
                                            {loaded_across + turned + store, false}}) {
    const Ran ran = run(each.move);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (unsigned i = 0; i < 256; ++i) {
      const unsigned matrix = i / 64, row = i / 8 % 8, column = i % 8;
      const unsigned from = each.across ? matrix * 64 + column * 8 + row : i;
      EXPECT_EQ(ran.out[i / 2] >> i % 2 * 16 & 0xffff, 1000 + from) << each.move << i;
    }
  }
  // Eight lanes give one address. For one row eight times that is harmless; of eight different rows the last one
  // remains.
  for (const std::string kind : {"m8n8.x1.shared.b16", "m16n8.x1.trans.shared.b8"}) {
    const auto stored = [&](const std::string& value) {
      const std::string body =
          "  mov.u32 %r1, tile;\n" + value + "  stmatrix.sync.aligned." + kind + " [%r1], {%x4};\n";
      return run_kernel(for_target(text_of(body, "  .reg .b32 %x<8>;\n"), "sm_100a"), {.block = {32}}, 128, in).outcome;
    };
    const Outcome same = stored("  mov.u32 %x4, 0x07070707;\n"), different = stored("  mov.u32 %x4, %r0;\n");
    EXPECT_TRUE(same.ok()) << kind << render(same, "test.ptx");
    ASSERT_FALSE(different.ok()) << kind;
    EXPECT_EQ(different.faults[0].kind, FaultKind::shared_race);
  }
  // Undefined bits stay undefined on the way, and a misaligned row is a fault.
  const Ran unwritten =
      run("  ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%x4}, [%r3+512];\n"
          "  movmatrix.sync.aligned.m8n8.trans.b16 %x4, %x4;\n"
          "  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3+1024], {%x4};\n"
          "  bar.warp.sync -1;\n  ld.shared.u32 %x5, [%r1+1024];\n  setp.eq.u32 %p1, %x5, 0;\n  @%p1 exit;\n");
  ASSERT_FALSE(unwritten.outcome.ok());
  EXPECT_EQ(unwritten.outcome.faults[0].kind, FaultKind::uninitialised_shared);
  const Ran odd = run("  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x4}, [%r3+8];\n");
  ASSERT_FALSE(odd.outcome.ok());
  EXPECT_EQ(odd.outcome.faults[0].kind, FaultKind::misaligned);
}

}  // namespace
}  // namespace ptxkit::emulator
