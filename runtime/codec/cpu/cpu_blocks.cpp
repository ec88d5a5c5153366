#include "runtime/codec/cpu/cpu_blocks.hpp"

#include "support/plural.hpp"

namespace ptxkit::codec {
namespace {

constexpr size_t kBlocksPerThread = 4;

}  // namespace

std::string CpuBlocks::description() const { return "cpu, " + plural(executor_.thread_count(), "thread"); }

size_t CpuBlocks::batch_blocks(const format::PtzCoding&, size_t) { return kBlocksPerThread * executor_.thread_count(); }

Result<void> CpuBlocks::encode(const format::PtzCoding& codec, std::span<BlockToEncode> blocks, MatchSearch search) {
  executor_.for_each(blocks.size(),
                     [&](size_t i, unsigned) { blocks[i].coded = encode_block(codec, blocks[i].raw, search); });
  return {};
}

Result<void> CpuBlocks::decode(const format::PtzCoding& codec, std::span<BlockToDecode> blocks) {
  executor_.for_each(blocks.size(),
                     [&](size_t i, unsigned) { blocks[i].good = decode_block(codec, blocks[i].coded, blocks[i].raw); });
  return {};
}

}  // namespace ptxkit::codec
