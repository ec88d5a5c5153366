// The BWT's references: the order of the suffixes, checked without sorting, and the inverse.
#include <gtest/gtest.h>

#include "fkr_tests/cases/bwt_cases.hpp"
#include "kernels/bwt/mtf_reference.hpp"
#include "kernels/bwt/suffix_sort.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::bwt_block;
using ptxkit::testing::Bytes;
using ptxkit::testing::check_suffix_order;

Bytes inverse_of(const Bytes& block, size_t room) {
  Bytes raw(room);
  raw.resize(bwt_inverse_reference(block, raw).size_bytes);
  return raw;
}

TEST(BwtReference, OrdersSuffixesAndComesBack) {
  for (const Bytes& raw : ptxkit::testing::bwt_inputs({0, 1, 2, 3, 31, 32, 33, 257, 4095, 4096, 4097, 65521, 65536})) {
    EXPECT_EQ(check_suffix_order(raw, sort_suffixes(raw)), "") << raw.size();
    EXPECT_TRUE(inverse_of(bwt_block(raw), raw.size()) == raw) << raw.size();
  }
}

TEST(BwtReference, AtTheBound) {
  for (const Bytes& raw : {Bytes(kMaxBwtBytes, 'x'), ptxkit::testing::matchable_bytes(kMaxBwtBytes, 1)}) {
    EXPECT_EQ(check_suffix_order(raw, sort_suffixes(raw)), "");
    EXPECT_TRUE(inverse_of(bwt_block(raw), raw.size()) == raw);
  }
  Bytes room(2 * kMaxBwtBytes);
  EXPECT_EQ(bwt_reference(Bytes(kMaxBwtBytes + 1), room), (TransformOutcome{StreamStatus::item_too_large, 0}));
  EXPECT_EQ(bwt_reference(Bytes(100), std::span(room).first(107)), (TransformOutcome{StreamStatus::output_overrun, 0}));
}

TEST(BwtReference, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 100000);
    EXPECT_EQ(check_suffix_order(raw, sort_suffixes(raw)), "") << path;
    EXPECT_TRUE(inverse_of(bwt_block(raw), raw.size()) == raw) << path;
  }
}

// All texts of up to nine letters over an alphabet of three.
TEST(BwtReference, EveryShortText) {
  for (size_t size = 0; size <= 9; ++size) {
    Bytes raw(size, 'a');
    for (bool more = true; more;) {
      ASSERT_EQ(check_suffix_order(raw, sort_suffixes(raw)), "") << std::string(raw.begin(), raw.end());
      ASSERT_EQ(inverse_of(bwt_block(raw), size), raw);
      more = false;
      for (auto letter = raw.rbegin(); letter != raw.rend() && !more; ++letter) {
        more = *letter != 'c';
        *letter = more ? static_cast<uint8_t>(*letter + 1) : 'a';
      }
    }
  }
}

TEST(SuffixOrder, TheCheckRefusesWhatIsNone) {
  const Bytes text = {'b', 'a', 'n', 'a', 'n', 'a'};
  EXPECT_EQ(check_suffix_order(text, {5, 3, 1, 0, 4, 2}), "");
  EXPECT_EQ(check_suffix_order(text, {3, 5, 1, 0, 4, 2}), "rows 0 and 1 are not in order");
  EXPECT_EQ(check_suffix_order(text, {5, 3, 0, 1, 4, 2}), "rows 2 and 3 are not in order");
  EXPECT_EQ(check_suffix_order(text, {5, 3, 1, 0, 4, 4}), "the suffix of row 5 stands twice");
  EXPECT_EQ(check_suffix_order(text, {5, 3, 1, 0, 4, 6}), "row 5 is no suffix");
  EXPECT_EQ(check_suffix_order(text, {5, 3, 1, 0, 4}), "5 suffixes of 6");
}

// The inverse accepts BWT blocks only: an accepted input is the block of its result.
TEST(BwtInverseReference, TakesNothingButBlocks) {
  std::mt19937 random(7);
  size_t refused = 0, taken = 0;
  for (const Bytes& block : ptxkit::testing::damaged_bwt_blocks({1, 2, 5, 40, 300, 5000, 70000}, random)) {
    Bytes raw(80000);
    const auto outcome = bwt_inverse_reference(block, raw);
    raw.resize(outcome.size_bytes);
    if (outcome.status == StreamStatus::ok) {
      EXPECT_TRUE(bwt_block(raw) == block);
      ++taken;
    } else {
      EXPECT_EQ(outcome.size_bytes, 0u);
      ++refused;
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(taken, 0u);  // a changed byte can give another valid block
}

TEST(BwtInverseReference, SaysWhatIsWrong) {
  const Bytes good = bwt_block(ptxkit::testing::matchable_bytes(9000, 1));
  const auto status = [&](Bytes block, size_t room = 9000) {
    Bytes raw(room);
    return bwt_inverse_reference(block, raw).status;
  };
  EXPECT_EQ(status(good), StreamStatus::ok);
  EXPECT_EQ(status({}), StreamStatus::input_overrun);
  EXPECT_EQ(status(Bytes(good.begin(), good.end() - 1)), StreamStatus::input_overrun);
  EXPECT_EQ(status(good, 8999), StreamStatus::output_overrun);
  EXPECT_EQ(status({1, 0, 16, 0}, kMaxBwtBytes + 1), StreamStatus::output_overrun);
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_EQ(status(longer), StreamStatus::corrupt);
  for (const size_t entry : {4u, 8u, 12u}) {
    for (const uint32_t row : {0u, 9001u, 0xFFFFFFFFu}) {
      Bytes bad = good;
      std::memcpy(&bad[entry], &row, 4);
      EXPECT_EQ(status(bad), StreamStatus::bad_table) << entry << ", " << row;
    }
  }
  Bytes twice = good;
  std::copy(good.begin() + 4, good.begin() + 8, twice.begin() + 12);
  EXPECT_EQ(status(twice), StreamStatus::bad_table);
  Bytes other_row = good;
  other_row[8] ^= 1;
  EXPECT_EQ(status(other_row), StreamStatus::corrupt);
}

TEST(MtfReference, KnownAnswersAndBack) {
  const Bytes raw = {3, 3, 0, 3, 255, 255, 1, 0}, places = {3, 0, 1, 1, 255, 0, 3, 3};
  Bytes coded(raw.size());
  EXPECT_EQ(mtf_encode_reference(raw, coded), (TransformOutcome{StreamStatus::ok, 8}));
  EXPECT_EQ(coded, places);
  for (const Bytes& input : ptxkit::testing::bwt_inputs({0, 1, 257, 4097})) {
    Bytes there(input.size()), back(input.size());
    mtf_encode_reference(input, there);
    mtf_decode_reference(there, back);
    EXPECT_TRUE(back == input);
  }
  for (const auto transform : {mtf_encode_reference, mtf_decode_reference}) {
    EXPECT_EQ(transform(raw, std::span(coded).first(7)), (TransformOutcome{StreamStatus::output_overrun, 0}));
    EXPECT_EQ(transform(Bytes(kMaxBwtBytes + 1), coded), (TransformOutcome{StreamStatus::item_too_large, 0}));
  }
}

Bytes zero_runs(const Bytes& raw) {
  Bytes coded(zero_runs_bound(static_cast<uint32_t>(raw.size())));
  const auto outcome = zero_runs_encode_reference(raw, coded);
  EXPECT_EQ(outcome.status, StreamStatus::ok);
  coded.resize(outcome.size_bytes);
  return coded;
}

TEST(ZeroRunsReference, KnownAnswersAndBack) {
  EXPECT_EQ(zero_runs({0}), (Bytes{0}));
  EXPECT_EQ(zero_runs({0, 0}), (Bytes{1}));
  EXPECT_EQ(zero_runs({0, 0, 0}), (Bytes{0, 0}));
  EXPECT_EQ(zero_runs({0, 0, 0, 0, 9, 0}), (Bytes{1, 0, 10, 0}));
  EXPECT_EQ(zero_runs({1, 253, 254, 255}), (Bytes{2, 254, 255, 0, 255, 1}));
  std::vector<Bytes> inputs = ptxkit::testing::bwt_inputs({0, 1, 257, 4097});
  inputs.push_back(Bytes(kMaxBwtBytes));
  for (const Bytes& raw : inputs) {
    Bytes back(raw.size());
    EXPECT_EQ(zero_runs_decode_reference(zero_runs(raw), back),
              (TransformOutcome{StreamStatus::ok, static_cast<uint32_t>(raw.size())}));
    EXPECT_TRUE(back == raw);
  }
  EXPECT_EQ(zero_runs(Bytes(kMaxBwtBytes)).size(), kMaxRunDigits);
}

TEST(ZeroRunsReference, SaysWhatIsWrong) {
  const auto status = [](const Bytes& coded, size_t room) {
    Bytes raw(room);
    return zero_runs_decode_reference(coded, raw).status;
  };
  EXPECT_EQ(status({255}, 10), StreamStatus::corrupt);
  EXPECT_EQ(status({255, 2}, 10), StreamStatus::corrupt);
  EXPECT_EQ(status(Bytes(21, 0), kMaxBwtBytes), StreamStatus::corrupt);
  EXPECT_EQ(status(Bytes(20, 0), kMaxBwtBytes), StreamStatus::ok);
  EXPECT_EQ(status(Bytes(20, 1), 4 * kMaxBwtBytes), StreamStatus::output_overrun);
  EXPECT_EQ(status({1, 0}, 3), StreamStatus::output_overrun);
  EXPECT_EQ(status({1, 0}, 4), StreamStatus::ok);
  EXPECT_EQ(status(Bytes(2 * kMaxBwtBytes + 1, 9), 10), StreamStatus::item_too_large);
  Bytes room(5);
  EXPECT_EQ(zero_runs_encode_reference(Bytes(6, 1), room).status, StreamStatus::output_overrun);
  EXPECT_EQ(zero_runs_encode_reference(Bytes(kMaxBwtBytes + 1), room).status, StreamStatus::item_too_large);
}

}  // namespace
}  // namespace ptxkit::kernels
