// Tensor maps, which describe the tensors of `cp.async.bulk.tensor`. On a GPU cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col make them and their form is opaque. The emulator has a form of its own, with the same
// conditions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "support/result.hpp"

namespace ptxkit::emulator {

// The swizzle of a box in shared memory: the span in which the chunks of each 128 bytes change places.
enum class TensorSwizzle : uint8_t { none, bytes_32, bytes_64, bytes_128 };

// A tensor in global memory and the box of it that one copy moves. The innermost dimension comes first.
struct TensorMap {
  uint64_t address = 0;                    // a multiple of 16
  std::array<uint64_t, 5> size{};          // in elements
  std::array<uint64_t, 4> stride_bytes{};  // of the dimensions 1 to 4, multiples of 16
  std::array<uint16_t, 5> box{};           // in elements, at most 256 each; im2col: channels, then pixels up to 1024
  std::array<uint8_t, 5> element_stride{1, 1, 1, 1, 1};  // 1 to 8; of the innermost dimension without effect
  uint8_t rank = 1;
  // Copies of tf32 to shared memory round f32 to tf32. b4x16, b4x16_p64 and b6x16_p32 are elements of 4 and 6 bits.
  ptx::Type element = ptx::Type::u32;
  TensorSwizzle swizzle = TensorSwizzle::none;
  uint8_t chunk_bytes = 16;      // size of the chunks that change places: 16, or in spans of 128 also 32 and 64
  bool swaps_halves = false;     // swaps the halves of every 16 bytes in each second line of 128, with chunks of 32
  uint8_t interleave_bytes = 0;  // 0, 16 or 32; see unit_bytes
  bool flushes = false;          // f32 and tf32: reductions flush subnormal numbers
  bool fills_with_nan = false;   // elements outside the tensor are NaN, of floating point types; otherwise zeros
  bool is_im2col = false;
  // im2col: for W, H and D, the first coordinate of the bounding box, and its last one less (size - 1).
  std::array<int16_t, 3> lower_corner{}, upper_corner{};
};

inline constexpr size_t kTensorMapBytes = 128;  // aligned to 64

// Units count the innermost dimension. A unit is one element; or, with interleave (NC/8HWC8, NC/16HWC16), a slice of 16
// or 32 bytes that holds some channels of one place. Interleaved tensors have W as the innermost dimension of im2col,
// and the box's channels have no effect; the last dimension but one counts the slices of a place, of which a copy moves
// one. Elements below 8 bits form units of 2, or of 16 where shared memory has gaps between them: such a unit takes 8
// or 12 bytes in the tensor and 16 in shared memory.
uint32_t elements_per_unit(const TensorMap& map);
uint32_t unit_bytes(const TensorMap& map);        // in the tensor, where `size` and coordinates count elements
uint32_t unit_pitch_bytes(const TensorMap& map);  // in shared memory
// Adjacent units of the innermost dimension that are moved from each point of tensor_rows.
uint32_t units_per_row(const TensorMap& map);
// Distance between two rows of a box in shared memory. A swizzled row takes a whole span even if it fills only part of
// it.
uint32_t row_pitch_bytes(const TensorMap& map);

// Error: a map that cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col would refuse.
Result<std::array<std::byte, kTensorMapBytes>> encode(const TensorMap& map);
Result<void> check_tensor_map(const TensorMap& map);

Result<TensorMap> decode_tensor_map(std::span<const uint8_t, kTensorMapBytes> bytes);  // error: not from encode()
// The map that tensormap.replace changes. Bytes that are all zero give a map whose fields have the instruction's value
// 0, so that a kernel can make a map from nothing.
Result<TensorMap> decode_tensor_map_for_replace(std::span<const uint8_t, kTensorMapBytes> bytes);
// The fields that tensormap.replace changes.
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
// Sets a field; `ordinal` is the dimension for fields that have one. Error: a value that no tensor map of the emulator
// can have. A value that does not fit the other fields is found when the map is used.
Result<void> replace_field(TensorMap& map, TensorField field, unsigned ordinal, uint64_t value);

// Writes a map that tensormap.replace has changed, without checking it.
void store_tensor_map(const TensorMap& map, std::span<uint8_t, kTensorMapBytes> bytes);

// The mode in which an instruction uses a map; rows: gather4, scatter4.
enum class TensorMode : uint8_t { tiled, rows, im2col, im2col_w, im2col_w_128 };  // rows: gather4, scatter4

// Coordinates of an element; they may lie outside of the tensor.
using TensorPoint = std::array<int64_t, 5>;

// Returns the first element of each row that a copy moves, in their order in shared memory. `coordinates` are the
// instruction's; `offsets` are those of im2col (of W, H, D; or wHalo and wOffset). Error: operands that do not fit the
// map.
Result<std::vector<TensorPoint>> tensor_rows(const TensorMap& map, TensorMode mode,
                                             std::span<const int32_t> coordinates, std::span<const uint16_t> offsets);

// The NaN that fills elements outside the tensor, as an H200 writes it: 0x7ff7 in each half.
uint64_t fill_nan(ptx::Type type);

}  // namespace ptxkit::emulator
