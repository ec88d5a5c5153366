// Estimates from a few KiB of data how much work an LZ encoder has with them on a CPU.
//
// An LZ encoder passes quickly over runs and over data that never repeat. Where repeats and new bytes alternate, as in
// text, its branches are mispredicted and a block takes thirty times as long. So the estimate counts the transitions in
// samples of 1 KiB: a position whose four bytes occurred before in the sample, next to one whose four bytes did not.
// The count is multiplied by the share of new bytes, because long matches are cheap. No clock is involved: the same
// data give the same number.
#pragma once

#include <cstdint>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::codec {

// 0 for runs and noise, 1 for text. The defaults are for data that cannot be examined: a third text, two thirds plain.
struct Effort {
  double mean = 1.0 / 3, most = 1;  // of the samples
  bool operator==(const Effort&) const = default;
};

// Examines samples of 1 KiB in the next `raw_bytes` of `source`: one for each 64 KiB, at most 8, or up to 16 if the
// data are long. A sample takes one or two microseconds. Returns the defaults where `source` cannot look ahead.
Effort effort_of(const format::ByteSource& source, uint64_t raw_bytes);

}  // namespace ptxkit::codec
