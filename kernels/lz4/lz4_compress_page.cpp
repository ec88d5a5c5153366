// LZ4 compression of pages with a warp for each page: the parse of lz4_compress_reference.cpp with a lane for each
// position of a window. Selected matches are listed and written 32 at a time.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_page.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_compress_page() {
  constexpr u32 kWarps = kLz4CompressPageShape.items_per_block;
  return define(
      KernelSpec{.name = std::string(kLz4CompressPage),
                 .block = kLz4CompressPageShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = kWarps * kPageWorkspaceBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"src", N}, {"dst", N}, {"src_sizes", 4}, {"dst_sizes", 4}, {"flags", 1}},
                          .note = "one warp an item"}},
      [](Kernel& k, Arg<"src", Ptr<read_only, u8, kStrideUnitBytes>> src,
         Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"dst", Ptr<global, u8, kStrideUnitBytes>> dst,
         Arg<"dst_sizes", Ptr<global, u32>> dst_sizes, Arg<"flags", Ptr<global, u8>> flags,
         Arg<"src_stride_16", u32> src_stride_16, Arg<"dst_stride_16", u32> dst_stride_16,
         Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kLz4CompressPageShape>(k, item_count);
        const PageWorkspace workspace = page_workspace<kWarps>(k);
        const WarpU32 size = src_sizes.within(item_count).at(item).load();
        const ItemSource item_src = at_item(src, item, src_stride_16).template within<kStrideUnitBytes>(size);
        const ItemRoom item_dst = at_item(dst, item, dst_stride_16).within(size);
        mark_warp(k, Mark::item, size);

        WarpVar flag(k, static_cast<u32>(PageFlag::refused)), length(k, 0);
        k.if_((size <= kMaxPageBytes) & fits_stride(size, src_stride_16) & fits_stride(size, dst_stride_16), [&] {
          k.if_(stage(k, item_src, size, workspace.page), [&] { flag = static_cast<u32>(PageFlag::zero); }).else_([&] {
            PageParser parser(k, size, workspace);
            write_page(k, item_src, size, item_dst, workspace.page, flag, length, [&](BlockWriter<Page>& writer) {
              parser.for_each_batch([&](const WarpU32& count) { writer.append(workspace.matches, count); });
            });
          });
        });
        mark_warp(k, Mark::status, *flag);
        k.once_per_warp([&] {
          flags.within(item_count).at(item).store(trunc<u8>(*flag));
          dst_sizes.within(item_count).at(item).store(*length);
        });
      });
}

}  // namespace ptxkit::kernels
