// A kernel launch on a queue of a Machine, with the copies up before it and the copies down after it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/cost.hpp"
#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

// The address of a region, or a 32-bit number.
struct CallArgument {
  bool is_region;
  size_t value;
};
inline CallArgument buffer(size_t region) { return {true, region}; }
inline CallArgument number(uint32_t value) { return {false, value}; }

// A region whose addresses the elements of an array are. `array` is the parameter's name in the kernel's cost,
// "inputs[]".
struct ReachedRegion {
  size_t region;
  std::string_view array;
};

struct KernelCall {
  std::string_view kernel;
  kernels::LaunchSize size;
  uint32_t grid_blocks, block_threads;
  std::vector<size_t> uploads;
  std::vector<CallArgument> arguments;
  std::vector<size_t> downloads;
  std::vector<ReachedRegion> reached = {};
};

// Runs calls one after another on a queue. All uploads come first: the copies up of all queues share one stream, so one
// that waited for a kernel would delay those of the other queues. Prepares the kernels.
Result<void> run(Machine& machine, unsigned queue, std::span<const KernelCall> calls);
// Launches the kernel of `call` without any copies. The kernel must be prepared.
Result<void> launch(Machine& machine, unsigned queue, const KernelCall& call);

// The regions that a transform takes, in the order of kernels::TransformParameters.
struct TransformRegions {
  size_t src, src_offsets, src_sizes, dst, dst_offsets, dst_capacities, dst_sizes, statuses;
};
// A call that transforms all items of `size`.
KernelCall transform_call(std::string_view kernel, const kernels::LaunchSize& size, uint32_t block_threads,
                          const TransformRegions& regions, std::span<const uint32_t> options = {});

// Downloads parts of regions into page-locked memory of their total size, one after another. Coder output is far
// smaller than its region, and page-locked memory is expensive.
class Fetched {
 public:
  // Appends a part.
  void add(size_t region, size_t offset_bytes, size_t size_bytes);
  size_t size_bytes() const { return size_bytes_; }
  Result<void> download(Machine& machine, unsigned queue);
  // All parts, in order. Valid after the queue has been waited for.
  Bytes bytes() const { return memory_.bytes(); }

 private:
  struct Part {
    size_t region, offset_bytes, size_bytes;
  };
  std::vector<Part> parts_;
  size_t size_bytes_ = 0;
  HostMemory memory_;
};

// The bytes that the regions take together, alignment included.
size_t memory_bytes_of(std::span<const Region> regions);

// Calls Machine::arrange. Fails with a hint if the queue may not take as much memory.
Result<void> arrange_blocks(Machine& machine, unsigned queue, std::span<const Region> regions);

// The host side of a region as an array of T. Staging memory is at least 16-byte aligned.
template <class T>
T* host_array(Machine& machine, unsigned queue, size_t region) {
  return reinterpret_cast<T*>(machine.host(queue, region).data());
}

}  // namespace ptxkit::codec
