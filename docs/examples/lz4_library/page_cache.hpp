// A cache of memory pages, as zram is one: pages are compressed in batches, zero pages take no room, pages of another
// repeated byte take that byte, pages that do not shrink are kept as they are.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "runtime/library/lz4.hpp"

inline constexpr size_t kPageBytes = 4096;
using Page = std::array<uint8_t, kPageBytes>;

class PageCache {
 public:
  struct Slot {
    ptxkit::codec::ChunkFlag flag = ptxkit::codec::ChunkFlag::zero;
    std::vector<uint8_t> bytes = {};
  };
  using Slots = std::map<uint64_t, Slot>;

  explicit PageCache(ptxkit::library::Lz4 lz4) : lz4_(std::move(lz4)) {}

  // The pages in the form in which the cache keeps them; nothing, and a message, if the codec fails.
  std::optional<Slots> compressed(const std::map<uint64_t, Page>& pages) {
    // Rooms of the proven bound: a page never takes more than its raw bytes.
    const auto room = ptxkit::library::Lz4::requirements(kPageBytes).compressed_bytes_bound;
    std::vector<uint8_t> rooms(pages.size() * room);
    std::vector<ptxkit::codec::CompressItem> items;
    for (const auto& [number, page] : pages) {
      ptxkit::codec::CompressItem item;
      item.raw = page;
      item.output = {rooms.data() + items.size() * room, room};
      items.push_back(item);
    }
    if (const auto done = lz4_.compress(items); !done) {
      std::fprintf(stderr, "%s\n", done.error().message().c_str());
      return std::nullopt;
    }
    Slots slots;
    size_t i = 0;
    for (const auto& [number, page] : pages) {
      const auto& item = items[i++];
      const auto kept = item.flag == ptxkit::codec::ChunkFlag::incompressible
                            ? item.raw
                            : ptxkit::codec::Bytes(item.output).first(item.compressed_bytes);
      slots[number] = {item.flag, {kept.begin(), kept.end()}};
    }
    return slots;
  }

  void put(Slots slots) {
    for (auto& [number, slot] : slots) slots_[number] = std::move(slot);
  }
  bool put(const std::map<uint64_t, Page>& pages) {
    auto slots = compressed(pages);
    if (slots) put(std::move(*slots));
    return slots.has_value();
  }

  // Nothing if the page was never put, or if its bytes are damaged.
  std::optional<Page> get(uint64_t number) {
    const auto found = slots_.find(number);
    if (found == slots_.end()) return std::nullopt;
    Page page;
    ptxkit::library::StoredItem item;
    item.flag = found->second.flag;
    item.stored = found->second.bytes;
    item.output = page;
    if (!lz4_.restore({&item, 1}) || item.status != ptxkit::codec::ItemStatus::ok) return std::nullopt;
    return page;
  }

  bool has(uint64_t number) const { return slots_.count(number) != 0; }
  const Slots& slots() const { return slots_; }

  size_t stored_bytes() const {
    size_t total = 0;
    for (const auto& [number, slot] : slots_) total += slot.bytes.size();
    return total;
  }

 private:
  ptxkit::library::Lz4 lz4_;
  Slots slots_;
};
