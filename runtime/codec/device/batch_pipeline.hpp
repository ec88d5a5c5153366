// The steps of a codec whose kernels take batches of items by arrays of addresses: Zstandard and gzip. A codec says
// which kernels it launches and which regions these share, and what of an encoded item is a block.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/codec/device/block_pipeline.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/device/kernel_call.hpp"
#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

// The regions that every such codec has, before those of its own, in the order in which they are arranged.
struct BatchEncodeRegions {
  enum Region : size_t { raw, raw_at, raw_sizes, coded, coded_at, coded_sizes, statuses, first_own };
};
struct BatchDecodeRegions {
  enum Region : size_t { coded, coded_at, coded_sizes, raw, raw_at, raw_rooms, raw_sizes, statuses, first_own };
};

// Totals of a group to decode.
struct BatchDecodeSizes {
  size_t items = 0, coded_bytes = 0, largest_raw_bytes = 0;
};

class BatchPipeline : public BlockPipeline {
 public:
  // `encode_own`, `decode_own`: names of the codec's own regions.
  BatchPipeline(Machine& machine, Executor& executor, std::span<const RegionName> encode_own,
                std::span<const RegionName> decode_own);

  Result<LaunchPlan> encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch search) override;
  Result<LaunchPlan> decoding_plan(uint32_t block_count, size_t block_bytes) override;
  size_t encoded_at_once(size_t block_bytes) override;
  size_t decoded_at_once(size_t block_bytes) override;
  Steps<BlockToEncode> encoding(MatchSearch search) override;
  Steps<BlockToDecode> decoding() override;

 protected:
  // The launches for `count` items of up to `raw_stride` bytes, a multiple of 16. Uploads and downloads are added.
  virtual std::vector<KernelCall> encode_calls(uint32_t count, size_t raw_stride) const = 0;
  virtual std::vector<KernelCall> decode_calls(const BatchDecodeSizes& sizes) const = 0;
  // Makes the block of an encoded item. False if it is not one.
  virtual bool take_block(Bytes item, BlockToEncode& block) const = 0;
  // Whether there are kernels for what is to be encoded.
  virtual Result<void> check_encoding() const = 0;

 private:
  // The items that a queue encodes.
  struct EncodedGroup {
    size_t coded_stride = 0;
    Fetched fetched = {};
    std::vector<size_t> begins = {};  // of the items in `fetched`, and where the last one ends
  };

  Result<LaunchPlan> plan_encoding(uint32_t count, size_t raw_stride);
  Result<LaunchPlan> plan_decoding(const BatchDecodeSizes& sizes);
  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks);
  Result<void> fetch_items(unsigned queue, std::span<BlockToEncode> blocks);
  Result<void> take_blocks(unsigned queue, std::span<BlockToEncode> blocks);
  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks);
  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks);
  uint64_t* wide(unsigned queue, size_t region) { return host_array<uint64_t>(machine_, queue, region); }
  bool is_ok(unsigned queue, size_t statuses, size_t i);

  Machine& machine_;
  Executor& executor_;
  std::vector<RegionName> encode_regions_, decode_regions_;
  DeclaredCosts costs_{machine_};
  std::vector<EncodedGroup> encoded_;  // of each queue
  std::vector<size_t> raw_strides_;    // of the items that each queue decodes
};

}  // namespace ptxkit::codec
