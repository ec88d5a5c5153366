// How much work data is for an LZ encoder on a CPU, from a few kilobytes of it.
//
// Such an encoder passes over runs and over what never repeats. Where the two take turns, as in text, its branches go
// the wrong way, and a block takes it thirty times as long. So the turns are counted in a kilobyte here and there:
// positions whose four bytes stood in that kilobyte before, next to one whose did not; and as long matches take few of
// them, they count by what is new. There is no clock in that: the same data gives the same number.
#pragma once

#include <cstdint>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::codec {

// 0 for runs and noise, 1 for text. As it stands, of data that nobody can look at: a third of it text, two thirds none.
struct Effort {
  double mean = 1.0 / 3, most = 1;  // of the places looked at
  bool operator==(const Effort&) const = default;
};

// Looks at one place of the next `raw_bytes` of `source` for each 64 KiB, at up to 16 places: a microsecond or two
// each.
Effort effort_of(const format::ByteSource& source, uint64_t raw_bytes);

}  // namespace ptxkit::codec
