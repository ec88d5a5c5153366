// See tensor_map.hpp. CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; PTX ISA 9.0, 5.5.
#include "runtime/emulator/tensor_map.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ptxkit::emulator {

namespace {

using ptx::Type;

constexpr uint64_t kMark = 0x70616d726f736e65;  // "ensormap"

static_assert(sizeof(TensorMap) + sizeof kMark <= kTensorMapBytes);

// Conditions of both kinds of map.
bool is_element(Type type) {
  static constexpr Type kElements[] = {Type::u8,   Type::u16,   Type::u32,       Type::s32,      Type::u64,
                                       Type::s64,  Type::f16,   Type::f32,       Type::f64,      Type::bf16,
                                       Type::tf32, Type::b4x16, Type::b4x16_p64, Type::b6x16_p32};
  return std::ranges::find(kElements, type) != std::end(kElements);
}

Result<void> check_tensor(const TensorMap& map) {
  if (map.rank < 1 || map.rank > 5) return fail(fmt::format("rank {} of a tensor map is not within 1 to 5", map.rank));
  if (map.address == 0 || map.address % 16)
    return fail(fmt::format("address {:#x} of a tensor is no multiple of 16", map.address));
  if (!is_element(map.element))
    return fail(fmt::format("a tensor cannot have elements of type {}", ptx::text(map.element)));
  if (map.flushes && map.element != Type::f32 && map.element != Type::tf32)
    return fail(fmt::format("elements of type {} cannot be flushed", ptx::text(map.element)));
  if (map.fills_with_nan && ptx::kind(map.element) != ptx::TypeKind::floating)
    return fail(fmt::format("elements of type {} cannot be filled with NaN", ptx::text(map.element)));
  for (unsigned i = 0; i < map.rank; ++i) {
    if (map.size[i] == 0 || map.size[i] > uint64_t{1} << 32)
      return fail(fmt::format("dimension {} of a tensor has {} elements, expected 1 to 2^32", i, map.size[i]));
    if (map.element_stride[i] == 0 || map.element_stride[i] > 8)
      return fail(fmt::format("element stride {} of dimension {} is not within 1 to 8", map.element_stride[i], i));
    if (i && (map.stride_bytes[i - 1] % 16 || map.stride_bytes[i - 1] >= uint64_t{1} << 40))
      return fail(
          fmt::format("stride {} of a tensor, {} bytes, is no multiple of 16 below 2^40", i, map.stride_bytes[i - 1]));
  }
  return {};
}

bool has_padding(const TensorMap& map) { return map.element == Type::b4x16_p64 || map.element == Type::b6x16_p32; }

// PTX ISA 9.0, 9.7.9.27.1.1. The driver's API states the first condition for the elements without gaps.
Result<void> check_narrow(const TensorMap& map) {
  const unsigned step = has_padding(map) ? 128 : 2;
  if (map.size[0] % step)
    return fail(fmt::format("a tensor has rows of {} elements of type {}, expected a multiple of {}", map.size[0],
                            ptx::text(map.element), step));
  if (!has_padding(map)) return {};
  if (map.box[0] != step)
    return fail(fmt::format("a row of a box has {} elements of type {}, expected {}", map.box[0],
                            ptx::text(map.element), step));
  for (unsigned i = 0; i < map.rank; ++i)
    if (map.address % 32 || (i && map.stride_bytes[i - 1] % 32))
      return fail(
          fmt::format("address and strides of elements of type {} are multiples of 32", ptx::text(map.element)));
  if ((map.swizzle != TensorSwizzle::none && map.swizzle != TensorSwizzle::bytes_128) || map.swaps_halves)
    return fail(fmt::format("elements of type {} are swizzled in spans of 128, or not at all", ptx::text(map.element)));
  return {};
}

// Only interleaved slices use an element stride in the innermost dimension.
bool has_gaps(const TensorMap& map) { return map.interleave_bytes != 0 && map.element_stride[0] > 1; }

// The rows of a box that begins at `corner`.
std::vector<TensorPoint> tile_rows(const TensorMap& map, const TensorPoint& corner) {
  std::vector<TensorPoint> rows{corner};
  for (unsigned step = map.element_stride[0]; has_gaps(map) && step < map.box[0]; step += map.element_stride[0]) {
    rows.push_back(corner);
    rows.back()[0] += step;
  }
  for (unsigned i = 1; i < map.rank; ++i) {
    if (map.interleave_bytes && i + 2 == map.rank) continue;
    const std::vector<TensorPoint> plane = std::move(rows);
    rows.clear();
    for (unsigned step = 0; step < map.box[i]; step += map.element_stride[i])
      for (TensorPoint point : plane) {
        point[i] += step;
        rows.push_back(point);
      }
  }
  return rows;
}

// Walks pixels along W, then H, then D within the bounding box, then from image to image; the w modes walk W only.
struct PixelIterator {
  const TensorMap& map;
  TensorPoint base;
  unsigned spatial;  // how many dimensions are walked
  int64_t shift = 0;
  unsigned w = map.interleave_bytes ? 0 : 1;  // index of dimension W; H and D follow it

  unsigned end() const { return w + spatial; }
  int64_t lower(unsigned i) const { return map.lower_corner[i - w] + (i == w ? shift : 0); }
  int64_t upper(unsigned i) const {
    return static_cast<int64_t>(map.size[i]) - 1 + map.upper_corner[i - w] + (i == w ? shift : 0);
  }
  void next() {
    for (unsigned i = w; i < end(); ++i) {
      base[i] += map.element_stride[i];
      if (base[i] <= upper(i)) return;
      base[i] = lower(i);
    }
    ++base[map.rank - 1];
  }
};

Result<void> check_interleave(const TensorMap& map) {
  if (map.interleave_bytes != 16 && map.interleave_bytes != 32)
    return fail(fmt::format("slices of {} bytes: expected 16 or 32", map.interleave_bytes));
  if (map.rank < 3) return fail(fmt::format("an interleaved tensor has rank {}, expected 3 to 5", map.rank));
  if (map.interleave_bytes == 32 && map.swizzle != TensorSwizzle::bytes_32)
    return fail("slices of 32 bytes are swizzled in spans of 32, and in no others");
  for (unsigned i = 0; i + 1 < map.rank; ++i)
    if (map.address % map.interleave_bytes || map.stride_bytes[i] % map.interleave_bytes)
      return fail(fmt::format("address and strides of slices of {0} bytes are multiples of {0}", map.interleave_bytes));
  return {};
}

// Whether the enumerations and flags of a stored map have values of their types: a kernel may write its bytes.
bool has_valid_fields(std::span<const uint8_t> stored) {
  const auto is_below = [&](size_t offset, unsigned count) { return stored[offset] < count; };
  return is_element(static_cast<Type>(stored[offsetof(TensorMap, element)])) &&
         is_below(offsetof(TensorMap, swizzle), 4) && is_below(offsetof(TensorMap, swaps_halves), 2) &&
         is_below(offsetof(TensorMap, flushes), 2) && is_below(offsetof(TensorMap, fills_with_nan), 2) &&
         is_below(offsetof(TensorMap, is_im2col), 2);
}

}  // namespace

uint32_t elements_per_unit(const TensorMap& map) {
  if (map.interleave_bytes) return 1;
  return has_padding(map) ? 16 : map.element == Type::b4x16 ? 2 : 1;
}
uint32_t unit_bytes(const TensorMap& map) {
  if (map.interleave_bytes) return map.interleave_bytes;
  switch (map.element) {
    case Type::b4x16:
      return 1;
    case Type::b4x16_p64:
      return 8;
    case Type::b6x16_p32:
      return 12;
    default:
      return ptx::byte_width(map.element);
  }
}
uint32_t unit_pitch_bytes(const TensorMap& map) {
  return !map.interleave_bytes && has_padding(map) ? 16 : unit_bytes(map);
}
uint32_t units_per_row(const TensorMap& map) {
  const bool single = map.is_im2col ? map.interleave_bytes != 0 : has_gaps(map);
  return single ? 1 : map.box[0] / elements_per_unit(map);
}
uint32_t row_pitch_bytes(const TensorMap& map) {
  if (map.interleave_bytes || map.swizzle == TensorSwizzle::none) return units_per_row(map) * unit_pitch_bytes(map);
  return 16u << static_cast<unsigned>(map.swizzle);
}

Result<void> check_tensor_map(const TensorMap& map) {
  if (auto tensor = check_tensor(map); !tensor) return tensor;
  if (map.is_im2col && map.rank < 3) return fail(fmt::format("an im2col map has rank {}, expected 3 to 5", map.rank));
  const unsigned boxes = map.is_im2col ? 2 : map.rank;
  for (unsigned i = 0; i < boxes; ++i) {
    const unsigned most = map.is_im2col && i == 1 ? 1024 : 256;
    if (map.box[i] == 0 || map.box[i] > most)
      return fail(fmt::format("dimension {} of a box has {} elements, expected 1 to {}", i, map.box[i], most));
  }
  for (unsigned i = 1; map.is_im2col && i + 1 < map.rank; ++i) {
    const int limit = map.rank == 3 ? 1 << 15 : map.rank == 4 ? 1 << 7 : 1 << 4;
    for (const int corner : {int{map.lower_corner[i - 1]}, int{map.upper_corner[i - 1]}})
      if (corner < -limit || corner >= limit)
        return fail(fmt::format("corner {} of a bounding box is not within {} to {}", corner, -limit, limit - 1));
  }
  const bool is_narrow = has_padding(map) || map.element == Type::b4x16;
  if (is_narrow)
    if (auto narrow = check_narrow(map); !narrow) return narrow;
  const unsigned row_bytes = is_narrow ? map.box[0] / elements_per_unit(map) * unit_pitch_bytes(map)
                                       : map.box[0] * ptx::byte_width(map.element);
  if (row_bytes % 16) return fail(fmt::format("a row of a box has {} bytes, expected a multiple of 16", row_bytes));
  if (map.interleave_bytes)
    if (auto interleaved = check_interleave(map); !interleaved) return interleaved;
  const unsigned span_bytes = 16u << static_cast<unsigned>(map.swizzle);
  if (map.swizzle != TensorSwizzle::none && row_bytes > span_bytes && !map.interleave_bytes)
    return fail(fmt::format("a row of a box has {} bytes, more than the {} that are swizzled", row_bytes, span_bytes));
  if (map.chunk_bytes != 16 && map.chunk_bytes != 32 && map.chunk_bytes != 64)
    return fail(fmt::format("chunks of {} bytes: expected 16, 32 or 64", map.chunk_bytes));
  if (map.chunk_bytes != 16 && map.swizzle != TensorSwizzle::bytes_128)
    return fail(fmt::format("chunks of {} bytes in spans of {}: expected 16, or 32 and 64 in spans of 128",
                            map.chunk_bytes, map.swizzle == TensorSwizzle::none ? 0 : span_bytes));
  return {};
}

Result<std::array<std::byte, kTensorMapBytes>> encode(const TensorMap& map) {
  if (const auto checked = check_tensor_map(map); !checked) return tl::unexpected(checked.error());
  std::array<std::byte, kTensorMapBytes> bytes{};
  store_tensor_map(map, std::span<uint8_t, kTensorMapBytes>(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

void store_tensor_map(const TensorMap& map, std::span<uint8_t, kTensorMapBytes> bytes) {
  std::memcpy(bytes.data(), &kMark, sizeof kMark);
  std::memcpy(bytes.data() + sizeof kMark, &map, sizeof map);
}

Result<TensorMap> decode_tensor_map(std::span<const uint8_t, kTensorMapBytes> bytes) {
  uint64_t mark = 0;
  std::memcpy(&mark, bytes.data(), sizeof mark);
  if (mark != kMark)
    return fail("there is no tensor map at this address", "", "make one with emulator::encode(TensorMap)");
  const auto stored = bytes.subspan(sizeof mark, sizeof(TensorMap));
  if (!has_valid_fields(stored))
    return fail("a tensor map with a field that no encoding has", "", "change tensor maps only with tensormap.replace");
  TensorMap map;
  std::memcpy(&map, stored.data(), sizeof map);
  return map;
}

Result<TensorMap> decode_tensor_map_for_replace(std::span<const uint8_t, kTensorMapBytes> bytes) {
  if (std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; })) return TensorMap{.element = Type::u8};
  return decode_tensor_map(bytes);
}

Result<void> replace_field(TensorMap& map, TensorField field, unsigned ordinal, uint64_t value) {
  // PTX ISA 9.0, 9.7.9.28, table of new values: 8 and 12 are f32 and tf32 that flush subnormal numbers.
  static constexpr Type kElements[] = {Type::u8,   Type::u16,   Type::u32,       Type::s32,      Type::u64,  Type::s64,
                                       Type::f16,  Type::f32,   Type::f32,       Type::f64,      Type::bf16, Type::tf32,
                                       Type::tf32, Type::b4x16, Type::b4x16_p64, Type::b6x16_p32};
  const auto refuse = [&](std::string_view what) {
    return fail(fmt::format("a tensor map with {} {} is not emulated", what, value));
  };
  if (ordinal > 4 || (field == TensorField::global_stride && ordinal > 3))
    return fail(fmt::format("dimension {} of a tensor map: there are 5, with 4 strides", ordinal));
  switch (field) {
    case TensorField::global_address:
      map.address = value;
      break;
    case TensorField::rank:
      if (value > 4) return refuse("a rank, less one, of");
      map.rank = static_cast<uint8_t>(value + 1);
      break;
    case TensorField::box_dim:
      map.box[ordinal] = static_cast<uint16_t>(std::min<uint64_t>(value, UINT16_MAX));
      break;
    case TensorField::global_dim:
      map.size[ordinal] = value;
      break;
    case TensorField::global_stride:
      map.stride_bytes[ordinal] = value;
      break;
    case TensorField::element_stride:
      map.element_stride[ordinal] = static_cast<uint8_t>(std::min<uint64_t>(value, UINT8_MAX));
      break;
    case TensorField::elemtype:
      if (value >= std::size(kElements)) return refuse("element type");
      map.element = kElements[value];
      map.flushes = value == 8 || value == 12;
      break;
    case TensorField::interleave_layout:
      map.interleave_bytes = static_cast<uint8_t>(16 * value);  // an immediate, 0 to 2
      break;
    case TensorField::swizzle_mode:
      if (value > 3) return refuse("a swizzle mode of");
      map.swizzle = static_cast<TensorSwizzle>(value);
      break;
    case TensorField::swizzle_atomicity:
      if (value > 3) return refuse("swizzle atomicity");
      map.chunk_bytes = value == 0 ? 16 : value == 3 ? 64 : 32;
      map.swaps_halves = value == 2;
      break;
    case TensorField::fill_mode:
      map.fills_with_nan = value != 0;
      break;
  }
  return {};
}

Result<std::vector<TensorPoint>> tensor_rows(const TensorMap& map, TensorMode mode,
                                             std::span<const int32_t> coordinates, std::span<const uint16_t> offsets) {
  const bool im2col = mode >= TensorMode::im2col;
  if (im2col != map.is_im2col)
    return fail(im2col ? "an im2col copy with a tiled map" : "a tiled copy with an im2col map");
  if (mode == TensorMode::rows && (map.rank != 2 || map.box[1] != 1))
    return fail(
        fmt::format("four rows of a tensor of rank {} whose box has {} rows: expected 2 and 1", map.rank, map.box[1]));
  if (mode != TensorMode::rows && coordinates.size() != map.rank)
    return fail(fmt::format("{} coordinates for a tensor of rank {}", coordinates.size(), map.rank));
  std::vector<TensorPoint> rows;
  if (mode == TensorMode::rows) {
    for (unsigned i = 1; i < 5; ++i) rows.push_back({coordinates[0], coordinates[i]});
    return rows;
  }
  TensorPoint corner{};
  std::copy(coordinates.begin(), coordinates.end(), corner.begin());
  if (mode == TensorMode::tiled) return tile_rows(map, corner);
  const bool only_w = mode != TensorMode::im2col;
  if (only_w && map.interleave_bytes) return fail("interleaved tensors have no im2col::w");
  PixelIterator pixels{map, corner, only_w ? 1u : map.rank - 2u, only_w && !offsets.empty() ? offsets[1] : 0};
  const unsigned halo = only_w && !offsets.empty() ? offsets[0] : 0;
  if (halo && mode == TensorMode::im2col_w_128)
    return fail(fmt::format(
        "wHalo {} is not emulated: the ISA shows the place of the halo of each 32 pixels in a figure only", halo));
  pixels.base[pixels.w] += pixels.shift;
  for (unsigned i = pixels.w; i < pixels.end(); ++i)
    if ((pixels.base[i] < pixels.lower(i) && !only_w) || pixels.base[i] > pixels.upper(i))
      return fail(fmt::format("coordinate {} of dimension {} is outside of the bounding box, {} to {}", pixels.base[i],
                              i, pixels.lower(i), pixels.upper(i)));
  const unsigned count = mode == TensorMode::im2col_w_128 ? 128 : map.box[1];
  for (unsigned i = 0; i < count; ++i, pixels.next()) {
    rows.push_back(pixels.base);
    for (unsigned k = 0; !only_w && k < offsets.size(); ++k) rows.back()[pixels.w + k] += offsets[k];
  }
  // The halo: pixels that follow the last one. The ISA's text does not say which ones follow where the row ends before
  // them.
  for (unsigned i = 0; i < halo; ++i) {
    TensorPoint next = rows.back();
    next[pixels.w] += map.element_stride[pixels.w];
    if (next[pixels.w] > pixels.upper(pixels.w))
      return fail(
          fmt::format("wHalo is {}, and the row ends {} pixels after the last one: the ISA shows which pixels follow "
                      "in a figure only",
                      halo, i));
    rows.push_back(next);
  }
  return rows;
}

uint64_t fill_nan(Type type) {
  constexpr uint64_t kHalves = 0x7ff77ff77ff77ff7;  // for every type
  return kHalves >> (64 - 8 * ptx::byte_width(type));
}

}  // namespace ptxkit::emulator
