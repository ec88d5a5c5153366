// The blocks of `.ptz` on a Machine: the match finders, demux and entropy coders as kernels, the bytes those of
// encode_block.
//
// A block has a queue of its own, so as many are under way as there are queues, and memory is what so many take: about
// 30 bytes for each of a block. All kernels of an encoding are one submission; then as much is copied down as is
// stored.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/backend/kernels/machine.hpp"
#include "runtime/format/ptz.hpp"

namespace ptxkit::codec {

struct BlockToEncode {
  Bytes raw;                             // not empty
  std::vector<std::uint8_t> coded = {};  // result; empty where it would not be shorter
};

struct BlockToDecode {
  Bytes coded;
  MutableBytes raw;
  bool good = false;  // result; false where `coded` is damaged
};

class BlockKernels {
 public:
  explicit BlockKernels(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}

  // Whether there are kernels for the codec.
  static bool have(format::PtzCodec codec) { return codec != format::PtzCodec::bbw; }

  std::string description() const { return machine_->description(); }
  // As many at a time keep every queue busy.
  std::size_t batch_blocks() const { return 2 * machine_->queue_count(); }

  // An error is one of the machine; a damaged block is none.
  Result<void> encode(format::PtzCodec codec, std::span<BlockToEncode> blocks);
  Result<void> decode(format::PtzCodec codec, std::span<BlockToDecode> blocks);

 private:
  struct Call;
  struct EncodedStream;

  Result<void> arrange(unsigned queue, std::span<const Region> regions);
  Result<void> launch(unsigned queue, const Call& call);
  Result<void> run(unsigned queue, const Call& call);
  Result<void> submit_encoding(unsigned queue, format::PtzCodec codec, Bytes raw);
  std::vector<EncodedStream> encoded_streams(unsigned queue);
  Result<void> fetch_coded(unsigned queue, BlockToEncode& block);
  Result<void> collect_coded(unsigned queue, BlockToEncode& block);
  Result<bool> submit_decoding(unsigned queue, format::PtzCodec codec, const BlockToDecode& block);
  Result<void> collect_raw(unsigned queue, BlockToDecode& block);

  std::unique_ptr<Machine> machine_;
};

}  // namespace ptxkit::codec
