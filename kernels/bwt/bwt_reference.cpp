// M. Burrows, D. J. Wheeler, "A Block-sorting Lossless Data Compression Algorithm", SRC Research Report 124, 1994. The
// end of the block is smaller than every byte, and every 4096th byte has a row at which the inverse can start.
#include "kernels/bwt/bwt_reference.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/bwt/suffix_sort.hpp"
#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {

TransformOutcome bwt_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > kMaxBwtBytes) return {StreamStatus::item_too_large, 0};
  const auto n = static_cast<uint32_t>(src.size());
  if (dst.size() < bwt_block_bytes(n)) return {StreamStatus::output_overrun, 0};
  write_u32(dst.data(), n);
  if (n == 0) return {StreamStatus::ok, bwt_block_bytes(n)};
  uint8_t* byte = dst.data() + bwt_column_at(n);
  *byte++ = src[n - 1];  // the byte of row 0
  uint32_t row = 0;
  for (const uint32_t suffix : sort_suffixes(src)) {
    ++row;
    if (suffix % kBwtSegmentBytes == 0) write_u32(dst.data() + 4 + 4 * (suffix / kBwtSegmentBytes), row);
    if (suffix != 0) *byte++ = src[suffix - 1];
  }
  return {StreamStatus::ok, bwt_block_bytes(n)};
}

TransformOutcome bwt_inverse_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() < 4) return {StreamStatus::input_overrun, 0};
  const uint32_t n = read_u32(src.data());
  if (n > std::min<size_t>(dst.size(), kMaxBwtBytes)) return {StreamStatus::output_overrun, 0};
  if (src.size() < bwt_block_bytes(n)) return {StreamStatus::input_overrun, 0};
  if (src.size() > bwt_block_bytes(n)) return {StreamStatus::corrupt, 0};
  if (n == 0) return {StreamStatus::ok, 0};
  const uint32_t segments = bwt_segments(n);
  std::vector<uint32_t> rows(segments);  // rows of the segments' beginnings
  for (uint32_t i = 0; i < segments; ++i) {
    rows[i] = read_u32(src.data() + 4 + 4 * size_t{i});
    if (rows[i] - 1 >= n || (i != 0 && rows[i] == rows[0])) return {StreamStatus::bad_table, 0};
  }

  // A word for each row: its byte in the low eight bits, and above it the row of the suffix that begins with that byte.
  // A walk that reaches the block's beginning stays in an additional row at which no segment begins.
  const auto column = src.subspan(bwt_column_at(n));
  std::array<uint32_t, 257> next{1};
  for (const uint8_t byte : column) ++next[byte + 1];
  for (size_t byte = 1; byte < next.size(); ++byte) next[byte] += next[byte - 1];
  std::vector<uint32_t> steps(size_t{n} + 2);
  const uint32_t astray = n + 1;
  steps[rows[0]] = steps[astray] = astray << 8;
  for (uint32_t i = 0; i < n; ++i) steps[i + (i >= rows[0] ? 1 : 0)] = next[column[i]]++ << 8 | column[i];

  // Walks from each segment's end to its beginning; sixteen segments at a time, since each step waits for memory.
  constexpr uint32_t kAtOnce = 16;
  bool good = true;
  for (uint32_t first = 0; first < segments; first += kAtOnce) {
    const uint32_t count = std::min(kAtOnce, segments - first);
    std::array<uint32_t, kAtOnce> row{};
    for (uint32_t i = 0; i < count; ++i) row[i] = first + i + 1 < segments ? rows[first + i + 1] : 0;
    const auto step = [&](uint32_t i, uint32_t offset) {
      const uint32_t here = steps[row[i]];
      dst[(first + i) * size_t{kBwtSegmentBytes} + offset] = static_cast<uint8_t>(here);
      row[i] = here >> 8;
    };
    const uint32_t last = count - 1;
    const uint32_t last_bytes = std::min(kBwtSegmentBytes, n - (first + last) * kBwtSegmentBytes);
    for (uint32_t offset = kBwtSegmentBytes; offset-- > 0;) {
      for (uint32_t i = 0; i < last; ++i) step(i, offset);
      if (offset < last_bytes) step(last, offset);
    }
    for (uint32_t i = 0; i < count; ++i) good &= row[i] == rows[first + i];
  }
  return {good ? StreamStatus::ok : StreamStatus::corrupt, good ? n : 0};
}

}  // namespace ptxkit::kernels
