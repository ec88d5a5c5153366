// Coding of runs of zeros, with a stretch of the column for each warp of a CTA. The code of a byte and its position
// depend on where the byte's run began, perhaps in another warp's stretch. The warps therefore first determine the last
// ends of runs, then how much each of them writes, and then write.
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_item.hpp"
#include "kernels/bwt/cta_list.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using Stretches = CtaStretches<kColumnThreads>;

constexpr u32 kEscape = 255;

// Iterates over the stretch. ends(i) says whether a run ends with element i. Calls body(i, inside, beginning of i's
// run).
template <class Ends, class Body>
void with_runs(Kernel& k, Stretches& stretches, const WarpU32& count, WarpVar& begin, const Ends& ends,
               const Body& body) {
  stretches.for_stretch(count, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
    const WarpU32 ended = ballot(inside & ends(i));
    const LaneU32 before = ended & k.lanes_below();
    body(i, inside, select(before != 0, base + (32 - clz(before)), *begin));
    begin = select(ended != 0, base + (32 - clz(ended)), *begin);
  });
}

// The beginning of the run in which the warp's stretch begins.
template <class Ends>
WarpU32 first_begin(Kernel& k, Stretches& stretches, const WarpU32& count, const Ends& ends) {
  WarpVar begin(k, 0);
  with_runs(k, stretches, count, begin, ends, [](const auto&, const auto&, const auto&) {});
  return stretches.totals(k.constant<u32>(0), *begin).last_before;
}

CtaOutcome encode(const ColumnItem& item) {
  Kernel& k = item.k;
  Stretches stretches(k);
  const Expr<bool, Rate::block> too_large = item.src_size > kMaxBwtBytes;
  const BlockU32 n = select(too_large, 0, item.src_size);
  // An additional element after the last one ends the last run and writes nothing itself.
  const BlockU32 count = n + min(n, 1);
  const auto byte_at = [&](const LaneU32& i) {
    const LaneBool inside = i < n;
    return select(inside, zext<u32>(item.src.at(select(inside, i, 0)).load()), 1);
  };
  const auto ends = [&](const LaneU32& i) { return byte_at(i) != 0; };
  // Bytes that code the run before an element that ends one, and bytes that code the element itself.
  const auto digits_of = [&](const LaneU32& i, const LaneU32& begin) { return 31 - clz(i - begin + 1); };
  const auto bytes_of = [&](const LaneU32& i) {
    return select(i < n, select(byte_at(i) >= kEscape - 1, k.constant<u32>(2), k.constant<u32>(1)), 0);
  };
  const WarpU32 begins = first_begin(k, stretches, count, ends);

  WarpVar begin(k, begins), written(k, 0);
  with_runs(k, stretches, count, begin, ends, [&](const LaneU32& i, const LaneBool& inside, const LaneU32& run) {
    written += reduce_add(select(inside & ends(i), digits_of(i, run) + bytes_of(i), 0));
  });
  const auto totals = stretches.totals(*written, k.constant<u32>(0));
  const WarpBool too_long = totals.sum > item.capacity;
  k.if_((!too_long) & (!too_large), [&] {
    begin = begins;
    written = totals.sum_before;
    with_runs(k, stretches, count, begin, ends, [&](const LaneU32& i, const LaneBool& inside, const LaneU32& run) {
      const LaneBool writes = inside & ends(i);
      const LaneU32 digits = digits_of(i, run), byte = byte_at(i);
      const LaneU32 size = select(writes, digits + bytes_of(i), 0);
      const LaneU32 at = *written + exclusive_sum(size);
      k.if_(writes, [&] {
        k.range(k.constant<u32>(0), digits, 1,
                [&](const LaneU32& digit) { item.dst.at(at + digit).store(trunc<u8>(((i - run + 1) >> digit) & 1)); });
        k.if_(i < n, [&] {
          item.dst.at(at + digits).store(trunc<u8>(min(byte + 1, kEscape)));
          k.if_(byte >= kEscape - 1, [&] { item.dst.at(at + digits + 1).store(trunc<u8>(byte - (kEscape - 1))); });
        });
      });
      written += reduce_add(size);
    });
  });
  const auto status = [&](StreamStatus value) { return status_value(k, value); };
  return {select(too_large, status(StreamStatus::item_too_large),
                 select(too_long, status(StreamStatus::output_overrun), status(StreamStatus::ok))),
          totals.sum};
}

CtaOutcome decode(const ColumnItem& item) {
  Kernel& k = item.k;
  Stretches stretches(k);
  const Expr<bool, Rate::block> too_large = item.src_size > zero_runs_bound(kMaxBwtBytes);
  const BlockU32 count = select(too_large, 0, item.src_size);
  const auto byte_at = [&](const LaneU32& i) { return zext<u32>(item.src.at(i).load()); };
  const auto is_second = [&](const LaneU32& i) { return (i != 0) & (byte_at(max(i, 1) - 1) == kEscape); };
  const auto is_digit = [&](const LaneU32& i) { return (byte_at(i) < 2) & (!is_second(i)); };
  const auto ends = [&](const LaneU32& i) { return !is_digit(i); };
  const WarpU32 begins = first_begin(k, stretches, count, ends);

  // The output size of an element: zeros, one byte, or nothing if it is the second byte of an escaped one.
  const auto size_of = [&](const LaneU32& i, const LaneU32& run) {
    const LaneU32 zeros = (byte_at(i) + 1) << min(i - run, kMaxRunDigits - 1);
    return select(is_digit(i), zeros, select(is_second(i), k.constant<u32>(0), k.constant<u32>(1)));
  };
  WarpVar begin(k, begins), written(k, 0), wrong(k, 0);
  with_runs(k, stretches, count, begin, ends, [&](const LaneU32& i, const LaneBool& inside, const LaneU32& run) {
    const LaneU32 byte = byte_at(i);
    const LaneBool bad = (is_digit(i) & (i - run >= kMaxRunDigits)) | (is_second(i) & (byte > 1)) |
                         ((byte == kEscape) & (i + 1 == count));
    wrong |= ballot(inside & bad);
    // Saturated above every valid size, so that sums do not wrap.
    written = min(*written + reduce_add(select(inside, size_of(i, run), 0)), 2 * kMaxBwtBytes);
  });
  const auto totals = stretches.totals(*written, k.constant<u32>(0));
  const WarpBool corrupt = stretches.sum_of(select(*wrong != 0, k.constant<u32>(1), k.constant<u32>(0))) != 0;
  const WarpBool too_long = totals.sum > min(item.capacity, kMaxBwtBytes);
  const WarpBool good = (!corrupt) & (!too_long) & (!too_large);
  k.if_(good, [&] {
    stretches.for_stretch(totals.sum, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
      k.if_(inside, [&] { item.dst.at(i).store(trunc<u8>(k.constant<u32>(0))); });
    });
  });
  k.barrier();
  k.if_(good, [&] {
    begin = begins;
    written = totals.sum_before;
    with_runs(k, stretches, count, begin, ends, [&](const LaneU32& i, const LaneBool& inside, const LaneU32& run) {
      const LaneU32 size = select(inside, size_of(i, run), 0), byte = byte_at(i);
      const LaneU32 at = *written + exclusive_sum(size);
      const LaneBool is_byte = inside & (!is_digit(i)) & (!is_second(i));
      k.if_(is_byte, [&] {
        const LaneBool escaped = byte == kEscape;
        const LaneU32 more = select(escaped, byte_at(i + zext<u32>(escaped)), 0);
        item.dst.at(at).store(trunc<u8>(byte - 1 + more));
      });
      written += reduce_add(size);
    });
  });
  const auto status = [&](StreamStatus value) { return status_value(k, value); };
  return {select(too_large, status(StreamStatus::item_too_large),
                 select(corrupt, status(StreamStatus::corrupt),
                        select(too_long, status(StreamStatus::output_overrun), status(StreamStatus::ok)))),
          totals.sum};
}

}  // namespace

KernelDefinition zero_runs_encode() {
  return define_column(kZeroRunsEncode, {{"src", N}, {"dst", N * 2}}, Stretches::kSharedBytes, encode);
}
KernelDefinition zero_runs_decode() {
  return define_column(kZeroRunsDecode, {{"src", M}, {"dst", N}}, Stretches::kSharedBytes, decode);
}

}  // namespace ptxkit::kernels
