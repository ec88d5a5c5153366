// The common part of the LZ77 kernels: the block of the launch that a CTA works on, and the part of the block.
#pragma once

#include "kernels/lz77/abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using LzSizes = dsl::Ptr<dsl::read_only, dsl::u32>;
using LzMatchWords = dsl::Ptr<dsl::global, dsl::u32>;
using FixedLzMatchWords = dsl::Ptr<dsl::read_only, dsl::u32>;

inline constexpr dsl::u32 kLzMatchWords = sizeof(LzMatch) / sizeof(dsl::u32);

// The number of parts of `PartBytes` in so many bytes.
template <dsl::u32 PartBytes>
BlockU32 lz_parts(const BlockU32& bytes) {
  return (bytes + (PartBytes - 1)) / PartBytes;
}

struct LzItem {
  // `parts` is the number of CTAs for each item.
  LzItem(dsl::Kernel& k, const LzSizes& sizes, const BlockU32& largest_bytes, const BlockU32& parts)
      : index(k.block() / parts), part(k.block() % parts), item_bytes(largest_bytes), size(sizes.at(index).load()) {}

  // The beginning of the item's bytes, and of its matches, of which each position has `APosition`.
  template <class Source>
  auto bytes_of(const Source& src) const {
    const BlockU32 stride_16 = item_bytes / kStrideUnitBytes;
    return src.at(dsl::times<kStrideUnitBytes>(dsl::zext<dsl::u64>(index) * dsl::zext<dsl::u64>(stride_16)))
        .template within<kStrideUnitBytes>(size);
  }
  template <dsl::u32 APosition = 1, class Matches>
  auto matches_of(const Matches& matches) const {
    return matches.at(dsl::zext<dsl::u64>(index) * dsl::zext<dsl::u64>(item_bytes) * (APosition * kLzMatchWords));
  }

  BlockU32 index, part;
  BlockU32 item_bytes, size;  // of the largest item, and of this one
};

}  // namespace ptxkit::kernels
