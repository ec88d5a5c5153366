// The inverse of the BWT. A stable counting sort of the column links each row to the next one. Then each segment of the
// block is walked independently, from the row of its end to the row of its beginning.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_item.hpp"
#include "kernels/bwt/bwt_sort.hpp"
#include "kernels/bwt/cta_list.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using List = CtaSort<kBwtInverseThreads>;

class Inverse {
 public:
  explicit Inverse(const BwtItem& item) : item_(item), k_(item.k), n_(k_, 0), status_(k_, 0) {}

  CtaOutcome invert() {
    k_.if_(item_.src_size < 4, [&] { fail(StreamStatus::input_overrun); }).else_([&] {
      n_ = words().load();
      const BlockU32 n = *n_;
      const BlockU32 block_bytes = (bwt_segments(n) + 1) * 4 + n;
      k_.if_(n > min(item_.capacity, min(item_.item_bytes, kMaxBwtBytes)), [&] {
          fail(StreamStatus::output_overrun);
        }).else_([&] {
        k_.if_(block_bytes > item_.src_size, [&] { fail(StreamStatus::input_overrun); });
        k_.if_(block_bytes < item_.src_size, [&] { fail(StreamStatus::corrupt); });
      });
    });
    WarpVar failed(k_, *status_);
    k_.if_((*status_ == 0) & (*n_ != 0), [&] { failed = invert_column(); });
    return {*failed, *n_};
  }

 private:
  void fail(StreamStatus status) { status_ = status_value(k_, status); }
  Ptr<read_only, u32, kStrideUnitBytes> words() const { return item_.src.as<u32>(); }

  // Decodes the column and returns the StreamStatus of the content.
  WarpU32 invert_column() {
    const BlockU32 n = *n_, segments = bwt_segments(n), whole = words().at<1>().load();
    const auto begin_of = [&](const LaneU32& segment) { return words().at(segment + 1).load(); };
    LaneVar wrong(k_, zext<u32>(whole - 1 >= n));
    for_each_thread(segments, [&](const LaneU32& segment) {
      const LaneU32 row = begin_of(segment);
      wrong |= zext<u32>((row - 1 >= n) | ((segment != 0) & (row == whole)));
    });
    List list(k_);
    const WarpBool good = list.sum_of(reduce_or(*wrong)) == 0;
    link_rows(list, good, whole);
    LaneVar astray(k_, 0);
    k_.if_(good, [&] {
      for_each_thread(segments, [&](const LaneU32& segment) {
        const LaneU32 begin = segment * kBwtSegmentBytes;
        const LaneBool is_last = segment + 1 == segments;
        LaneVar row(k_, select(is_last, 0, begin_of(select(is_last, 0, segment + 1))));
        walk(begin, select(is_last, n, begin + kBwtSegmentBytes), row);
        astray |= zext<u32>(*row != begin_of(segment));
      });
    });
    const WarpBool arrived = list.sum_of(reduce_or(*astray)) == 0;
    return select(good, select(arrived, status_value(k_, StreamStatus::ok), status_value(k_, StreamStatus::corrupt)),
                  status_value(k_, StreamStatus::bad_table));
  }

  // Calls body(i) for i < count in the CTA's threads.
  template <class Body>
  void for_each_thread(const BlockU32& count, const Body& body) {
    k_.range(k_.constant<u32>(0), count, kBwtInverseThreads, [&](const BlockU32& first) {
      const LaneU32 i = first + k_.thread();
      k_.if_(i < count, [&] { body(i); });
    });
  }

  // Stores a word for each row: the row's byte in the low eight bits, and above it the row of the suffix that begins
  // with that byte. The row of the whole block has no byte. It links to an additional row at which no segment begins
  // and which links to itself.
  void link_rows(List& list, const WarpBool& good, const BlockU32& whole) {
    const auto column = item_.src.at(times<4>(bwt_segments(*n_) + 1));
    list.sort_by_digit(
        *n_, good, [&](const LaneU32& i) { return zext<u32>(column.at(i).load()); },
        [](const LaneU32& byte) { return byte; },
        [&](const LaneU32& i, const LaneU32& byte, const LaneU32& position) {
          item_.scratch.at(i + zext<u32>(i >= whole)).store((position + 1) << 8 | byte);
        });
    k_.if_(good, [&] {
      k_.once_per_block([&] {
        const BlockU32 astray = *n_ + 1;
        item_.scratch.at(whole).store(astray << 8);
        item_.scratch.at(astray).store(astray << 8);
      });
    });
    k_.barrier();
  }

  // Writes the bytes from `end` down to `begin`, a multiple of four; whole words at once.
  void walk(const LaneU32& begin, const LaneU32& end, LaneVar& row) {
    LaneVar at(k_, end);
    const auto step = [&] {
      const LaneU32 here = item_.scratch.at(*row).load();
      row = here >> 8;
      return here & 0xFF;
    };
    k_.thread_loop([&](auto& bytes) {
      bytes.break_if(*at % 4 == 0);
      at -= 1;
      item_.dst.at(*at).store(trunc<u8>(step()));
    });
    k_.thread_loop([&](auto& whole_words) {
      whole_words.break_if(*at == begin);
      at -= 4;
      LaneVar word(k_, 0);
      unrolled<4>([&](auto) { word = *word << 8 | step(); });
      item_.dst.as<u32>().at(*at / 4).store(*word);
    });
  }

  const BwtItem& item_;
  Kernel& k_;
  BlockVar n_, status_;
};

}  // namespace

KernelDefinition bwt_inverse() {
  return define_bwt(
      {.name = std::string(kBwtInverse),
       .block = kBwtInverseThreads,
       .budget = {.registers = 64, .shared_bytes = List::kSharedBytes},
       .cost = {.threads_per_element = double{kBwtInverseThreads} / kTransformItemBytes,
                .buffers = strided_buffers({{"src", kBwtBlockRoom}, {"dst", N}, {"scratch", N * 4 + 8}}),
                .note = "one CTA an item, which is of 64 KiB here"}},
      [](const BlockU32& item_bytes) { return (item_bytes + 3) / 2; },
      [](const BwtItem& item) { return Inverse(item).invert(); });
}

}  // namespace ptxkit::kernels
