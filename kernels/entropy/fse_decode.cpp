// FSE decoding, a thread for each lane. A table entry gives the symbol, the number of bits to read, and the base to
// which they are added for the next state.
#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/fse_tables.hpp"
#include "kernels/entropy/lane_bits.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

class Decoder {
 public:
  using Places = Ptr<shared, u32, 16, Rate::warp>;

  // While the table is built, `places` holds the places' symbols, and the ring's memory holds what is known of each
  // symbol.
  Decoder(TransformItem& item, const Places& places, const LaneReader::Ring& ring)
      : item_(item),
        k_(item.k),
        places_(places),
        ring_(ring),
        symbols_{places},
        words_(ring),
        seen_(ring.at<kSymbols>()),
        raw_bytes_(load_u32(item.src)) {}

  template <class Fail>
  void decode(const Fail& fail_if) {
    fail_if(raw_bytes_ > item_.capacity, StreamStatus::output_overrun);
    fail_if((raw_bytes_ == 0) & (item_.src_size != kLanedHeaderBytes), StreamStatus::corrupt);
    item_.size_bytes = raw_bytes_;
    fail_if(raw_bytes_ == 0, StreamStatus::ok);  // an empty stream
    fail_if(item_.src_size == kLanedHeaderBytes, StreamStatus::input_overrun);
    const WarpU32 accuracy_bits = zext<u32>(item_.src.at<kLanedHeaderBytes>().load());
    fail_if(accuracy_bits - kMinAccuracyBits > kMaxAccuracyBits - kMinAccuracyBits, StreamStatus::bad_table);
    const WarpU32 state_count = k_.constant<u32>(1) << accuracy_bits;
    LaneSymbols frequencies(k_);
    const WarpU32 table_bytes = read_table(k_, item_.src.at<kLanedHeaderBytes + 1>(),
                                           item_.src_size - (kLanedHeaderBytes + 1), state_count, frequencies, fail_if);
    spread(k_, frequencies, state_count, symbols_, words_);
    fill_places(accuracy_bits, state_count);
    LaneReader reader(item_, ring_, table_bytes + (kLanedHeaderBytes + 1), fail_if);
    mark_warp(k_, Mark::parse, raw_bytes_);
    LaneVar state(k_, reader.peek() >> (32 - accuracy_bits));
    reader.skip(accuracy_bits);
    for_lane_rows(item_, raw_bytes_, reader, [&](const auto& to, const auto& skip) {
      const LaneU32 place = places_.at(*state).load();
      to.store(trunc<u8>(place >> 8));
      // The low five bits of a place are its number of bits; the funnel shift ignores the others.
      state = (place >> 16) + funnel_left(reader.peek(), 0, place);
      skip(place & 15);
    });
    fail_if(any((*state != 0) | !reader.is_at_end()), StreamStatus::corrupt);
  }

 private:
  // Fills the table. A place has its number of bits in bits 0 to 3, its symbol in bits 8 to 15, and from bit 16 on the
  // base state to which the bits are added.
  void fill_places(const WarpU32& accuracy_bits, const WarpU32& state_count) {
    for_each_place(k_, state_count, symbols_, seen_, [&](const LaneU32& place, const LaneU32& s, const LaneU32& i) {
      const LaneU32 x = (words_.at(s).load() & 0xFFFF) + i;
      const LaneU32 bits = accuracy_bits + clz(x) - 31;
      places_.at(place).store(bits | s << 8 | ((x << bits) - state_count) << 16);
    });
  }

  struct PlaceSymbols {
    Places places;
    auto at(const LaneU32& place) const { return places.at(place).as<u8>(); }
  };

  TransformItem& item_;
  Kernel& k_;
  Places places_;
  LaneReader::Ring ring_;
  PlaceSymbols symbols_;
  SymbolWords words_, seen_;
  static_assert(2 * kSymbols <= LaneReader::kRingWords);
  WarpU32 raw_bytes_;
};

}  // namespace

KernelDefinition fse_decode() {
  return define_transform<>(kFseDecode,
                            {.registers = 64, .shared_bytes = (kMaxStates + LaneReader::kRingWords) * sizeof(u32)}, M,
                            "one warp a stream", [](TransformItem& item, const auto& fail_if) {
                              const auto places = item.k.shared<u32, kMaxStates, 16>("places");
                              const auto ring = item.k.shared<u32, LaneReader::kRingWords, 16>("ring");
                              fail_if(item.src_size < kLanedHeaderBytes, StreamStatus::input_overrun);
                              Decoder(item, places.data(), ring.data()).decode(fail_if);
                            });
}

}  // namespace ptxkit::kernels
