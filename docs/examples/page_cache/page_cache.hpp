// A cache of memory pages, as zram is one: pages are compressed in batches, zero pages take no room, pages of another
// repeated byte take that byte, pages that do not shrink are kept as they are.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include <ptxkit.hpp>

inline constexpr size_t kPageBytes = 4096;
using Page = std::array<uint8_t, kPageBytes>;

class PageCache {
 public:
  // A page in framing `stored`: a byte that says how it is kept, and its bytes.
  using Slot = std::vector<uint8_t>;
  enum Kept : uint8_t { as_block = 0, as_it_is = 1, as_zeros = 2, as_one_byte = 4 };
  using Slots = std::map<uint64_t, Slot>;

  explicit PageCache(ptxkit::api::Context context) : context_(std::move(context)) {}

  // The pages in the form in which the cache keeps them; nothing, and a message, if the codec fails.
  std::optional<Slots> compressed(const std::map<uint64_t, Page>& pages) {
    const auto room = ptxkit::api::compress_bound(kPageBytes, options_);
    if (!room) return fails(room.error());
    std::vector<uint8_t> rooms(pages.size() * *room);
    std::vector<ptxkit::api::Bytes> inputs;
    std::vector<ptxkit::api::MutableBytes> outputs;
    std::vector<size_t> sizes(pages.size());
    for (const auto& [number, page] : pages) {
      outputs.emplace_back(rooms.data() + inputs.size() * *room, *room);
      inputs.emplace_back(page);
    }
    if (const auto done = context_.compress(inputs, outputs, sizes, options_); !done) return fails(done.error());
    Slots slots;
    size_t i = 0;
    for (const auto& [number, page] : pages) {
      const auto kept = outputs[i].first(sizes[i]);
      slots[number] = {kept.begin(), kept.end()};
      ++i;
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
    const ptxkit::api::Bytes stored = found->second;
    const ptxkit::api::MutableBytes output = page;
    size_t size = 0;
    if (!context_.decompress({&stored, 1}, {&output, 1}, {&size, 1}, options_)) return std::nullopt;
    return page;
  }

  bool has(uint64_t number) const { return slots_.count(number) != 0; }
  const Slots& slots() const { return slots_; }

  // Without the byte that says how a page is kept.
  size_t stored_bytes() const {
    size_t total = 0;
    for (const auto& [number, slot] : slots_) total += slot.size() - 1;
    return total;
  }

 private:
  static std::nullopt_t fails(const ptxkit::api::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    return std::nullopt;
  }

  const ptxkit_batch_options options_ = ptxkit::api::batch_options(PTXKIT_CODEC_LZ4, PTXKIT_FRAMING_STORED);
  ptxkit::api::Context context_;
  Slots slots_;
};

// A context of the CPU; nothing, and a message, if there is none. 0 threads: one for each usable core.
inline std::optional<ptxkit::api::Context> cpu_context(uint32_t threads) {
  auto options = ptxkit::api::context_options();
  options.policy = PTXKIT_POLICY_CPU;
  options.cpu_threads = threads;
  auto context = ptxkit::api::Context::create(options);
  if (context) return std::move(*context);
  std::fprintf(stderr, "%s\n", context.error().text.c_str());
  return std::nullopt;
}
