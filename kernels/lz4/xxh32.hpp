// XXH32 with seed 0, the checksum of LZ4 frames, in a warp.
//
// XXH32 has four sums, each a chain of multiplications over every fourth word. Lane l works on sum l % 4; all lanes
// load the words, 512 bytes at a time and those of the next step before this one is added, so that loads overlap the
// chain. Source: xxhash_spec.md of the xxHash project.
#pragma once

#include "kernels/lz4/xxh32_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

namespace xxh32 {

template <class Value>
auto rotate_left(const Value& value, uint32_t count) {
  return dsl::funnel_left(value, value, count);
}

template <class Value>
auto mix(const Value& hash) {
  const auto once = (hash ^ hash >> 15) * kXxh32Primes[1];
  const auto twice = (once ^ once >> 13) * kXxh32Primes[2];
  return twice ^ twice >> 16;
}

// Adds the bytes after the last whole stripe, fewer than 16, and mixes.
template <class Source>
WarpU32 finish(dsl::Kernel& k, const Source& src, const WarpU32& from, const WarpU32& size, const WarpU32& begun) {
  using namespace dsl;
  WarpVar hash(k, begun + size), at(k, from);
  k.warp_loop([&](auto& words) {
    words.break_if(size - *at < 4);
    const WarpU32 word = broadcast(src.at(*at).template load_bytewise<u32>());
    hash = rotate_left(*hash + word * kXxh32Primes[2], 17) * kXxh32Primes[3];
    at += 4;
  });
  k.warp_loop([&](auto& bytes) {
    bytes.break_if(*at == size);
    const WarpU32 byte = broadcast(zext<u32>(src.at(*at).load()));
    hash = rotate_left(*hash + byte * kXxh32Primes[4], 11) * kXxh32Primes[0];
    at += 1;
  });
  return mix(*hash);
}

}  // namespace xxh32

// Of fewer than 16 bytes.
template <class Source>
WarpU32 xxh32_of_few(dsl::Kernel& k, const Source& src, const WarpU32& size) {
  return xxh32::finish(k, src, k.constant<uint32_t>(0), size, k.constant(kXxh32Primes[4]));
}

// Of `size` bytes at any address. The whole warp calls it.
template <class Source>
WarpU32 xxh32_of(dsl::Kernel& k, const Source& src, const WarpU32& size) {
  using namespace dsl;
  constexpr u32 kStripe = 16, kStep = 512, kWords = kStep / (4 * kWarpLanes);
  const LaneU32 lane = k.lane(), sum_of_lane = lane % 4;
  Var<u32, Rate::thread> sum(
      k, select(sum_of_lane == 0, k.constant(kXxh32Primes[0] + kXxh32Primes[1]),
                select(sum_of_lane == 1, k.constant(kXxh32Primes[1]),
                       select(sum_of_lane == 2, k.constant<u32>(0), k.constant<u32>(0 - kXxh32Primes[0])))));
  const auto add = [&](const LaneU32& word) {
    sum = xxh32::rotate_left(*sum + word * kXxh32Primes[1], 13) * kXxh32Primes[0];
  };
  const WarpU32 steps_end = align_down<kStep>(size);
  Var<u32, Rate::thread> ahead[kWords] = {{k, 0}, {k, 0}, {k, 0}, {k, 0}};
  const auto load = [&](const WarpU32& step) {
    unrolled<kWords>(
        [&](auto i) { ahead[i] = src.at(step + lane * 4 + u32{i} * 4 * kWarpLanes).template load_bytewise<u32>(); });
  };
  k.if_(steps_end != 0, [&] { load(k.constant<u32>(0)); });
  k.range(k.constant<u32>(0), steps_end, kStep, [&](const WarpU32& step) {
    const LaneU32 words[kWords] = {*ahead[0], *ahead[1], *ahead[2], *ahead[3]};
    k.if_(step + kStep < steps_end, [&] { load(step + kStep); });
    unrolled<kWords>([&](auto i) {
      unrolled<kWarpLanes / 4>([&](auto stripe) { add(shuffle(words[i], sum_of_lane + u32{stripe} * 4)); });
    });
  });
  const WarpU32 stripes_end = align_down<kStripe>(size);
  k.range(WarpU32(steps_end), stripes_end, kStripe,
          [&](const WarpU32& at) { add(src.at(at + sum_of_lane * 4).template load_bytewise<u32>()); });
  const auto part = [&](u32 index, u32 count) { return xxh32::rotate_left(shuffle(*sum, index), count); };
  const WarpU32 joined = part(0, 1) + part(1, 7) + part(2, 12) + part(3, 18);
  return xxh32::finish(k, src, stripes_end, size, select(size < kStripe, k.constant(kXxh32Primes[4]), joined));
}

}  // namespace ptxkit::kernels
