// Puts pages into a cache and takes them out again. Without a file: made-up pages, which are compared. With one: its
// pages, and figures beside which a zram device can be read (fkr_tests/speed/zram.sh). usage: page_cache [DUMP]
#include "page_cache.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::map<uint64_t, Page> made_up_pages() {
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
  return pages;
}

// The last page is filled with zeros.
std::map<uint64_t, Page> pages_of(std::ifstream& file) {
  std::map<uint64_t, Page> pages;
  for (Page page{}; file.read(reinterpret_cast<char*>(page.data()), kPageBytes), file.gcount() != 0; page = {})
    pages[pages.size()] = page;
  return pages;
}

int main(int argc, char** argv) {
  if (argc > 2) return std::fprintf(stderr, "usage: page_cache [DUMP]\n"), 2;
  std::ifstream file;
  if (argc == 2) {
    file.open(argv[1], std::ios::binary);
    if (!file) return std::fprintf(stderr, "%s: cannot open\n", argv[1]), 1;
  }
  // As a device does it: one page after another, on one thread.
  auto context = cpu_context(argc == 2 ? 1 : 0);
  if (!context) return 1;
  PageCache cache(std::move(*context));
  const std::map<uint64_t, Page> pages = argc == 2 ? pages_of(file) : made_up_pages();
  if (pages.empty()) return std::fprintf(stderr, "%s: no page\n", argv[1]), 1;

  const auto put_begin = Clock::now();
  if (!cache.put(pages)) return 1;
  const double put_seconds = seconds_since(put_begin);
  const auto get_begin = Clock::now();
  for (const auto& [number, page] : pages) {
    if (cache.get(number) != page)
      return std::fprintf(stderr, "page %u came back wrong\n", static_cast<unsigned>(number)), 1;
  }
  const double get_seconds = seconds_since(get_begin);
  if (cache.get(pages.size())) return std::fprintf(stderr, "a page that was never put\n"), 1;

  std::printf("%zu pages, %zu bytes stored\n", pages.size(), cache.stored_bytes());
  if (argc == 1) return cache.stored_bytes() < 85 * kPageBytes ? 0 : 1;
  size_t zero_count = 0, raw_count = 0;
  for (const auto& [number, slot] : cache.slots()) {
    zero_count += slot[0] == PageCache::as_zeros;
    raw_count += slot[0] == PageCache::as_it_is;
  }
  const double bytes = static_cast<double>(pages.size() * kPageBytes);
  std::printf("zero %zu, stored as they are %zu, ratio %.3f, put %.0f MB/s, get %.0f MB/s\n", zero_count, raw_count,
              bytes / static_cast<double>(std::max<size_t>(1, cache.stored_bytes())), bytes / put_seconds / 1e6,
              bytes / get_seconds / 1e6);
  return 0;
}
