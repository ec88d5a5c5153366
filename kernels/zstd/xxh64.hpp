// XXH64 with seed 0, of which Zstandard frames have the low half, in a warp.
//
// XXH64 has four sums, each a chain of multiplications over every fourth 64-bit word. Lane l works on sum l % 4; all
// lanes load the words, 256 bytes at a time and those of the next step before this one is added, so that loads overlap
// the chain. Source: xxhash_spec.md of the xxHash project.
#pragma once

#include <array>

#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

namespace xxh64 {

inline constexpr std::array<uint64_t, 5> kPrimes{0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                                 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5};

template <dsl::Rate R>
using U64 = dsl::Expr<dsl::u64, R>;

template <dsl::Rate R>
U64<R> rotate_left(const U64<R>& value, uint64_t count, dsl::Kernel& k) {
  return value << k.constant(count) | value >> k.constant(64 - count);
}
template <dsl::Rate R>
U64<R> times_prime(const U64<R>& value, uint32_t prime, dsl::Kernel& k) {
  return value * k.constant(kPrimes[prime]);
}
// What a sum becomes with one more word.
template <dsl::Rate R>
U64<R> round(const U64<R>& sum, const U64<R>& word, dsl::Kernel& k) {
  return times_prime<R>(rotate_left<R>(sum + times_prime<R>(word, 1, k), 31, k), 0, k);
}

}  // namespace xxh64

// Of `size` bytes at any address. The whole warp calls it.
template <class Source>
dsl::Expr<dsl::u64, dsl::Rate::warp> xxh64_of(dsl::Kernel& k, const Source& src, const WarpU32& size) {
  using namespace dsl;
  using namespace xxh64;
  using Word = U64<Rate::thread>;
  using Hash = U64<Rate::warp>;
  constexpr u32 kStripe = 32, kStep = 8 * kWarpLanes;
  const LaneU32 lane = k.lane(), sum_of_lane = lane % 4;
  const auto constant = [&](u64 value) { return k.constant(value); };
  const auto load = [&](const LaneU32& at) { return Word(src.at(at).template load_bytewise<u64>()); };
  Var<u64, Rate::thread> sum(k, select(sum_of_lane == 0, constant(kPrimes[0] + kPrimes[1]),
                                       select(sum_of_lane == 1, constant(kPrimes[1]),
                                              select(sum_of_lane == 2, constant(0), constant(0 - kPrimes[0])))));
  const WarpU32 steps_end = align_down<kStep>(size), stripes_end = align_down<kStripe>(size);
  Var<u64, Rate::thread> ahead(k, 0);
  k.if_(steps_end != 0, [&] { ahead = load(lane * 8); });
  k.range(k.constant<u32>(0), steps_end, kStep, [&](const WarpU32& step) {
    const Word word = *ahead;
    k.if_(step + kStep < steps_end, [&] { ahead = load(step + kStep + lane * 8); });
    unrolled<kWarpLanes / 4>(
        [&](auto stripe) { sum = round<Rate::thread>(*sum, shuffle(word, sum_of_lane + u32{stripe} * 4), k); });
  });
  k.range(steps_end, stripes_end, kStripe,
          [&](const WarpU32& at) { sum = round<Rate::thread>(*sum, load(at + sum_of_lane * 8), k); });

  const auto part = [&](u32 i) { return Hash(shuffle(*sum, i)); };
  Var<u64, Rate::warp> hash(k, constant(kPrimes[4]));
  k.if_(size >= kStripe, [&] {
    constexpr std::array<u64, 4> kTurns{1, 7, 12, 18};
    hash = 0;
    for (u32 i = 0; i < 4; ++i) hash += rotate_left<Rate::warp>(part(i), kTurns[i], k);
    for (u32 i = 0; i < 4; ++i) {
      const Hash mixed = *hash ^ round<Rate::warp>(constant(0), part(i), k);
      hash = times_prime<Rate::warp>(mixed, 0, k) + constant(kPrimes[3]);
    }
  });
  hash += zext<u64>(size);
  WarpVar at(k, stripes_end);
  k.warp_loop([&](auto& words) {
    words.break_if(size - *at < 8);
    const Hash word = broadcast(load(*at));
    const Hash mixed = *hash ^ round<Rate::warp>(constant(0), word, k);
    hash = times_prime<Rate::warp>(rotate_left<Rate::warp>(mixed, 27, k), 0, k) + constant(kPrimes[3]);
    at += 8;
  });
  k.if_(size - *at >= 4, [&] {
    const Hash word = zext<u64>(broadcast(src.at(*at).template load_bytewise<u32>()));
    const Hash mixed = *hash ^ times_prime<Rate::warp>(word, 0, k);
    hash = times_prime<Rate::warp>(rotate_left<Rate::warp>(mixed, 23, k), 1, k) + constant(kPrimes[2]);
    at += 4;
  });
  k.warp_loop([&](auto& bytes) {
    bytes.break_if(*at == size);
    const Hash byte = zext<u64>(broadcast(zext<u32>(src.at(*at).load())));
    const Hash mixed = *hash ^ times_prime<Rate::warp>(byte, 4, k);
    hash = times_prime<Rate::warp>(rotate_left<Rate::warp>(mixed, 11, k), 0, k);
    at += 1;
  });
  const Hash once = times_prime<Rate::warp>(*hash ^ *hash >> 33, 1, k);
  const Hash twice = times_prime<Rate::warp>(once ^ once >> 29, 2, k);
  return twice ^ twice >> 32;
}

}  // namespace ptxkit::kernels
