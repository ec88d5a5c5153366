// See tensor_spec.hpp.
#include "runtime/launch/tensor_spec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <ranges>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/names.hpp"

namespace ptxkit {
namespace {

using emulator::TensorMap;
using emulator::TensorSwizzle;
using ptx::Type;

constexpr std::pair<std::string_view, Type> kElements[] = {
    {"u8", Type::u8},   {"u16", Type::u16}, {"u32", Type::u32},   {"s32", Type::s32},
    {"u64", Type::u64}, {"s64", Type::s64}, {"f16", Type::f16},   {"bf16", Type::bf16},
    {"f32", Type::f32}, {"f64", Type::f64}, {"tf32", Type::tf32},
};
constexpr std::pair<std::string_view, TensorSwizzle> kSwizzles[] = {
    {"swizzle32", TensorSwizzle::bytes_32},
    {"swizzle64", TensorSwizzle::bytes_64},
    {"swizzle128", TensorSwizzle::bytes_128},
};

// Parses "64x64" into `out` and returns the count of numbers; 0 if `word` is not such a list.
template <class Number>
size_t parse_size(std::string_view word, std::array<Number, 5>& out) {
  size_t count = 0;
  for (size_t begin = 0; begin <= word.size(); ++count) {
    const size_t end = std::min(word.find('x', begin), word.size());
    if (count == out.size()) return 0;
    const auto [stop, error] = std::from_chars(word.data() + begin, word.data() + end, out[count]);
    if (error != std::errc() || stop != word.data() + end) return 0;
    begin = end + 1;
  }
  return count;
}

}  // namespace

Result<TensorMap> parse_tensor_spec(std::string_view list) {
  TensorMap map;
  size_t rank = 0, box_rank = 0;
  bool has_element = false;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, end - begin);
    begin = end + 1;
    const auto named = [&](const auto& entry) { return entry.first == word; };
    if (const auto* element = std::ranges::find_if(kElements, named); element != std::end(kElements)) {
      map.element = element->second;
      has_element = true;
    } else if (const auto* swizzle = std::ranges::find_if(kSwizzles, named); swizzle != std::end(kSwizzles)) {
      map.swizzle = swizzle->second;
    } else {
      size_t& count = word.starts_with("box") ? box_rank : rank;
      count = word.starts_with("box") ? parse_size(word.substr(3), map.box) : parse_size(word, map.size);
      if (count == 0)
        return fail(fmt::format("'{}': '{}' is not a word of a tensor map", list, word), "",
                    "give a type (u8 u16 u32 s32 u64 s64 f16 bf16 f32 f64), a size such as 64x64, a box such as "
                    "box16x64, swizzle32, swizzle64 or swizzle128");
    }
  }
  if (!has_element || rank == 0 || box_rank != rank)
    return fail(fmt::format("'{}': expected a type, a size and a box of as many dimensions", list), "",
                "such as f32,64x64,box16x16");
  map.rank = static_cast<uint8_t>(rank);
  uint64_t stride_bytes = ptx::byte_width(map.element);
  for (size_t i = 0; i + 1 < rank; ++i) map.stride_bytes[i] = stride_bytes *= map.size[i];
  return map;
}

}  // namespace ptxkit
