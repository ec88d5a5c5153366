// Huffman encoding, a thread for each lane: histogram, code lengths, codes, a prefix sum over the lanes' sizes, the
// bits.
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/huffman_codes.hpp"
#include "kernels/entropy/huffman_lengths.hpp"
#include "kernels/entropy/lane_bits.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

// Emits a symbol's code. An entry is the code, with its length from bit 16 on.
struct Coder {
  SymbolWords codes;

  void begin() {}
  template <class Emit>
  void symbol(const LaneU32& s, const Emit& emit) {
    const LaneU32 code = codes.at(s).load();
    emit(code & 0xFFFF, code >> 16);
  }
  template <class Emit>
  void end(const Emit&) {}
};

}  // namespace

KernelDefinition huffman_encode() {
  return define_transform<>(
      kHuffmanEncode, {.registers = 72, .shared_bytes = kCodeLengthWorkspaceBytes<kMaxCodeBits>}, N,
      "one warp a stream", [](TransformItem& item, const auto& fail_if) {
        Kernel& k = item.k;
        const CodeLengthWorkspace shared = code_length_workspace<kMaxCodeBits>(k);
        fail_if(item.src_size > kMaxLanedBytes, StreamStatus::item_too_large);
        fail_if(item.capacity < kLanedHeaderBytes, StreamStatus::output_overrun);
        k.once_per_warp([&] { store_u32(item.dst, item.src_size); });
        item.size_bytes = k.constant(u32{kLanedHeaderBytes});
        fail_if(item.src_size == 0, StreamStatus::ok);  // an empty stream
        fail_if(item.capacity < kLanedHeaderBytes + kCodeLengthsBytes, StreamStatus::output_overrun);

        LaneSymbols lengths(k);
        count_bytes(k, item.src, item.src_size, shared.counts);
        CodeLengths<kMaxCodeBits>(k, shared).make(lengths);
        const auto packed = item.dst.at<kLanedHeaderBytes>();
        unrolled<kLaneSymbols / 2>([&](auto i) {
          packed.at(k.lane() * (kLaneSymbols / 2) + i).store(trunc<u8>(*lengths[2 * i] | *lengths[2 * i + 1] << 4));
        });
        (void)for_canonical_codes(
            k, lengths, [](const auto&...) {},
            [&](auto j, const LaneU32& s, const LaneU32& code, const LaneU32&) {
              shared.counts.at(s).store(code | *lengths[j] << 16);
            });
        k.sync_warp();
        Coder coder{shared.counts};
        write_lanes(item, k.constant(u32{kLanedHeaderBytes + kCodeLengthsBytes}), coder, fail_if);
      });
}

}  // namespace ptxkit::kernels
