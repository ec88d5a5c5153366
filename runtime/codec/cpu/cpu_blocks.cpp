#include "runtime/codec/cpu/cpu_blocks.hpp"

#include "support/plural.hpp"

namespace ptxkit::codec {
namespace {

constexpr size_t kBlocksPerThread = 4;

}  // namespace

std::string CpuBlocks::description() const { return "cpu, " + plural(executor_.thread_count(), "thread"); }

size_t CpuBlocks::batch_blocks(const BlockCoding&, size_t) { return kBlocksPerThread * executor_.thread_count(); }

Result<void> CpuBlocks::encode(const BlockCoding& codec, std::span<BlockToEncode> blocks, MatchSearch search) {
  if (const auto* zstd = std::get_if<ZstdCoding>(&codec)) return zstd_.encode(blocks, zstd->level);
  if (const auto* gzip = std::get_if<GzipCoding>(&codec)) {
    deflate_.encode(blocks, gzip->level);
    return {};
  }
  const auto& ptz = std::get<format::PtzCoding>(codec);
  executor_.for_each(blocks.size(),
                     [&](size_t i, unsigned) { blocks[i].coded = encode_block(ptz, blocks[i].raw, search); });
  return {};
}

Result<void> CpuBlocks::decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) {
  if (const auto* ptz = std::get_if<format::PtzCoding>(&codec)) {
    executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
      blocks[i].good = decode_block(*ptz, blocks[i].coded, blocks[i].raw);
    });
    return {};
  }
  std::vector<CoderItem> items;
  for (const BlockToDecode& block : blocks) items.push_back({block.coded, block.raw});
  if (std::holds_alternative<ZstdCoding>(codec)) {
    zstd_.decompress(items);
  } else {
    deflate_.decompress(items, DeflateWrapper::gzip);
  }
  for (size_t i = 0; i < items.size(); ++i)
    blocks[i].good = items[i].status == CoderItem::Status::ok && items[i].output_bytes == blocks[i].raw.size();
  return {};
}

}  // namespace ptxkit::codec
