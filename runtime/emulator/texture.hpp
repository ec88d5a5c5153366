// Textures, samplers and surfaces: device memory seen as texels, and how a fetch computes its value.
//
// The texels lie without gaps: x first, then y, then z or the layer. What PTX ISA 9.0 (9.7.10, 9.7.11) and the CUDA
// programming guide (texture fetching) leave open is what an H200 does, measured: coordinates are rounded to 1/256 of a
// texel; weights are quarters of 1/256 split along z, x and y with a rounding each; texels are cut to four bits more
// than they have, relative to the largest of their z; of the sums of two z each is cut downwards to what the larger
// one's exponent, in blocks of four, leaves; sums are rounded once, away from zero at a tie. docs/emulator.md.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "support/result.hpp"
#include "support/saturating.hpp"

namespace ptxkit::emulator {

enum class ImageShape : uint8_t { buffer, line, plane, volume, lines, planes, cube, cubes };
enum class TexelFormat : uint8_t { u8, u16, u32, s8, s16, s32, f16, f32 };
enum class AddressMode : uint8_t { wrap, mirror, clamp, border };

struct ImageDescription {
  ImageShape shape = ImageShape::plane;
  // In texels; what the shape does not have is 1. `layers` of a cube: 6 faces (+x, -x, +y, -y, +z, -z), times the
  // number of cubes.
  uint32_t width = 1, height = 1, depth = 1, layers = 1;
  TexelFormat format = TexelFormat::f32;
  unsigned channels = 1;  // 1, 2 or 4

  unsigned channel_bytes() const;
  unsigned texel_bytes() const { return channel_bytes() * channels; }
  uint64_t size_bytes() const { return saturating_product(width, height, depth, layers, texel_bytes()); }
};

struct Sampling {
  AddressMode address = AddressMode::clamp;  // of every axis; wrap and mirror are clamp where not `normalised`
  bool linear = false;
  bool normalised = false;     // coordinates from 0 to 1
  bool reads_integer = false;  // 8 and 16 bits as integers; otherwise as fractions of their largest value
  std::array<float, 4> border{};
};

enum class ImageUse : uint8_t { texture, surface, sampler };

// Whether there are such textures or surfaces.
Result<void> check_image(ImageUse use, const ImageDescription& description);

// What a handle names.
struct Image {
  ImageUse use = ImageUse::texture;
  ImageDescription description;
  Sampling sampling;
  uint64_t offset = 0;  // of its texels in device memory
};

// Texels that a fetch read: their offsets from the first byte of the image.
struct Footprint {
  std::array<uint64_t, 8> texels;
  unsigned count = 0;
};

struct FetchPoint {
  std::array<float, 3> coordinate{};
  std::array<int32_t, 3> offset{};  // in texels, added after filtering has chosen them
  uint32_t layer = 0;               // cut to the last one; of cubes, the number of one
};

using Channels = std::array<uint32_t, 4>;  // f32 bits, or integers

Channels fetch(const Image& image, const Sampling& sampling, const uint8_t* texels, const FetchPoint& point,
               Footprint& touched);
// The texels of one channel that linear filtering would read, anticlockwise from the lower left one.
Channels gather(const Image& image, const Sampling& sampling, const uint8_t* texels, const FetchPoint& point,
                unsigned channel, Footprint& touched);
// By integer coordinates: no filter, and outside zeros, or the nearest texel.
Channels fetch_texel(const Image& image, const Sampling& sampling, const uint8_t* texels,
                     const std::array<int32_t, 3>& coordinate, uint32_t layer, bool clamps, Footprint& touched);

// The channel values of a surface's texel as .p writes them: cut to the range of the format.
void write_texel(const ImageDescription& description, uint8_t* texel, const Channels& values, unsigned count);

}  // namespace ptxkit::emulator
