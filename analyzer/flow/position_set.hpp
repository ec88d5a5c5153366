// A set of positions 0 to n - 1 that is asked for the next member from a position on, in time that hardly grows with n.
//
// A fixed point is reached by sweeps over values in an order. With the values that are to be looked at in such a set, a
// sweep costs what it looks at, and not the length of the order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxkit::flow {

class PositionSet {
 public:
  static constexpr size_t kNoPosition = ~size_t{0};

  explicit PositionSet(size_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }

  void insert(size_t position) {
    for (std::vector<uint64_t>& level : levels_) {
      level[position / 64] |= uint64_t{1} << (position % 64);
      position /= 64;
    }
  }

  void erase(size_t position) {
    for (std::vector<uint64_t>& level : levels_) {
      level[position / 64] &= ~(uint64_t{1} << (position % 64));
      if (level[position / 64] != 0) return;
      position /= 64;
    }
  }

  // The least member that is not less than `position`, or kNoPosition.
  size_t next(size_t position) const {
    for (size_t height = 0; height < levels_.size(); ++height) {
      if (position / 64 >= levels_[height].size()) return kNoPosition;
      if (const uint64_t rest = levels_[height][position / 64] >> (position % 64)) {
        position += static_cast<size_t>(std::countr_zero(rest));
        while (height-- > 0)
          position = 64 * position + static_cast<size_t>(std::countr_zero(levels_[height][position]));
        return position;
      }
      position = position / 64 + 1;
    }
    return kNoPosition;
  }

  // The next member from `position` on, or else from the start, which it removes; kNoPosition if there is none.
  size_t take(size_t position) {
    size_t found = next(position);
    if (found == kNoPosition) found = next(0);
    if (found != kNoPosition) erase(found);
    return found;
  }

 private:
  std::vector<std::vector<uint64_t>> levels_;  // a bit of a level says whether a word of the level before has one
};

}  // namespace ptxkit::flow
