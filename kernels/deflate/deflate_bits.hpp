// Bits that a warp writes in turns, from the lowest of each byte on: the lanes' fields of a turn follow each other.
//
// A sum over the lanes says where each begins. They meet in a ring of words in shared memory, whose whole words go to
// the output after each turn.
#pragma once

#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

class DeflateBits {
 public:
  using Ring = dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>;
  using Room = dsl::Ptr<dsl::global, dsl::u8, 1, dsl::Rate::warp>;
  static constexpr uint32_t kRingWords = 256;
  static constexpr uint32_t kMaxTurnBits = 32 * (kRingWords - 1);
  static constexpr uint32_t kMaxFieldBits = 28;

  // `size_bytes`: what all the bits take at `to`.
  DeflateBits(dsl::Kernel& k, const Ring& ring, const Room& to, const WarpU32& size_bytes)
      : k_(k),
        ring_(ring),
        bytes_(to),
        first_byte_(dsl::trunc<dsl::u32>(to.address()) & 3),
        words_(dsl::at_address<dsl::global, dsl::u32, 4>(to.address()).within((first_byte_ + size_bytes) / 4)),
        bits_(k, first_byte_ * 8),
        stored_words_(k, 0),
        word_(k, 0),
        held_(k, 0),
        buffer_(k, 0) {
    for_each_lane(k, k.constant(kRingWords), [&](const LaneU32& i) { ring.at(i).store(k.constant<dsl::u32>(0)); });
    k.sync_warp();
  }

  // Calls body() in all lanes, which puts `bits` bits in each.
  template <class Body>
  void turn(const LaneU32& bits, const Body& body) {
    using namespace dsl;
    const LaneU32 sum = inclusive_sum(bits), begin = *bits_ + sum - bits;
    word_ = begin / 32;
    held_ = begin % 32;
    buffer_ = 0;
    body();
    k_.if_(*held_ != 0, [&] { add_word(); });
    bits_ += shuffle(sum, kWarpLanes - 1);
    k_.sync_warp();
    store_words();
  }

  // Puts the `count` bits of `field`, at most kMaxFieldBits.
  void put(const LaneU32& field, const LaneU32& count) {
    buffer_ |= field << *held_;
    const LaneU32 end = *held_ + count;
    k_.if_(end >= 32, [&] {
      add_word();
      word_ += 1;
      buffer_ = field >> (32 - *held_);  // held_ is not 0 here
    });
    held_ = end % 32;
  }

  // Stores the last bytes. What is missing of the last one is 0.
  void finish() {
    using namespace dsl;
    const WarpU32 word = *stored_words_, end = (*bits_ + 7) / 8;
    const LaneU32 last = ring_.at(word % kRingWords).load();
    const LaneU32 at = word * 4 + k_.lane();
    k_.if_((at >= first_byte_) & (at < end),
           [&] { bytes_.at(at - first_byte_).store(trunc<u8>(last >> k_.lane() * 8)); });
  }

 private:
  void add_word() {
    using namespace dsl;
    atomic_or(ring_.at(*word_ % kRingWords), *buffer_, Order::relaxed, Scope::cta);
  }
  // Stores the words that are complete. Bytes before the first one belong to others.
  void store_words() {
    using namespace dsl;
    const WarpU32 end = *bits_ / 32;
    for_each_lane(k_, end - *stored_words_, [&](const LaneU32& i) {
      const LaneU32 at = *stored_words_ + i;
      const auto place = ring_.at(at % kRingWords);
      const LaneU32 word = place.load();
      place.store(k_.constant<u32>(0));
      k_.if_((at == 0) & (first_byte_ != 0), [&] {
          for (u32 byte = 1; byte < 4; ++byte) {
            const LaneU32 at_byte = k_.constant(byte);
            k_.if_(first_byte_ <= at_byte,
                   [&] { bytes_.at(at_byte - first_byte_).store(trunc<u8>(word >> at_byte * 8)); });
          }
        }).else_([&] { words_.at(at).store(word); });
    });
    stored_words_ = end;
    k_.sync_warp();
  }

  dsl::Kernel& k_;
  Ring ring_;
  Room bytes_;
  WarpU32 first_byte_;                                         // in the word in which the first bit is
  dsl::Ptr<dsl::global, dsl::u32, 4, dsl::Rate::warp> words_;  // from that word on
  WarpVar bits_, stored_words_;                                // from that word on
  dsl::Var<dsl::u32, dsl::Rate::thread> word_, held_, buffer_;
};

}  // namespace ptxkit::kernels
