// What a launch means of the kernels that turn each item into another byte string: encoders, decoders, sorts.
//
// They share one parameter list, so that one piece of host code runs any of them. Values are written into device
// memory or into files and are therefore pinned: they are only ever added to.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

// The .param slots in order; a kernel's options, each a u32, follow. src and dst need no alignment.
// Item i is src[src_offsets[i] .. + src_sizes[i]) and becomes dst[dst_offsets[i] .. + dst_sizes[i]), with dst_sizes[i]
// <= dst_capacities[i]. Nothing outside these ranges is read, and nothing outside the room is written, whatever the
// bytes are. On any status but ok, dst_sizes[i] is 0 and the room holds unspecified bytes.
struct TransformParameters {
  uint64_t src;             // const u8*
  uint64_t src_offsets;     // const u64*, bytes
  uint64_t src_sizes;       // const u32*
  uint64_t dst;             // u8*
  uint64_t dst_offsets;     // const u64*, bytes
  uint64_t dst_capacities;  // const u32*
  uint64_t dst_sizes;       // u32*
  uint64_t statuses;        // u32*, StreamStatus
  uint32_t item_count;
};

// A CTA an item, with as many threads as the kernel's image says (.reqntid): its table is in shared memory.

// Bytes of an item by which the cost blocks reckon, and of a block in a container unless said otherwise.
inline constexpr uint32_t kTransformItemBytes = 65536;

// Largest item of a transform, raw or coded, but for lz77_decode (kLzDecodeMaxBytes).
inline constexpr uint32_t kMaxTransformBytes = (1u << 24) - 1;

enum class StreamStatus : uint32_t {
  ok = 0,
  input_overrun = 1,   // the stream ends before its content
  output_overrun = 2,  // the result is larger than the room
  bad_table = 3,       // the table of the stream is no table
  bad_lanes = 4,       // a lane count of 0 or above 32, or a lane longer than its symbols can be
  corrupt = 5,         // the content does not end in the state that an encoder starts from
  item_too_large = 6,  // item or room above what the transform takes; nothing was read
  bad_option = 7,      // an option outside its range
};

// What the scalar reference of a transform returns, and a kernel writes, of one item.
struct TransformOutcome {
  StreamStatus status;
  uint32_t size_bytes;  // 0 unless ok

  bool operator==(const TransformOutcome&) const = default;
};

// One line for a person: lower case, without a final period.
constexpr std::string_view status_text(StreamStatus status) {
  switch (status) {
    case StreamStatus::ok:
      return "done";
    case StreamStatus::input_overrun:
      return "the stream ends before its content";
    case StreamStatus::output_overrun:
      return "the result is larger than its room";
    case StreamStatus::bad_table:
      return "the symbol table contradicts itself";
    case StreamStatus::bad_lanes:
      return "a lane count or the length of a lane is out of range";
    case StreamStatus::corrupt:
      return "the content does not end where its encoder began";
    case StreamStatus::item_too_large:
      return "the item or its room is larger than 16777215 bytes";
    case StreamStatus::bad_option:
      return "an option is out of range";
  }
  return "unknown status";
}

}  // namespace ptxkit::kernels
