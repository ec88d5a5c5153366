// What the kernels of batches share: statuses, the shape of an item, and its parts that no encoder writes.
#pragma once

#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using WarpU64 = dsl::Expr<dsl::u64, dsl::Rate::warp>;

// The status of an item: that of the first check that failed.
template <dsl::Rate R>
class BatchOutcome {
  using Bool = dsl::Expr<bool, R>;

 public:
  explicit BatchOutcome(dsl::Kernel& k) : status_(k, static_cast<uint32_t>(BatchStatus::ok)) {}

  void fail_if(const Bool& condition, BatchStatus status) {
    status_ = select(is_ok() & condition, static_cast<uint32_t>(status), *status_);
  }
  // The same with a status that the kernel computed.
  void fail_with(const Bool& condition, const dsl::Expr<dsl::u32, R>& status) {
    status_ = select(is_ok() & condition, status, *status_);
  }
  Bool is_ok() const { return *status_ == static_cast<uint32_t>(BatchStatus::ok); }
  dsl::Expr<dsl::u32, R> status() const { return *status_; }

 private:
  dsl::Var<dsl::u32, R> status_;
};

// The threads of a warp or of a CTA, which share a loop over elements.
template <class Threads>
struct ThreadGroup {
  Threads index;
  uint32_t size;
};

// Calls body(i) for every i < count. The loop is as uniform as `count`.
template <class Group, class Count, class Body>
void for_each_of(dsl::Kernel& k, const Group& group, const Count& count, const Body& body) {
  k.range(0, count, group.size, [&](const auto& first) {
    const LaneU32 i = first + group.index;
    k.if_(i < count, [&] { body(i); });
  });
}

inline auto lanes_of(dsl::Kernel& k) { return ThreadGroup<LaneU32>{k.lane(), dsl::kWarpLanes}; }
inline auto threads_of(dsl::Kernel& k) { return ThreadGroup<LaneU32>{k.thread(), k.block_threads()}; }

// Copies `count` bytes from and to any address.
template <class Group, class Source, class Room, class Count>
void copy_bytes(dsl::Kernel& k, const Group& group, const Source& src, const Room& dst, const Count& count) {
  for_each_of(k, group, count, [&](const LaneU32& i) { dst.at(i).store(src.at(i).load()); });
}

// Writes the token and the length of a sequence with `count` literals, extension_size(count) + 1 bytes.
template <class Group, class Room, class Count, class Nibble>
void write_literal_length(dsl::Kernel& k, const Group& group, const Room& dst, const Count& count,
                          const Nibble& match_nibble) {
  using namespace dsl;
  const auto extension = extension_size(count);
  for_each_of(k, group, extension + 1, [&](const LaneU32& i) {
    const LaneU32 token = min(count, kNibbleMax) << 4 | match_nibble;
    const LaneU32 length_byte = select(i == extension, (count - kNibbleMax) % 255, 255);
    dst.at(i).store(trunc<u8>(select(i == 0, token, length_byte)));
  });
}

// Writes `size` bytes as one sequence of literals and returns its length.
template <class Group, class Source, class Room, class Size>
auto write_literals(dsl::Kernel& k, const Group& group, const Source& src, const Room& dst, const Size& size) {
  using namespace dsl;
  const auto begin = extension_size(size) + 1;
  write_literal_length(k, group, dst, size, k.constant<u32>(0));
  copy_bytes(k, group, src, dst.at(begin), size);
  return begin + size;
}

// Writes the block of `size` zeros, more than kLastMatchStart, and returns its length: a literal, a match that repeats
// it, the last literals.
template <class Group, class Room, class Size>
auto write_zeros(dsl::Kernel& k, const Group& group, const Room& dst, const Size& size) {
  using namespace dsl;
  const auto code = size - (1 + kLastLiterals + kMinMatch);
  const auto extension = extension_size(code);
  const auto last_token = extension + 4;
  for_each_of(k, group, last_token + 1 + kLastLiterals, [&](const LaneU32& i) {
    const LaneU32 length_byte = select(i == last_token - 1, (code - kNibbleMax) % 255, 255);
    const LaneU32 before_last =
        select(i == 0, min(code, kNibbleMax) | 1 << 4, select(i == 2, k.constant<u32>(1), k.constant<u32>(0)));
    const LaneU32 last = select(i == last_token, k.constant<u32>(kLastLiterals << 4), k.constant<u32>(0));
    dst.at(i).store(trunc<u8>(select(i < 4, before_last, select(i < last_token, length_byte, last))));
  });
  return last_token + 1 + kLastLiterals;
}

}  // namespace ptxkit::kernels
