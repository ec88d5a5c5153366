// Textures, samplers and surfaces: device memory seen as texels, and how a fetch computes its value.
//
// Texels lie without gaps: x first, then y, then z or the layer. PTX ISA 9.0 (9.7.10, 9.7.11) and the CUDA programming
// guide (texture fetching) leave details open; these follow an H200, as measured. Coordinates are rounded to 1/256 of a
// texel. Weights are quarters of 1/256, split along z, x and y with one rounding each. Texels are truncated to four
// bits more than their format has, relative to the largest texel of the same z. The sums of the two z are truncated
// downwards to the precision that the exponent of the larger one leaves, in blocks of four. The final sum is rounded
// once, ties away from zero. See docs/emulator.md.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "support/result.hpp"
#include "support/saturating.hpp"

namespace ptxkit::emulator {

enum class ImageShape : uint8_t { buffer, one_dim, two_dim, three_dim, one_dim_array, two_dim_array, cube, cube_array };
enum class TexelFormat : uint8_t { u8, u16, u32, s8, s16, s32, f16, f32 };
enum class AddressMode : uint8_t { wrap, mirror, clamp, border };

struct ImageDescription {
  ImageShape shape = ImageShape::two_dim;
  // In texels; 1 for dimensions that the shape does not have. For cubes, `layers` is the number of cubes times 6 faces
  // (+x, -x, +y, -y, +z, -z).
  uint32_t width = 1, height = 1, depth = 1, layers = 1;
  TexelFormat format = TexelFormat::f32;
  unsigned channels = 1;  // 1, 2 or 4

  unsigned channel_bytes() const;
  unsigned texel_bytes() const { return channel_bytes() * channels; }
  uint64_t size_bytes() const { return saturating_product(width, height, depth, layers, texel_bytes()); }
};

struct Sampling {
  AddressMode address = AddressMode::clamp;  // of every axis; wrap and mirror act as clamp unless `normalised`
  bool linear = false;
  bool normalised = false;     // coordinates from 0 to 1
  bool reads_integer = false;  // 8-bit and 16-bit formats as integers; otherwise as fractions of their largest value
  std::array<float, 4> border{};
};

enum class ImageUse : uint8_t { texture, surface, sampler };

// Checks that `use` supports such an image. Error: the reason.
Result<void> check_image(ImageUse use, const ImageDescription& description);

// The image or sampler that a handle names.
struct Image {
  ImageUse use = ImageUse::texture;
  ImageDescription description;
  Sampling sampling;
  uint64_t offset = 0;  // of the first texel in device memory
};

// The texels that a fetch read, as offsets from the first byte of the image.
struct Footprint {
  std::array<uint64_t, 8> texels;
  unsigned count = 0;
};

struct FetchPoint {
  std::array<float, 3> coordinate{};
  std::array<int32_t, 3> offset{};  // in texels, added after filtering has chosen the texels
  uint32_t layer = 0;               // clamped to the last one; for cubes, the index of a cube
};

using Channels = std::array<uint32_t, 4>;  // f32 bits, or integers

Channels fetch(const Image& image, const Sampling& sampling, const uint8_t* texels, const FetchPoint& point,
               Footprint& touched);
// tld4: `channel` of the four texels that linear filtering would read, anticlockwise from the lower left one.
Channels gather(const Image& image, const Sampling& sampling, const uint8_t* texels, const FetchPoint& point,
                unsigned channel, Footprint& touched);
// Reads the texel at integer coordinates, without a filter. Outside of the image it gives zeros, or with `clamps` the
// nearest texel.
Channels fetch_texel(const Image& image, const Sampling& sampling, const uint8_t* texels,
                     const std::array<int32_t, 3>& coordinate, uint32_t layer, bool clamps, Footprint& touched);

// Writes a texel of a surface as .p does: each value is clamped to the range of the format.
void write_texel(const ImageDescription& description, uint8_t* texel, const Channels& values, unsigned count);

}  // namespace ptxkit::emulator
