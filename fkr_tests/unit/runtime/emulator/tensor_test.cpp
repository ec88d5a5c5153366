// Tensor copies: boxes in both directions, at the edges, swizzled; and invalid maps.
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "analyzer/ptx/names.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/tensor_map.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

// One thread copies the box at (x, y, z) to shared memory; then the words of the tile are stored to `out` in order.
std::string load_text(const std::string& coordinates, unsigned rank, unsigned bytes, const std::string& wait) {
  return module_text(R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .s32 x, .param .s32 y)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .shared .align 1024 .b8 tile[8192];
  .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd1, [out];
  ld.param.s32 %r1, [x];
  ld.param.s32 %r2, [y];
  mov.u32 %r3, 0;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra arrived;
  mbarrier.init.shared.b64 [bar], 1;
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], )" +
                     std::to_string(bytes) + R"(;
  cp.async.bulk.tensor.)" +
                     std::to_string(rank) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, " + coordinates +
                     R"(], [bar];
arrived:
  bar.sync 0;
)" + wait + R"(
  shl.b32 %r4, %r0, 2;
  mov.u32 %r5, tile;
  add.u32 %r5, %r5, %r4;
  ld.shared.u32 %r6, [%r5];
  cvt.u64.u32 %rd3, %r4;
  add.u64 %rd3, %rd1, %rd3;
  st.global.u32 [%rd3], %r6;
  ret;
}
)");
}
const std::string kWait = "wait:\n  mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n  @!%p1 bra wait;\n";

struct Loaded {
  std::vector<uint32_t> tile;
  Outcome outcome;
};

// A tensor of counting words, `columns` x `rows`, and the contents of the tile after the copy.
Loaded load_box(const std::string& text, TensorMap map, uint32_t columns, uint32_t rows, int32_t x, int32_t y,
                uint32_t words) {
  Device device;
  auto program = Program::load_text(device, text, "tensor.ptx");
  if (!program) {
    ADD_FAILURE() << program.error().message();
    return {};
  }
  std::vector<uint32_t> values(size_t{columns} * rows);
  std::iota(values.begin(), values.end(), 1u);
  const Address tensor = *device.allocate(values.size() * 4, "tensor"), out = *device.allocate(words * 4, "out");
  EXPECT_TRUE(device.write(tensor, std::as_bytes(std::span(values))));
  map.address = tensor;
  map.size = {columns, rows};
  map.stride_bytes = {uint64_t{columns} * 4};
  const auto encoded = encode(map);
  if (!encoded) {
    ADD_FAILURE() << encoded.error().message();
    return {};
  }
  const std::vector<Argument> arguments{Argument::of(*encoded), Argument::of(out), Argument::of(x), Argument::of(y)};
  auto outcome = launch(*program, "k", {.block = {words}}, arguments, {.max_steps = 100'000});
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message();
    return {};
  }
  Loaded loaded{std::vector<uint32_t>(words), std::move(*outcome)};
  (void)device.read(out, std::as_writable_bytes(std::span(loaded.tile)));
  return loaded;
}

const TensorMap kBox{.box = {8, 4}, .rank = 2};

TEST(Tensor, BoxesReadZeroOutside) {
  for (const auto& [x, y] : {std::pair{4, 2}, {0, 0}, {12, 6}, {-4, -1}, {100, 0}}) {
    const Loaded loaded = load_box(load_text("{%r1, %r2}", 2, 128, kWait), kBox, 16, 8, x, y, 32);
    ASSERT_TRUE(loaded.outcome.ok()) << render(loaded.outcome, "tensor.ptx");
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 8; ++column) {
        const int there = x + column, down = y + row;
        const bool inside = there >= 0 && there < 16 && down >= 0 && down < 8;
        EXPECT_EQ(loaded.tile[static_cast<size_t>(row * 8 + column)],
                  inside ? static_cast<uint32_t>(down * 16 + there + 1) : 0u);
      }
  }
}

TEST(Tensor, OneDimension) {
  const Loaded loaded = load_box(load_text("{%r1}", 1, 64, kWait), {.box = {16}, .rank = 1}, 64, 1, 40, 0, 16);
  ASSERT_TRUE(loaded.outcome.ok()) << render(loaded.outcome, "tensor.ptx");
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(loaded.tile[i], 41 + i);
}

// Chunk c of 128-byte line l is at chunk c ^ (l mod 8); narrower spans accordingly.
TEST(Tensor, SwizzlesMoveChunks) {
  for (const auto& [swizzle, row_words, lines_per_turn, turns] : {std::tuple{TensorSwizzle::bytes_128, 32u, 1u, 8u},
                                                                  {TensorSwizzle::bytes_64, 16u, 2u, 4u},
                                                                  {TensorSwizzle::bytes_32, 8u, 4u, 2u}}) {
    TensorMap map{.box = {static_cast<uint16_t>(row_words), static_cast<uint16_t>(1024 / row_words)}, .rank = 2};
    map.swizzle = swizzle;
    const Loaded loaded =
        load_box(load_text("{%r1, %r2}", 2, 4096, kWait), map, row_words, 1024 / row_words, 0, 0, 1024);
    ASSERT_TRUE(loaded.outcome.ok()) << render(loaded.outcome, "tensor.ptx");
    for (uint32_t i = 0; i < 1024; ++i) {
      const uint32_t row = i / row_words, chunk = i % row_words / 4;
      const uint32_t moved = chunk ^ (row / lines_per_turn % turns);
      EXPECT_EQ(loaded.tile[row * row_words + moved * 4 + i % 4], i + 1) << row_words << " " << i;
    }
  }
}

TEST(Tensor, ABoxGoesOut) {
  const std::string text = module_text(R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .s32 x, .param .s32 y)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .shared .align 128 .b8 tile[128];
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd1, [out];
  ld.param.s32 %r1, [x];
  ld.param.s32 %r2, [y];
  shl.b32 %r4, %r0, 2;
  mov.u32 %r5, tile;
  add.u32 %r5, %r5, %r4;
  add.u32 %r6, %r0, 1000;
  st.shared.u32 [%r5], %r6;
  bar.sync 0;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra end;
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd2, {%r1, %r2}], [tile];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ld.global.u32 %r7, [%rd1];
end:
  ret;
}
)");
  Device device;
  auto program = Program::load_text(device, text, "tensor.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const std::vector<uint32_t> zeros(128, 1);
  const Address tensor = *device.allocate(512, "tensor");
  ASSERT_TRUE(device.write(tensor, std::as_bytes(std::span(zeros))));
  TensorMap map = kBox;
  map.address = tensor;
  map.size = {16, 8};
  map.stride_bytes = {64};
  const std::vector<Argument> arguments{Argument::of(*encode(map)), Argument::of(tensor), Argument::of(12),
                                        Argument::of(6)};
  auto outcome = launch(*program, "k", {.block = {32}}, arguments, {.max_steps = 100'000});
  ASSERT_TRUE(outcome && outcome->ok()) << (outcome ? render(*outcome, "tensor.ptx") : outcome.error().message());
  std::vector<uint32_t> values(128);
  ASSERT_TRUE(device.read(tensor, std::as_writable_bytes(std::span(values))));
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t row = i / 16, column = i % 16;
    EXPECT_EQ(values[i], row >= 6 && column >= 12 ? 1001 + (row - 6) * 8 + column - 12 : 1u) << i;
  }
}

TEST(Tensor, MistakesAreFound) {
  const auto first_fault = [](const Loaded& loaded) {
    return loaded.outcome.ok() ? std::string() : render(loaded.outcome.faults[0], "tensor.ptx");
  };
  const Loaded unwaited = load_box(load_text("{%r1, %r2}", 2, 128, ""), kBox, 16, 8, 0, 0, 32);
  EXPECT_THAT(first_fault(unwaited), HasSubstr("an asynchronous copy still writes"));
  EXPECT_THAT(first_fault(load_box(load_text("{%r1}", 1, 128, kWait), kBox, 16, 8, 0, 0, 32)),
              HasSubstr("1 coordinates for a tensor of rank 2"));
  EXPECT_THAT(first_fault(load_box(load_text("{%r1, %r2}", 2, 64, kWait), kBox, 16, 8, 0, 0, 32)), HasSubstr("F047"));
  TensorMap map = kBox;
  map.address = 4096;
  map.size = {16, 8};
  map.stride_bytes = {64};
  EXPECT_TRUE(encode(map));
  const auto refused = [&](auto change) {
    TensorMap bad = map;
    change(bad);
    return !encode(bad);
  };
  EXPECT_TRUE(refused([](TensorMap& each) { each.address = 4100; }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.rank = 6; }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.box[0] = 3; }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.box[1] = 257; }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.stride_bytes[0] = 72; }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.size[1] = 0; }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.element = ptx::Type::pred; }));
  EXPECT_TRUE(refused([](TensorMap& each) {
    each.box[0] = 16;
    each.swizzle = TensorSwizzle::bytes_32;
  }));
  EXPECT_TRUE(refused([](TensorMap& each) { each.chunk_bytes = 48; }));
}

// A kernel may write any bytes over a map: what no encoding has is refused before it is used as a map.
TEST(Tensor, AMapOfAnyBytesIsRefusedOrValid) {
  TensorMap map = kBox;
  map.address = 4096;
  map.size = {16, 8};
  map.stride_bytes = {64};
  const auto encoded = encode(map);
  ASSERT_TRUE(encoded);
  std::array<uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), encoded->data(), bytes.size());
  ASSERT_TRUE(decode_tensor_map(bytes));
  unsigned refused_count = 0;
  for (size_t at = 0; at < sizeof(uint64_t) + sizeof(TensorMap); ++at) {
    for (const uint8_t value : {uint8_t{2}, uint8_t{4}, uint8_t{40}, uint8_t{255}}) {
      auto damaged = bytes;
      damaged[at] = value;
      const auto decoded = decode_tensor_map(damaged);
      refused_count += !decoded;
      if (!decoded || !check_tensor_map(*decoded)) continue;
      EXPECT_LE(row_pitch_bytes(*decoded), 256u * 16) << at << " " << unsigned{value};
      EXPECT_LE(static_cast<unsigned>(decoded->swizzle), 3u) << at;
    }
  }
  // The mark, the element's type, the swizzle and the four flags.
  EXPECT_GE(refused_count, 4u * 8 + 2 + 3 + 4 * 4);
}

}  // namespace
}  // namespace ptxkit::emulator
