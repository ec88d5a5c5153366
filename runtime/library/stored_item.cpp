#include "runtime/library/stored_item.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ptxkit::library {
namespace {

using codec::Bytes;
using codec::ChunkFlag;
using codec::ItemStatus;

// Every encoder codes an item of one repeated byte within this many bytes, so larger results are not looked at.
size_t largest_filled_block(size_t raw_bytes) { return raw_bytes / 128 + 16; }

// Items of zeros have a flag already.
bool is_filled(Bytes raw) { return raw.size() >= 2 && std::memcmp(raw.data(), raw.data() + 1, raw.size() - 1) == 0; }

// For every flag but `compressed`.
ItemStatus restore_unpacked(const StoredItem& item) {
  const auto expected = [&](size_t size) {
    return item.stored.size() == size ? ItemStatus::ok : ItemStatus::wrong_length;
  };
  ItemStatus status = ItemStatus::unknown_flag;
  switch (item.flag) {
    case ChunkFlag::compressed:
      break;
    case ChunkFlag::incompressible:
      status = expected(item.output.size());
      if (status == ItemStatus::ok) std::ranges::copy(item.stored, item.output.begin());
      break;
    case ChunkFlag::zero:
      status = expected(0);
      if (status == ItemStatus::ok) std::ranges::fill(item.output, uint8_t{0});
      break;
    case ChunkFlag::filled:
      status = expected(1);
      if (status == ItemStatus::ok) std::ranges::fill(item.output, item.stored[0]);
      break;
  }
  return status;
}

}  // namespace

void flag_filled_items(std::span<CompressItem> items) {
  for (CompressItem& item : items) {
    if (item.status != ItemStatus::ok || item.flag == ChunkFlag::zero) continue;
    if (item.compressed_bytes > largest_filled_block(item.raw.size()) || !is_filled(item.raw)) continue;
    item.flag = ChunkFlag::filled;
    item.output[0] = item.raw[0];
    item.compressed_bytes = 1;
  }
}

Result<void> restore(std::span<StoredItem> items, const DecompressBlocks& decompress) {
  std::vector<DecompressItem> blocks;
  std::vector<StoredItem*> owners;
  for (StoredItem& item : items) {
    if (item.flag != ChunkFlag::compressed) {
      item.status = restore_unpacked(item);
      continue;
    }
    owners.push_back(&item);
    blocks.emplace_back().block = item.stored;
    blocks.back().output = item.output;
  }
  if (blocks.empty()) return {};
  if (auto done = decompress(blocks); !done) return done;
  for (size_t i = 0; i < blocks.size(); ++i) {
    StoredItem& item = *owners[i];
    item.status = blocks[i].status;
    if (item.status == ItemStatus::ok && blocks[i].raw_bytes != item.output.size())
      item.status = ItemStatus::wrong_length;
  }
  return {};
}

}  // namespace ptxkit::library
