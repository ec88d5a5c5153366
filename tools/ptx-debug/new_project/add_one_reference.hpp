// What the kernel add_one computes, in plain C++.
#pragma once

#include <cstdint>
#include <vector>

inline std::vector<uint32_t> add_one_reference(std::vector<uint32_t> values) {
  for (uint32_t& value : values) ++value;
  return values;
}
