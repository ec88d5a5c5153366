// The Zstandard kernels as PTX: the bytes and statuses of their references.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/cases/zstd_cases.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/entropy/little_endian.hpp"
#include "kernels/zstd/zstd_choose_reference.hpp"
#include "kernels/zstd/zstd_literals_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Block;
using ptxkit::testing::Bytes;
using ptxkit::testing::bytes_of;
using ptxkit::testing::KernelArgument;
using ptxkit::testing::TransformReference;

uint32_t word(const Bytes& bytes, size_t i) { return read_u32(bytes.data() + 4 * i); }
Bytes part(const Bytes& bytes, size_t at, size_t size) {
  return {bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + size)};
}

// Runs a transform over items that begin at multiples of 8, with rooms at any address. Expects the reference's
// statuses, lengths and bytes, no fault, and nothing written between the rooms.
void expect_sections(std::string_view kernel, const std::vector<Block>& items, const TransformReference& reference,
                     std::string_view build) {
  constexpr uint8_t kPattern = 0xA5;
  Bytes src;
  std::vector<uint64_t> src_offsets, dst_offsets;
  std::vector<uint32_t> src_sizes, capacities;
  uint64_t room = 1;
  for (const auto& [bytes, capacity] : items) {
    src_offsets.push_back(src.size());
    src_sizes.push_back(static_cast<uint32_t>(bytes.size()));
    src.insert(src.end(), bytes.begin(), bytes.end());
    src.resize((src.size() + 8) / 8 * 8);
    dst_offsets.push_back(room);
    capacities.push_back(capacity);
    room += capacity + 1;
  }
  const auto count = static_cast<uint32_t>(items.size());
  const auto ran = ptxkit::testing::emulator_launch(build)(
      kernel, count, 32,
      {KernelArgument::input(src), KernelArgument::input(bytes_of(src_offsets)),
       KernelArgument::input(bytes_of(src_sizes)), KernelArgument::input(Bytes(room, kPattern)),
       KernelArgument::input(bytes_of(dst_offsets)), KernelArgument::input(bytes_of(capacities)),
       KernelArgument::output(4 * count), KernelArgument::output(4 * count), KernelArgument::number(count)});
  ASSERT_EQ(ran.size(), 8u);
  for (size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(std::string(kernel) + ", " + std::string(build) + ", item " + std::to_string(i) + " of " +
                 std::to_string(items[i].bytes.size()) + " bytes");
    Bytes expected(items[i].capacity);
    const auto outcome = reference(items[i].bytes, expected);
    expected.resize(outcome.size_bytes);
    EXPECT_EQ(status_text(static_cast<StreamStatus>(word(ran[7], i))), status_text(outcome.status));
    ASSERT_EQ(word(ran[6], i), outcome.size_bytes);
    EXPECT_TRUE(part(ran[3], dst_offsets[i], expected.size()) == expected);
    EXPECT_EQ(ran[3][dst_offsets[i] - 1], kPattern);
  }
  EXPECT_EQ(ran[3].back(), kPattern);
}

void expect_literals(const std::vector<Block>& items, std::string_view build) {
  expect_sections(kZstdLiterals, items, zstd_literals_reference, build);
}

TEST(ZstdLiterals, SectionsOfEveryForm) {
  for (const auto build : ptxkit::testing::kVariants) {
    std::vector<Block> items;
    for (const Bytes& literals : ptxkit::testing::zstd_literals_cases())
      items.push_back({literals, static_cast<uint32_t>(zstd_literals_bound(literals.size()))});
    expect_literals(items, build);
  }
}

TEST(ZstdLiterals, RoomsThatAreTooSmall) {
  std::vector<Block> items;
  for (const Bytes& literals : {Bytes(), Bytes(40, 'x'), ptxkit::testing::random_bytes(50, 1),
                                ptxkit::testing::fibonacci_bytes(300), ptxkit::testing::fibonacci_bytes(2000)}) {
    Bytes section(zstd_literals_bound(literals.size()));
    const uint32_t size = zstd_literals_reference(literals, section).size_bytes;
    for (const uint32_t room : {0u, 1u, size / 2, size - 1, size, size + 1}) items.push_back({literals, room});
  }
  items.push_back({Bytes(kZstdMaxLiterals + 1, 'x'), 100});
  for (const auto build : ptxkit::testing::kVariants) expect_literals(items, build);
}

void expect_sequences(const std::vector<Block>& items, std::string_view build) {
  expect_sections(kZstdSequences, items, zstd_sequences_reference, build);
}

TEST(ZstdSequences, SectionsOfEveryForm) {
  for (const auto build : ptxkit::testing::kVariants) {
    std::vector<Block> items;
    for (const Bytes& packed : ptxkit::testing::zstd_sequences_cases(build == "debug" ? 1000 : 3000))
      items.push_back({packed, static_cast<uint32_t>(zstd_sequences_bound(packed.size()))});
    expect_sequences(items, build);
  }
}

TEST(ZstdSequences, TheMostSequences) {
  const Bytes packed = ptxkit::testing::zstd_sequences_cases(kZstdMaxSequences).at(44);
  ASSERT_EQ(packed.size(), kZstdMaxSequences * kZstdSequenceBytes);
  expect_sequences({{packed, static_cast<uint32_t>(zstd_sequences_bound(packed.size()))}}, "release");
}

TEST(ZstdSequences, WhatCannotBeCodedIsRefused) {
  std::vector<Block> items;
  for (const ZstdSequence sequence : {ZstdSequence{0, 2, 1}, {0, 3, 0}, {0, 3, kZstdMaxOffsetValue + 1}, {0, 0, ~0u}}) {
    std::vector<ZstdSequence> sequences(40, {1, 5, 90});
    sequences[37] = sequence;
    items.push_back({zstd_pack(sequences), 1000});
  }
  items.push_back({Bytes(12, 3), 1000});
  items.push_back({Bytes(size_t{kZstdMaxSequences + 1} * kZstdSequenceBytes), 1000});
  for (const Bytes& packed : {Bytes(), zstd_pack(std::vector<ZstdSequence>(100, {1, 5, 90})),
                              ptxkit::testing::zstd_sequences_cases(300).at(45)}) {
    Bytes section(zstd_sequences_bound(packed.size()));
    const uint32_t size = zstd_sequences_reference(packed, section).size_bytes;
    for (const uint32_t room : {0u, size / 2, size - 1, size, size + 1}) items.push_back({packed, room});
  }
  for (const auto build : ptxkit::testing::kVariants) expect_sequences(items, build);
}

TEST(ZstdSequences, AnItemThatIsNotAligned) {
  const Bytes src = zstd_pack(std::vector<ZstdSequence>(4, {1, 5, 90}));
  const auto ran = ptxkit::testing::emulator_launch("release")(
      kZstdSequences, 1, 32,
      {KernelArgument::input(src), KernelArgument::input(bytes_of(std::vector<uint64_t>{4})),
       KernelArgument::input(bytes_of(std::vector<uint32_t>{3 * kZstdSequenceBytes})), KernelArgument::output(100),
       KernelArgument::input(bytes_of(std::vector<uint64_t>{0})),
       KernelArgument::input(bytes_of(std::vector<uint32_t>{100})), KernelArgument::output(4),
       KernelArgument::output(4), KernelArgument::number(1)});
  ASSERT_EQ(ran.size(), 8u);
  EXPECT_EQ(word(ran[7], 0), static_cast<uint32_t>(StreamStatus::misaligned));
  EXPECT_EQ(word(ran[6], 0), 0u);
}

constexpr size_t kListBytes = kZstdListBytes;

// The addresses and the sizes of blocks, of which the kernels read to the next multiple of 16 bytes.
std::vector<KernelArgument> block_arguments(const std::vector<Bytes>& blocks) {
  std::vector<Bytes> padded;
  std::vector<uint32_t> sizes;
  for (const Bytes& block : blocks) {
    padded.push_back(block);
    padded.back().resize((block.size() / kStrideUnitBytes + 1) * kStrideUnitBytes);
    sizes.push_back(static_cast<uint32_t>(block.size()));
  }
  return {KernelArgument::addresses(padded), KernelArgument::input(bytes_of(sizes))};
}

Bytes packed(const std::vector<Lz4Sequence>& matches) {
  std::vector<ZstdSequence> sequences;
  for (const auto& [literal_count, length, offset] : matches) sequences.push_back({literal_count, length, offset});
  return zstd_pack(sequences);
}

TEST(ZstdMatch, ListsTheParsesOfTheReferences) {
  for (const auto& [kernel, variant] :
       {std::pair(kZstdMatch, kChunkVariant), std::pair(kZstdMatchHigh, kHighVariant)}) {
    for (const auto build : ptxkit::testing::kVariants) {
      SCOPED_TRACE(std::string(kernel) + ", " + std::string(build));
      const auto blocks = ptxkit::testing::zstd_blocks(build == "debug" ? 5000 : kZstdBlockBytes);
      const size_t count = blocks.size();
      auto arguments = block_arguments(blocks);
      arguments.push_back(KernelArgument::output(count * kListBytes));
      arguments.push_back(KernelArgument::output(4 * count));
      arguments.push_back(KernelArgument::number(static_cast<uint32_t>(count)));
      const auto ran = ptxkit::testing::emulator_launch(build)(kernel, static_cast<uint32_t>(count), 256, arguments);
      ASSERT_EQ(ran.size(), 4u);
      for (size_t i = 0; i < count; ++i) {
        const Bytes expected = packed(lz4_parse_reference(blocks[i], variant));
        ASSERT_EQ(word(ran[3], i) * kZstdSequenceBytes, expected.size()) << "block " << i;
        EXPECT_TRUE(part(ran[2], i * kListBytes, expected.size()) == expected) << "block " << i;
      }
    }
  }
}

TEST(ZstdChoose, TakesTheMatchesAndOffsetsOfTheReference) {
  for (const auto build : ptxkit::testing::kVariants) {
    for (const auto& variant : {kChunkVariant, kHighVariant}) {
      SCOPED_TRACE(std::string(variant.name) + ", " + std::string(build));
      const auto blocks = ptxkit::testing::zstd_blocks(build == "debug" ? 5000 : kZstdBlockBytes);
      const size_t count = blocks.size();
      Bytes matches;
      std::vector<uint32_t> match_counts;
      for (const Bytes& block : blocks) {
        const Bytes list = packed(lz4_parse_reference(block, variant));
        matches.insert(matches.end(), list.begin(), list.end());
        match_counts.push_back(static_cast<uint32_t>(list.size() / kZstdSequenceBytes));
        matches.resize(match_counts.size() * kListBytes);
      }
      auto arguments = block_arguments(blocks);
      for (const auto& argument :
           {KernelArgument::input(matches), KernelArgument::input(bytes_of(match_counts)),
            KernelArgument::input(Bytes(count * kZstdBlockBytes, 0xa5)), KernelArgument::output(4 * count),
            KernelArgument::output(count * kListBytes), KernelArgument::output(4 * count),
            KernelArgument::number(static_cast<uint32_t>(count))})
        arguments.push_back(argument);
      const auto ran =
          ptxkit::testing::emulator_launch(build)(kZstdChoose, static_cast<uint32_t>(count), 32, arguments);
      ASSERT_EQ(ran.size(), 8u);
      size_t repeats = 0, left_out = 0;
      for (size_t i = 0; i < count; ++i) {
        SCOPED_TRACE("block " + std::to_string(i));
        const auto parts = zstd_choose_reference(blocks[i], lz4_parse_reference(blocks[i], variant));
        const Bytes sequences = zstd_pack(parts.sequences);
        ASSERT_EQ(word(ran[5], i), parts.literals.size());
        ASSERT_EQ(word(ran[7], i), sequences.size());
        EXPECT_TRUE(part(ran[4], i * kZstdBlockBytes, parts.literals.size()) == parts.literals);
        // zstd_literals reads the whole word of the last literal.
        const size_t padding = (4 - parts.literals.size() % 4) % 4;
        EXPECT_EQ(part(ran[4], i * kZstdBlockBytes + parts.literals.size(), padding), Bytes(padding));
        EXPECT_TRUE(part(ran[6], i * kListBytes, sequences.size()) == sequences);
        left_out += match_counts[i] - parts.sequences.size();
        for (const ZstdSequence& sequence : parts.sequences) repeats += sequence.offset_value <= kZstdRepeatOffsets;
      }
      EXPECT_GT(repeats, 100u);
      EXPECT_GT(left_out, 100u);
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
