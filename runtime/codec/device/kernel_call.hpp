// A launch on a queue of a Machine, with what goes up before it and comes down after it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/cost.hpp"
#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

// The address of a region, or a number.
struct CallArgument {
  bool is_region;
  size_t value;
};
inline CallArgument buffer(size_t region) { return {true, region}; }
inline CallArgument number(uint32_t value) { return {false, value}; }

struct KernelCall {
  std::string_view kernel;
  kernels::LaunchSize size;
  uint32_t grid_blocks, block_threads;
  std::vector<size_t> uploads;
  std::vector<CallArgument> arguments;
  std::vector<size_t> downloads;
};

// One after another. All uploads come first: copies up of all queues share one stream, and one that waited for a kernel
// would hold up those of the other queues.
Result<void> run(Machine& machine, unsigned queue, std::span<const KernelCall> calls);
// The launch alone, of a kernel that is prepared.
Result<void> launch(Machine& machine, unsigned queue, const KernelCall& call);

// The regions that a transform takes, in the order of kernels::TransformParameters.
struct TransformRegions {
  size_t src, src_offsets, src_sizes, dst, dst_offsets, dst_capacities, dst_sizes, statuses;
};
// All items of a transform.
KernelCall transform_call(std::string_view kernel, const kernels::LaunchSize& size, uint32_t block_threads,
                          const TransformRegions& regions, std::span<const uint32_t> options = {});

// Parts of regions on their way down, one behind another in page-locked memory of just their size: what a coder made
// is far smaller than its region.
class Fetched {
 public:
  // What is added lies behind what was added before.
  void add(size_t region, size_t offset_bytes, size_t size_bytes);
  size_t size_bytes() const { return size_bytes_; }
  Result<void> download(Machine& machine, unsigned queue);
  // Everything that was added, once the queue has been waited for.
  Bytes bytes() const { return memory_.bytes(); }

 private:
  struct Part {
    size_t region, offset_bytes, size_bytes;
  };
  std::vector<Part> parts_;
  size_t size_bytes_ = 0;
  HostMemory memory_;
};

// What regions take together, with the room between them.
size_t memory_bytes_of(std::span<const Region> regions);

// Machine::arrange, with an error that says what to do where the queue may not take so much.
Result<void> arrange_blocks(Machine& machine, unsigned queue, std::span<const Region> regions);

// A region's host side as an array of T; staging memory is at least 16-byte aligned.
template <class T>
T* host_array(Machine& machine, unsigned queue, size_t region) {
  return reinterpret_cast<T*>(machine.host(queue, region).data());
}

}  // namespace ptxkit::codec
