// Textures and surfaces on a command line: `2d,8x8,f32x4,linear,wrap,normalised` in `tex:LIST:FILE`.
#pragma once

#include <string_view>

#include "runtime/emulator/texture.hpp"
#include "support/result.hpp"

namespace ptxkit {

struct ImageSpec {
  emulator::ImageUse use = emulator::ImageUse::texture;
  emulator::ImageDescription description;
  emulator::Sampling sampling;
};

// Parses the words of LIST, in any order: shape (buffer 1d 2d 3d a1d a2d cube acube; default 2d), size in texels (8,
// 8x8 or 8x8x4; the last number is the layers if the shape has them), format (u8 s8 u16 s16 u32 s32 f16 f32, with x2 or
// x4 for the channels); for textures and samplers point or linear, clamp, wrap, mirror or border, normalised, integer.
// Errors name the word.
Result<ImageSpec> parse_image_spec(emulator::ImageUse use, std::string_view list);

}  // namespace ptxkit
