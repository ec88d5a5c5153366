// The run lengths of bzip2 (J. Seward) after move-to-front coding, within the 256 values of a byte.
#include "kernels/bwt/zero_runs_reference.hpp"

#include <algorithm>

namespace ptxkit::kernels {
namespace {

constexpr uint8_t kEscape = 255;  // precedes the codes of the two largest bytes

}  // namespace

TransformOutcome zero_runs_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > kMaxBwtBytes) return {StreamStatus::item_too_large, 0};
  size_t size = 0;
  uint32_t run = 0;
  const auto put = [&](uint32_t byte) {
    if (size < dst.size()) dst[size] = static_cast<uint8_t>(byte);
    ++size;
  };
  const auto end_run = [&] {
    for (; run != 0; run = (run - 1) / 2) put((run - 1) % 2);
  };
  for (const uint8_t byte : src) {
    if (byte == 0) {
      ++run;
      continue;
    }
    end_run();
    put(std::min<uint32_t>(byte + 1, kEscape));
    if (byte >= kEscape - 1) put(byte - (kEscape - 1));
  }
  end_run();
  if (size > dst.size()) return {StreamStatus::output_overrun, 0};
  return {StreamStatus::ok, static_cast<uint32_t>(size)};
}

TransformOutcome zero_runs_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > zero_runs_bound(kMaxBwtBytes)) return {StreamStatus::item_too_large, 0};
  uint64_t size = 0;
  uint32_t digits = 0;
  for (size_t i = 0; i < src.size(); ++i) {
    if (src[i] < 2) {
      if (digits == kMaxRunDigits) return {StreamStatus::corrupt, 0};
      const uint64_t zeros = (uint64_t{src[i]} + 1) << digits++;
      if (size < dst.size()) std::fill_n(&dst[size], std::min(zeros, dst.size() - size), uint8_t{0});
      size += zeros;
      continue;
    }
    digits = 0;
    uint32_t byte = src[i] - 1u;
    if (src[i] == kEscape) {
      if (++i == src.size() || src[i] > 1) return {StreamStatus::corrupt, 0};
      byte += src[i];
    }
    if (size < dst.size()) dst[size] = static_cast<uint8_t>(byte);
    ++size;
  }
  if (size > std::min<size_t>(dst.size(), kMaxBwtBytes)) return {StreamStatus::output_overrun, 0};
  return {StreamStatus::ok, static_cast<uint32_t>(size)};
}

}  // namespace ptxkit::kernels
