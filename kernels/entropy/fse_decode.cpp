// FSE decoding, a thread for each lane: one table entry a symbol says the symbol, how many bits follow, and what they
// are added to.
#include "kernels/entropy/fse_tables.hpp"
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

class Decoder {
 public:
  using Places = Ptr<Shared, u32, 16, Rate::Warp>;

  Decoder(TransformItem& item, const SymbolWords& words, const SymbolWords& seen, const StateSymbols& symbols,
          const Places& places)
      : item_(item),
        k_(item.k),
        words_(words),
        seen_(seen),
        symbols_(symbols),
        places_(places),
        raw_bytes_(load_u32(item.src)) {}

  template <class Fail>
  void decode(const Fail& fail_if) {
    fail_if(raw_bytes_ > item_.capacity, StreamStatus::output_overrun);
    fail_if((raw_bytes_ == 0) & (item_.src_size != kLanedHeaderBytes), StreamStatus::corrupt);
    item_.size_bytes = raw_bytes_;
    fail_if(raw_bytes_ == 0, StreamStatus::ok);  // nothing to do
    fail_if(item_.src_size == kLanedHeaderBytes, StreamStatus::input_overrun);
    const WarpU32 accuracy_bits = zext<u32>(item_.src.at<kLanedHeaderBytes>().load());
    fail_if(accuracy_bits - kMinAccuracyBits > kMaxAccuracyBits - kMinAccuracyBits, StreamStatus::bad_table);
    const WarpU32 state_count = k_.constant<u32>(1) << accuracy_bits;
    LaneSymbols frequencies(k_);
    const WarpU32 table_bytes = read_table(k_, item_.src.at<kLanedHeaderBytes + 1>(),
                                           item_.src_size - (kLanedHeaderBytes + 1), state_count, frequencies, fail_if);
    spread(k_, frequencies, state_count, symbols_, words_);
    fill_places(accuracy_bits, state_count);
    LaneReader reader(item_, table_bytes + (kLanedHeaderBytes + 1), fail_if);
    mark_warp(k_, Mark::parse, raw_bytes_);
    LaneVar state(k_, reader.read(accuracy_bits));
    k_.range(k_.lane(), raw_bytes_, kBitLanes, [&](const LaneU32& i) {
      const LaneU32 place = places_.at(*state).load();
      item_.dst.at(i).store(trunc<u8>(place));
      state = (place >> 16) + reader.read(place >> 8 & 15);
    });
    fail_if(any((*state != 0) | !reader.is_at_end()), StreamStatus::corrupt);
  }

 private:
  // A place's symbol in bits 0 to 7, its number of bits in 8 to 11, from 16 on the state that they are added to.
  void fill_places(const WarpU32& accuracy_bits, const WarpU32& state_count) {
    for_each_place(k_, state_count, symbols_, seen_, [&](const LaneU32& place, const LaneU32& s, const LaneU32& i) {
      const LaneU32 x = (words_.at(s).load() & 0xFFFF) + i;
      const LaneU32 bits = accuracy_bits + clz(x) - 31;
      places_.at(place).store(s | bits << 8 | ((x << bits) - state_count) << 16);
    });
  }

  TransformItem& item_;
  Kernel& k_;
  SymbolWords words_, seen_;
  StateSymbols symbols_;
  Places places_;
  WarpU32 raw_bytes_;
};

}  // namespace

KernelDefinition fse_decode() {
  return define_transform<>(
      kFseDecode,
      {.registers = 64, .shared_bytes = 2 * kSymbols * sizeof(u32) + kMaxStates * (sizeof(u8) + sizeof(u32))},
      "one warp a stream", [](TransformItem& item, const auto& fail_if) {
        const auto words = item.k.shared<u32, kSymbols, 16>("words");
        const auto seen = item.k.shared<u32, kSymbols, 16>("seen");
        const auto symbols = item.k.shared<u8, kMaxStates, 16>("symbols");
        const auto places = item.k.shared<u32, kMaxStates, 16>("places");
        fail_if(item.src_size < kLanedHeaderBytes, StreamStatus::input_overrun);
        Decoder(item, words.data(), seen.data(), symbols.data(), places.data()).decode(fail_if);
      });
}

}  // namespace ptxkit::kernels
