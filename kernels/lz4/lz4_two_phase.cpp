// LZ4 compression of pages in two kernels: lz4_match_page lists the matches of each page in global memory, and
// lz4_encode_page writes the blocks. Together they produce the bytes of lz4_compress_page.
//
// The match lists can be inspected, and lz4_match_page can be combined with another encoder. docs/log/performance.md
// has the cost: the lists go through global memory, and each page is staged twice.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_page.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_match_page() {
  constexpr u32 kWarps = kLz4CompressPageShape.items_per_block;
  return define(
      KernelSpec{.name = std::string(kLz4MatchPage),
                 .block = kLz4CompressPageShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = kWarps * kPageWorkspaceBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"src", N},
                                      {"matches", 2 * 4 * kMaxPageMatches},
                                      {"src_sizes", 4},
                                      {"match_counts", 4},
                                      {"flags", 1}},
                          .note = "one warp an item"}},
      [](Kernel& k, Arg<"src", Ptr<read_only, u8, kStrideUnitBytes>> src,
         Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"matches", Ptr<global, u32, 8>> matches,
         Arg<"match_counts", Ptr<global, u32>> match_counts, Arg<"flags", Ptr<global, u8>> flags,
         Arg<"src_stride_16", u32> src_stride_16, Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kLz4CompressPageShape>(k, item_count);
        const PageWorkspace workspace = page_workspace<kWarps>(k);
        const WarpU32 size = src_sizes.within(item_count).at(item).load();
        const ItemSource item_src = at_item(src, item, src_stride_16).template within<kStrideUnitBytes>(size);
        const auto list = matches.at(times<2 * kMaxPageMatches>(zext<u64>(item))).within(2 * kMaxPageMatches);
        mark_warp(k, Mark::item, size);

        WarpVar flag(k, static_cast<u32>(PageFlag::refused)), listed(k, 0);
        k.if_((size <= kMaxPageBytes) & fits_stride(size, src_stride_16), [&] {
          k.if_(stage(k, item_src, size, workspace.page), [&] { flag = static_cast<u32>(PageFlag::zero); }).else_([&] {
            PageParser(k, size, workspace).for_each_batch([&](const WarpU32& count) {
              k.if_(k.lane() < count, [&] {
                list.at(times<2>(*listed + k.lane()))
                    .store_vector(workspace.matches.at(times<2>(k.lane())).template load_vector<2>());
              });
              listed += count;
              k.sync_warp();  // every lane has read the list
            });
            flag = static_cast<u32>(PageFlag::compressed);
          });
        });
        mark_warp(k, Mark::status, *flag);
        k.once_per_warp([&] {
          flags.within(item_count).at(item).store(trunc<u8>(*flag));
          match_counts.within(item_count).at(item).store(*listed);
        });
      });
}

KernelDefinition lz4_encode_page() {
  constexpr u32 kWarps = kLz4CompressPageShape.items_per_block;
  constexpr u32 kSharedBytes = kWarps * (kMaxPageBytes + kWarpLanes * 2 * sizeof(u32));
  return define(KernelSpec{.name = std::string(kLz4EncodePage),
                           .block = kLz4CompressPageShape.block_threads,
                           .budget = {.registers = 64, .shared_bytes = kSharedBytes, .spill_bytes = 0},
                           .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                                    .buffers = {{"src", N},
                                                {"dst", N},
                                                {"matches", 2 * 4 * kMaxPageMatches},
                                                {"src_sizes", 4},
                                                {"match_counts", 4},
                                                {"dst_sizes", 4},
                                                {"flags", 1}},
                                    .note = "one warp an item"}},
                [](Kernel& k, Arg<"src", Ptr<read_only, u8, kStrideUnitBytes>> src,
                   Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"matches", Ptr<read_only, u32, 8>> matches,
                   Arg<"match_counts", Ptr<read_only, u32>> match_counts,
                   Arg<"dst", Ptr<global, u8, kStrideUnitBytes>> dst, Arg<"dst_sizes", Ptr<global, u32>> dst_sizes,
                   Arg<"flags", Ptr<global, u8>> flags, Arg<"src_stride_16", u32> src_stride_16,
                   Arg<"dst_stride_16", u32> dst_stride_16, Arg<"item_count", u32> item_count) {
                  const auto pages = k.shared<u8, kWarps * kMaxPageBytes, 16>("pages");
                  const auto lists = k.shared<u32, kWarps * kWarpLanes * 2, 16>("lists");
                  const WarpU32 item = item_of_warp<kLz4CompressPageShape>(k, item_count);
                  const Page page = pages.data().at(times<kMaxPageBytes>(k.warp())).within(kMaxPageBytes);
                  const MatchList batch = lists.data().at(times<kWarpLanes * 2>(k.warp())).within(kWarpLanes * 2);
                  const WarpU32 size = src_sizes.within(item_count).at(item).load();
                  const WarpU32 match_count = match_counts.within(item_count).at(item).load();
                  const ItemSource item_src = at_item(src, item, src_stride_16).template within<kStrideUnitBytes>(size);
                  const ItemRoom item_dst = at_item(dst, item, dst_stride_16).within(size);
                  const auto list = matches.at(times<2 * kMaxPageMatches>(zext<u64>(item))).within(2 * kMaxPageMatches);
                  mark_warp(k, Mark::item, size);

                  WarpVar flag(k, broadcast(zext<u32>(flags.within(item_count).at(item).load()))), length(k, 0);
                  k.sync_warp();  // every lane has read the flag before one of them writes it
                  k.if_(!fits_stride(size, dst_stride_16), [&] { flag = static_cast<u32>(PageFlag::refused); });
                  k.if_(*flag == static_cast<u32>(PageFlag::compressed), [&] {
                    // the result is known: the flag says that the page is not all zero
                    static_cast<void>(stage(k, item_src, size, page));
                    write_page(k, item_src, size, item_dst, page, flag, length, [&](BlockWriter<Page>& writer) {
                      k.range(0, match_count, kWarpLanes, [&](const auto& first) {
                        const WarpU32 count = min(match_count - first, kWarpLanes);
                        k.if_(k.lane() < count, [&] {
                          batch.at(times<2>(k.lane()))
                              .store_vector(list.at(times<2>(first + k.lane())).template load_vector<2>());
                        });
                        k.sync_warp();  // the batch is visible to all lanes
                        writer.append(batch, count);
                        k.sync_warp();  // every lane has read it
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
