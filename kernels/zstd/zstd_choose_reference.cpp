#include "kernels/zstd/zstd_choose_reference.hpp"

#include <algorithm>
#include <array>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/zstd/zstd_fse_reference.hpp"

namespace ptxkit::kernels {
namespace {

// What a byte costs on average as a literal, in 1/256 bit: nothing where all are equal, otherwise at least a bit.
uint32_t literal_cost(std::span<const uint8_t> src) {
  const auto size = static_cast<uint32_t>(src.size());
  uint32_t cost = 0;
  for (const uint32_t count : count_bytes(src)) {
    if (count != 0) cost += count * (zstd_log2(size) - zstd_log2(count));
  }
  return cost == 0 ? 0 : std::max(cost / size, kZstdLeastLiteralCost);
}

// The last three offsets of a block; 0: none yet.
class Repeats {
 public:
  // The most recent one for which matches(offset) is true; 0: none.
  template <class Matches>
  uint32_t find(const Matches& matches) const {
    const auto found = std::find_if(last_.begin(), last_.end(), [&](uint32_t o) { return o != 0 && matches(o); });
    return found == last_.end() ? 0 : *found;
  }

  // Makes `offset` the last one and returns the value that codes it.
  uint32_t value_of(uint32_t offset, uint32_t literal_count) {
    const uint32_t skipped = literal_count == 0;  // without literals the last offset cannot be named
    if (offset == last_[0] && !skipped) return 1;
    for (uint32_t i = 1; i < last_.size(); ++i) {
      if (offset != last_[i]) continue;
      std::rotate(last_.begin(), last_.begin() + i, last_.begin() + i + 1);
      return i + 1 - skipped;
    }
    const bool one_less = skipped && last_[0] > 1 && offset == last_[0] - 1;
    last_ = {offset, last_[0], last_[1]};
    return one_less ? 3 : offset + kZstdRepeatOffsets;
  }

 private:
  std::array<uint32_t, kZstdRepeatOffsets> last_{};
};

}  // namespace

ZstdParts zstd_choose_reference(std::span<const uint8_t> src, std::span<const Lz4Sequence> matches) {
  ZstdParts parts;
  Repeats repeats;
  const uint32_t byte_cost = src.empty() ? 0 : literal_cost(src);
  size_t end = 0, at = 0;  // of the last match that is coded, and of the last match
  for (const Lz4Sequence& match : matches) {
    const size_t start = at + match.literal_count;
    at = start + match.match_length;
    const auto agrees = [&](uint32_t offset) {
      return std::equal(src.begin() + static_cast<ptrdiff_t>(start), src.begin() + static_cast<ptrdiff_t>(at),
                        src.begin() + static_cast<ptrdiff_t>(start - offset));
    };
    const uint32_t repeated = repeats.find(agrees);
    const uint32_t offset = repeated == 0 ? match.offset : repeated;
    const uint32_t offset_cost = repeated == 0 ? zstd_log2(offset) : 1 << 8;
    if (match.match_length * byte_cost < offset_cost + (kZstdMatchCostBits << 8)) continue;
    const auto literal_count = static_cast<uint32_t>(start - end);
    parts.literals.insert(parts.literals.end(), src.begin() + static_cast<ptrdiff_t>(end),
                          src.begin() + static_cast<ptrdiff_t>(start));
    parts.sequences.push_back({literal_count, match.match_length, repeats.value_of(offset, literal_count)});
    end = at;
  }
  parts.literals.insert(parts.literals.end(), src.begin() + static_cast<ptrdiff_t>(end), src.end());
  return parts;
}

}  // namespace ptxkit::kernels
