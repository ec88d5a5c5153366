// See tensor_cases.hpp.
#include "fkr_tests/device/tensor_cases.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/half.hpp"

namespace ptxkit::testing {

namespace {

using emulator::TensorMap;
using emulator::TensorSwizzle;
using ptx::Type;

// Thread 0 runs `copy`. %map is the map's generic address, %tile the box in shared memory.
std::string program(const std::string& before, const std::string& copy, const std::string& after) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n"
         ".visible .entry tensor(.param .align 64 .b8 of_tensor[128], .param .u64 out, .param .u64 data)\n{\n"
         ".reg .pred %first, %other, %more, %done;\n.reg .b16 %h<4>;\n.reg .b32 %thread, %tile, %at, %word, %i;\n"
         ".reg .b64 %map, %out, %data, %to, %new;\n"
         ".shared .align 1024 .b8 tile[8192];\n.shared .align 128 .b8 changed[128];\n.shared .align 8 .b64 bar;\n"
         "mov.u32 %thread, %tid.x;\nld.param.u64 %out, [out];\nld.param.u64 %data, [data];\nmov.u32 %tile, tile;\n"
         "mov.b64 %map, of_tensor;\ncvta.param.u64 %map, %map;\nsetp.eq.u32 %first, %thread, 0;\n"
         "not.pred %other, %first;\n" +
         before + "@%other bra issued;\nmbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n" +
         copy + "issued:\nbar.sync 0;\n" + after + "ret;\n}\n";
}

// Every thread iterates over the words of the tile: %at is an offset, %i the word's number.
std::string for_words(std::string_view label, const std::string& body) {
  return fmt::format(
      "mov.u32 %i, %thread;\n{0}:\nshl.b32 %at, %i, 2;\ncvt.u64.u32 %to, %at;\nadd.u64 %to, %out, %to;\n"
      "add.u32 %at, %tile, %at;\n{1}add.u32 %i, %i, 128;\nsetp.lt.u32 %more, %i, 2048;\n@%more bra {0};\n",
      label, body);
}

// The tile is filled with a pattern, so that excess bytes are noticed. `words` is the copy with {} for the map.
std::string load_program(const std::string& words, size_t bytes, const std::string& before = "",
                         const std::string& map = "%map") {
  return program(for_words("fill", "mul.lo.u32 %word, %i, 0x9e3779b1;\nst.shared.u32 [%at], %word;\n") +
                     "fence.proxy.async;\nbar.sync 0;\n" + before,
                 fmt::format("mbarrier.arrive.expect_tx.shared.b64 _, [bar], {};\ncp.async.bulk.tensor.{};\n", bytes,
                             fmt::format(fmt::runtime(words), map)),
                 "wait:\nmbarrier.try_wait.parity.shared.b64 %done, [bar], 0;\n@!%done bra wait;\n" +
                     for_words("next", "ld.shared.u32 %word, [%at];\nst.global.u32 [%to], %word;\n"));
}

// `value` computes %word, which is stored in the tile, from the word's number in %i.
std::string store_program(const std::string& instruction, const std::string& value) {
  return program(for_words("fill", value + "st.shared.u32 [%at], %word;\nst.global.u32 [%to], %word;\n") +
                     "fence.proxy.async;\nbar.sync 0;\n",
                 instruction + ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n", "");
}

std::string coordinates(std::span<const int> values) { return fmt::format("{{{{{}}}}}", fmt::join(values, ", ")); }

// Lays out the elements of the map without gaps, sets the strides, and returns the size.
size_t lay_out(TensorMap& map) {
  uint64_t bytes = unit_bytes(map);
  for (unsigned i = 0; i < map.rank; ++i) {
    if (i) map.stride_bytes[i - 1] = bytes;
    bytes *= map.size[i];
  }
  return bytes;
}

struct Cases {
  std::vector<TensorCase> all;
  std::mt19937 random{90};

  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> out(count);
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
    return out;
  }

  // Bytes that one copy stores in the box.
  static size_t box_bytes(const TensorMap& map) {
    size_t count = unit_bytes(map);
    if (map.is_im2col) return count * (map.interleave_bytes ? 1 : map.box[0]) * map.box[1];
    for (unsigned i = 0; i < map.rank; ++i) {
      if (map.interleave_bytes && i + 2 == map.rank) continue;
      const bool has_stride = i != 0 || map.interleave_bytes;
      count *= has_stride ? (map.box[i] + map.element_stride[i] - 1u) / map.element_stride[i] : map.box[i];
    }
    return count;
  }

  void add(std::string name, TensorMap map, std::string ptx) {
    const size_t size = lay_out(map);
    all.push_back({std::move(name), std::move(ptx), map, bytes(size)});
  }

  void tile(std::string name, const TensorMap& map, std::initializer_list<int> at) {
    add(name, map,
        load_program(fmt::format("{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{{}}, {}], "
                                 "[bar]",
                                 map.rank, coordinates(at)),
                     box_bytes(map)));
  }

  void im2col(std::string name, const TensorMap& map, std::initializer_list<int> at,
              std::initializer_list<int> offsets) {
    std::string before, list;
    for (const int offset : offsets) {
      before += fmt::format("mov.u16 %h{}, {};\n", list.empty() ? 0 : list.size() / 5 + 1, offset);
      list += fmt::format("{}%h{}", list.empty() ? "" : ", ", list.empty() ? 0 : list.size() / 5 + 1);
    }
    add(name, map,
        load_program(fmt::format("{}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [{{}}, {}], "
                                 "[bar], {{{{{}}}}}",
                                 map.rank, coordinates(at), list),
                     box_bytes(map), before));
  }
};

TensorMap tensor(Type element, std::initializer_list<uint64_t> size, std::initializer_list<uint16_t> box) {
  TensorMap map;
  map.element = element;
  map.rank = static_cast<uint8_t>(size.size());
  std::copy(size.begin(), size.end(), map.size.begin());
  std::copy(box.begin(), box.end(), map.box.begin());
  return map;
}

void add_tiles(Cases& cases) {
  for (const Type type :
       {Type::u8, Type::u16, Type::s32, Type::u64, Type::s64, Type::f16, Type::bf16, Type::f32, Type::f64}) {
    const auto width = static_cast<uint16_t>(64 / ptx::byte_width(type));
    TensorMap map = tensor(type, {width * 3u, 20}, {width, 16});
    cases.tile(fmt::format("tile of {} beyond the end", ptx::text(type)), map, {width * 2 + width / 2, 9});
    if (ptx::kind(type) != ptx::TypeKind::floating) continue;
    map.fills_with_nan = true;
    cases.tile(fmt::format("tile of {} before the beginning, filled with NaN", ptx::text(type)), map, {-width / 4, -3});
  }
  cases.tile("tile of rank 1", tensor(Type::u32, {300}, {256}), {100});
  cases.tile("tile of rank 3", tensor(Type::u32, {16, 9, 7}, {8, 5, 4}), {12, 6, -2});
  cases.tile("tile of rank 4 before the beginning", tensor(Type::u16, {16, 5, 7, 3}, {8, 3, 4, 2}), {-8, 1, 5, 2});
  cases.tile("tile of rank 5", tensor(Type::u16, {16, 5, 4, 3, 3}, {8, 3, 2, 2, 2}), {8, 3, -1, 2, 1});
  for (const auto& [swizzle, span] :
       {std::pair{TensorSwizzle::bytes_32, 32}, {TensorSwizzle::bytes_64, 64}, {TensorSwizzle::bytes_128, 128}}) {
    for (const int bytes : {span, span / 2}) {
      TensorMap map = tensor(Type::u8, {256, 40}, {static_cast<uint16_t>(bytes), 32});
      map.swizzle = swizzle;
      cases.tile(fmt::format("tile of {} bytes a row, swizzled in {}", bytes, span), map, {48, 5});
    }
  }
  for (const auto& strides : {std::array<uint8_t, 5>{1, 3, 2}, {1, 8, 1}, {4, 1, 5}}) {
    TensorMap map = tensor(Type::u32, {16, 20, 12}, {8, 7, 8});
    map.element_stride = {strides[0], strides[1], strides[2], 1, 1};
    cases.tile(fmt::format("tile with element strides {} {} {}", strides[0], strides[1], strides[2]), map, {8, 5, 2});
    cases.tile(fmt::format("tile with element strides {} {} {}, from -1", strides[0], strides[1], strides[2]), map,
               {-4, -1, -1});
  }
}

// NC/8HWC8 and NC/16HWC16: width, height, slices of channels, images.
void add_interleaved(Cases& cases) {
  for (const uint8_t bytes : {uint8_t{16}, uint8_t{32}}) {
    const auto map_of = [&](std::initializer_list<uint64_t> size, std::initializer_list<uint16_t> box) {
      TensorMap map = tensor(Type::u16, size, box);
      map.interleave_bytes = bytes;
      if (bytes == 32) map.swizzle = TensorSwizzle::bytes_32;
      return map;
    };
    const std::string of = fmt::format(" in slices of {} bytes", bytes);
    cases.tile("tile of rank 3" + of, map_of({24, 3, 4}, {8, 2, 2}), {1, 1, 1});
    cases.tile("tile of rank 4 at the edges" + of, map_of({12, 6, 3, 2}, {8, 4, 1, 2}), {-2, 3, 2, 1});
    cases.tile("tile of rank 5" + of, map_of({12, 6, 4, 3, 2}, {8, 2, 3, 1, 2}), {7, -1, 2, 1, 0});
    cases.tile("tile past the last slice" + of, map_of({12, 6, 3, 2}, {8, 4, 1, 2}), {0, 0, 3, 0});
    TensorMap map = map_of({24, 9, 3, 4}, {16, 5, 1, 3});
    map.element_stride = {3, 2, 2, 2, 1};
    cases.tile("tile with element strides" + of, map, {-4, 1, 1, 0});
    map = map_of({12, 6, 3, 2}, {8, 4, 1, 2});
    map.element = Type::f16;
    map.fills_with_nan = true;
    cases.tile("tile filled with NaN" + of, map, {7, 4, 1, 0});
    for (const TensorSwizzle swizzle : {TensorSwizzle::bytes_32, TensorSwizzle::bytes_64, TensorSwizzle::bytes_128}) {
      if (bytes == 32) break;
      map = map_of({24, 12, 3, 2}, {16, 8, 1, 2});
      map.swizzle = swizzle;
      cases.tile(fmt::format("tile{}, swizzle {}", of, static_cast<int>(swizzle)), map, {3, 2, 1, 0});
    }
    const std::string numbers = "mul.lo.u32 %word, %i, 0x9e3779b1;\n";
    map = map_of({12, 6, 3, 2}, {8, 4, 1, 2});
    cases.add("store at the end" + of, map,
              store_program("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%map, {5, 4, 1, 0}], [tile]",
                            numbers));
    map.element = Type::u32;
    cases.add("reduction at the end" + of, map,
              store_program(
                  "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group [%map, {1, 3, 2, 0}], [tile]",
                  numbers));
  }
}

// Images of 9 x 6 (x 5) pixels with 16 channels, of which 8 are taken.
TensorMap images(unsigned rank) {
  TensorMap map = rank == 3   ? tensor(Type::f16, {16, 9, 4}, {8, 48})
                  : rank == 4 ? tensor(Type::f16, {16, 9, 6, 4}, {8, 48})
                              : tensor(Type::f16, {16, 9, 6, 5, 3}, {8, 48});
  map.is_im2col = true;
  map.lower_corner = {-1, -2, -1};
  map.upper_corner = {-3, -1, -2};
  return map;
}

void add_im2col(Cases& cases) {
  cases.im2col("im2col of rank 3, the last channels", images(3), {8, 2, 1}, {2});
  cases.im2col("im2col of rank 3 from the lower corner, before the channels", images(3), {-8, -1, 0}, {0});
  cases.im2col("im2col of rank 4", images(4), {8, 1, 3, 1}, {1, 2});
  cases.im2col("im2col of rank 4 from the lower corner", images(4), {0, -1, -2, 0}, {0, 0});
  cases.im2col("im2col of rank 4 beyond the last image", images(4), {0, 5, 4, 3}, {2, 1});
  cases.im2col("im2col of rank 5, the last channels", images(5), {8, 3, 4, 1, 1}, {1, 2, 0});
  cases.im2col("im2col of rank 5 from the lower corner", images(5), {0, -1, -2, -1, 0}, {3, 0, 2});
  for (const auto& strides : {std::array<uint8_t, 5>{1, 2, 3, 2, 1}, {1, 3, 1, 4, 1}}) {
    for (const unsigned rank : {3u, 4u, 5u}) {
      TensorMap map = images(rank);
      map.element_stride = strides;
      map.element_stride[rank - 1] = 1;
      const std::string name = fmt::format("im2col of rank {} with element strides {} {} {}", rank, strides[1],
                                           rank > 3 ? strides[2] : 1, rank > 4 ? strides[3] : 1);
      if (rank == 3) cases.im2col(name, map, {0, -1, 0}, {1});
      if (rank == 4) cases.im2col(name, map, {0, -1, -2, 0}, {1, 1});
      if (rank == 5) cases.im2col(name, map, {0, -1, -2, -1, 0}, {1, 1, 1});
    }
  }
  TensorMap map = images(4);
  map.swizzle = TensorSwizzle::bytes_64;
  map.box = {32, 60};
  map.size[0] = 32;
  map.fills_with_nan = true;
  cases.im2col("im2col swizzled and filled with NaN", map, {0, 0, 0, 1}, {0, 2});
  map = images(4);
  map.element = Type::f32;
  map.fills_with_nan = true;
  cases.im2col("im2col of f32 filled with NaN", map, {12, -1, 4, 2}, {0, 0});
}

// Width, height, depth, slices of channels, images.
TensorMap sliced_images(unsigned rank, uint8_t bytes) {
  TensorMap map = rank == 3   ? tensor(Type::u16, {6, 4, 3}, {16, 24})
                  : rank == 4 ? tensor(Type::u16, {6, 5, 4, 3}, {16, 40})
                              : tensor(Type::u16, {6, 5, 4, 3, 2}, {16, 60});
  map.is_im2col = true;
  map.interleave_bytes = bytes;
  if (bytes == 32) map.swizzle = TensorSwizzle::bytes_32;
  map.lower_corner = map.upper_corner = {-1, -1, -1};
  return map;
}

void add_interleaved_im2col(Cases& cases) {
  const std::string numbers = "mul.lo.u32 %word, %i, 0x9e3779b1;\n";
  for (const uint8_t bytes : {uint8_t{16}, uint8_t{32}}) {
    const std::string of = fmt::format(" in slices of {} bytes", bytes);
    cases.im2col("im2col of rank 3" + of, sliced_images(3, bytes), {2, 1, 0}, {1});
    cases.im2col("im2col of rank 4" + of, sliced_images(4, bytes), {2, 3, 1, 0}, {1, 2});
    cases.im2col("im2col of rank 5" + of, sliced_images(5, bytes), {-1, 1, 2, 1, 0}, {0, 1, 1});
    TensorMap map = sliced_images(4, bytes);
    map.element_stride = {2, 3, 1, 1, 1};
    cases.im2col("im2col of rank 4 with element strides" + of, map, {-1, -1, 2, 0}, {1, 1});
    map = sliced_images(4, bytes);
    map.lower_corner = {};
    cases.add("store by im2col" + of, map,
              store_program("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%map, {2, 3, 1, 0}],"
                            " [tile]",
                            numbers));
  }
}

// Stores accept no negative coordinates.
TensorMap within(unsigned rank) {
  TensorMap map = images(rank);
  map.lower_corner = {};
  return map;
}

void add_stores(Cases& cases) {
  const std::string numbers = "mul.lo.u32 %word, %i, 0x9e3779b1;\n";
  const auto out = [&](std::string name, TensorMap map, std::string_view mode, std::initializer_list<int> at) {
    cases.add(std::move(name), map,
              store_program(fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.{}.bulk_group [%map, {{{}}}], "
                                        "[tile]",
                                        map.rank, mode, fmt::join(at, ", ")),
                            numbers));
  };
  out("store of a tile at the end", tensor(Type::u16, {64, 20}, {32, 16}), "tile", {48, 13});
  TensorMap swizzled = tensor(Type::f16, {128, 20}, {64, 16});
  swizzled.swizzle = TensorSwizzle::bytes_128;
  out("store of a swizzled tile", swizzled, "tile", {32, 10});
  TensorMap strided = tensor(Type::u32, {16, 20, 12}, {8, 7, 8});
  strided.element_stride = {1, 3, 2, 1, 1};
  out("store of a tile with element strides", strided, "tile", {8, 5, 2});
  out("store by im2col of rank 3 within", within(3), "im2col_no_offs", {8, 2, 1});
  out("store by im2col of rank 4 within", within(4), "im2col_no_offs", {8, 3, 2, 1});
  out("store by im2col of rank 5 within", within(5), "im2col_no_offs", {0, 3, 3, 1, 1});
  // Each operation with each type that it accepts. Halves are small numbers, whose sums are exact.
  const auto reduce = [&](std::string_view operation, Type type, const std::string& value) {
    TensorMap map =
        tensor(type, {64 / ptx::byte_width(type) * 2u, 20}, {static_cast<uint16_t>(64 / ptx::byte_width(type)), 16});
    cases.add(fmt::format("reduction {} of {}", operation, ptx::text(type)), map,
              store_program(fmt::format("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%map, "
                                        "{{{}, 7}}], [tile]",
                                        operation, 32 / ptx::byte_width(type)),
                            value));
    if (ptx::kind(type) != ptx::TypeKind::floating) return;
    std::vector<uint8_t>& bytes = cases.all.back().tensor;
    for (size_t i = 0; i < bytes.size(); i += ptx::byte_width(type)) {
      const auto number = static_cast<float>(static_cast<int>(cases.random() % 33) - 16);
      const auto half = static_cast<Half>(number);
      if (type == Type::f16)
        std::memcpy(&bytes[i], &half, 2);
      else
        std::memcpy(&bytes[i], reinterpret_cast<const char*>(&number) + 4 - ptx::byte_width(type),
                    ptx::byte_width(type));
    }
  };
  for (const std::string_view operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    reduce(operation, Type::u32, numbers);
  for (const std::string_view operation : {"add", "min", "max"}) reduce(operation, Type::s32, numbers);
  for (const std::string_view operation : {"min", "max"}) reduce(operation, Type::s64, numbers);
  for (const std::string_view operation : {"add", "and", "xor"}) reduce(operation, Type::u64, numbers);
  const std::string f16 =
      "and.b32 %word, %i, 15;\ncvt.rn.f16.u32 %h0, %word;\nmov.b16 %h2, 0x4700;\nsub.rn.f16 %h1, %h0, %h2;\nmov.b32 "
      "%word, {%h0, %h1};\n";
  const std::string bf16 =
      "and.b32 %word, %i, 3;\nmul.lo.u32 %word, %word, 0x00100010;\nadd.u32 %word, %word, 0x4000c000;\n";
  for (const std::string_view operation : {"add", "min", "max"}) {
    reduce(operation, Type::f16, f16);
    reduce(operation, Type::bf16, bf16);
  }
  reduce("add", Type::f32,
         "and.b32 %word, %i, 15;\nadd.u32 %word, %word, 0x40a00000;\nand.b32 %word, %word, 0xfff00000;\n");
}

// The first warp copies the map to shared memory, thread 0 changes it there, and the warp publishes it after the box.
std::string replaced_program(const std::string& fields, const std::string& words, size_t bytes) {
  const std::string change =
      "setp.ge.u32 %more, %thread, 32;\n@%more bra published;\nmov.u32 %at, changed;\nshl.b32 %i, %thread, 2;\n"
      "cvt.u64.u32 %to, %i;\nadd.u64 %to, %map, %to;\nadd.u32 %i, %at, %i;\nld.u32 %word, [%to];\n"
      "st.shared.u32 [%i], %word;\nbar.warp.sync -1;\n@%other bra replaced;\n" +
      fields +
      "replaced:\nbar.warp.sync -1;\nadd.u64 %to, %out, 8192;\n"
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%to], [%at], 128;\n"
      "published:\nbar.sync 0;\nadd.u64 %map, %out, 8192;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n";
  return load_program(words, bytes, change);
}

std::string field(std::string_view name, std::string_view width, const std::string& value) {
  return fmt::format("tensormap.replace.tile.{}.shared::cta.b1024.{} [%at], {};\n", name, width, value);
}

void add_replaced(Cases& cases) {
  const std::string plane =
      "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{12, 13}}], [bar]";
  const TensorMap map = tensor(Type::u32, {32, 24}, {8, 8});
  const auto add = [&](std::string name, const std::string& fields, size_t bytes = 256, std::string words = "") {
    cases.add("replaced " + name, map, replaced_program(fields, words.empty() ? plane : words, bytes));
  };
  add("nothing", "");
  add("box_dim", field("box_dim", "b32", "0, 4") + "mov.u32 %i, 12;\n" + field("box_dim", "b32", "1, %i"), 4 * 4 * 12);
  add("global_dim", "mov.u32 %i, 17;\n" + field("global_dim", "b32", "0, %i") + field("global_dim", "b32", "1, %i"));
  add("global_stride", "mov.u64 %new, 80;\n" + field("global_stride", "b64", "0, %new"));
  add("global_address", "add.u64 %new, %data, 64;\n" + field("global_address", "b64", "%new"));
  add("element_stride", field("element_stride", "b32", "1, 3"), 32 * 3);
  add("elemtype and fill_mode", "mov.u32 %i, 17;\n" + field("global_dim", "b32", "1, %i") +
                                    field("elemtype", "b32", "7") + field("fill_mode", "b32", "1"));
  struct Element {
    std::string_view name;
    unsigned number, bytes;
    bool floating;
  };
  for (const Element& each : std::initializer_list<Element>{{"u8", 0, 1, false},
                                                            {"u16", 1, 2, false},
                                                            {"s32", 3, 4, false},
                                                            {"u64", 4, 8, false},
                                                            {"s64", 5, 8, false},
                                                            {"f16", 6, 2, true},
                                                            {"f64", 9, 8, true},
                                                            {"bf16", 10, 2, true}})
    add(fmt::format("elemtype of {}{}", each.name, each.bytes < 4 ? ", from byte 16 on" : ""),
        field("elemtype", "b32", fmt::format("{}", each.number)) +
            (each.floating ? field("fill_mode", "b32", "1") : "") +
            fmt::format("mov.u32 %i, {};\n", each.bytes == 1 ? 16 : 17) + field("global_dim", "b32", "1, %i") +
            fmt::format("mov.u32 %i, {};\n", 16) + field("box_dim", "b32", "0, %i"),
        size_t{16} * 8 * each.bytes,
        each.bytes < 4 ? "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{16, 13}}], [bar]"
                       : "");
  for (unsigned mode = 1; mode < 4; ++mode)
    add(fmt::format("swizzle_mode {}", mode), field("swizzle_mode", "b32", fmt::format("{}", mode)));
  add("interleave_layout none", field("interleave_layout", "b32", "0"));
  add("rank",
      "mov.u32 %i, 8;\n" + field("global_dim", "b32", "1, %i") + field("rank", "b32", "2") + "mov.u32 %i, 3;\n" +
          field("box_dim", "b32", "2, 2") + field("global_dim", "b32", "2, %i") +
          field("element_stride", "b32", "2, 1") + "mov.u64 %new, 1024;\n" + field("global_stride", "b64", "1, %new"),
      512, "3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{8, 3, 1}}], [bar]");
}

// tf32, and f32 and tf32 with subnormal numbers flushed: loads, stores, sums over numbers of every size.
void add_rounded(Cases& cases) {
  struct Element {
    std::string name;
    Type type;
    bool flushes;
    unsigned number;  // in tensormap.replace
  };
  const std::string numbers =
      "mul.lo.u32 %word, %i, 0x9e3779b1;\nand.b32 %at, %i, 3;\nsetp.eq.u32 %more, %at, 0;\n"
      "@%more and.b32 %word, %word, 0x80ffffff;\n";
  const std::string place = "shl.b32 %at, %i, 2;\nadd.u32 %at, %tile, %at;\n";  // as for_words leaves it
  for (const Element& each : std::initializer_list<Element>{{"f32", Type::f32, false, 7},
                                                            {"flushed f32", Type::f32, true, 8},
                                                            {"tf32", Type::tf32, false, 11},
                                                            {"flushed tf32", Type::tf32, true, 12}}) {
    TensorMap map = tensor(each.type, {48, 20}, {16, 16});
    map.flushes = each.flushes;
    const size_t first = cases.all.size();
    map.fills_with_nan = true;
    cases.tile("rounded tile of " + each.name, map, {40, 9});
    map.fills_with_nan = false;
    cases.add("rounded store of " + each.name, map,
              store_program("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {32, 3}], [tile]",
                            numbers + place));
    cases.add("rounded sum of " + each.name, map,
              store_program("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map, {16, 2}], "
                            "[tile]",
                            numbers + place));
    const TensorMap words = tensor(Type::u32, {32, 24}, {8, 8});
    cases.add("replaced elemtype of " + each.name + " by number", words,
              replaced_program(
                  field("elemtype", "b32", fmt::format("{}", each.number)),
                  "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [{}, {{12, 3}}], [bar]", 256));
    // Every third word of the tensor is subnormal or nearly so.
    for (size_t i = first; i < cases.all.size(); ++i)
      for (size_t word = 3; word < cases.all[i].tensor.size(); word += 12) cases.all[i].tensor[word] &= 0x80;
  }
}

// Copies that differ from those above by one word: the CTA's own memory as destination, prefetches, sums by im2col.
void add_other_words(Cases& cases) {
  const TensorMap plane = tensor(Type::u16, {64, 20}, {32, 16});
  const auto tile = [&](std::string name, const std::string& before, std::string_view space) {
    cases.add(std::move(name), plane,
              load_program(fmt::format("2d.{}.global.tile.mbarrier::complete_tx::bytes [tile], [{{}}, {{{{48, 13}}}}], "
                                       "[bar]",
                                       space),
                           Cases::box_bytes(plane), before));
  };
  tile("tile into .shared::cta", "", "shared::cta");
  tile("tile after prefetches",
       "prefetch.tensormap [%map];\nmov.b64 %to, of_tensor;\nprefetch.param.tensormap [%to];\n"
       "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {48, 13}];\n",
       "shared::cluster");
  const auto im2col = [&](std::string name, const std::string& before, std::string_view space) {
    cases.add(std::move(name), images(4),
              load_program(fmt::format("4d.{}.global.im2col.mbarrier::complete_tx::bytes [tile], [{{}}, {{{{8, 1, 3, "
                                       "1}}}}], [bar], {{{{%h0, %h1}}}}",
                                       space),
                           Cases::box_bytes(images(4)), "mov.u16 %h0, 1;\nmov.u16 %h1, 2;\n" + before));
  };
  im2col("im2col into .shared::cta", "", "shared::cta");
  im2col("im2col after a prefetch",
         "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%map, {8, 1, 3, 1}], {%h0, %h1};\n", "shared::cluster");
  TensorMap map = within(4);
  map.element = Type::u32;
  for (const std::string_view operation : {"and", "xor"})
    cases.add(
        fmt::format("reduction {} by im2col", operation), map,
        store_program(fmt::format("cp.reduce.async.bulk.tensor.4d.global.shared::cta.{}.im2col_no_offs.bulk_group "
                                  "[%map, {{8, 3, 2, 1}}], [tile]",
                                  operation),
                      "mul.lo.u32 %word, %i, 0x9e3779b1;\n"));
}

}  // namespace

std::vector<TensorCase> tensor_cases() {
  Cases cases;
  add_tiles(cases);
  add_interleaved(cases);
  add_im2col(cases);
  add_stores(cases);
  add_replaced(cases);
  add_interleaved_im2col(cases);  // after the others, whose bytes are recorded
  add_rounded(cases);
  add_other_words(cases);
  return cases.all;
}

Result<std::vector<uint8_t>> emulate_tensor(const TensorCase& each) {
  emulator::Device device;
  auto program = emulator::Program::load_text(device, each.ptx, "tensor.ptx");
  if (!program) return tl::unexpected(program.error());
  const auto data = device.allocate(each.tensor.size(), "tensor"), out = device.allocate(kTensorOutBytes, "out");
  if (!data || !out) return fail("no memory for the tensor");
  (void)device.write(*data, std::as_bytes(std::span(each.tensor)));
  TensorMap map = each.map;
  map.address = *data;
  const auto encoded = emulator::encode(map);
  if (!encoded) return tl::unexpected(encoded.error());
  const std::vector arguments{emulator::Argument::of(*encoded), emulator::Argument::of(*out),
                              emulator::Argument::of(*data)};
  const auto outcome = emulator::launch(*program, "tensor", {.block = {128}}, arguments);
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->ok()) return fail(emulator::render(*outcome, "tensor.ptx"));
  std::vector<uint8_t> bytes(kTensorTileBytes + each.tensor.size());
  const auto view = std::as_writable_bytes(std::span(bytes));
  (void)device.read(*out, view.first(kTensorTileBytes));
  (void)device.read(*data, view.subspan(kTensorTileBytes));
  return bytes;
}

}  // namespace ptxkit::testing
