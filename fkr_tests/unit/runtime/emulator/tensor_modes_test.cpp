// Tensor copies by im2col and by rows, element strides, fills, and maps that a kernel changes: each compared with a
// loop over the tensor written from the ISA's text (PTX ISA 9.0, 5.5).
#include <array>
#include <fstream>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "analyzer/ptx/names.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/tensor_cases.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/tensor_map.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kTileWords = 2048;

// Thread 0 runs `copy`, with the map's generic address in %rd2; all 128 threads run `before` and `after`.
std::string copy_text(const std::string& copy, const std::string& before, const std::string& after) {
  return ".version 8.8\n.target sm_100a\n.address_size 64\n"
         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n"
         ".reg .pred %p<4>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n"
         ".shared .align 1024 .b8 tile[8192];\n.shared .align 128 .b8 changed[128];\n.shared .align 8 .b64 bar;\n"
         "mov.u32 %r0, %tid.x;\nld.param.u64 %rd1, [out];\nmov.u32 %r5, tile;\n"
         "mov.b64 %rd2, map;\ncvta.param.u64 %rd2, %rd2;\n" +
         before + "setp.ne.u32 %p0, %r0, 0;\n@%p0 bra issued;\nmbarrier.init.shared.b64 [bar], 1;\n" + copy +
         "issued:\nbar.sync 0;\n" + after + "ret;\n}\n";
}

// Expects `counted` bytes of the tensor, and reads the words of `bytes` bytes of the tile.
std::string load_text(const std::string& words, uint32_t bytes, const std::string& before = "",
                      const std::string& map = "%rd2", uint32_t counted = 0) {
  return copy_text(
      fmt::format("mbarrier.arrive.expect_tx.shared.b64 _, [bar], {};\n"
                  "cp.async.bulk.tensor.{};\n",
                  counted ? counted : bytes, fmt::format(fmt::runtime(words), map)),
      before,
      "wait:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra wait;\n"
      "next:\nshl.b32 %r4, %r0, 2;\nadd.u32 %r6, %r5, %r4;\nld.shared.u32 %r7, [%r6];\ncvt.u64.u32 %rd3, %r4;\n"
      "add.u64 %rd3, %rd1, %rd3;\nst.global.u32 [%rd3], %r7;\nadd.u32 %r0, %r0, 128;\n" +
          fmt::format("setp.lt.u32 %p2, %r0, {};\n@%p2 bra next;\n", bytes / 4));
}

struct Copied {
  std::vector<uint32_t> tile, tensor;
  Outcome outcome;
};

// `map` gets a tensor of the words `given`, or of words that count from 1; its sizes are those of the map.
Copied run_copy(const std::string& text, TensorMap map, const std::vector<uint32_t>& given = {},
                uint32_t checks = kCheckAll) {
  Device device;
  Copied copied;
  auto program = Program::load_text(device, text, "tensor.ptx");
  if (!program) {
    ADD_FAILURE() << program.error().message() << text;
    return copied;
  }
  size_t words = unit_bytes(map) * map.size[0] / elements_per_unit(map) / 4;
  for (unsigned i = 1; i < map.rank; ++i) words *= map.size[i];
  copied.tensor.resize(words);
  std::iota(copied.tensor.begin(), copied.tensor.end(), 1u);
  if (!given.empty()) copied.tensor = given;
  map.address = *device.allocate(words * 4, "tensor");
  EXPECT_TRUE(device.write(map.address, std::as_bytes(std::span(copied.tensor))));
  uint64_t bytes = unit_bytes(map);
  for (unsigned i = 0; i + 1 < map.rank; ++i)
    map.stride_bytes[i] = bytes = bytes * map.size[i] / (i == 0 ? elements_per_unit(map) : 1);
  const auto encoded = encode(map);
  if (!encoded) {
    ADD_FAILURE() << encoded.error().message();
    return copied;
  }
  const Address out = *device.allocate(kTileWords * 4, "out");
  auto outcome = launch(*program, "k", {.block = {128}}, std::vector{Argument::of(*encoded), Argument::of(out)},
                        {.checks = checks & ~kCheckOutputs, .max_steps = 1'000'000});
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message();
    return copied;
  }
  copied.outcome = std::move(*outcome);
  copied.tile.resize(kTileWords);
  (void)device.read(out, std::as_writable_bytes(std::span(copied.tile)));
  (void)device.read(map.address, std::as_writable_bytes(std::span(copied.tensor)));
  return copied;
}

std::string first_fault(const Copied& copied) {
  return copied.outcome.ok() ? std::string() : render(copied.outcome.faults[0], "tensor.ptx");
}

using Point = std::array<int64_t, 5>;

uint32_t word_at(const TensorMap& map, const Point& point, uint32_t outside = 0) {
  uint64_t place = 0, scale = 1;
  for (unsigned i = 0; i < map.rank; ++i) {
    if (point[i] < 0 || point[i] >= static_cast<int64_t>(map.size[i])) return outside;
    place += static_cast<uint64_t>(point[i]) * scale;
    scale *= map.size[i];
  }
  return static_cast<uint32_t>(place + 1);
}

// Images of 5 x 6 (x 3) pixels of 8 channels, of which 4 are copied. Boxes of a 3 x 3 filter with a border of 1.
TensorMap images(unsigned rank) {
  TensorMap map{.rank = static_cast<uint8_t>(rank), .is_im2col = true};
  map.size = rank == 3   ? std::array<uint64_t, 5>{8, 5, 4}
             : rank == 4 ? std::array<uint64_t, 5>{8, 5, 6, 4}
                         : std::array<uint64_t, 5>{8, 5, 6, 3, 4};
  map.box = {4, 64};
  map.lower_corner = {-1, -1, -1};
  map.upper_corner = {-1, -1, -1};
  return map;
}

// The pixels in the ISA's order: all positions of the bounding box from the first on, W fastest, then image by image.
// Made here by walking all positions from the first image's first one and skipping those before `base`.
std::vector<Point> pixels(const TensorMap& map, const Point& base) {
  std::vector<Point> all;
  const unsigned last = map.rank - 1u, w_at = map.interleave_bytes ? 0 : 1, spatial = map.rank - 2u;
  const auto range = [&](unsigned k) {
    std::vector<int64_t> places;
    if (k >= spatial) return std::vector<int64_t>{0};
    for (int64_t x = map.lower_corner[k]; x <= static_cast<int64_t>(map.size[w_at + k]) - 1 + map.upper_corner[k];
         x += map.element_stride[w_at + k])
      places.push_back(x);
    return places;
  };
  bool begun = false;
  for (int64_t n = base[last]; all.size() < map.box[1]; ++n)
    for (int64_t d : range(2))
      for (int64_t h : range(1))
        for (int64_t w : range(0)) {
          Point point = base;
          const std::array<int64_t, 3> place{w, h, d};
          for (unsigned k = 0; k < spatial; ++k) point[w_at + k] = place[k];
          point[last] = n;
          begun |= point == base;
          if (begun && all.size() < map.box[1]) all.push_back(point);
        }
  return all;
}

// The bits of an H200 (device_tests, PTXKIT_RECORD_TENSORS).
TEST(TensorModes, TheBitsAreThoseOfAnH200) {
  std::map<std::string, uint64_t> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../../device/tensor_h200.txt");
  for (std::string line; std::getline(file, line);) recorded[line.substr(17)] = std::stoull(line, nullptr, 16);
  for (const ptxkit::testing::TensorCase& each : ptxkit::testing::tensor_cases()) {
    const auto bytes = emulate_tensor(each);
    ASSERT_TRUE(bytes) << each.name << ": " << bytes.error().message();
    ASSERT_TRUE(recorded.contains(each.name)) << each.name;
    EXPECT_EQ(recorded[each.name], ptxkit::testing::form_hash(*bytes)) << each.name;
  }
  EXPECT_EQ(recorded.size(), ptxkit::testing::tensor_cases().size());
}

struct Im2colCase {
  unsigned rank;
  Point base;
  std::vector<unsigned> offsets;
  uint8_t stride;
};

Copied run_im2col(const Im2colCase& each, const TensorMap& map, unsigned bytes) {
  std::string coordinates, offsets, before;
  for (unsigned i = 0; i < each.rank; ++i) coordinates += fmt::format("{}{}", i ? ", " : "", each.base[i]);
  for (unsigned i = 0; i < each.offsets.size(); ++i) {
    before += fmt::format("mov.u16 %rs{}, {};\n", i, each.offsets[i]);
    offsets += fmt::format("{}%rs{}", i ? ", " : "", i);
  }
  return run_copy(
      load_text(
          fmt::format("{}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [{{}}, {{{{{}}}}}], "
                      "[bar], {{{{{}}}}}",
                      each.rank, coordinates, offsets),
          bytes, before),
      map);
}

TEST(TensorModes, Im2colWalksTheBoundingBox) {
  for (const Im2colCase& each : std::vector<Im2colCase>{{3, {4, 1, 1}, {2}, 1},
                                                        {4, {0, 2, 3, 1}, {0, 0}, 1},
                                                        {4, {4, -1, -1, 0}, {2, 1}, 1},
                                                        {4, {0, 1, 3, 1}, {1, 1}, 2},
                                                        {5, {0, 3, 4, 1, 2}, {1, 2, 0}, 1},
                                                        {5, {4, -1, 1, -1, 0}, {0, 1, 2}, 2}}) {
    TensorMap map = images(each.rank);
    map.element_stride.fill(each.stride);
    const Copied copied = run_im2col(each, map, 64 * 16);
    ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
    const std::vector<Point> expected = pixels(map, each.base);
    for (unsigned pixel = 0; pixel < 64; ++pixel)
      for (unsigned c = 0; c < 4; ++c) {
        Point point = expected[pixel];
        point[0] += c;
        for (unsigned i = 0; i < each.offsets.size(); ++i) point[i + 1] += each.offsets[i];
        EXPECT_EQ(copied.tile[pixel * 4 + c], word_at(map, point))
            << each.rank << " " << ::testing::PrintToString(each.base) << " " << pixel;
      }
  }
}

// With interleaved slices W is the innermost dimension, and a pixel is one slice of that many bytes, whatever the map's
// channels. Derived from what an H200 moved in 20 programs.
TEST(TensorModes, Im2colOfSlices) {
  for (const unsigned bytes : {16u, 32u})
    for (const Im2colCase& each : std::vector<Im2colCase>{{3, {1, 1, 0}, {1}, 1},
                                                          {4, {2, 3, 1, 0}, {0, 0}, 1},
                                                          {4, {-1, -1, 2, 0}, {1, 2}, 2},
                                                          {5, {2, 0, 1, 1, 0}, {2, 1, 0}, 1}}) {
      TensorMap map{.rank = static_cast<uint8_t>(each.rank), .element = ptx::Type::f16, .is_im2col = true};
      map.interleave_bytes = static_cast<uint8_t>(bytes);
      if (bytes == 32) map.swizzle = TensorSwizzle::bytes_32;
      map.size = each.rank == 3   ? std::array<uint64_t, 5>{6, 3, 4}
                 : each.rank == 4 ? std::array<uint64_t, 5>{6, 5, 3, 2}
                                  : std::array<uint64_t, 5>{6, 5, 4, 3, 2};
      map.box = {64, 40};
      map.lower_corner = map.upper_corner = {-1, -1, 0};
      map.element_stride.fill(each.stride);
      const Copied copied = run_im2col(each, map, 40 * bytes);
      ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
      const std::vector<Point> expected = pixels(map, each.base);
      const unsigned words = bytes / 4;
      for (unsigned i = 0; i < 40 * words; ++i) {
        Point point = expected[i / words];
        for (unsigned k = 0; k < each.offsets.size(); ++k) point[k] += each.offsets[k];
        const uint32_t slice = word_at(map, point);  // its number + 1
        const unsigned line = i / 32, at = bytes == 32 && line % 2 ? i ^ 4 : i;
        EXPECT_EQ(copied.tile[at], slice ? (slice - 1) * words + i % words + 1 : 0)
            << bytes << " " << ::testing::PrintToString(each.base);
      }
    }
}

// The w modes stay in one row of each image and can begin left of the bounding box.
TEST(TensorModes, Im2colAlongW) {
  for (const unsigned offset : {0u, 1u})
    for (const bool all : {false, true}) {
      TensorMap map = images(4);
      map.size[3] = 40;
      map.upper_corner = {0, 0, 0};
      map.element_stride[1] = 2;
      map.box[1] = 32;
      const unsigned count = all ? 128 : 32;
      const Copied copied = run_copy(
          load_text(fmt::format("4d.shared::cta.global.im2col::w{}.mbarrier::complete_tx::bytes [tile], [{{}}, "
                                "{{{{4, -1, 2, 1}}}}], [bar], {{{{%rs0, %rs1}}}}",
                                all ? "::128" : ""),
                    count * 16, fmt::format("mov.u16 %rs0, 0;\nmov.u16 %rs1, {};\n", offset)),
          map);
      ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
      // From -1 to 4 in steps of 2: three pixels of an image.
      for (unsigned pixel = 0; pixel < count; ++pixel)
        for (unsigned c = 0; c < 4; ++c)
          EXPECT_EQ(copied.tile[pixel * 4 + c],
                    word_at(map, {4 + c, -1 + 2 * int64_t{pixel % 3} + offset, 2, 1 + int64_t{pixel / 3}}))
              << pixel;
    }
  TensorMap slices = images(4);
  slices.interleave_bytes = 16;
  const Copied interleaved = run_copy(
      load_text("4d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes [tile], [{}, {{0, 0, 0, 0}}], [bar], "
                "{{%rs0, %rs0}}",
                64 * 16, "mov.u16 %rs0, 0;\n"),
      slices);
  EXPECT_THAT(first_fault(interleaved), HasSubstr("interleaved tensors have no im2col::w"));
}

// The example of the ISA (5.5.5.3): 128 pixels of row 2 of each image from pixel 3 of image 7 on, and two after them.
TEST(TensorModes, Im2colAlongWWithAHalo) {
  TensorMap map{.rank = 4, .is_im2col = true};
  map.size = {4, 7, 9, 128};
  map.box = {4, 128};
  const auto run = [&](int w, unsigned halo, const std::string& mode, unsigned bytes) {
    return run_copy(
        load_text(fmt::format("4d.shared::cta.global.im2col::w{}.mbarrier::complete_tx::bytes [tile], [{{}}, "
                              "{{{{0, {}, 2, 7}}}}], [bar], {{{{%rs0, %rs1}}}}",
                              mode, w),
                  bytes, fmt::format("mov.u16 %rs0, {};\nmov.u16 %rs1, 0;\n", halo)),
        map);
  };
  for (const unsigned stride : {1u, 2u}) {
    map.element_stride[1] = static_cast<uint8_t>(stride);
    const unsigned halo = stride == 1 ? 2 : 1;
    const Copied copied = run(3, halo, "", (128 + halo) * 16);
    ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
    int64_t w = 3, n = 7;
    for (unsigned pixel = 0; pixel < 128 + halo; ++pixel) {
      for (unsigned c = 0; c < 4; ++c) EXPECT_EQ(copied.tile[pixel * 4 + c], word_at(map, {c, w, 2, n})) << pixel;
      w += stride;
      if (w > 6) w = 0, ++n;
    }
  }
  map.element_stride[1] = 1;
  EXPECT_THAT(first_fault(run(5, 2, "", 130 * 16)), HasSubstr("wHalo is 2, and the row ends 0 pixels after the last"));
  EXPECT_THAT(first_fault(run(4, 2, "", 130 * 16)), HasSubstr("wHalo is 2, and the row ends 1 pixels after the last"));
  EXPECT_THAT(first_fault(run(3, 2, "::128", 136 * 16)), HasSubstr("the place of the halo of each 32 pixels"));
}

std::string store_text(const std::string& words) {
  return copy_text("fence.proxy.async;\ncp.async.bulk.tensor." + words +
                       ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                   "fill:\nshl.b32 %r4, %r0, 2;\nadd.u32 %r6, %r5, %r4;\nadd.u32 %r7, %r0, 100000;\n"
                   "st.shared.u32 [%r6], %r7;\nadd.u32 %r0, %r0, 128;\nsetp.lt.u32 %p1, %r0, 256;\n@%p1 bra fill;\n"
                   "mov.u32 %r0, %tid.x;\nbar.sync 0;\n",
                   "");
}

TEST(TensorModes, Im2colGoesOutToo) {
  TensorMap map = images(4);
  map.lower_corner = map.upper_corner = {0, 0, 0};
  map.box[1] = 40;
  const Copied copied =
      run_copy(store_text("4d.global.shared::cta.im2col_no_offs.bulk_group [%rd2, {4, 2, 5, 1}], [tile]"), map);
  ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
  // From (2, 5) on, 8 pixels of image 1 remain, row by row: 3, then image 2 and later ones from their first pixel.
  for (uint32_t i = 0; i < copied.tensor.size(); ++i) {
    const uint32_t c = i % 8, pixel = i / 8;
    const uint32_t first = 30 + 5 * 5 + 2;
    const bool written = c >= 4 && pixel >= first && pixel < first + 40;
    EXPECT_EQ(copied.tensor[i], written ? 100000 + (pixel - first) * 4 + c - 4 : i + 1) << i;
  }
}

TensorMap rows_of(uint32_t columns, uint32_t rows) {
  TensorMap map{.box = {8, 1}, .rank = 2};
  map.size = {columns, rows};
  return map;
}

const std::string kTiles =
    "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{%r8, %r9}}], [bar]";

// An H200 ends both launches with error 715.
TEST(TensorModes, PlacesThatHardwareRefuses) {
  const TensorMap map = rows_of(16, 20);
  EXPECT_THAT(first_fault(run_copy(load_text(kTiles, 32, "mov.u32 %r8, 2;\nmov.u32 %r9, 0;\n"), map)),
              HasSubstr("coordinate 2 of the innermost dimension is byte 8, no multiple of 16"));
  EXPECT_THAT(first_fault(run_copy(store_text("2d.global.shared::cta.tile.bulk_group [%rd2, {0, -1}], [tile]"), map)),
              HasSubstr("a tensor store reaches coordinate -1 of dimension 1"));
}

TEST(TensorModes, FourRowsAreGathered) {
  const TensorMap map = rows_of(16, 20);
  const Copied copied = run_copy(
      load_text("2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [tile], [{}, {{12, 3, 19, 20, -1}}], "
                "[bar]",
                128),
      map);
  ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
  const std::array<int64_t, 4> rows{3, 19, 20, -1};
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(copied.tile[i], word_at(map, {12 + int64_t{i % 8}, rows[i / 8]})) << i;
}

TEST(TensorModes, FourRowsAreScattered) {
  const Copied copied =
      run_copy(store_text("2d.global.shared::cta.tile::scatter4.bulk_group [%rd2, {12, 3, 19, 20, 0}], [tile]"),
               rows_of(16, 20));
  ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
  for (uint32_t i = 0; i < copied.tensor.size(); ++i) {
    const uint32_t row = i / 16, column = i % 16, part = row == 3 ? 0 : row == 19 ? 1 : row == 0 ? 3 : 4;
    EXPECT_EQ(copied.tensor[i], part < 4 && column >= 12 ? 100000 + part * 8 + column - 12 : i + 1) << i;
  }
}

// Every `stride`-th row of a box is copied; the first dimension has no stride. Outside is NaN if the map says so.
TEST(TensorModes, StridesAndFillsOfTiles) {
  TensorMap map = rows_of(16, 20);
  map.box = {8, 7};
  map.element_stride = {4, 3, 1, 1, 1};
  map.element = ptx::Type::f32;
  map.fills_with_nan = true;
  const Copied copied = run_copy(load_text(kTiles, 3 * 32, "mov.u32 %r8, 12;\nmov.u32 %r9, 13;\n"), map);
  ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
  for (unsigned i = 0; i < 24; ++i)
    EXPECT_EQ(copied.tile[i], word_at(map, {12 + int64_t{i % 8}, 13 + 3 * int64_t{i / 8}}, 0x7ff77ff7)) << i;
  EXPECT_EQ(fill_nan(ptx::Type::f16), 0x7ff7u);
}

// What an H200 made of these words, in copies to shared memory and in reductions.
TEST(TensorModes, ElementsThatAreRoundedOrFlushed) {
  const std::vector<std::pair<uint32_t, uint32_t>> rounded = {
      {0x3f800001, 0x3f800000}, {0x3f801000, 0x3f800000}, {0x3f801fff, 0x3f802000}, {0x3f802fff, 0x3f802000},
      {0x3f803000, 0x3f804000}, {0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000}, {0x7f800001, 0x7fffe000},
      {0xff923456, 0x7fffe000}, {0xbf801234, 0xbf802000}, {0x00000fff, 0x00000000}, {0x00001fff, 0x00002000}};
  struct Sum {
    uint32_t there, added, kept, flushed;
  };
  const std::vector<Sum> sums = {
      {0x00000001, 0x00000001, 0x00000002, 0x00000000}, {0x00000001, 0x80000001, 0x00000000, 0x00000000},
      {0x80000001, 0x80000000, 0x80000001, 0x80000000}, {0x00800000, 0x80800001, 0x80000001, 0x80000000},
      {0x3f800001, 0x33800000, 0x3f800002, 0x3f800002}, {0x00000001, 0xff923456, 0x7fffffff, 0x7fffffff}};
  for (const auto element : {ptx::Type::f32, ptx::Type::tf32})
    for (const bool flushes : {false, true}) {
      TensorMap map{.box = {16}, .rank = 1, .element = element, .flushes = flushes};
      map.size = {16};
      std::vector<uint32_t> in(16);
      for (size_t i = 0; i < rounded.size(); ++i) in[i] = rounded[i].first;
      const Copied loaded = run_copy(
          load_text("1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{0}}], [bar]", 64), map, in);
      ASSERT_TRUE(loaded.outcome.ok()) << render(loaded.outcome, "tensor.ptx");
      for (size_t i = 0; i < rounded.size(); ++i)
        EXPECT_EQ(loaded.tile[i], element == ptx::Type::tf32 ? rounded[i].second : rounded[i].first) << i;
      std::string before;
      for (size_t i = 0; i < sums.size(); ++i) {
        in[i] = sums[i].there;
        before += fmt::format("@!%p3 st.shared.u32 [tile+{}], {:#x};\n", 4 * i, sums[i].added);
      }
      std::string text = store_text("1d.global.shared::cta.tile.bulk_group [%rd2, {0}], [tile]");
      text.replace(text.find("bar.sync 0;\n"), 12,
                   "bar.sync 0;\nsetp.ne.u32 %p3, %r0, 0;\n" + before + "bar.sync 0;\n");
      const Copied stored = run_copy(text, map, in);
      text.replace(text.find("cp.async.bulk.tensor"), 20, "cp.reduce.async.bulk.tensor");
      text.replace(text.find(".tile.bulk"), 5, ".add.tile");
      const Copied summed = run_copy(text, map, in);
      for (const Copied* each : {&stored, &summed})
        ASSERT_TRUE(each->outcome.ok()) << render(each->outcome, "tensor.ptx");
      for (size_t i = 0; i < sums.size(); ++i) {
        EXPECT_EQ(stored.tensor[i], sums[i].added);
        EXPECT_EQ(summed.tensor[i], flushes ? sums[i].flushed : sums[i].kept) << i;
      }
      text.replace(text.find(".add.tile"), 9, ".min.tile");
      EXPECT_THAT(first_fault(run_copy(text, map, in)), HasSubstr("do not have this reduction"));
    }
  TensorMap flushed = rows_of(16, 20);
  flushed.address = 4096;
  flushed.stride_bytes = {64};
  EXPECT_TRUE(encode(flushed));
  flushed.flushes = true;
  EXPECT_FALSE(encode(flushed));
}

// Chunks of 32 and 64 bytes change places within 128: line l has chunk c at c ^ (l mod 4) or, of two, at c ^ (l mod 2).
// With a flip the halves of 16 bytes also change places in every second line.
TEST(TensorModes, LargerChunksMove) {
  for (const unsigned chunk_words : {8u, 16u})
    for (const bool flips : {false, true}) {
      if (flips && chunk_words == 16) continue;
      TensorMap map = rows_of(32, 16);
      map.box = {32, 16};
      map.swizzle = TensorSwizzle::bytes_128;
      map.chunk_bytes = static_cast<uint8_t>(4 * chunk_words);
      map.swaps_halves = flips;
      const Copied copied = run_copy(load_text(kTiles, 2048, "mov.u32 %r8, 0;\nmov.u32 %r9, 0;\n"), map);
      ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
      for (unsigned i = 0; i < 512; ++i) {
        const unsigned line = i / 32, chunk = i % 32 / chunk_words ^ line % (32 / chunk_words);
        const unsigned half = flips && line % 2 ? 2 : 0;
        EXPECT_EQ(copied.tile[line * 32 + chunk * chunk_words + (i % chunk_words ^ half)], i + 1) << i;
      }
      const std::string store = "2d.global.shared::cta.tile.bulk_group [%rd2, {0, 0}], [tile]";
      if (flips) {
        EXPECT_THAT(first_fault(run_copy(store_text(store), map)), HasSubstr("cannot be stored"));
      }
    }
}

// Elements of 4 and 6 bits are packed in the tensor. In shared memory 16 of them take 16 bytes, whose last 8 or 4 are
// not written; or they stay packed.
TEST(TensorModes, ElementsBelowAByte) {
  struct Kind {
    ptx::Type type;
    unsigned bits, room;  // of 16 elements in shared memory, bytes
  };
  for (const Kind& kind :
       {Kind{ptx::Type::b4x16, 4, 8}, Kind{ptx::Type::b4x16_p64, 4, 16}, Kind{ptx::Type::b6x16_p32, 6, 16}})
    for (const bool swizzled : {false, true}) {
      TensorMap map{.rank = 2, .element = kind.type};
      map.size = {256, 8};
      map.box = {128, 8};
      if (swizzled) map.swizzle = TensorSwizzle::bytes_128;
      const unsigned units = 8, unit = 2 * kind.bits, pitch = swizzled ? 128 : units * kind.room;
      const Copied copied =
          run_copy(load_text(kTiles, pitch * 8, "mov.u32 %r8, 128;\nmov.u32 %r9, 2;\n", "%rd2", units * unit * 8), map);
      ASSERT_TRUE(copied.outcome.ok()) << ptx::text(kind.type) << render(copied.outcome, "tensor.ptx");
      const auto* const tile = reinterpret_cast<const uint8_t*>(copied.tile.data());
      const auto* const tensor = reinterpret_cast<const uint8_t*>(copied.tensor.data());
      for (unsigned row = 0; row < 8; ++row)
        for (unsigned byte = 0; byte < units * unit; ++byte) {
          const unsigned at = row * pitch + byte / unit * kind.room + byte % unit;
          const unsigned place = swizzled ? at ^ (at / 128 % 8) << 4 : at;
          const unsigned from = (row + 2) * 16 * unit + units * unit + byte;
          EXPECT_EQ(tile[place], row < 6 ? tensor[from] : 0) << ptx::text(kind.type) << " " << row << " " << byte;
        }
    }
  // A branch on a gap is a fault.
  TensorMap gaps{.rank = 2, .element = ptx::Type::b4x16_p64};
  gaps.size = {256, 8};
  gaps.box = {128, 8};
  const auto look = [&](unsigned byte) {
    std::string text = load_text(kTiles, 16, "mov.u32 %r8, 0;\nmov.u32 %r9, 0;\n", "%rd2", 512);
    text.insert(text.rfind("ret;"), fmt::format("ld.shared.u8 %r7, [tile+{}];\nsetp.eq.u32 %p2, %r7, 1;\n"
                                                "@%p2 st.global.u32 [%rd1], %r7;\n",
                                                byte));
    return first_fault(run_copy(text, gaps));
  };
  EXPECT_EQ(look(7), "");
  EXPECT_THAT(look(8), HasSubstr("F060"));
}

TEST(TensorModes, ElementsBelowAByteGoOut) {
  for (const bool six : {false, true}) {
    TensorMap map{.rank = 2, .element = six ? ptx::Type::b6x16_p32 : ptx::Type::b4x16};
    map.size = {128, 8};
    map.box = {128, 8};
    const Copied copied = run_copy(store_text("2d.global.shared::cta.tile.bulk_group [%rd2, {0, 3}], [tile]"), map);
    ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
    const auto* const tensor = reinterpret_cast<const uint8_t*>(copied.tensor.data());
    const unsigned bits = six ? 6 : 4;
    const auto element = [&](unsigned i) {  // of the box, whose words count from 100000
      const unsigned bit = six ? i * 8 : i * 4;
      return (100000 + bit / 32) >> bit % 32 & ((1u << bits) - 1);
    };
    for (unsigned i = 0; i < 5 * 128; ++i) {
      unsigned found = 0;
      for (unsigned bit = 0; bit < bits; ++bit) {
        const unsigned at = (3 * 128 + i) * bits + bit;
        found |= (tensor[at / 8] >> at % 8 & 1u) << bit;
      }
      EXPECT_EQ(found, element(i)) << bits << " " << i;
    }
    EXPECT_EQ(copied.tensor[0], 1u);
    map.element = ptx::Type::b4x16_p64;
    EXPECT_THAT(first_fault(run_copy(store_text("2d.global.shared::cta.tile.bulk_group [%rd2, {0, 3}], [tile]"), map)),
                HasSubstr("elements of type b4x16_p64 cannot be stored"));
  }
  // The conditions for a map of such elements.
  TensorMap map{.address = 4096, .stride_bytes = {64}, .box = {128, 8}, .rank = 2, .element = ptx::Type::b4x16_p64};
  map.size = {128, 8};
  EXPECT_TRUE(encode(map));
  const auto refused = [&](auto&& change) {
    TensorMap other = map;
    change(other);
    const auto encoded = encode(other);
    return encoded ? std::string() : encoded.error().message();
  };
  EXPECT_THAT(refused([](TensorMap& m) { m.box[0] = 64; }),
              HasSubstr("a row of a box has 64 elements of type b4x16_p64"));
  EXPECT_THAT(refused([](TensorMap& m) { m.size[0] = 192; }), HasSubstr("expected a multiple of 128"));
  EXPECT_THAT(refused([](TensorMap& m) { m.address = 4112; }), HasSubstr("are multiples of 32"));
  EXPECT_THAT(refused([](TensorMap& m) { m.stride_bytes[0] = 80; }), HasSubstr("are multiples of 32"));
  EXPECT_THAT(refused([](TensorMap& m) { m.swizzle = TensorSwizzle::bytes_64; }), HasSubstr("in spans of 128, or not"));
  EXPECT_THAT(refused([](TensorMap& m) { m.fills_with_nan = true; }), HasSubstr("cannot be filled with NaN"));
  EXPECT_THAT(refused([](TensorMap& m) {
                m.element = ptx::Type::b4x16;
                m.size[0] = 129;
              }),
              HasSubstr("expected a multiple of 2"));
  EXPECT_THAT(first_fault(run_copy(load_text(kTiles, 512, "mov.u32 %r8, 64;\nmov.u32 %r9, 0;\n"), map)),
              HasSubstr("coordinate 64 of the innermost dimension is no multiple of 128"));
}

// NC/8HWC8 of 7 x 5 places, 3 slices of 8 halves and 2 images: every second place of a box of 6 x 3 in one slice of
// both images. As an H200 moves it: a slice is 16 bytes, the innermost dimension counts slices, and the last dimension
// but one is not walked. Slices of 32 bytes consist of two halves that change places in every second 128-byte line.
TEST(TensorModes, SlicesOfChannels) {
  for (const unsigned bytes : {16u, 32u}) {
    TensorMap map{.rank = 4, .element = ptx::Type::f16, .interleave_bytes = static_cast<uint8_t>(bytes)};
    map.size = {7, 5, 3, 2};
    map.box = {bytes == 16 ? uint16_t{8} : uint16_t{16}, 3, 9, 2};
    map.element_stride = {2, 1, 4, 1, 1};
    if (bytes == 32) map.swizzle = TensorSwizzle::bytes_32;
    const unsigned columns = map.box[0] / 2, words = bytes / 4, count = columns * 3 * 2 * words;
    const Copied copied = run_copy(
        load_text("4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{-1, 3, 2, 0}}], [bar]",
                  count * 4),
        map);
    ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
    for (unsigned i = 0; i < count; ++i) {
      const unsigned line = i / 32;
      const unsigned from = bytes == 32 && line % 2 ? i ^ 4 : i;
      const unsigned column = from / words % columns, row = from / words / columns % 3,
                     image = from / words / columns / 3;
      const int64_t x = -1 + 2 * int64_t{column}, y = 3 + int64_t{row};
      const bool inside = x >= 0 && x < 7 && y < 5;
      const int64_t place = x + 7 * (y + 5 * (2 + 3 * int64_t{image}));
      EXPECT_EQ(copied.tile[i], inside ? place * words + from % words + 1 : 0) << bytes << " " << i;
    }
  }
}

// One thread copies the map to shared memory and changes it there; the warp publishes it to global memory.
std::string replace_text(const std::string& fields, const std::string& publish, const std::string& bytes = "256") {
  const std::string change =
      "setp.ge.u32 %p3, %r0, 32;\n@%p3 bra changed_it;\nmov.u32 %r10, changed;\nshl.b32 %r11, %r0, 2;\n"
      "add.u32 %r11, %r10, %r11;\ncvt.u64.u32 %rd5, %r0;\nshl.b64 %rd5, %rd5, 2;\nadd.u64 %rd5, %rd2, %rd5;\n"
      "ld.u32 %r12, [%rd5];\nst.shared.u32 [%r11], %r12;\nbar.warp.sync -1;\nsetp.eq.u32 %p3, %r0, 0;\n"
      "mov.u32 %r13, 8;\nmov.u64 %rd6, 128;\n" +
      fields + "bar.warp.sync -1;\nadd.u64 %rd4, %rd1, 4096;\n" + publish +
      "changed_it:\nbar.sync 0;\nadd.u64 %rd4, %rd1, 4096;\nmov.u32 %r8, 0;\nmov.u32 %r9, 6;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;\n";
  return load_text(kTiles, static_cast<uint32_t>(std::stoul(bytes)), change, "%rd4");
}
const std::string kPublish =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd4], [changed], 128;\n";

// Changes the box to 8 x 8, and the tensor to 8 rows of f32, 128 bytes apart, with NaN outside.
const std::string kFields =
    "@%p3 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 1, %r13;\n"
    "@%p3 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 1, %r13;\n"
    "@%p3 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r10], 0, %rd6;\n"
    "@%p3 tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r10], 7;\n"
    "@%p3 tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r10], 1;\n"
    "@%p3 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r10], 1;\n"
    "@%p3 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r10], 1, 1;\n"
    "@%p3 tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r10], 0;\n"
    "@%p3 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r10], 0;\n"
    "@%p3 tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r10], 0;\n";

TEST(TensorModes, KernelsChangeMaps) {
  const Copied copied = run_copy(replace_text(kFields, kPublish), rows_of(16, 20));
  ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned row = 6 + i / 8;  // the tensor has 8 rows, 32 words apart
    EXPECT_EQ(copied.tile[i], row < 8 ? row * 32 + i % 8 + 1 : 0x7ff77ff7u) << i;
  }
}

// Zeros instead of a map, and every field: compilers make maps in kernels this way.
TEST(TensorModes, KernelsMakeMaps) {
  const std::string fields =
      kFields +
      "@%p3 ld.u64 %rd5, [%rd2+8];\n@%p3 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r10], %rd5;\n"
      "mov.u32 %r13, 16;\n@%p3 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 0, %r13;\n"
      "mov.u32 %r13, 8;\n@%p3 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 0, %r13;\n"
      "@%p3 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r10], 0, 1;\n";
  std::string text = replace_text(fields, kPublish);
  text.replace(text.find("ld.u32 %r12, [%rd5];"), 20, "mov.u32 %r12, 0;    ");
  for (const uint32_t checks : {uint32_t{kCheckAll}, 0u}) {
    const Copied copied = run_copy(text, rows_of(16, 20), {}, checks);
    ASSERT_TRUE(copied.outcome.ok()) << render(copied.outcome, "tensor.ptx");
    for (unsigned i = 0; i < 64; ++i) {
      const unsigned row = 6 + i / 8;
      EXPECT_EQ(copied.tile[i], row < 8 ? row * 32 + i % 8 + 1 : 0x7ff77ff7u) << i;
    }
  }
  // Zeros alone are not a valid map.
  text.erase(text.find(fields), fields.size());
  EXPECT_THAT(first_fault(run_copy(text, rows_of(16, 20))), HasSubstr("there is no tensor map at this address"));
}

TEST(TensorModes, MistakesWithMaps) {
  const auto fault = [](const std::string& field) {
    return first_fault(
        run_copy(replace_text("@%p3 tensormap.replace.tile." + field + ";\n", kPublish, "32"), rows_of(16, 20)));
  };
  EXPECT_EQ(fault("rank.shared::cta.b1024.b32 [%r10], 1"), "");
  EXPECT_THAT(fault("rank.shared::cta.b1024.b32 [%r10], 7"), HasSubstr("a rank, less one, of 7"));
  EXPECT_THAT(fault("rank.shared::cta.b1024.b32 [%r10], 0"), HasSubstr("2 coordinates for a tensor of rank 1"));
  EXPECT_THAT(fault("elemtype.shared::cta.b1024.b32 [%r10], 14"), HasSubstr("expected a multiple of 128"));
  EXPECT_THAT(fault("interleave_layout.shared::cta.b1024.b32 [%r10], 1"),
              HasSubstr("an interleaved tensor has rank 2"));
  EXPECT_THAT(fault("swizzle_atomicity.shared::cta.b1024.b32 [%r10], 2"),
              HasSubstr("chunks of 32 bytes in spans of 0"));
  EXPECT_THAT(fault("swizzle_atomicity.shared::cta.b1024.b32 [%r10], 3"),
              HasSubstr("chunks of 64 bytes in spans of 0"));
  std::string spans =
      replace_text("@%p3 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r10], 4;\n", kPublish, "32");
  spans.replace(spans.find("sm_100a"), 7, "sm_103a");
  EXPECT_THAT(first_fault(run_copy(spans, rows_of(16, 20))), HasSubstr("a swizzle mode of 4 is not emulated"));
  EXPECT_THAT(fault("box_dim.shared::cta.b1024.b32 [%r10], 0, 3"), HasSubstr("expected a multiple of 16"));
  EXPECT_THAT(fault("element_stride.shared::cta.b1024.b32 [%r10], 0, %r10"), HasSubstr("not within 1 to 8"));
  EXPECT_THAT(fault("global_address.shared::cta.b1024.b64 [%r10+64], %rd6"), HasSubstr("F054"));
  EXPECT_THAT(fault("global_address.shared::cta.b1024.b64 [%r10+4], %rd6"), HasSubstr("F051"));
  EXPECT_THAT(fault("global_address.shared::cta.b1024.b64 [tile], %rd6"),
              HasSubstr("there is no tensor map at this address"));
  // Without the barrier of the warp, the stores of the map's words race with its change.
  std::string unordered = replace_text(kFields, kPublish);
  unordered.replace(unordered.find("bar.warp.sync -1;"), 17, "");
  EXPECT_THAT(first_fault(run_copy(unordered, rows_of(16, 20))), HasSubstr("F050"));
  // A map of the other kind, a base outside of the box, copies by rows with a box of several rows.
  const std::string im2col =
      "4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [{}, {{0, 4, 0, 0}}], [bar], {{%rs0, "
      "%rs0}}";
  const std::string zero = "mov.u16 %rs0, 0;\nmov.u32 %r8, 0;\nmov.u32 %r9, 0;\n";
  EXPECT_THAT(first_fault(run_copy(load_text(im2col, 1024, zero), images(4))),
              HasSubstr("outside of the bounding box"));
  TensorMap tiled = images(4);
  tiled.is_im2col = false;
  tiled.box = {4, 4, 4, 4};
  EXPECT_THAT(first_fault(run_copy(load_text(im2col, 1024, zero), tiled)), HasSubstr("with a tiled map"));
  EXPECT_THAT(first_fault(run_copy(load_text(kTiles, 1024, zero), images(3))), HasSubstr("with an im2col map"));
  TensorMap boxes = rows_of(16, 20);
  boxes.box = {8, 2};
  EXPECT_THAT(
      first_fault(run_copy(load_text("2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [tile], [{}, "
                                     "{{0, 0, 0, 0, 0}}], [bar]",
                                     128),
                           boxes)),
      HasSubstr("expected 2 and 1"));
  TensorMap corner = images(5);
  corner.lower_corner[2] = -17;
  corner.address = 4096;
  corner.stride_bytes = {32, 160, 960, 2880};
  EXPECT_FALSE(encode(corner));
  corner.lower_corner[2] = -16;
  EXPECT_TRUE(encode(corner));
  corner.fills_with_nan = true;
  EXPECT_FALSE(encode(corner));
}

}  // namespace
}  // namespace ptxkit::emulator
