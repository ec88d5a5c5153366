// The scalar Zstandard decoder beside libzstd: the same bytes of what libzstd and our encoder write, and the same
// verdict on damaged frames.
#include "kernels/zstd/zstd_decode_reference.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/zstd_frames.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::ZstdFrameCase;

struct Decoded {
  ZstdDecodeOutcome outcome;
  Bytes bytes;
};

Decoded decode_item(const Bytes& item, size_t room) {
  // One byte more, which has to stay.
  Bytes bytes(room + 1, 0xA5);
  const auto outcome = zstd_decode_reference(item, std::span(bytes).first(room));
  EXPECT_EQ(bytes.back(), 0xA5);
  EXPECT_EQ(outcome.reason.empty(), outcome.status == BatchStatus::ok);
  bytes.resize(outcome.size_bytes);
  return {outcome, bytes};
}

void expect_decoded(const Bytes& item, const Bytes& raw) {
  const auto [outcome, bytes] = decode_item(item, raw.size());
  ASSERT_EQ(outcome.reason, "");
  EXPECT_TRUE(bytes == raw);
  if (raw.empty()) return;
  EXPECT_EQ(decode_item(item, raw.size() - 1).outcome.status, BatchStatus::output_too_small);
}

TEST(ZstdDecodeReference, WhatLibzstdWrites) {
  for (const Bytes& raw : ptxkit::testing::zstd_decode_contents(300'000)) {
    for (const int level : {-5, 1, 3, 9, 19}) {
      SCOPED_TRACE(std::to_string(raw.size()) + " bytes, level " + std::to_string(level));
      expect_decoded(ptxkit::testing::libzstd_frame(raw, level), raw);
    }
  }
}

TEST(ZstdDecodeReference, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 600'000);
    for (const int level : {1, 3, 9, 19}) {
      SCOPED_TRACE(path.filename().string() + ", level " + std::to_string(level));
      expect_decoded(ptxkit::testing::libzstd_frame(raw, level), raw);
    }
  }
}

TEST(ZstdDecodeReference, WhatOurEncoderWrites) {
  for (const Bytes& raw : ptxkit::testing::zstd_decode_contents(150'000)) {
    for (const auto& variant : {kChunkVariant, kHighVariant})
      expect_decoded(zstd_frame_reference(raw, variant, true), raw);
  }
}

TEST(ZstdDecodeReference, FramesByHand) {
  std::set<std::string_view> reasons;
  for (const ZstdFrameCase& frame : ptxkit::testing::zstd_frames_by_hand()) {
    SCOPED_TRACE(frame.name);
    const auto [outcome, bytes] = decode_item(frame.item, frame.room);
    EXPECT_EQ(outcome.status, frame.status) << outcome.reason;
    EXPECT_EQ(outcome.reason, frame.reason);
    EXPECT_TRUE(bytes == frame.raw);
    reasons.insert(outcome.reason);
  }
  EXPECT_EQ(reasons.size(), 43u);  // all of them, and none
}

// What libzstd makes of an item, in one call and as a stream with small buffers.
struct Verdict {
  bool is_ok = false;
  Bytes bytes;
  std::string error;
};
Verdict libzstd_at_once(const Bytes& item, size_t room) {
  Bytes bytes(room + 1);
  const size_t size = ZSTD_decompress(bytes.data(), room, item.data(), item.size());
  if (ZSTD_isError(size)) return {false, {}, ZSTD_getErrorName(size)};
  bytes.resize(size);
  return {true, bytes, {}};
}
Verdict libzstd_streamed(const Bytes& item, size_t room) {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kZstdMaxWindowLog);
  Bytes bytes(room + 1);
  ZSTD_inBuffer in{item.data(), item.size(), 0};
  size_t size = 0, left = 1;
  Verdict verdict;
  while (in.pos < in.size || left != 0) {
    ZSTD_outBuffer out{bytes.data() + size, std::min<size_t>(bytes.size() - size, 1000), 0};
    const size_t read = in.pos;
    left = ZSTD_decompressStream(context, &out, &in);
    size += out.pos;
    if (ZSTD_isError(left)) verdict.error = ZSTD_getErrorName(left);
    if (ZSTD_isError(left) || (in.pos == read && out.pos == 0)) break;
  }
  ZSTD_freeDCtx(context);
  verdict.is_ok = verdict.error.empty() && left == 0 && size <= room;
  if (verdict.is_ok) verdict.bytes.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
  return verdict;
}

// What RFC 8878 forbids and libzstd 1.5.4 takes. Its decoder of two literals at a time lets the last one run over the
// end of its stream.
const std::set<std::string_view> kStricter = {
    "a code is longer than 11 bits",
    "a sequences section has reserved bits",
    "a sequences section does not end with its bits",
    "a stream of literals does not end with its bits",
    "an offset is 0",
    "an offset lies before the window",
};

TEST(ZstdDecodeReference, DamagedFramesHaveTheVerdictOfLibzstd) {
  std::mt19937 random(1);
  std::map<std::string_view, int> refused;
  int accepted = 0, stricter = 0;
  const auto items = ptxkit::testing::zstd_items_to_damage();
  for (int round = 0; round < 20'000; ++round) {
    const auto& [name, item, raw] = items[static_cast<size_t>(round) % items.size()];
    const Bytes damaged = ptxkit::testing::damaged_zstd(item, random);
    const size_t room = raw.size() + 3000;
    const auto [outcome, bytes] = decode_item(damaged, room);
    const Verdict at_once = libzstd_at_once(damaged, room), streamed = libzstd_streamed(damaged, room);
    SCOPED_TRACE(name + ", round " + std::to_string(round) + ": '" + std::string(outcome.reason) + "', libzstd '" +
                 at_once.error + "', streamed '" + streamed.error + "'");
    if (outcome.status == BatchStatus::ok) {
      ++accepted;
      ASSERT_TRUE(at_once.is_ok);
      ASSERT_TRUE(at_once.bytes == bytes);
      continue;
    }
    ++refused[outcome.reason];
    if (!at_once.is_ok || !streamed.is_ok) continue;
    ++stricter;
    ASSERT_TRUE(kStricter.contains(outcome.reason));
  }
  EXPECT_GT(accepted, 3000);
  EXPECT_LT(stricter, 500);
  EXPECT_GT(refused.size(), 30u);
}

RC_GTEST_PROP(ZstdDecodeReference, AnyBytesBehindAMagic, (Bytes item)) {
  item.insert(item.begin(), {0x28, 0xB5, 0x2F, 0xFD});
  const auto [outcome, bytes] = decode_item(item, 1000);
  const Verdict at_once = libzstd_at_once(item, 1000);
  if (outcome.status == BatchStatus::ok) RC_ASSERT(at_once.is_ok && at_once.bytes == bytes);
}

}  // namespace
}  // namespace ptxkit::kernels
