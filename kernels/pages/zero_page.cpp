// Flags the items that are zero. A warp reads 128 bytes of its item in each iteration and votes.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zero_page() {
  return define(
      KernelSpec{.name = std::string(kZeroPage),
                 .block = kZeroPageShape.block_threads,
                 .budget = {.registers = 24},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"src", N}, {"src_sizes", 4}, {"flags", 1}},
                          .note = "one warp a page"}},
      [](Kernel& k, Arg<"src", Ptr<read_only, u8, kStrideUnitBytes>> src,
         Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"flags", Ptr<global, u8>> flags,
         Arg<"src_stride_16", u32> src_stride_16, Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kZeroPageShape>(k, item_count);
        const WarpU32 size = src_sizes.within(item_count).at(item).load();
        mark_warp(k, Mark::item, size);
        WarpVar flag(k, static_cast<u32>(PageFlag::refused));
        k.if_(fits_stride(size, src_stride_16), [&] {
          const WarpBool zero = is_all_zero(k, at_item(src, item, src_stride_16).within<kStrideUnitBytes>(size), size);
          flag = select(zero, static_cast<u32>(PageFlag::zero), k.constant(static_cast<u32>(PageFlag::compressed)));
        });
        mark_warp(k, Mark::status, *flag);
        k.once_per_warp([&] { flags.within(item_count).at(item).store(trunc<u8>(*flag)); });
      });
}

}  // namespace ptxkit::kernels
