// Replaces CCCL's header of this name, which needs Catch2, with the parts that CUB's examples use.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cub/util_type.cuh>
#include <iomanip>
#include <iostream>
#include <type_traits>
namespace c2h {
using cub::Traits;
template <class T>
bool isnan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}
template <class T, class U>
T SafeBitCast(const U& from) {
  T to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace c2h
