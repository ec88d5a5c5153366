// FSE encoding, a thread for each lane.
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

struct Coder {
  Kernel& k;
  FseEncoderTable table;
  WarpU32 accuracy_bits;
  LaneVar state;

  void begin() { state = k.constant<u32>(1) << accuracy_bits; }
  template <class Emit>
  void symbol(const LaneU32& s, const Emit& emit) {
    state = table.code(*state, s, emit);
  }
  template <class Emit>
  void end(const Emit& emit) {
    emit(*state - (k.constant<u32>(1) << accuracy_bits), accuracy_bits);
  }
};

}  // namespace

KernelDefinition fse_encode() {
  return define_transform<Arg<"accuracy_bits", u32>>(
      kFseEncode,
      {.registers = 72, .shared_bytes = 2 * kSymbols * sizeof(u32) + kMaxStates * (sizeof(u8) + sizeof(u16))}, N,
      "one warp a stream", [](TransformItem& item, const auto& fail_if, const BlockU32& wanted_bits) {
        Kernel& k = item.k;
        const SymbolWords counts = k.shared<u32, kSymbols, 16>("counts").data();
        const SymbolWords words = k.shared<u32, kSymbols, 16>("words").data();
        const Ptr<shared, u8, 16, Rate::warp> symbols = k.shared<u8, kMaxStates, 16>("symbols").data();
        const Ptr<shared, u16, 16, Rate::warp> next = k.shared<u16, kMaxStates, 16>("next").data();
        fail_if(item.src_size > kMaxLanedBytes, StreamStatus::item_too_large);
        fail_if(wanted_bits - kMinAccuracyBits > kMaxAccuracyBits - kMinAccuracyBits, StreamStatus::bad_option);
        fail_if(item.capacity < kLanedHeaderBytes, StreamStatus::output_overrun);
        k.once_per_warp([&] { store_u32(item.dst, item.src_size); });
        item.size_bytes = k.constant(u32{kLanedHeaderBytes});
        fail_if(item.src_size == 0, StreamStatus::ok);  // an empty stream

        LaneSymbols frequencies(k);
        count_bytes(k, item.src, item.src_size, counts);
        LaneVar present(k, 0);
        for_lane_symbols(k, [&](auto, const LaneU32& s) { present += zext<u32>(counts.at(s).load() != 0); });
        const WarpU32 needed_bits = 32 - clz(reduce_add(*present) - 1);
        const WarpU32 accuracy_bits = max(needed_bits, wanted_bits);
        normalise_frequencies(k, counts, item.src_size, accuracy_bits, frequencies);
        const WarpU32 sizes_at = table_bytes(k, frequencies) + (kLanedHeaderBytes + 1);
        fail_if(item.capacity < sizes_at, StreamStatus::output_overrun);
        k.once_per_warp([&] { item.dst.at<kLanedHeaderBytes>().store(trunc<u8>(accuracy_bits)); });
        write_table(k, frequencies, item.dst.at<kLanedHeaderBytes + 1>());

        const WarpU32 state_count = k.constant<u32>(1) << accuracy_bits;
        spread(k, frequencies, state_count, symbols, words);
        for_each_place(k, state_count, symbols, counts, [&](const LaneU32& place, const LaneU32& s, const LaneU32& i) {
          next.at((words.at(s).load() >> 16) + i).store(trunc<u16>(state_count + place));
        });
        Coder coder{k, {words, next}, accuracy_bits, LaneVar(k, 0)};
        write_lanes(item, sizes_at, coder, fail_if);
      });
}

}  // namespace ptxkit::kernels
