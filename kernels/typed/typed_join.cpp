// Typed rANS: what an item has around its copied planes, with a CTA for each member. The coded planes go from their
// slots to where the sizes of those before them say; the first member's CTA writes the header and the tail.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/transform.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/typed/typed_item.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition typed_join() {
  return define_typed_encoder(
      KernelSpec{.name = std::string(kTypedJoin),
                 .block = kTypedJoinShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kTypedJoinShape.block_threads} / 65536,
                          .note = "one CTA a member of 32768 elements; N is in elements of one byte"}},
      [](Kernel& k, const TypedEncodeArguments& arguments) {
        k.return_if(k.block() >= arguments.item_count * arguments.members_per_item);
        const TypedInput item(k, arguments);
        const BlockU32 members = item.members(), member = item.member(), size = item.size();
        k.return_if((member != 0) & ((!item.is_ok()) | (member >= members)));
        mark_block(k, Mark::item, size);
        // The sizes were written before this launch.
        const auto units = at_address<read_only, u32>(arguments.coded_units.address()).align_down<4>();
        const BlockU32 first_entry = item.entry(k.constant<u32>(0), k.constant<u32>(0));
        WarpVar end(k, 0);
        k.if_(item.is_ok(), [&] {
          const BlockU32 before = member << item.layout.coded_shift();
          LaneVar sum(k, 0);
          for_each_lane(k, before, [&](const LaneU32& i) { sum += units.at(first_entry + i).load(); });
          end = reduce_add(*sum);
          const BlockU32 coded_at = item.layout.coded_at(size);
          const auto index = item.room(k.constant<u32>(0), item.layout.copied_at(size)).template as<u32>();
          k.if_(member == 0, [&] {
            const BlockU32 entries = item.layout.entries(size), tail = item.layout.tail_bytes(size);
            const auto header = [&](const LaneU32& i) {
              return select(i == 0, k.constant<u32>(kTypedMagic),
                            select(i == 1, item.layout.number(), select(i == 2, size, 0)));
            };
            constexpr u32 kHeaderWords = kTypedHeaderBytes / 4;
            k.if_(k.thread() < kHeaderWords, [&] { index.at(k.thread()).store(header(k.thread())); });
            k.if_((k.thread() < kHeaderWords) & (entries + k.thread() < ((entries + 3) & ~3u)),
                  [&] { index.at(entries + kHeaderWords + k.thread()).store(k.constant<u32>(0)); });
            const BlockU32 tail_at = item.layout.tail_at(size);
            const auto source = item.source().at(item.layout.units(size) << item.layout.unit_shift());
            const auto to = item.room(tail_at, coded_at - tail_at);
            for_each_of(k, threads_of(k), coded_at - tail_at, [&](const LaneU32& i) {
              k.if_(i < tail, [&] { to.at(i).store(source.at(i).load()); }).else_([&] {
                to.at(i).store(k.constant<u8>(0));
              });
            });
          });
          k.if_(member < members, [&] {
            k.range(k.constant<u32>(0), item.layout.coded_planes(), 1, [&](const BlockU32& plane) {
              const WarpU32 count = units.at(first_entry + before + plane).load();
              const auto from = at_address<read_only, u8>(arguments.slots.address() + zext<u64>(item.slot_at(plane)))
                                    .align_down<kTypedAlignment>()
                                    .within(kTypedMember)
                                    .as<u32>();
              const auto to = item.room(coded_at, (*end + count) * kTypedAlignment)
                                  .at(times<kTypedAlignment>(*end))
                                  .template as<u32>();
              for_each_of(k, threads_of(k), count, [&](const LaneU32& i) {
                to.at(times<4>(i)).store_vector(from.at(times<4>(i)).template load_vector<4>());
              });
              end += count;
              k.once_per_block([&] { index.at(before + plane + kTypedHeaderBytes / 4).store(*end); });
            });
          });
        });
        mark_block(k, Mark::status, item.status());
        k.if_((member + 1 == members) | ((member == 0) & (members == 0)) | ((member == 0) & !item.is_ok()), [&] {
          k.once_per_block([&] { item.store_result(item.layout.coded_at(size) + *end * kTypedAlignment); });
        });
      });
}

}  // namespace ptxkit::kernels
