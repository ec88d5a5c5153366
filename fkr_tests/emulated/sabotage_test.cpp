// Tests that a change of one instruction in a kernel's PTX is noticed: a removed barrier, a dropped alignment, a
// removed bounds check. (A flipped bit in a frame: Lz4FrameErrors.EveryFlippedBitIsRefused.)
//
// All targets of a kind are changed, one at a time: every barrier, every rounding down, and every comparison in a
// source statement that names a refusal. An edited kernel runs the inputs of this file, which run without a fault on
// the original.
#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/score.hpp"
#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/lz4_batches.hpp"
#include "fkr_tests/emulated/lz4_blocks.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Block;
using ptxkit::testing::block_of_sequences;
using ptxkit::testing::Bytes;
using ptxkit::testing::kernel_image;
using ptxkit::testing::matchable_bytes;
using ptxkit::testing::ramp_bytes;
using ptxkit::testing::Ran;
using ptxkit::testing::random_bytes;
using ::testing::HasSubstr;

// --- editing PTX ---

// A kernel's text with one changed instruction.
struct Edited {
  std::string ptx;
  std::string what;  // the original instruction, and its source line
};

// Lines of a source, by number.
using Lines = std::set<uint32_t>;

// The lines of every statement of `path` that contains `needle`, one set for each statement. Throws if there is none.
std::vector<Lines> statements_with(const std::string& path, const std::string& needle) {
  std::stringstream stream;
  stream << std::ifstream(path).rdbuf();
  const std::string text = stream.str();
  std::vector<Lines> statements;
  for (size_t at = text.find(needle); at != std::string::npos; at = text.find(needle, at + 1)) {
    const size_t begin = text.find_first_not_of(" \n", text.find_last_of(";{}", at) + 1);
    const size_t end = text.find(';', at);
    const auto line_at = [&](size_t offset) {
      return 1 + static_cast<uint32_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n'));
    };
    Lines lines;
    for (uint32_t line = line_at(begin); line <= line_at(end); ++line) lines.insert(line);
    statements.push_back(lines);
  }
  if (statements.empty()) throw std::runtime_error(path + " has no statement with " + needle);
  return statements;
}

using Change = std::function<std::string(std::string)>;

// Every text in which one instruction `op` is changed by `change`: in the whole kernel or, with `path` and `lines`, in
// the instructions from those lines.
std::vector<Edited> edits(std::string_view ptx, ptx::Op op, const Change& change, const std::string& path = "",
                          const Lines& lines = {}) {
  const auto parsed = ptx::parse(std::string(ptx), "edited.ptx");
  std::vector<Edited> all;
  for (const ptx::Instruction& instruction : parsed.module.functions.at(0).instructions) {
    if (instruction.op != op) continue;
    std::string place;
    if (instruction.location != ptx::kNone) {
      const ptx::Location& location = parsed.module.locations[instruction.location];
      const ptx::SourceFile* file = parsed.module.file(location.file);
      if (file != nullptr) place = std::string(file->path) + ":" + std::to_string(location.line);
      if (!lines.empty() && (file == nullptr || path != file->path || !lines.contains(location.line))) continue;
    } else if (!lines.empty()) {
      continue;
    }
    const size_t end = ptx.find(';', instruction.at) + 1;
    const std::string before(ptx.substr(instruction.at, end - instruction.at)), after = change(before);
    if (after == before) continue;
    std::string text(ptx);
    text.replace(instruction.at, before.size(), after);
    all.push_back({std::move(text), before + " of " + place});
  }
  return all;
}

std::string removed(const std::string&) { return ""; }

// "and.b32 %r1, %r2, -4;" rounds down to a multiple of 4, and after the change to a multiple of 1.
std::string without_rounding(std::string instruction) {
  for (const char* mask : {", -4;", ", -8;", ", -16;"}) {
    const size_t at = instruction.find(mask);
    if (at != std::string::npos) return instruction.replace(at, std::string::npos, ", -1;");
  }
  return instruction;
}

// "setp.gt.u32 %p1, %r2, %r3;": makes the comparison always true, or always false.
Change decided(bool holds) {
  return [holds](const std::string& instruction) {
    const size_t destination = instruction.find('%');
    const std::string predicate = instruction.substr(destination, instruction.find(',') - destination);
    return (holds ? "setp.eq.u32 " : "setp.ne.u32 ") + predicate + ", 0, 0;";
  };
}

// --- inputs, and the differences that a run over them shows ---

// The difference that a test would notice; empty if there is none.
std::string wrong_with(const Ran& ran, const std::vector<uint32_t>& codes, const std::vector<Bytes>& outputs) {
  if (!ran.report.empty()) return ran.report;
  if (ran.touched_outside) return "touched bytes of another item";
  if (ran.claims_too_much) return "more bytes than there is room for";
  if (ran.codes != codes) return "wrong codes";
  return ran.outputs == outputs ? "" : "wrong bytes";
}

const std::vector<Block>& good_blocks() {
  static const std::vector<Block> blocks = {
      {{0xc0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'}, 12},
      {{0x1f, 'a', 1, 0, 40, 0x10, 'b'}, 61},
      {{0x42, 'a', 'b', 'c', 'd', 4, 0, 0x41, 'e', 'f', 'g', 'h', 9, 0, 0x10, '.'}, 20},
      {{0xf0, 1, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'}, 16},
      {{0xf2, 5,   'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j',  'k',
        'l',  'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 9,   0,   0x10, '.'},
       27},
      {{0x00}, 0}};
  return blocks;
}

// Blocks that are refused by one check each. Each runs alone, so that only the device's memory limits it.
const std::vector<Block>& bad_blocks() {
  static const std::vector<Block> blocks = {
      {{}, 8},
      {{0x20, 'a'}, 8},
      {{0xf0}, 300},
      {{0xf0, 255, 255}, 800},
      {Bytes(40, 255), 20000},
      {{0x10, 'a', 1}, 8},
      {{0x10, 'a', 1, 0}, 8},  // ends after a match, so the decoder looks for the next token
      {{0x1f, 'a', 1, 0, 255}, 800},
      {{0x1f, 'a', 1, 0, 255, 3}, 800},  // the same for a match that does not fit a batch
      {{0x1f, 'a', 1, 0, 255, 3, 0x00}, 4},
      {{0xff, 0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 1, 0, 255}, 800},
      {{0xc0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'}, 4},
      {{0xc0, 'a', 'b', 'c'}, 12},
      {{0x1f, 'a', 1, 0, 40, 0x00}, 4},
      {{0x10, 'a', 1, 0, 0x00}, 4},
      {{0x10, 'a', 0, 0, 0x00}, 8},
      {{0x10, 'a', 99, 0, 0x00}, 8},
      {{0x1f, 'a', 99, 0, 5, 0x00}, 99}};
  return blocks;
}

// Every kind of copy after every other. A length of two or more extension bytes does not fit a batch.
const std::vector<Block>& blocks_for_barriers() {
  static const std::vector<Block> blocks = [] {
    std::vector<Block> list = good_blocks();
    list.push_back(block_of_sequences({{300, 7, 300}, {0, 33, 290}, {280, 3, 20}, {5, 0, 0}}));
    list.push_back(block_of_sequences({{9, 5, 9}, {2, 10, 40}, {0, 3, 400}, {3, 300, 12}, {290, 1, 4}, {5, 0, 0}}));
    list.push_back(block_of_sequences({{9, 5, 9}, {400, 17, 8}, {1, 9, 300}, {300, 299, 300}, {5, 0, 0}}));
    for (Block& block : ptxkit::testing::blocks_that_the_staged_part_cuts()) list.push_back(std::move(block));
    return list;
  }();
  return blocks;
}

std::string wrong_with_decompressor(std::string_view ptx, const std::vector<Block>& blocks,
                                    uint64_t schedule_seed = 0) {
  emulator::LaunchOptions options{.max_steps = 10'000'000};
  options.schedule_seed = schedule_seed;
  const Ran ran = ptxkit::testing::emulate_decompress(ptx, blocks, options);
  std::vector<uint32_t> codes;
  std::vector<Bytes> outputs;
  for (const Block& block : blocks) {
    outputs.emplace_back(block.capacity);
    const auto item = lz4_decompress_reference(block.bytes, outputs.back());
    outputs.back().resize(item.size_bytes);
    codes.push_back(static_cast<uint32_t>(item.status));
  }
  return wrong_with(ran, codes, outputs);
}

std::string wrong_with_compressor(std::string_view ptx, const Lz4CompressVariant& variant,
                                  const std::vector<Bytes>& items, uint64_t schedule_seed = 0) {
  emulator::LaunchOptions options{.max_steps = 20'000'000};
  options.schedule_seed = schedule_seed;
  const Ran ran = ptxkit::testing::emulate_compress(ptx, variant, items, options);
  std::vector<uint32_t> codes;
  std::vector<Bytes> outputs;
  for (const Bytes& raw : items) {
    outputs.emplace_back(raw.size());
    const auto item = lz4_compress_reference(raw, outputs.back(), variant);
    outputs.back().resize(item.size_bytes);
    codes.push_back(static_cast<uint32_t>(item.flag));
  }
  return wrong_with(ran, codes, outputs);
}

// A page whose sequences cost more than they save: a match of four bytes after 270 literals loses one byte. With about
// ten of them, the short sequence at the end is the first that does not fit.
Bytes page_that_overflows_late(int long_sequences, uint32_t seed) {
  const Bytes noise = random_bytes(4096, seed);
  Bytes page(noise.begin(), noise.begin() + 8);
  const auto add_noise = [&](ptrdiff_t count) {
    const auto from = noise.begin() + static_cast<ptrdiff_t>(page.size());
    page.insert(page.end(), from, from + count);
  };
  const auto add_match = [&] {
    const Bytes first(page.begin(), page.begin() + 4);
    page.insert(page.end(), first.begin(), first.end());
  };
  for (int i = 0; i < long_sequences; ++i) {
    add_noise(270);
    add_match();
  }
  add_noise(1);
  add_match();
  add_noise(8);
  return page;
}

// A page of which only the last literals do not fit. The last literals of its one match are stored by five lanes to
// bytes of the room to which another lane copies the page's own bytes.
Bytes page_that_overflows_at_its_end() {
  Bytes page = random_bytes(400, 7);
  std::copy_n(page.begin(), 4, page.begin() + 325);
  return page;
}

std::vector<Bytes> compressible_items() {
  return {matchable_bytes(2000, 1), Bytes(300, 'A'), Bytes(100, 0), ramp_bytes(700)};
}
std::vector<Bytes> refused_items(const Lz4CompressVariant& variant) {
  std::vector<Bytes> items = {random_bytes(4096, 3), random_bytes(100, 4), matchable_bytes(40, 5),
                              Bytes(variant.max_item_bytes + 16, 'A'), ramp_bytes(5)};
  items.push_back(page_that_overflows_at_its_end());
  for (int long_sequences = 9; long_sequences < 15; ++long_sequences) {
    for (uint32_t seed : {1, 2, 3}) items.push_back(page_that_overflows_late(long_sequences, seed));
  }
  return items;
}

// --- barriers ---

// Without the barrier, the accesses that it orders race in every schedule of lanes and warps.
TEST(Sabotage, EveryBarrierTakenOutOfACompressorIsNoticed) {
  for (const auto* variant : {&kPageVariant, &kChunkVariant, &kHighVariant}) {
    std::vector<Bytes> items = compressible_items();
    for (const Bytes& item : refused_items(*variant)) items.push_back(item);
    // More than a tile, a last tile with one segment, and a chunk that is zero but for the part of one warp. The page
    // compressor refuses all of them.
    items.push_back(matchable_bytes(9000, 6));
    items.push_back(matchable_bytes(4400, 6));
    items.emplace_back(9000, 0);
    items.back().back() = 1;
    const auto all = edits(kernel_image(variant->name).ptx, ptx::Op::bar, removed);
    EXPECT_FALSE(all.empty()) << variant->name;
    for (const Edited& edited : all) {
      EXPECT_NE(wrong_with_compressor(edited.ptx, *variant, items), "") << variant->name << ": " << edited.what;
    }
  }
}

// The barriers after the last window of a batch and after a match are redundant: the barrier at the end of find_tokens,
// which precedes every later read of output, orders the same accesses. Their removal cannot be noticed.
TEST(Sabotage, EveryBarrierTakenOutOfTheDecompressorIsNoticed) {
  const auto all = edits(kernel_image(kLz4Decompress).ptx, ptx::Op::bar, removed);
  EXPECT_EQ(wrong_with_decompressor(kernel_image(kLz4Decompress).ptx, blocks_for_barriers()), "");
  std::string unnoticed;
  size_t unnoticed_count = 0;
  for (const Edited& edited : all) {
    if (!wrong_with_decompressor(edited.ptx, blocks_for_barriers()).empty()) continue;
    unnoticed += edited.what + "\n";
    ++unnoticed_count;
  }
  EXPECT_EQ(unnoticed_count, 2u) << unnoticed;
  EXPECT_GT(all.size(), 2u);
}

// --- alignment ---

// Words at a byte position are read from the aligned words that contain them. Without the rounding down, a word is read
// at a byte position, which is the bug behind the catalogue's F081.
TEST(Sabotage, EveryAlignmentDroppedIsRefutedAndFaults) {
  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  for (const auto* variant : {&kPageVariant, &kChunkVariant, &kHighVariant}) {
    const auto image = kernel_image(variant->name);
    EXPECT_EQ(report::analyze(std::string(image.ptx), "image.ptx", options).status, rules::Status::good);
    auto items = compressible_items();
    items.push_back(matchable_bytes(8801, 6));  // ends in the first half of a segment of its third tile
    const auto all = edits(image.ptx, ptx::Op::and_, without_rounding);
    EXPECT_FALSE(all.empty()) << variant->name;
    for (const Edited& edited : all) {
      // In shared memory the analyzer decides it statically: F081.
      if (variant == &kPageVariant) {
        EXPECT_EQ(report::analyze(edited.ptx, "edited.ptx", options).status, rules::Status::critical) << edited.what;
      }
      EXPECT_THAT(ptxkit::testing::emulate_compress(edited.ptx, *variant, items).report, HasSubstr("misaligned"))
          << variant->name << ": " << edited.what;
    }
  }
}

// --- bounds checks ---

// Removes every comparison of the statements with `needle`, one at a time: it is decided so that well-formed input
// still passes. Returns the difference that each shows on malformed input.
struct Unchecked {
  std::string what;
  std::string wrong;  // empty: not noticed
};
using WrongWith = std::function<std::string(std::string_view ptx)>;
std::vector<Unchecked> without_checks(std::string_view kernel, const std::string& path, const std::string& needle,
                                      const WrongWith& wrong_with_good, const WrongWith& wrong_with_bad) {
  const auto image = kernel_image(kernel);
  EXPECT_EQ(wrong_with_good(image.ptx), "") << kernel;
  EXPECT_EQ(wrong_with_bad(image.ptx), "") << kernel;
  std::vector<Unchecked> all;
  for (const Lines& lines : statements_with(path, needle)) {
    for (const bool holds : {false, true}) {
      for (const Edited& edited : edits(image.ptx, ptx::Op::setp, decided(holds), path, lines)) {
        if (wrong_with_good(edited.ptx).empty()) all.push_back({edited.what, wrong_with_bad(edited.ptx)});
      }
    }
  }
  EXPECT_FALSE(all.empty()) << kernel << " has no check in a statement with " << needle;
  return all;
}

TEST(Sabotage, EveryCheckTakenOutOfTheDecompressorIsNoticed) {
  const auto with_good = [](std::string_view ptx) { return wrong_with_decompressor(ptx, good_blocks()); };
  const auto with_bad = [](std::string_view ptx) {
    std::string wrong;
    for (const Block& block : bad_blocks()) wrong += wrong_with_decompressor(ptx, {block});
    return wrong;
  };
  for (const char* status : {"input_overrun", "output_overrun", "offset_zero", "offset_out_of_range"}) {
    for (const Unchecked& edited : without_checks(kLz4Decompress, "kernels/lz4/lz4_decoder.hpp",
                                                  std::string("Lz4Status::") + status, with_good, with_bad)) {
      EXPECT_NE(edited.wrong, "") << status << ": " << edited.what;
    }
  }
}

// A batch that accepts malformed sequences writes outside of the room. A batch that refuses valid ones is only slow.
TEST(Sabotage, EveryCheckTakenOutOfABatchIsNoticed) {
  const auto with_good = [](std::string_view ptx) { return wrong_with_decompressor(ptx, good_blocks()); };
  const auto with_bad = [](std::string_view ptx) {
    std::string wrong;
    for (const Block& block : bad_blocks()) wrong += wrong_with_decompressor(ptx, {block});
    return wrong;
  };
  std::map<std::string, bool> noticed;
  for (const Unchecked& edited :
       without_checks(kLz4Decompress, "kernels/lz4/lz4_decoder.hpp", "LaneBool malformed", with_good, with_bad)) {
    noticed[edited.what] |= !edited.wrong.empty();
  }
  for (const auto& [what, is_noticed] : noticed) EXPECT_TRUE(is_noticed) << what;
}

TEST(Sabotage, EveryCheckTakenOutOfTheDecompressorOfBatchesIsNoticed) {
  using ptxkit::testing::BatchCase;
  const Bytes block = {0x1f, 'a', 1, 0, 40, 0x10, 'b'};
  const auto with_size = [&](uint8_t size) {
    Bytes framed = {size, 0, 0, 0};
    framed.insert(framed.end(), block.begin(), block.end());
    return framed;
  };
  const std::vector<BatchCase> good_raw = {{.bytes = block, .capacity = 61}, {.bytes = {0}, .is_room_null = true}},
                               good_framed = {{.bytes = with_size(61), .capacity = 61}};
  const std::vector<BatchCase> bad_raw = {{.bytes = block, .capacity = 60},
                                          {.bytes = {}, .capacity = 8},
                                          {.bytes = {}, .capacity = 8, .is_null = true},
                                          {.bytes = {0}, .capacity = 8, .is_null = true},
                                          {.bytes = block, .capacity = 61, .is_room_null = true},
                                          {.bytes = {0}, .capacity = 8, .is_room_null = true},
                                          {.bytes = block, .capacity = 61, .claimed_bytes = (uint64_t{1} << 32) + 7},
                                          {.bytes = {0}, .capacity = 61, .claimed_bytes = uint64_t{1} << 31},
                                          {.bytes = {0x10, 'a', 0, 0, 0x00}, .capacity = 8}};
  const std::vector<BatchCase> bad_framed = {{.bytes = with_size(60), .capacity = 61},
                                             {.bytes = with_size(62), .capacity = 62},
                                             {.bytes = with_size(61), .capacity = 60},
                                             {.bytes = {0, 0, 0}, .capacity = 60},
                                             {.bytes = {}, .capacity = 60}};
  // What differs from the untouched kernel's results.
  const auto wrong_with = [](std::string_view ptx, const std::vector<BatchCase>& items, library::Framing framing) {
    std::string wrong;
    for (const BatchCase& item : items) {
      const auto expected = ptxkit::testing::decompress_batch({item}, {.framing = framing});
      EXPECT_EQ(expected.report, "");
      const auto ran = ptxkit::testing::decompress_batch(
          {item}, {.framing = framing, .replaced_kernel = kLz4BatchDecompress, .replacement = ptx});
      wrong += ran.report;
      if (ran.report.empty() && (ran.statuses != expected.statuses || ran.outputs != expected.outputs))
        wrong += "results";
    }
    return wrong;
  };
  const auto with_good = [&](std::string_view ptx) {
    return wrong_with(ptx, good_raw, library::Framing::raw) + wrong_with(ptx, good_framed, library::Framing::numcodecs);
  };
  const auto with_bad = [&](std::string_view ptx) {
    return wrong_with(ptx, bad_raw, library::Framing::raw) + wrong_with(ptx, bad_framed, library::Framing::numcodecs);
  };
  for (const char* status : {"invalid_value", "too_large", "cannot_decompress", "output_too_small"}) {
    for (const Unchecked& edited : without_checks(kLz4BatchDecompress, "kernels/lz4/lz4_batch_decompress.cpp",
                                                  std::string("BatchStatus::") + status, with_good, with_bad)) {
      EXPECT_NE(edited.wrong, "") << status << ": " << edited.what;
    }
  }
}

TEST(Sabotage, EveryCheckOfTheRoomTakenOutOfTheCompressorIsNoticed) {
  const auto with_good = [](std::string_view ptx) {
    return wrong_with_compressor(ptx, kPageVariant, compressible_items());
  };
  const auto with_bad = [](std::string_view ptx) {
    return wrong_with_compressor(ptx, kPageVariant, refused_items(kPageVariant));
  };
  for (const Unchecked& edited :
       without_checks(kLz4CompressPage, "kernels/lz4/lz4_block_writer.hpp", "*written_ < size_", with_good, with_bad)) {
    EXPECT_NE(edited.wrong, "") << edited.what;
  }
  // The limit of a page's size is next to comparisons with the strides, which all these items satisfy.
  const auto sizes = without_checks(kLz4CompressPage, "kernels/lz4/lz4_compress_page.cpp", "size <= kMaxPageBytes",
                                    with_good, with_bad);
  EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(), [](const Unchecked& edited) { return !edited.wrong.empty(); }));
}

}  // namespace
}  // namespace ptxkit::kernels
