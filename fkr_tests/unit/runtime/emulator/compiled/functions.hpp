// Functions that are both host C++ and CUDA: compiled.cu makes a kernel of each, compiled_test.cpp compares them.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define BOTH __host__ __device__ inline
#else
#define BOTH inline
#endif

namespace functions {

BOTH uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

BOTH uint64_t unsigned_division(uint64_t a, uint64_t b) { return a / (b | 1) + a % (b | 3); }

BOTH uint64_t signed_division(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<int64_t>(a) / static_cast<int64_t>(b | 1)) ^
         static_cast<uint64_t>(static_cast<int64_t>(a) % static_cast<int64_t>(b | 3));
}

BOTH uint64_t narrow_division(uint64_t a, uint64_t b) {
  const auto x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
  return x / (y | 1) * 7u + x % (y | 5) + static_cast<uint32_t>(static_cast<int32_t>(x) / static_cast<int32_t>(y | 1)) +
         x / 10;
}

BOTH uint64_t shifts(uint64_t a, uint64_t b) {
  const auto x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
  return (a << (b & 63)) ^ (a >> (b & 31)) ^ static_cast<uint64_t>(static_cast<int64_t>(a) >> (b & 63)) ^
         ((x << (y & 31)) | (x >> ((32 - y) & 31))) ^ static_cast<uint32_t>(static_cast<int32_t>(x) >> (y & 31));
}

BOTH uint64_t small_types(uint64_t a, uint64_t b) {
  const auto c = static_cast<int8_t>(a);
  const auto d = static_cast<uint8_t>(b);
  const auto e = static_cast<int16_t>(a >> 8);
  const auto f = static_cast<uint16_t>(b >> 16);
  return static_cast<uint64_t>(int64_t{c * d + e}) ^ static_cast<uint64_t>(static_cast<int64_t>(f * e)) << 20;
}

BOTH uint64_t loop_with_break(uint64_t a, uint64_t b) {
  unsigned sum = 0;
  for (unsigned i = 0; i < (b & 15); ++i) {
    if (a & 1)
      sum += i * 3;
    else
      sum ^= i << 2;
    a = a >> 1 | a << 63;
    if (sum > 100) break;
  }
  return sum + a;
}

BOTH uint64_t double_precision(uint64_t a, uint64_t b) {
  const double x = static_cast<double>(static_cast<int64_t>(a)), y = static_cast<double>(b >> 11) + 1.5;
  const double quotient = x / y, scaled = x * 0.25;
  return static_cast<uint64_t>(static_cast<int64_t>((quotient + scaled - y) * 1e-3));
}

BOTH uint64_t table_switch(uint64_t a, uint64_t b) {
  switch ((a ^ b) & 7) {
    case 0:
      return a + 1;
    case 1:
      return b * 3;
    case 2:
      return a ^ b;
    case 3:
      return a | 5;
    case 4:
      return ~b;
    case 5:
      return a - b;
    case 6:
      return a & b;
    default:
      return 17;
  }
}

BOTH uint64_t local_array(uint64_t a, uint64_t b) {
  uint8_t bytes[32];
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<uint8_t>((a >> (i & 7) * 8) + i);
  uint64_t sum = 0;
  for (unsigned i = 0; i < 32; ++i) sum = sum * 31 + bytes[b >> i & 31];
  return sum;
}

BOTH uint64_t fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
BOTH uint64_t recursion(uint64_t a, uint64_t b) {
  return fibonacci(static_cast<unsigned>(a & 7) + static_cast<unsigned>(b & 3));
}

BOTH uint64_t minima(uint64_t a, uint64_t b) {
  const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  const auto ux = static_cast<uint32_t>(a), uy = static_cast<uint32_t>(b);
  return uint64_t{static_cast<uint32_t>(x < y ? x : y)} << 32 ^ static_cast<uint32_t>(x > y ? x : y) ^
         (ux < uy ? ux : uy) ^ (x < 0 ? 0u - ux : ux);
}

// call() runs one of the kCount functions, by number.
constexpr int kCount = 11;
BOTH uint64_t call(int function, uint64_t a, uint64_t b) {
  switch (function) {
    case 0:
      return unsigned_division(a, b);
    case 1:
      return signed_division(a, b);
    case 2:
      return narrow_division(a, b);
    case 3:
      return shifts(a, b);
    case 4:
      return small_types(a, b);
    case 5:
      return loop_with_break(a, b);
    case 6:
      return double_precision(a, b);
    case 7:
      return table_switch(a, b);
    case 8:
      return local_array(a, b);
    case 9:
      return recursion(a, b);
    default:
      return minima(a, b);
  }
}

}  // namespace functions
