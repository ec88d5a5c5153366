// A cache of memory pages, as zram is one: pages are compressed in batches, zero pages take no room, pages of another
// repeated byte take that byte, pages that do not shrink are kept as they are. usage: page_cache
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "runtime/library/lz4.hpp"

using ptxkit::codec::ChunkFlag;
using ptxkit::codec::CompressItem;
using ptxkit::codec::ItemStatus;
using ptxkit::library::StoredItem;

constexpr size_t kPageBytes = 4096;
using Page = std::array<uint8_t, kPageBytes>;

class PageCache {
 public:
  explicit PageCache(ptxkit::library::Lz4 lz4) : lz4_(std::move(lz4)) {}

  bool put(const std::map<uint64_t, Page>& pages) {
    // Rooms of the proven bound: a page never takes more than its raw bytes.
    const auto room = ptxkit::library::Lz4::requirements(kPageBytes).compressed_bytes_bound;
    std::vector<uint8_t> rooms(pages.size() * room);
    std::vector<CompressItem> items;
    for (const auto& [number, page] : pages) {
      CompressItem item;
      item.raw = page;
      item.output = {rooms.data() + items.size() * room, room};
      items.push_back(item);
    }
    if (const auto done = lz4_.compress(items); !done)
      return std::fprintf(stderr, "%s\n", done.error().message().c_str()), false;
    size_t i = 0;
    for (const auto& [number, page] : pages) {
      const CompressItem& item = items[i++];
      const auto kept = item.flag == ChunkFlag::incompressible
                            ? item.raw
                            : ptxkit::codec::Bytes(item.output).first(item.compressed_bytes);
      slots_[number] = {item.flag, {kept.begin(), kept.end()}};
    }
    return true;
  }

  std::optional<Page> get(uint64_t number) {
    const auto found = slots_.find(number);
    if (found == slots_.end()) return std::nullopt;
    Page page;
    StoredItem item;
    item.flag = found->second.flag;
    item.stored = found->second.bytes;
    item.output = page;
    if (!lz4_.restore({&item, 1}) || item.status != ItemStatus::ok) return std::nullopt;
    return page;
  }

  size_t stored_bytes() const {
    size_t total = 0;
    for (const auto& [number, slot] : slots_) total += slot.bytes.size();
    return total;
  }

 private:
  struct Slot {
    ChunkFlag flag;
    std::vector<uint8_t> bytes;
  };
  ptxkit::library::Lz4 lz4_;
  std::map<uint64_t, Slot> slots_;
};

int main() {
  auto lz4 = ptxkit::library::Lz4::open({.where = ptxkit::library::Where::cpu});
  if (!lz4) return std::fprintf(stderr, "%s\n", lz4.error().message().c_str()), 1;
  PageCache cache(std::move(*lz4));
  std::map<uint64_t, Page> pages;
  for (uint64_t number = 0; number < 300; ++number) {
    Page& page = pages[number];
    uint32_t state = static_cast<uint32_t>(number);
    for (size_t i = 0; i < page.size(); ++i) {
      state = state * 1664525 + 1013904223;
      // A quarter each: zeros, one repeated byte, counters, noise.
      const uint8_t kinds[] = {0, 0xa5, static_cast<uint8_t>(i / 64), static_cast<uint8_t>(state >> 24)};
      page[i] = kinds[number % 4];
    }
  }
  if (!cache.put(pages)) return 1;
  for (const auto& [number, page] : pages) {
    if (cache.get(number) != page)
      return std::fprintf(stderr, "page %u came back wrong\n", static_cast<unsigned>(number)), 1;
  }
  if (cache.get(1000)) return std::fprintf(stderr, "a page that was never put\n"), 1;
  std::printf("%zu pages, %zu bytes stored\n", pages.size(), cache.stored_bytes());
  return cache.stored_bytes() < 85 * kPageBytes ? 0 : 1;
}
