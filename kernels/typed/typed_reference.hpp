// Scalar references of the kernels of typed rANS, for one item.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/typed/typed_format.hpp"

namespace ptxkit::kernels {

struct TypedOutcome {
  BatchStatus status;
  uint64_t size_bytes;  // 0 unless ok

  bool operator==(const TypedOutcome&) const = default;
};

// Codes `src` into `dst`, which needs typed_bound(src.size(), layout) bytes; output_too_small otherwise.
TypedOutcome typed_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, TypedLayout layout);

// Decodes `src` into `dst`. Whatever the input, it reads no byte outside `src` and writes none outside `dst`.
TypedOutcome typed_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// What the header of `src` says, checked against the sizes: its plan, layout and raw size.
struct TypedItem {
  TypedLayout layout = TypedLayout::bytes;
  uint64_t raw_bytes = 0;
  TypedPlan plan;
};
BatchStatus open_typed(std::span<const uint8_t> src, TypedItem& item);

// Frequencies that sum to kTypedScale, with none 0 whose count is not: each count's share, rounded to the nearest and
// at least 1. What is missing is added to the largest frequency. What is too much is taken from the largest, at most
// half of it at a time. Of equals the lowest symbol comes first. At least two counts must not be 0; `total` is their
// sum.
std::array<uint16_t, kSymbols> typed_frequencies(const std::array<uint32_t, kSymbols>& counts, uint32_t total);

}  // namespace ptxkit::kernels
