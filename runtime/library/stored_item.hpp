// What a cache keeps of each item: a flag and the bytes that the flag asks for (docs/format.md, "Stored items").
//
// Backends report items of zeros, but code other repeated bytes as LZ4 blocks of up to raw / 255 + 12 bytes. Here they
// become one byte. Frames have no such flag, so streams do not use it.
#pragma once

#include <functional>
#include <span>

#include "runtime/codec/backend.hpp"

namespace ptxkit::library {

using codec::CompressItem;
using codec::DecompressItem;

// An item as it was kept. `flag` and `stored` may come from anywhere: every value is checked.
struct StoredItem {
  codec::ChunkFlag flag = codec::ChunkFlag::compressed;
  codec::Bytes stored;  // the first compressed_bytes of the output of CompressItem; if incompressible, the raw bytes
  codec::MutableBytes output;  // exactly as long as the item
  // Result. If it is not ok, `output` holds unspecified bytes.
  codec::ItemStatus status = codec::ItemStatus::ok;
};

// Gives items of two or more equal bytes, but not of zeros, the flag `filled`. The items have been compressed.
void flag_filled_items(std::span<CompressItem> items);

using DecompressBlocks = std::function<Result<void>(std::span<DecompressItem> blocks)>;

// Restores the items. `decompress` is called once with those that are LZ4 blocks, if there are any.
Result<void> restore(std::span<StoredItem> items, const DecompressBlocks& decompress);

}  // namespace ptxkit::library
