// The common part of kernels that turn items into byte strings, with a CTA for each item: parameters, limits, status,
// length.
#pragma once

#include <string>
#include <utility>

#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using StreamSource = dsl::Ptr<dsl::read_only, dsl::u8, 1, dsl::Rate::warp>;
using StreamRoom = dsl::Ptr<dsl::global, dsl::u8, 1, dsl::Rate::warp>;
using LaneVar = dsl::Var<dsl::u32, dsl::Rate::thread>;

// The item of a CTA and its result. If several warps work on it, each has its own copy; the first warp's status and
// size are stored.
struct TransformItem {
  dsl::Kernel& k;
  StreamSource src;
  WarpU32 src_size;
  StreamRoom dst;
  WarpU32 capacity;
  WarpVar status;      // StreamStatus
  WarpVar size_bytes;  // of the result; valid only while the status is ok

  WarpBool has_failed() const { return *status != static_cast<dsl::u32>(StreamStatus::ok); }
};

// fail_if(condition, status) ends the item's work with that status by leaving `loop`.
template <class Loop>
struct FailIf {
  TransformItem& item;
  Loop& loop;

  void operator()(const WarpBool& condition, StreamStatus failure) const {
    item.k.if_(condition, [&] { item.status = item.k.constant(static_cast<dsl::u32>(failure)); });
    loop.break_if(condition);
  }
  // Leaves `loop` if an inner loop has failed. To be called after the inner loop.
  void if_failed() const { loop.break_if(item.has_failed()); }
};
template <class Loop>
FailIf(TransformItem&, Loop&) -> FailIf<Loop>;

// Stores and loads of little-endian integers at addresses of any alignment.
template <class Pointer, class Value>
void store_u16(const Pointer& to, const Value& value) {
  to.store(dsl::trunc<dsl::u8>(value));
  to.template at<1>().store(dsl::trunc<dsl::u8>(value >> 8));
}
template <class Pointer, class Value>
void store_u32(const Pointer& to, const Value& value) {
  store_u16(to, value);
  store_u16(to.template at<2>(), value >> 16);
}
template <class Pointer>
auto load_u16(const Pointer& from) {
  return dsl::zext<dsl::u32>(from.template load_bytewise<dsl::u16>());
}
template <class Pointer>
auto load_u32(const Pointer& from) {
  return from.template load_bytewise<dsl::u32>();
}

// Whether the item is larger than the transform accepts.
inline WarpBool is_too_large(const TransformItem& item, dsl::u32 largest_bytes = kMaxTransformBytes) {
  return dsl::max(item.src_size, item.capacity) > item.k.constant(largest_bytes);
}

// With Warps = 1, calls body(item, fail_if, options...) in a loop that fail_if leaves. With more warps, calls
// body(item, options...) outside of any loop, since it contains barriers; the body then checks is_too_large itself.
template <dsl::u32 Warps, class Body, class... Options>
struct TransformBody {
  template <class P>
  using Wide = dsl::Ptr<dsl::read_only, P>;

  Body body;
  dsl::u32 largest_bytes;

  void operator()(dsl::Kernel& k, dsl::Arg<"src", Wide<dsl::u8>> src,
                  dsl::Arg<"src_offsets", Wide<dsl::u64>> src_offsets, dsl::Arg<"src_sizes", Wide<dsl::u32>> src_sizes,
                  dsl::Arg<"dst", dsl::Ptr<dsl::global, dsl::u8>> dst,
                  dsl::Arg<"dst_offsets", Wide<dsl::u64>> dst_offsets,
                  dsl::Arg<"dst_capacities", Wide<dsl::u32>> dst_capacities,
                  dsl::Arg<"dst_sizes", dsl::Ptr<dsl::global, dsl::u32>> dst_sizes,
                  dsl::Arg<"statuses", dsl::Ptr<dsl::global, dsl::u32>> statuses,
                  dsl::Arg<"item_count", dsl::u32> item_count, Options... options) const {
    using namespace dsl;
    const BlockU32 index = k.block();
    k.return_if(index >= item_count);
    const WarpU32 src_size = src_sizes.within(item_count).at(index).load();
    const WarpU32 capacity = dst_capacities.within(item_count).at(index).load();
    mark_block(k, Mark::item, src_size);
    TransformItem item{.k = k,
                       .src = src.at(src_offsets.within(item_count).at(index).load()).within(src_size),
                       .src_size = src_size,
                       .dst = dst.at(dst_offsets.within(item_count).at(index).load()).within(capacity),
                       .capacity = capacity,
                       .status = WarpVar(k, static_cast<u32>(StreamStatus::ok)),
                       .size_bytes = WarpVar(k, 0)};
    if constexpr (Warps == 1) {
      k.warp_loop([&](auto& once) {  // a loop of one iteration; fail_if leaves it
        const FailIf fail_if{item, once};
        fail_if(is_too_large(item, largest_bytes), StreamStatus::item_too_large);
        body(item, fail_if, options...);
        once.break_();
      });
    } else {
      body(item, options...);
    }
    mark_block(k, Mark::status, *item.status);
    k.once_per_block([&] {
      statuses.within(item_count).at(index).store(*item.status);
      dst_sizes.within(item_count)
          .at(index)
          .store(select(*item.status == static_cast<u32>(StreamStatus::ok), *item.size_bytes, 0));
    });
  }
};

// Defines the transform `name`, with `Options` of type Arg<"...", u32>. `src_bytes` is N for an encoder and M for a
// decoder, whose N is the size that it decodes to. Coded output larger than N is discarded. TransformBody describes how
// `body` is called; it sets the item's status and size_bytes. `largest_bytes` applies to Warps = 1 only.
template <dsl::u32 Warps, class... Options, class Body>
dsl::KernelDefinition define_cta_transform(std::string_view name, const dsl::Budget& budget,
                                           const dsl::SizeExpr& src_bytes, const std::string& note, Body body,
                                           dsl::u32 largest_bytes = kMaxTransformBytes,
                                           dsl::Where where = dsl::Where::current()) {
  using dsl::N;
  constexpr dsl::u32 kThreads = Warps * dsl::kWarpLanes;
  return dsl::define(dsl::KernelSpec{.name = std::string(name),
                                     .block = kThreads,
                                     .budget = budget,
                                     .cost = {.threads_per_element = double{kThreads} / kTransformItemBytes,
                                              .buffers = {{"src", src_bytes},
                                                          {"dst", N},
                                                          {"src_offsets", 8},
                                                          {"src_sizes", 4},
                                                          {"dst_offsets", 8},
                                                          {"dst_capacities", 4},
                                                          {"dst_sizes", 4},
                                                          {"statuses", 4}},
                                              .note = note}},
                     TransformBody<Warps, Body, Options...>{std::move(body), largest_bytes}, where);
}

// Decodes a stream with all warps of a CTA: every warp reads the header in decoder.open(fail_if), decodes its chunks in
// decode(), and learns the result of all in close().
template <class Decoder>
void decode_stream(TransformItem& item, Decoder& decoder) {
  item.k.warp_loop([&](auto& once) {  // a loop of one iteration; fail_if leaves it
    decoder.open(FailIf{item, once});
    once.break_();
  });
  item.k.barrier();
  decoder.decode();
  item.k.barrier();
  decoder.close();
}

template <class... Options, class Body>
dsl::KernelDefinition define_transform(std::string_view name, const dsl::Budget& budget, const dsl::SizeExpr& src_bytes,
                                       const std::string& note, Body body, dsl::u32 largest_bytes = kMaxTransformBytes,
                                       dsl::Where where = dsl::Where::current()) {
  return define_cta_transform<1, Options...>(name, budget, src_bytes, note, std::move(body), largest_bytes, where);
}

}  // namespace ptxkit::kernels
