// See texture.hpp. Pure functions: from coordinates to texels to a value.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "runtime/emulator/core/scalar.hpp"
#include "runtime/emulator/texture.hpp"

namespace ptxkit::emulator {

namespace {

constexpr int64_t kOne = 256;  // weights and coordinates have 8 fractional bits
constexpr int kGuardBits = 4;
constexpr int kSumGuardBits = 3;    // additional bits where the sums of two z are added
constexpr int kExponentBlock = 3;   // in which exponents are aligned, in blocks of four
constexpr int kNoExponent = -1000;  // of an empty sum

constexpr bool is_integer(TexelFormat format) { return format < TexelFormat::f16; }
constexpr bool is_signed(TexelFormat format) { return format >= TexelFormat::s8 && format <= TexelFormat::s32; }

// v / 256 rounded to nearest, ties up.
constexpr int64_t rounded(int64_t v) { return (v + kOne / 2) >> 8; }

// `value` * 2^exponent rounded to `digits` significant bits, ties away from zero.
float round_away(int64_t value, int exponent, int digits, int least_exponent) {
  auto rest = static_cast<uint64_t>(std::abs(value));
  if (rest == 0) return 0.0F;
  const int cut = std::max(static_cast<int>(std::bit_width(rest)) - digits, least_exponent - exponent);
  if (cut > 0) {
    rest = cut > 62 ? 0 : (rest + (uint64_t{1} << (cut - 1))) >> cut;
    exponent += cut;
  }
  const auto number = static_cast<float>(std::ldexp(static_cast<double>(rest), exponent));
  return value < 0 ? -number : number;
}

// A finite floating point number as mantissa * 2^exponent with `digits` bits of mantissa.
struct ScaledInteger {
  int64_t mantissa = 0;
  int exponent = 0;
};
ScaledInteger scaled_integer(float value, int digits) {
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);
  return {static_cast<int64_t>(std::ldexp(fraction, digits)), exponent - digits};
}

// One of the up to eight texels of a filter: z, y, x each 0 or 1.
struct Tap {
  int64_t weight = 0;
  unsigned slice = 0;
  std::optional<uint64_t> texel;  // its offset; empty for the border
};

class Sampler {
 public:
  Sampler(const Image& image, const Sampling& sampling, const uint8_t* texels, Footprint& touched)
      : image_(image.description), sampling_(sampling), texels_(texels), touched_(touched) {
    size_ = {static_cast<int64_t>(image_.width), static_cast<int64_t>(image_.height),
             static_cast<int64_t>(image_.depth)};
    mode_ = !sampling_.normalised && sampling_.address != AddressMode::border ? AddressMode::clamp : sampling_.address;
  }

  // The coordinate of an axis in texels.
  double place(const FetchPoint& point, unsigned axis) const {
    double x = static_cast<double>(point.coordinate[axis]);
    if (!std::isfinite(x)) x = 0;
    if (!sampling_.normalised) return x;
    if (mode_ == AddressMode::wrap) x -= std::floor(x);
    // The hardware truncates a normalised coordinate to 21 fractional bits, or more if 1/256 of a texel needs them.
    const int bits = std::max(21, 8 + static_cast<int>(std::bit_width(static_cast<uint64_t>(size_[axis] - 1))));
    return std::ldexp(std::floor(std::ldexp(std::clamp(x, -1e9, 1e9), bits)), -bits) * static_cast<double>(size_[axis]);
  }

  // The texel to the left of a place and the distance from it, in 1/256.
  int64_t fixed(double place) const {
    return static_cast<int64_t>(std::floor(std::clamp(place, -1e9, 1e9) * kOne + 0.5)) - kOne / 2;
  }

  // The texel of the axis that an index selects; empty for the border.
  std::optional<int64_t> index(int64_t i, unsigned axis) const {
    const int64_t n = size_[axis];
    switch (mode_) {
      case AddressMode::wrap:
        return ((i % n) + n) % n;
      case AddressMode::mirror: {
        const int64_t m = ((i % (2 * n)) + 2 * n) % (2 * n);
        return m < n ? m : 2 * n - 1 - m;
      }
      case AddressMode::clamp:
        return std::clamp<int64_t>(i, 0, n - 1);
      default:
        return i < 0 || i >= n ? std::nullopt : std::optional(i);
    }
  }

  std::optional<uint64_t> texel(const std::array<int64_t, 3>& at, uint32_t layer) {
    std::array<uint64_t, 3> i{};
    for (unsigned axis = 0; axis < 3; ++axis) {
      const auto known = index(at[axis], axis);
      if (!known) return std::nullopt;
      i[axis] = static_cast<uint64_t>(*known);
    }
    return offset(i, layer);
  }

  uint64_t offset(const std::array<uint64_t, 3>& i, uint32_t layer) {
    const uint64_t z = i[2] + uint64_t{std::min(layer, image_.layers - 1)} * image_.depth;
    const uint64_t at = ((z * image_.height + i[1]) * image_.width + i[0]) * image_.texel_bytes();
    bool known = false;
    for (unsigned k = 0; k < touched_.count; ++k) known |= touched_.texels[k] == at;
    if (!known) touched_.texels[touched_.count++] = at;
    return at;
  }

  int64_t integer(uint64_t texel, unsigned channel) const {
    const unsigned bytes = image_.channel_bytes();
    uint32_t bits = 0;
    std::memcpy(&bits, texels_ + texel + uint64_t{channel} * bytes, bytes);
    if (!is_signed(image_.format)) return bits;
    return static_cast<int32_t>(bits << (32 - 8 * bytes)) >> (32 - 8 * bytes);
  }

  float floating(uint64_t texel, unsigned channel) const {
    if (image_.format == TexelFormat::f16) return scalar::f16_value(static_cast<uint16_t>(raw(texel, channel)));
    return std::bit_cast<float>(raw(texel, channel));
  }

  bool stays_integer() const {
    return is_integer(image_.format) && (sampling_.reads_integer || image_.channel_bytes() == 4);
  }

  // The value of a fetch without a filter.
  uint32_t value(const std::optional<uint64_t>& texel, unsigned channel) const {
    if (channel >= image_.channels) return 0;
    if (stays_integer()) {
      if (texel) return static_cast<uint32_t>(integer(*texel, channel));
      return image_.channel_bytes() == 4 ? std::bit_cast<uint32_t>(sampling_.border[channel]) : 0;
    }
    if (!texel) return std::bit_cast<uint32_t>(sampling_.border[channel]);
    if (!is_integer(image_.format)) return std::bit_cast<uint32_t>(floating(*texel, channel));
    return std::bit_cast<uint32_t>(static_cast<float>(
        static_cast<double>(std::max(integer(*texel, channel), -largest())) / static_cast<double>(largest())));
  }

  // A fraction of 8 or 16 bits, widened to the 16 bits that filters use.
  int64_t fraction(int64_t sum) const {
    switch (image_.format) {
      case TexelFormat::u8:
        return rounded(sum * 257);
      case TexelFormat::s8:  // 32767 / 127 as the hardware computes it
        return std::max<int64_t>((sum * 258 + (sum >> 12 << 5) + kOne / 2) >> 8, -32767);
      case TexelFormat::s16:
        return std::max<int64_t>(rounded(sum), -32767);
      default:
        return rounded(sum);
    }
  }
  uint32_t fraction_bits(int64_t sum) const {
    const double most = is_signed(image_.format) ? 32767.0 : 65535.0;
    return std::bit_cast<uint32_t>(static_cast<float>(static_cast<double>(fraction(sum)) / most));
  }
  int64_t border_integer(unsigned channel) const {
    const float value = std::clamp(sampling_.border[channel], is_signed(image_.format) ? -1.0F : 0.0F, 1.0F);
    return std::llround(static_cast<double>(value) * static_cast<double>(largest()));
  }

  std::array<Tap, 8> taps(const FetchPoint& point) {
    std::array<int64_t, 3> first{}, way{};
    for (unsigned axis = 0; axis < 3; ++axis) {
      const bool flat = axis == 2 ? size_[2] == 1 && image_.shape != ImageShape::three_dim : false;
      if (flat) continue;
      // A line is a plane of one row, whose other coordinate is 0.
      int64_t at = fixed(axis == 1 && is_line() ? 0.0 : place(point, axis)) + point.offset[axis] * kOne;
      if (mode_ == AddressMode::clamp) at = std::clamp<int64_t>(at, 0, (size_[axis] - 1) * kOne);
      first[axis] = at >> 8;
      way[axis] = at & (kOne - 1);
    }
    std::array<Tap, 8> out;
    for (unsigned z = 0; z < 2; ++z) {
      const int64_t slice = z ? way[2] : kOne - way[2];
      const int64_t right = rounded(slice * way[0]), left = slice - right;
      const int64_t upper_right = rounded(right * way[1]), lower_left = rounded(left * (kOne - way[1]));
      const int64_t weights[] = {lower_left, right - upper_right, left - lower_left, upper_right};
      for (unsigned k = 0; k < 4; ++k) {
        if (weights[k] == 0) continue;
        Tap& tap = out[z * 4 + k];
        tap.weight = weights[k];
        tap.slice = z;
        tap.texel = texel({first[0] + (k & 1), first[1] + (k >> 1), first[2] + z}, point.layer);
      }
    }
    return out;
  }

  uint32_t filtered(const std::array<Tap, 8>& taps, unsigned channel) const {
    if (channel >= image_.channels) return 0;
    if (is_integer(image_.format)) {
      int64_t sum = 0;
      for (const Tap& tap : taps)
        if (tap.weight) sum += tap.weight * (tap.texel ? integer(*tap.texel, channel) : border_integer(channel));
      return fraction_bits(sum);
    }
    const int digits = image_.format == TexelFormat::f16 ? 11 : 24;
    std::array<float, 8> values{};
    bool finite = true;
    double plain = 0;
    for (unsigned k = 0; k < 8; ++k) {
      if (!taps[k].weight) continue;
      values[k] = taps[k].texel ? floating(*taps[k].texel, channel) : sampling_.border[channel];
      finite &= std::isfinite(values[k]);
      plain += static_cast<double>(values[k]) * static_cast<double>(taps[k].weight) / kOne;
    }
    if (!finite) return std::bit_cast<uint32_t>(scalar::canonical(static_cast<float>(plain)));
    SliceSum sums[2];
    for (unsigned z = 0; z < 2; ++z) sums[z] = sum_slice(taps, values, z, digits);
    // Truncates both sums downwards to the precision that the larger one leaves.
    const int largest = std::max(sums[0].exponent, sums[1].exponent) + kGuardBits, bias = 126 + digits;
    const int unit = ((largest + bias) | kExponentBlock) - bias - kGuardBits - kSumGuardBits;
    int64_t total = 0;
    for (const SliceSum& each : sums) {
      const int up = each.exponent - unit;
      total += up >= 0 ? each.sum << up : each.sum >> std::min(-up, 63);
    }
    return std::bit_cast<uint32_t>(round_away(total, unit - 8, digits, digits == 11 ? -24 : -149));
  }

 private:
  struct SliceSum {
    int64_t sum = 0;
    int exponent = 0;
  };

  bool is_line() const { return image_.shape <= ImageShape::one_dim || image_.shape == ImageShape::one_dim_array; }
  int64_t largest() const {
    return (int64_t{1} << (8 * image_.channel_bytes() - (is_signed(image_.format) ? 1 : 0))) - 1;
  }
  uint32_t raw(uint64_t texel, unsigned channel) const {
    const unsigned bytes = image_.channel_bytes();
    uint32_t bits = 0;
    std::memcpy(&bits, texels_ + texel + uint64_t{channel} * bytes, bytes);
    return bits;
  }

  // The weighted sum of the texels of one z, each truncated kGuardBits below the last digit of the largest.
  SliceSum sum_slice(const std::array<Tap, 8>& taps, const std::array<float, 8>& values, unsigned z, int digits) const {
    int top = kNoExponent;
    for (unsigned k = 0; k < 8; ++k)
      if (taps[k].weight && taps[k].slice == z && values[k] != 0)
        top = std::max(top, scaled_integer(values[k], digits).exponent);
    SliceSum out{0, top - kGuardBits};
    if (top == kNoExponent) return out;
    for (unsigned k = 0; k < 8; ++k) {
      if (!taps[k].weight || taps[k].slice != z) continue;
      const ScaledInteger parts = scaled_integer(values[k], digits);
      if (parts.mantissa == 0) continue;
      const int down = top - parts.exponent;
      const int64_t size = std::abs(parts.mantissa) << kGuardBits;
      const int64_t cut = down > 60 ? 0 : size >> down;
      out.sum += sign_of(parts.mantissa) * cut * taps[k].weight;
    }
    return out;
  }
  static int64_t sign_of(int64_t mantissa) { return mantissa < 0 ? -1 : 1; }

  const ImageDescription& image_;
  const Sampling& sampling_;
  const uint8_t* texels_;
  Footprint& touched_;
  std::array<int64_t, 3> size_{};
  AddressMode mode_;
};

// Maps a direction to a face and a place on it (CUDA programming guide, cubemap textures). Of two axes of equal
// magnitude the later one decides. Beyond the edge of a face the texture's address mode applies.
FetchPoint on_face(const FetchPoint& point, uint32_t cubes) {
  const auto [x, y, z] = point.coordinate;
  const float ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
  unsigned face = 0;
  float major = 1, s = 0, t = 0;
  if (az >= ax && az >= ay) {
    face = z >= 0 ? 4 : 5;
    major = az;
    s = z >= 0 ? x : -x;
    t = -y;
  } else if (ay >= ax) {
    face = y >= 0 ? 2 : 3;
    major = ay;
    s = x;
    t = y >= 0 ? z : -z;
  } else {
    face = x >= 0 ? 0 : 1;
    major = ax;
    s = x >= 0 ? -z : z;
    t = -y;
  }
  FetchPoint out = point;
  const float reciprocal = 1 / major;
  out.coordinate = {(s * reciprocal + 1) / 2, (t * reciprocal + 1) / 2, 0};
  out.layer = std::min(point.layer, cubes - 1) * 6 + face;
  return out;
}

// The view of an image for a fetch by coordinates: for a cube its faces, with coordinates from 0 to 1.
struct Plane {
  FetchPoint point;
  Sampling sampling;
};
Plane plane_of(const Image& image, const Sampling& sampling, const FetchPoint& point) {
  Plane out{point, sampling};
  if (image.description.shape < ImageShape::cube) return out;
  out.point = on_face(point, image.description.layers / 6);
  out.sampling.normalised = true;
  return out;
}

}  // namespace

unsigned ImageDescription::channel_bytes() const {
  switch (format) {
    case TexelFormat::u8:
    case TexelFormat::s8:
      return 1;
    case TexelFormat::u16:
    case TexelFormat::s16:
    case TexelFormat::f16:
      return 2;
    default:
      return 4;
  }
}

Channels fetch(const Image& image, const Sampling& sampling, const uint8_t* texels, const FetchPoint& point,
               Footprint& touched) {
  const auto [at, how] = plane_of(image, sampling, point);
  Sampler sampler(image, how, texels, touched);
  Channels out{};
  if (how.linear && !sampler.stays_integer()) {
    const auto taps = sampler.taps(at);
    for (unsigned channel = 0; channel < 4; ++channel) out[channel] = sampler.filtered(taps, channel);
    return out;
  }
  std::array<int64_t, 3> i{};
  for (unsigned axis = 0; axis < 3; ++axis)
    i[axis] = static_cast<int64_t>(std::floor(std::clamp(sampler.place(at, axis), -1e9, 1e9))) + at.offset[axis];
  const auto texel = sampler.texel(i, at.layer);
  for (unsigned channel = 0; channel < 4; ++channel) out[channel] = sampler.value(texel, channel);
  return out;
}

Channels gather(const Image& image, const Sampling& sampling, const uint8_t* texels, const FetchPoint& point,
                unsigned channel, Footprint& touched) {
  const auto [at, how] = plane_of(image, sampling, point);
  Sampler sampler(image, how, texels, touched);
  const int64_t x = (sampler.fixed(sampler.place(at, 0)) >> 8) + at.offset[0];
  const int64_t y = (sampler.fixed(sampler.place(at, 1)) >> 8) + at.offset[1];
  static constexpr int64_t kCorners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  Channels out{};
  for (unsigned k = 0; k < 4; ++k) {
    const auto texel = sampler.texel({x + kCorners[k][0], y + kCorners[k][1], 0}, at.layer);
    // Signed bytes are converted as filters convert them.
    if (texel && image.description.format == TexelFormat::s8 && !how.reads_integer &&
        channel < image.description.channels)
      out[k] = sampler.fraction_bits(sampler.integer(*texel, channel) * kOne);
    else
      out[k] = sampler.value(texel, channel);
  }
  return out;
}

Channels fetch_texel(const Image& image, const Sampling& sampling, const uint8_t* texels,
                     const std::array<int32_t, 3>& coordinate, uint32_t layer, bool clamps, Footprint& touched) {
  Channels out{};
  const ImageDescription& is = image.description;
  const uint32_t size[] = {is.width, is.height, is.depth};
  std::array<uint64_t, 3> i{};
  if (!clamps && layer >= is.layers) return out;
  for (unsigned axis = 0; axis < 3; ++axis) {
    const int64_t at = coordinate[axis], nearest = std::clamp<int64_t>(at, 0, int64_t{size[axis]} - 1);
    if (!clamps && at != nearest) return out;
    i[axis] = static_cast<uint64_t>(nearest);
  }
  Sampler sampler(image, sampling, texels, touched);
  const uint64_t texel = sampler.offset(i, layer);
  for (unsigned channel = 0; channel < 4; ++channel) out[channel] = sampler.value(texel, channel);
  return out;
}

void write_texel(const ImageDescription& description, uint8_t* texel, const Channels& values, unsigned count) {
  const unsigned bytes = description.channel_bytes();
  for (unsigned channel = 0; channel < std::min(count, description.channels); ++channel) {
    uint32_t bits = values[channel];
    if (description.format == TexelFormat::f16) {
      bits = scalar::narrow(static_cast<double>(std::bit_cast<float>(bits)), scalar::kF16, scalar::Round::zero, false);
    } else if (is_integer(description.format) && bytes < 4) {
      const int64_t most = (int64_t{1} << (8 * bytes - (is_signed(description.format) ? 1 : 0))) - 1;
      bits = is_signed(description.format)
                 ? static_cast<uint32_t>(std::clamp<int64_t>(static_cast<int32_t>(bits), -most - 1, most))
                 : static_cast<uint32_t>(std::min<int64_t>(bits, most));
    }
    std::memcpy(texel + uint64_t{channel} * bytes, &bits, bytes);
  }
}

}  // namespace ptxkit::emulator
