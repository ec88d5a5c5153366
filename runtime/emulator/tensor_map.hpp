// Tensor maps: what `cp.async.bulk.tensor` looks at. On a GPU they are opaque and made by cuTensorMapEncodeTiled or
// cuTensorMapEncodeIm2col; here they have a form of our own, with the same conditions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "support/result.hpp"

namespace ptxkit::emulator {

// How a box lies in shared memory: the chunks of each 128 bytes change places, over spans of that many bytes.
enum class TensorSwizzle : uint8_t { none, bytes_32, bytes_64, bytes_128 };

// A tensor in global memory and the box of it that one copy moves; the innermost dimension comes first.
struct TensorMap {
  uint64_t address = 0;                    // a multiple of 16
  std::array<uint64_t, 5> size{};          // elements
  std::array<uint64_t, 4> stride_bytes{};  // of the dimensions 1 to 4, multiples of 16
  std::array<uint16_t, 5> box{};           // elements, at most 256 each; im2col: channels, then pixels up to 1024
  std::array<uint8_t, 5> element_stride{1, 1, 1, 1, 1};  // 1 to 8; that of the innermost dimension has no effect
  uint8_t rank = 1;
  // Copies of tf32 to shared memory round f32 to it. b4x16, b4x16_p64 and b6x16_p32 are elements of 4 and 6 bits.
  ptx::Type element = ptx::Type::u32;
  TensorSwizzle swizzle = TensorSwizzle::none;
  uint8_t chunk_bytes = 16;      // that change places: 16, or 32 and 64 in spans of 128
  bool swaps_halves = false;     // of every 16 bytes in each second line of 128, with chunks of 32
  uint8_t interleave_bytes = 0;  // 0, 16 or 32; see unit_bytes
  bool flushes = false;          // f32 and tf32: subnormal numbers, where sums are made
  bool fills_with_nan = false;   // outside, of floating point elements; otherwise zeros
  bool is_im2col = false;
  // im2col: of W, H and D the first coordinate of the bounding box, and its last one, less size - 1.
  std::array<int16_t, 3> lower_corner{}, upper_corner{};
};

inline constexpr size_t kTensorMapBytes = 128;  // aligned to 64

// What the innermost dimension counts: elements, or with interleave (NC/8HWC8, NC/16HWC16) slices of 16 or 32 bytes,
// the channels of one place; then the last dimension but one counts the slices of a place, of which a copy moves one.
// So W is the innermost dimension of im2col, and the box's channels have no effect.
// Elements below 8 bits are units of 2, and of 16 where shared memory has gaps between them: 8 or 12 bytes in the
// tensor and 16 there.
uint32_t elements_of_a_unit(const TensorMap& map);
uint32_t unit_bytes(const TensorMap& map);       // in the tensor, where `size` and coordinates count elements
uint32_t unit_room_bytes(const TensorMap& map);  // in shared memory
// Units that lie side by side: of the innermost dimension that many are moved from each point of tensor_rows.
uint32_t units_of_a_row(const TensorMap& map);
// From one row of a box to the next in shared memory: a swizzled row takes a whole span, whatever it fills of it.
uint32_t row_pitch_bytes(const TensorMap& map);

// Error: what cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col would refuse.
Result<std::array<std::byte, kTensorMapBytes>> encode(const TensorMap& map);
Result<void> check_tensor_map(const TensorMap& map);

Result<TensorMap> decode_tensor_map(std::span<const uint8_t, kTensorMapBytes> bytes);  // error: made by nobody
// The map that tensormap.replace finds: zeros are one whose fields have the value 0 of the instruction, so that a
// kernel can make a map from nothing.
Result<TensorMap> decode_tensor_map_to_change(std::span<const uint8_t, kTensorMapBytes> bytes);
// What tensormap.replace changes.
enum class TensorField : uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode,
};
// Sets a field, of dimension `ordinal` where it has dimensions. Error: a value that no tensor map of the emulator has;
// what does not fit the other fields is found when the map is used.
Result<void> replace_field(TensorMap& map, TensorField field, unsigned ordinal, uint64_t value);

// Puts back a map that tensormap.replace has changed, whatever it holds.
void store_tensor_map(const TensorMap& map, std::span<uint8_t, kTensorMapBytes> bytes);

// How an instruction sees a map.
enum class TensorMode : uint8_t { tiled, rows, im2col, im2col_w, im2col_w_128 };  // rows: gather4, scatter4

// Coordinates of an element; outside of the tensor too.
using TensorPoint = std::array<int64_t, 5>;

// The first elements of the rows that a copy moves, in the order in which they lie in shared memory. `coordinates` are
// the instruction's, `offsets` those of im2col (of W, H, D; or wHalo and wOffset). Error: what does not fit the map.
Result<std::vector<TensorPoint>> tensor_rows(const TensorMap& map, TensorMode mode,
                                             std::span<const int32_t> coordinates, std::span<const uint16_t> offsets);

// The NaN with which copies fill, as an H200 has it: 0x7ff7 in each half.
uint64_t fill_nan(ptx::Type type);

}  // namespace ptxkit::emulator
