#include "runtime/codec/policy/effort.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace ptxkit::codec {
namespace {

constexpr size_t kPlaceBytes = 1024;
// Samples one place in each block, eight at most. Beyond 64 blocks it samples the square root of their number, 16 at
// most.
constexpr uint64_t kBlockBytes = 64u << 10, kFewPlaces = 8, kMostPlaces = 16;
// English text has 125 to 140 transitions in 1 KiB, multiplied by the share of bytes that are new. Larger values count
// as kWorkOfText. The extra time of a block over that of runs or noise grows with the cube of this value, as measured
// (docs/scheduling.md).
constexpr double kWorkOfText = 140;
constexpr unsigned kHashBits = 10;

// Has no branch that depends on the data, because text makes those slow. An unused table entry holds position 0; the
// comparison below is correct for that, too.
double effort_of(format::Bytes bytes) {
  std::array<uint16_t, 1u << kHashBits> seen_at{};
  unsigned turns = 0, repeat_count = 0;
  bool before = false;
  for (size_t i = 1; i + 4 <= bytes.size(); ++i) {
    uint32_t here, there;
    std::memcpy(&here, &bytes[i], 4);
    uint16_t& seen = seen_at[here * 2654435761u >> (32 - kHashBits)];
    std::memcpy(&there, &bytes[seen], 4);
    const bool repeats = there == here;
    turns += repeats != before;
    repeat_count += repeats;
    before = repeats;
    seen = static_cast<uint16_t>(i);
  }
  const double all = static_cast<double>(bytes.size()), is_new = 1 - repeat_count / all;
  const double work = turns * (kPlaceBytes / all) * is_new / kWorkOfText;
  return std::min(1.0, work * work * work);
}

}  // namespace

Effort effort_of(const format::ByteSource& source, uint64_t raw_bytes) {
  const uint64_t blocks = raw_bytes / kBlockBytes;
  const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(blocks)));
  const uint64_t places = std::clamp<uint64_t>(std::max(std::min(blocks, kFewPlaces), root), 1, kMostPlaces);
  const uint64_t part_bytes = raw_bytes / places;
  Effort found{0, 0};
  std::array<uint8_t, kPlaceBytes> room;
  for (uint64_t place = 0; place < places; ++place) {
    // The offset is not at a half or an eighth of a part, where blocks of power-of-two size begin and end.
    const uint64_t at = place * part_bytes + (part_bytes > kPlaceBytes ? (part_bytes - kPlaceBytes) / 13 * 8 : 0);
    const size_t count = source.look_ahead(at, room);
    if (count == 0) return {};
    const double effort = effort_of(format::Bytes(room).first(count));
    found.mean += effort / static_cast<double>(places);
    found.most = std::max(found.most, effort);
  }
  return found;
}

}  // namespace ptxkit::codec
