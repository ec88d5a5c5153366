// The scalar Deflate decoder beside libdeflate and zlib: the same bytes of what they write, and the same verdict on
// damaged items.
#include "kernels/deflate/inflate_reference.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/deflate_streams.hpp"
#include "fkr_tests/cases/deflate_verdicts.hpp"
#include "kernels/deflate/deflate_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::DeflateCase;
using ptxkit::testing::libdeflate_item;
using ptxkit::testing::libdeflate_verdict;
using ptxkit::testing::zlib_item;
using ptxkit::testing::zlib_verdict;

constexpr std::array kFramings = {DeflateFraming::raw, DeflateFraming::zlib, DeflateFraming::gzip};

struct Inflated {
  InflateOutcome outcome;
  Bytes bytes;
};

Inflated inflate_item(const Bytes& item, size_t room, DeflateFraming framing) {
  // One byte more, which has to stay.
  Bytes bytes(room + 1, 0xA5);
  const auto outcome = inflate_reference(item, std::span(bytes).first(room), framing);
  EXPECT_EQ(bytes.back(), 0xA5);
  EXPECT_EQ(outcome.reason.empty(), outcome.status == BatchStatus::ok);
  bytes.resize(outcome.size_bytes);
  return {outcome, bytes};
}

void expect_inflated(const Bytes& item, const Bytes& raw, DeflateFraming framing) {
  const auto [outcome, bytes] = inflate_item(item, raw.size(), framing);
  ASSERT_EQ(outcome.reason, "");
  EXPECT_TRUE(bytes == raw);
  if (raw.empty()) return;
  EXPECT_EQ(inflate_item(item, raw.size() - 1, framing).outcome.status, BatchStatus::output_too_small);
}

TEST(InflateReference, WhatLibdeflateWrites) {
  for (const Bytes& raw : ptxkit::testing::deflate_contents(100'000)) {
    for (int level = 0; level <= 12; ++level) {
      for (const DeflateFraming framing : kFramings) {
        SCOPED_TRACE(std::to_string(raw.size()) + " bytes, level " + std::to_string(level));
        expect_inflated(libdeflate_item(raw, level, framing), raw, framing);
      }
    }
  }
}

TEST(InflateReference, WhatZlibWrites) {
  for (const Bytes& raw : ptxkit::testing::deflate_contents(30'000)) {
    for (int level = 0; level <= 9; ++level) {
      for (const DeflateFraming framing : kFramings) {
        for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
          SCOPED_TRACE(std::to_string(raw.size()) + " bytes, level " + std::to_string(level) + ", strategy " +
                       std::to_string(strategy));
          expect_inflated(zlib_item(raw, level, {.framing = framing, .strategy = strategy}), raw, framing);
        }
        for (const int flush : {Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK})
          expect_inflated(
              zlib_item(raw, level,
                        {.framing = framing, .memory_level = std::max(1, level), .flush_bytes = 2500, .flush = flush}),
              raw, framing);
      }
    }
  }
}

TEST(InflateReference, WhatOurEncoderWrites) {
  for (const Bytes& raw : ptxkit::testing::deflate_contents(60'000)) {
    for (const auto& variant : {kChunkVariant, kHighVariant}) {
      for (const DeflateFraming framing : kFramings)
        expect_inflated(deflate_reference(raw, variant, framing), raw, framing);
    }
  }
}

TEST(InflateReference, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 100'000);
    for (int level = 0; level <= 12; ++level) {
      SCOPED_TRACE(path.filename().string() + ", level " + std::to_string(level));
      expect_inflated(libdeflate_item(raw, level), raw, DeflateFraming::raw);
      expect_inflated(zlib_item(raw, level % 10, {.framing = DeflateFraming::gzip}), raw, DeflateFraming::gzip);
    }
  }
}

TEST(InflateReference, ItemsByHand) {
  std::set<std::string_view> reasons;
  for (const DeflateCase& by_hand : ptxkit::testing::deflate_cases_by_hand()) {
    SCOPED_TRACE(by_hand.name);
    const auto [outcome, bytes] = inflate_item(by_hand.item, by_hand.room, by_hand.framing);
    EXPECT_EQ(outcome.status, by_hand.status) << outcome.reason;
    EXPECT_EQ(outcome.reason, by_hand.reason);
    EXPECT_TRUE(bytes == by_hand.raw);
    reasons.insert(outcome.reason);
  }
  EXPECT_EQ(reasons.size(), 34u);  // all of them, and none
}

TEST(InflateReference, DamagedItemsHaveTheVerdictOfTheLibraries) {
  std::mt19937 random(1);
  std::map<std::string_view, int> refused;
  int accepted = 0;
  const auto items = ptxkit::testing::deflate_items_to_damage();
  for (int round = 0; round < 40'000; ++round) {
    const auto& [name, framing, item, raw] = items[static_cast<size_t>(round) % items.size()];
    const Bytes damaged = ptxkit::testing::damaged_deflate(item, random);
    const size_t room = raw.size() + 3000;
    const auto [outcome, bytes] = inflate_item(damaged, room, framing);
    const auto libdeflates = libdeflate_verdict(damaged, room, framing), zlibs = zlib_verdict(damaged, room, framing);
    SCOPED_TRACE(name + ", round " + std::to_string(round) + ": '" + std::string(outcome.reason) + "', libdeflate " +
                 (libdeflates ? "takes" : "refuses") + " it, zlib " + (zlibs ? "takes" : "refuses") + " it");
    const bool is_ok = outcome.status == BatchStatus::ok;
    ASSERT_EQ(is_ok, libdeflates.has_value() && zlibs.has_value());
    if (is_ok) {
      ++accepted;
      ASSERT_TRUE(*libdeflates == bytes);
      ASSERT_TRUE(*zlibs == bytes);
    } else {
      ++refused[outcome.reason];
    }
  }
  EXPECT_GT(accepted, 3000);
  EXPECT_GT(refused.size(), 30u);
}

RC_GTEST_PROP(InflateReference, AnyBytes, (Bytes item)) {
  const auto [outcome, bytes] = inflate_item(item, 1000, DeflateFraming::raw);
  const auto libdeflates = libdeflate_verdict(item, 1000, DeflateFraming::raw);
  if (outcome.status == BatchStatus::ok) RC_ASSERT(libdeflates == bytes);
}

}  // namespace
}  // namespace ptxkit::kernels
