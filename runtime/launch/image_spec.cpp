// See image_spec.hpp.
#include "runtime/launch/image_spec.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/plural.hpp"

namespace ptxkit {
namespace {

using emulator::AddressMode;
using emulator::ImageShape;
using emulator::ImageUse;
using emulator::TexelFormat;

constexpr std::pair<std::string_view, ImageShape> kShapes[] = {
    {"buffer", ImageShape::buffer}, {"1d", ImageShape::one_dim},        {"2d", ImageShape::two_dim},
    {"3d", ImageShape::three_dim},  {"a1d", ImageShape::one_dim_array}, {"a2d", ImageShape::two_dim_array},
    {"cube", ImageShape::cube},     {"acube", ImageShape::cube_array},
};
constexpr std::pair<std::string_view, TexelFormat> kFormats[] = {
    {"u8", TexelFormat::u8},   {"u16", TexelFormat::u16}, {"u32", TexelFormat::u32}, {"s8", TexelFormat::s8},
    {"s16", TexelFormat::s16}, {"s32", TexelFormat::s32}, {"f16", TexelFormat::f16}, {"f32", TexelFormat::f32},
};
constexpr std::pair<std::string_view, AddressMode> kModes[] = {
    {"wrap", AddressMode::wrap},
    {"mirror", AddressMode::mirror},
    {"clamp", AddressMode::clamp},
    {"border", AddressMode::border},
};

template <class T, size_t N>
bool find(const std::pair<std::string_view, T> (&table)[N], std::string_view word, T& out) {
  for (const auto& [name, value] : table)
    if (name == word) {
      out = value;
      return true;
    }
  return false;
}

bool parse_size(std::string_view word, std::vector<uint32_t>& out) {
  std::vector<uint32_t> numbers;
  for (size_t begin = 0; begin <= word.size();) {
    const size_t end = std::min(word.find('x', begin), word.size());
    uint32_t number = 0;
    const auto [stop, error] = std::from_chars(word.data() + begin, word.data() + end, number);
    if (error != std::errc() || stop != word.data() + end) return false;
    numbers.push_back(number);
    begin = end + 1;
  }
  out = std::move(numbers);
  return true;
}

bool parse_format(std::string_view word, emulator::ImageDescription& out) {
  unsigned channels = 1;
  if (word.ends_with("x2") || word.ends_with("x4")) {
    channels = static_cast<unsigned>(word.back() - '0');
    word.remove_suffix(2);
  }
  if (!find(kFormats, word, out.format)) return false;
  out.channels = channels;
  return true;
}

bool parse_sampling(std::string_view word, emulator::Sampling& out) {
  if (find(kModes, word, out.address)) return true;
  if (word == "point" || word == "linear") {
    out.linear = word == "linear";
  } else if (word == "normalised") {
    out.normalised = true;
  } else if (word == "integer") {
    out.reads_integer = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<ImageSpec> parse_image_spec(ImageUse use, std::string_view list) {
  ImageSpec spec;
  spec.use = use;
  std::vector<uint32_t> size;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, end - begin);
    begin = end + 1;
    const bool known = (use != ImageUse::sampler && (find(kShapes, word, spec.description.shape) ||
                                                     parse_format(word, spec.description) || parse_size(word, size))) ||
                       (use != ImageUse::surface && parse_sampling(word, spec.sampling));
    if (!known)
      return fail(
          fmt::format("'{}': '{}' is not a word of a {}", list, word,
                      use == ImageUse::texture   ? "texture"
                      : use == ImageUse::surface ? "surface"
                                                 : "sampler"),
          "",
          "give a shape (buffer 1d 2d 3d a1d a2d cube acube), a size such as 8x8, a format such as u8x4 or f32; "
          "for textures and samplers point or linear, clamp, wrap, mirror or border, normalised, integer");
  }
  if (use == ImageUse::sampler) return spec;
  auto& is = spec.description;
  const bool layered = is.shape >= ImageShape::one_dim_array;
  const bool line = is.shape <= ImageShape::one_dim || is.shape == ImageShape::one_dim_array;
  const size_t axes = (line ? 1 : is.shape == ImageShape::three_dim ? 3 : 2) + (layered ? 1 : 0);
  if (size.size() != axes)
    return fail(
        fmt::format("'{}': expected a size of {} for this shape, found {}", list, plural(axes, "number"), size.size()));
  is.width = size[0];
  if (!line) is.height = size[1];
  if (layered)
    is.layers = size.back();
  else if (is.shape == ImageShape::three_dim)
    is.depth = size.back();
  return spec;
}

}  // namespace ptxkit
