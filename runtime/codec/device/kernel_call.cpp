#include "runtime/codec/device/kernel_call.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/driver/launch_contract.hpp"

namespace ptxkit::codec {

using driver::LaunchArgument;

Result<void> launch(Machine& machine, unsigned queue, const KernelCall& call) {
  std::vector<LaunchArgument> arguments;
  for (const CallArgument& argument : call.arguments) {
    arguments.push_back(argument.is_region ? LaunchArgument::of_address(machine.address(queue, argument.value))
                                           : LaunchArgument::of(static_cast<uint32_t>(argument.value)));
  }
  return machine.launch(queue, call.kernel, call.grid_blocks, call.block_threads, arguments);
}

Result<void> run(Machine& machine, unsigned queue, std::span<const KernelCall> calls) {
  for (const KernelCall& call : calls) {
    if (auto ready = machine.prepare(call.kernel); !ready) return ready;
  }
  for (const KernelCall& call : calls) {
    for (const size_t region : call.uploads) {
      if (auto copied = machine.upload(queue, region); !copied) return copied;
    }
  }
  for (const KernelCall& call : calls) {
    if (auto launched = launch(machine, queue, call); !launched) return launched;
  }
  for (const KernelCall& call : calls) {
    for (const size_t region : call.downloads) {
      if (auto copied = machine.download(queue, region); !copied) return copied;
    }
  }
  return {};
}

KernelCall transform_call(std::string_view kernel, const kernels::LaunchSize& size, uint32_t block_threads,
                          const TransformRegions& regions, std::span<const uint32_t> options) {
  const auto item_count = static_cast<uint32_t>(size.item_count);
  KernelCall call{kernel,
                  size,
                  item_count,
                  block_threads,
                  {},
                  {buffer(regions.src), buffer(regions.src_offsets), buffer(regions.src_sizes), buffer(regions.dst),
                   buffer(regions.dst_offsets), buffer(regions.dst_capacities), buffer(regions.dst_sizes),
                   buffer(regions.statuses), number(item_count)},
                  {}};
  for (const uint32_t option : options) call.arguments.push_back(number(option));
  return call;
}

void Fetched::add(size_t region, size_t offset_bytes, size_t size_bytes) {
  if (size_bytes != 0) parts_.push_back({region, offset_bytes, size_bytes});
  size_bytes_ += size_bytes;
}

Result<void> Fetched::download(Machine& machine, unsigned queue) {
  if (parts_.empty()) return {};
  auto memory = machine.host_memory(size_bytes_);
  if (!memory) return tl::unexpected(memory.error());
  memory_ = std::move(*memory);
  std::vector<PartDown> parts;
  MutableBytes left = memory_.bytes();
  for (const Part& part : parts_) {
    parts.push_back({part.region, part.offset_bytes, left.first(part.size_bytes)});
    left = left.subspan(part.size_bytes);
  }
  return machine.download_parts(queue, parts);
}

size_t memory_bytes_of(std::span<const Region> regions) {
  size_t bytes = 0;
  for (const Region& region : regions) bytes += region.size_bytes + 256;
  return bytes;
}

Result<void> arrange_blocks(Machine& machine, unsigned queue, std::span<const Region> regions) {
  const size_t needed = memory_bytes_of(regions);
  if (needed > machine.queue_memory_bytes()) {
    return fail(fmt::format("a block needs {} bytes of device memory, a queue may take {}", needed,
                            machine.queue_memory_bytes()),
                machine.description(), "use --backend cpu");
  }
  return machine.arrange(queue, regions);
}

}  // namespace ptxkit::codec
