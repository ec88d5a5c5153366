// What the kernels of typed rANS share: where the parts of an item are, and the items of a batch.
#pragma once

#include <utility>

#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/transform.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

// Shape and plan of an item (typed_shape, typed_plan). `layout` is one of TypedLayout, and the raw size at most
// kMaxBatchRawBytes, so that 32 bits hold every place.
template <dsl::Rate R>
class TypedLayoutOf {
 public:
  using U32 = dsl::Expr<dsl::u32, R>;
  using Bool = dsl::Expr<bool, R>;

  TypedLayoutOf(dsl::Kernel& k, const U32& layout) : k_(k), layout_(layout) {}

  Bool is(TypedLayout layout) const { return layout_ == k_.constant(static_cast<uint32_t>(layout)); }
  Bool moves_sign() const { return is(TypedLayout::bfloat16) | is(TypedLayout::float32); }
  // The binary logarithms of element size and coded planes: a hexadecimal digit for each layout.
  U32 element_shift() const { return digit(0x32121100); }
  U32 coded_shift() const { return digit(0x32100000); }
  U32 coded_planes() const { return one() << coded_shift(); }
  U32 copied_planes() const { return (one() << element_shift()) - coded_planes(); }

  U32 unit_shift() const { return element_shift() + kUnitBits; }

  U32 units(const U32& raw_bytes) const { return raw_bytes >> unit_shift(); }
  U32 tail_bytes(const U32& raw_bytes) const { return raw_bytes & ((one() << unit_shift()) - 1); }
  U32 members(const U32& raw_bytes) const {
    return (units(raw_bytes) + (kTypedMember / kTypedUnit - 1)) / (kTypedMember / kTypedUnit);
  }
  U32 entries(const U32& raw_bytes) const { return members(raw_bytes) << coded_shift(); }
  U32 copied_at(const U32& raw_bytes) const { return aligned(entries(raw_bytes) * 4 + kTypedHeaderBytes); }
  U32 tail_at(const U32& raw_bytes) const {
    return copied_at(raw_bytes) + units(raw_bytes) * kTypedUnit * copied_planes();
  }
  U32 coded_at(const U32& raw_bytes) const { return tail_at(raw_bytes) + aligned(tail_bytes(raw_bytes)); }
  // The elements of a member.
  U32 elements(const U32& raw_bytes, const U32& member) const {
    return dsl::min(units(raw_bytes) * kTypedUnit - member * kTypedMember, kTypedMember);
  }

  static U32 aligned(const U32& bytes) { return (bytes + (kTypedAlignment - 1)) & ~(kTypedAlignment - 1); }
  U32 number() const { return layout_; }

 private:
  static constexpr uint32_t kUnitBits = 7;
  static_assert(kTypedUnit == 1u << kUnitBits);
  U32 one() const { return k_.constant<uint32_t>(1); }
  U32 digit(uint32_t digits) const { return k_.constant(digits) >> layout_ * 4 & 0xF; }

  dsl::Kernel& k_;
  U32 layout_;
};

// The parameters of the kernels that encode, in order.
struct TypedEncodeArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses, coded_units;
  dsl::Ptr<dsl::global, dsl::u8, kTypedAlignment> slots;
  BlockU32 max_input_bytes, members_per_item, layout, item_count;
};

template <class Body>
dsl::KernelDefinition define_typed_encoder(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  // N is whole members. An element of any layout has at most as many coded planes as bytes.
  spec.cost.buffers = {{"inputs", 8},
                       {"inputs[]", N},
                       {"input_bytes", 8},
                       {"outputs", 8},
                       {"outputs[]", N + N / 32768 * kTypedAlignment + kTypedAlignment},
                       {"output_bytes", 8},
                       {"statuses", 4},
                       {"coded_units", N / 32768 * 4},
                       {"slots", N / 32768 * kTypedMember}};
  return define(
      std::move(spec),
      [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
             Arg<"outputs", Ptr<read_only, u64>> outputs, Arg<"output_bytes", Ptr<global, u64>> output_bytes,
             Arg<"statuses", Ptr<global, u32>> statuses, Arg<"coded_units", Ptr<global, u32>> coded_units,
             Arg<"slots", Ptr<global, u8, kTypedAlignment>> slots, Arg<"max_input_bytes", u32> max_input_bytes,
             Arg<"members_per_item", u32> members_per_item, Arg<"layout", u32> layout,
             Arg<"item_count", u32> item_count) {
        body(k, TypedEncodeArguments{inputs, input_bytes, outputs, output_bytes, statuses, coded_units, slots,
                                     max_input_bytes, members_per_item, layout, item_count});
      });
}

// An item to encode, and the member of it that a CTA works on.
class TypedInput {
 public:
  using Outcome = BatchOutcome<dsl::Rate::block>;

  TypedInput(dsl::Kernel& k, const TypedEncodeArguments& arguments)
      : layout(k, arguments.layout),
        k_(k),
        arguments_(arguments),
        item_(k.block() / arguments.members_per_item),
        member_(k.block() - item_ * arguments.members_per_item),
        input_(of_item(arguments.inputs)),
        bytes_(of_item(arguments.input_bytes)),
        output_(of_item(arguments.outputs)),
        outcome_(k) {
    using namespace dsl;
    outcome_.fail_if(bytes_ > zext<u64>(arguments.max_input_bytes), BatchStatus::too_large);
    outcome_.fail_if(((input_ == 0) & (bytes_ != 0)) | (output_ == 0), BatchStatus::invalid_value);
    outcome_.fail_if(((trunc<u32>(input_) | trunc<u32>(output_)) & (kTypedAlignment - 1)) != 0,
                     BatchStatus::misaligned);
  }

  auto is_ok() const { return outcome_.is_ok(); }
  BlockU32 status() const { return outcome_.status(); }
  // The following are meaningless for an item that is too large.
  BlockU32 size() const { return dsl::trunc<dsl::u32>(bytes_); }
  BlockU32 member() const { return member_; }
  BlockU32 members() const { return layout.members(size()); }
  BlockU32 elements() const { return layout.elements(size(), member_); }

  auto source() const { return dsl::at_address<dsl::read_only, dsl::u8, kTypedAlignment>(input_).within(size()); }
  // The room, `count` bytes from `begin` on, a multiple of kTypedAlignment.
  template <class Begin, class Count>
  auto room(const Begin& begin, const Count& count) const {
    return dsl::at_address<dsl::global, dsl::u8, kTypedAlignment>(output_)
        .at(dsl::align_down<kTypedAlignment>(begin))
        .within(count);
  }
  // The number of a coded plane of member `member`.
  template <class Member, class Plane>
  auto entry(const Member& member, const Plane& plane) const {
    return ((item_ * arguments_.members_per_item + member) << layout.coded_shift()) + plane;
  }
  template <class Plane>
  auto slot_at(const Plane& plane) const {
    return dsl::times<kTypedMember>(dsl::zext<dsl::u64>(entry(member_, plane)));
  }
  template <class Value>
  void store_result(const Value& coded_bytes) const {
    using namespace dsl;
    arguments_.output_bytes.within(arguments_.item_count).at(item_).store(zext<u64>(select(is_ok(), coded_bytes, 0)));
    k_.if_(arguments_.statuses.address() != 0,
           [&] { arguments_.statuses.within(arguments_.item_count).at(item_).store(status()); });
  }

  TypedLayoutOf<dsl::Rate::block> layout;

 private:
  template <class Array>
  dsl::Expr<dsl::u64, dsl::Rate::block> of_item(const Array& array) const {
    return array.within(arguments_.item_count).at(item_).load();
  }

  dsl::Kernel& k_;
  const TypedEncodeArguments& arguments_;
  BlockU32 item_, member_;
  dsl::Expr<dsl::u64, dsl::Rate::block> input_, bytes_, output_;
  Outcome outcome_;
};

}  // namespace ptxkit::kernels
