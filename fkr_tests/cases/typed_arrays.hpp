// Arrays of numbers for the tests of typed rANS.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/typed/typed_reference.hpp"

namespace ptxkit::testing {

struct NamedLayout {
  std::string_view name;
  kernels::TypedLayout layout;
};
inline constexpr NamedLayout kNamedLayouts[] = {
    {"bytes", kernels::TypedLayout::bytes},       {"float16", kernels::TypedLayout::float16},
    {"bfloat16", kernels::TypedLayout::bfloat16}, {"float32", kernels::TypedLayout::float32},
    {"stride2", kernels::TypedLayout::stride2},   {"stride4", kernels::TypedLayout::stride4},
    {"stride8", kernels::TypedLayout::stride8},
};

// `size` bytes like those of weights: in each element the highest byte, or the exponent of eight bits, has geometric
// weights below a largest value, the other bits are random.
inline std::vector<uint8_t> weight_bytes(size_t size, kernels::TypedLayout layout, uint32_t seed) {
  const kernels::TypedShape shape = kernels::typed_shape(layout);
  std::mt19937 random(seed);
  std::geometric_distribution<uint32_t> below(0.5);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (size_t top = shape.element_bytes - 1; top < size; top += shape.element_bytes) {
    const uint32_t exponent = 121 - std::min(below(random), 100u);
    if (!shape.moves_sign) {
      bytes[top] = static_cast<uint8_t>(exponent);
      continue;
    }
    bytes[top] = static_cast<uint8_t>((bytes[top] & 0x80) | exponent >> 1);
    bytes[top - 1] = static_cast<uint8_t>((bytes[top - 1] & 0x7F) | exponent << 7);
  }
  return bytes;
}

// The coded form by the reference.
inline std::vector<uint8_t> typed_coded(std::span<const uint8_t> raw, kernels::TypedLayout layout) {
  std::vector<uint8_t> room(kernels::typed_bound(raw.size(), layout), 0xEE);
  room.resize(kernels::typed_encode_reference(raw, room, layout).size_bytes);
  return room;
}

// Bytes of one element size that no exponent of weights has: infinities, NaNs with payloads, zeros of both signs,
// denormals; each bit pattern of 16 bits where elements have as many.
inline std::vector<uint8_t> every_pattern() {
  std::vector<uint8_t> bytes;
  for (uint32_t pattern = 0; pattern < 65536; ++pattern) {
    bytes.push_back(static_cast<uint8_t>(pattern));
    bytes.push_back(static_cast<uint8_t>(pattern >> 8));
  }
  return bytes;
}

// Sizes around every limit of the format, for elements of `element_bytes`.
inline std::vector<size_t> typed_sizes(uint32_t element_bytes) {
  const size_t unit = size_t{kernels::kTypedUnit} * element_bytes, part = kernels::kTypedPart * size_t{element_bytes},
               member = kernels::kTypedMember * size_t{element_bytes};
  return {0,
          1,
          unit - 1,
          unit,
          unit + 1,
          3 * unit + 5,
          part - unit,
          part,
          part + unit,
          2 * part + unit,
          member - 1,
          member,
          member + unit,
          member + part + 77,
          2 * member,
          2 * member + 3 * part + 3 * unit + 9};
}

// Inputs of every kind for a layout.
inline std::vector<std::vector<uint8_t>> typed_inputs(kernels::TypedLayout layout) {
  const uint32_t element_bytes = kernels::typed_shape(layout).element_bytes;
  std::vector<std::vector<uint8_t>> inputs;
  for (const size_t size : typed_sizes(element_bytes)) {
    inputs.push_back(weight_bytes(size, layout, static_cast<uint32_t>(size)));
  }
  const size_t member = kernels::kTypedMember * size_t{element_bytes};
  inputs.push_back(every_pattern());
  inputs.emplace_back(member + 5);  // zeros
  inputs.emplace_back(member, uint8_t{0xA5});
  std::mt19937 random(element_bytes);
  std::vector<uint8_t> mixed(member);  // nothing to gain; then a single other value; then zeros and a burst
  for (uint8_t& byte : mixed) byte = static_cast<uint8_t>(random());
  inputs.push_back(mixed);
  inputs.emplace_back(member)[member - 1] = 7;
  for (const size_t burst : {600u, 900u, 1200u, 1500u, 6000u}) {
    auto& bytes = inputs.emplace_back(member);
    for (size_t i = 0; i < burst * element_bytes; ++i) bytes[i] = mixed[i];
  }
  return inputs;
}

}  // namespace ptxkit::testing
