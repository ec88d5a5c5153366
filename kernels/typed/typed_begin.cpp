// Typed rANS: sizes and statuses of items by their headers, with a warp for each item, and their tails. typed_decode
// changes them for items whose members are damaged.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/typed/typed_decoded.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition typed_begin() {
  return define_typed_decoder(
      KernelSpec{.name = std::string(kTypedBegin),
                 .block = kTypedBeginShape.block_threads,
                 .budget = {.registers = 48, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / 65536, .note = "one warp an item"}},
      [](Kernel& k, const TypedDecodeArguments& arguments) {
        const WarpU32 index = item_of_warp<kTypedBeginShape>(k, arguments.item_count);
        const TypedCoded<Rate::warp> item(k, arguments, index);
        mark_warp(k, Mark::item, item.size());
        k.if_(item.is_ok(), [&] {
          const WarpU32 tail = item.layout().tail_bytes(item.raw_bytes());
          copy_bytes(k, lanes_of(k), item.source().at(item.layout().tail_at(item.raw_bytes())),
                     item.room().at(item.raw_bytes() - tail), tail);
        });
        mark_warp(k, Mark::status, item.status());
        k.once_per_warp([&] { item.store_result(item.status()); });
      });
}

}  // namespace ptxkit::kernels
