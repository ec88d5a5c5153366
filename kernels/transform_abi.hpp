// The ABI of the transforms: kernels that turn each item into another byte string (encoders, decoders, sorts).
//
// They share one parameter list, so that the same host code launches any of them. Values are written into device memory
// or into files, so they are never changed or reused, only added.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

// The .param slots in order, followed by the kernel's options, each a u32. src and dst need no alignment.
// Item i is src[src_offsets[i] .. + src_sizes[i]) and becomes dst[dst_offsets[i] .. + dst_sizes[i]), with dst_sizes[i]
// <= dst_capacities[i]. Whatever the input, no byte is read outside these ranges and none is written outside the output
// range of dst_capacities[i] bytes. If the status is not ok, dst_sizes[i] is 0 and the output range holds unspecified
// bytes.
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

// A CTA works on one item, since its table is in shared memory. The kernel's image states the CTA's size (.reqntid).

// The item size that the cost blocks assume, and the block size of a container by default, in bytes.
inline constexpr uint32_t kTransformItemBytes = 65536;

// The largest item of a transform in bytes, raw or coded; lz77_decode has its own limit (kLzDecodeMaxBytes).
inline constexpr uint32_t kMaxTransformBytes = (1u << 24) - 1;

enum class StreamStatus : uint32_t {
  ok = 0,
  input_overrun = 1,   // the stream ends before its content
  output_overrun = 2,  // the result is larger than the item's capacity
  bad_table = 3,       // the stream's table is invalid
  bad_lanes = 4,       // a lane count of 0 or above 32, or a lane longer than its symbols allow
  corrupt = 5,         // the content does not end in the state from which the encoder starts
  item_too_large = 6,  // item or capacity above the transform's limit; nothing was read
  bad_option = 7,      // an option outside its range
  misaligned = 8,      // the item's address is no multiple of what the kernel demands
};

// The result of a transform for one item, from the scalar reference or the kernel.
struct TransformOutcome {
  StreamStatus status;
  uint32_t size_bytes;  // 0 unless ok

  bool operator==(const TransformOutcome&) const = default;
};

// A description for people: lower case, without a final period.
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
    case StreamStatus::misaligned:
      return "the item's address is not aligned as the kernel demands";
  }
  return "unknown status";
}

}  // namespace ptxkit::kernels
