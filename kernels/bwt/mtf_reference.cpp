// J. L. Bentley, D. D. Sleator, R. E. Tarjan, V. K. Wei, "A Locally Adaptive Data Compression Scheme", Communications
// of the ACM 29(4), 1986.
#include "kernels/bwt/mtf_reference.hpp"

#include <array>
#include <cstring>
#include <numeric>

namespace ptxkit::kernels {
namespace {

using List = std::array<uint8_t, 256>;

uint8_t move_to_front(List& list, size_t place) {
  const uint8_t byte = list[place];
  if (place == 0) return byte;  // the common case after a BWT
  std::memmove(list.data() + 1, list.data(), place);
  list[0] = byte;
  return byte;
}

template <class Code>
TransformOutcome transform(std::span<const uint8_t> src, std::span<uint8_t> dst, const Code& code) {
  if (src.size() > kMaxBwtBytes) return {StreamStatus::item_too_large, 0};
  if (dst.size() < src.size()) return {StreamStatus::output_overrun, 0};
  List list;
  std::iota(list.begin(), list.end(), uint8_t{0});
  for (size_t i = 0; i < src.size(); ++i) dst[i] = code(list, src[i]);
  return {StreamStatus::ok, static_cast<uint32_t>(src.size())};
}

}  // namespace

TransformOutcome mtf_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  return transform(src, dst, [](List& list, uint8_t byte) {
    if (byte == list[0]) return uint8_t{0};
    const auto* const found = static_cast<const uint8_t*>(std::memchr(list.data(), byte, list.size()));
    const auto place = static_cast<uint8_t>(found - list.data());
    move_to_front(list, place);
    return place;
  });
}

TransformOutcome mtf_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  return transform(src, dst, [](List& list, uint8_t place) { return move_to_front(list, place); });
}

}  // namespace ptxkit::kernels
