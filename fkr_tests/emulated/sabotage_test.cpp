// Breaking one thing in a kernel's PTX is noticed: a barrier taken out, an alignment dropped, a bounds check removed.
//
// Each test edits the text that ships, in a place found through the kernel's source line, and expects a named fault or
// finding. The same input runs clean on the text as it is (the other tests of this folder).
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/report/analysis.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Block;
using ptxkit::testing::Bytes;
using ptxkit::testing::kernel_image;
using ptxkit::testing::matchable_bytes;
using ::testing::HasSubstr;

// The number of the one line of `path` that holds `needle`.
uint32_t line_of(const std::string& path, const std::string& needle) {
  std::ifstream file(path);
  uint32_t number = 0, found = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find(needle) == std::string::npos) continue;
    if (found != 0) throw std::runtime_error(path + " has two lines with " + needle);
    found = number;
  }
  if (found == 0) throw std::runtime_error(path + " has no line with " + needle);
  return found;
}

// Replaces text in every instruction `op` that comes from a source line; throws where there is none.
std::string edit(std::string_view ptx, ptx::Op op, const std::string& path, const std::string& needle,
                 const std::function<std::string(std::string)>& change) {
  const uint32_t line = line_of(path, needle);
  const auto parsed = ptx::parse(std::string(ptx), "edited.ptx");
  const ptx::Function& function = parsed.module.functions.at(0);
  std::string text(ptx);
  bool edited = false;
  for (size_t id = function.instructions.size(); id-- > 0;) {  // from the end, so that offsets stay true
    const ptx::Instruction& instruction = function.instructions[id];
    if (instruction.op != op || instruction.location == ptx::kNone) continue;
    const ptx::Location& location = parsed.module.locations[instruction.location];
    const ptx::SourceFile* file = parsed.module.file(location.file);
    if (file == nullptr || location.line != line || path.find(file->path) == std::string::npos) continue;
    const size_t end = text.find(';', instruction.at) + 1;
    text.replace(instruction.at, end - instruction.at, change(text.substr(instruction.at, end - instruction.at)));
    edited = true;
  }
  if (!edited) throw std::runtime_error("no " + std::string(ptx::text(op)) + " comes from the line with " + needle);
  return text;
}

std::string removed(std::string) { return ""; }

// "setp.gt.u32 %p1, %r2, %r3;" -> a comparison that never holds.
std::string never(std::string instruction) {
  const size_t destination = instruction.find('%');
  const std::string predicate = instruction.substr(destination, instruction.find(',') - destination);
  return "setp.ne.u32 " + predicate + ", 0, 0;";
}

constexpr const char* kCompressSource = "kernels/lz4/lz4_compress.cpp";
constexpr const char* kDecompressSource = "kernels/lz4/lz4_decompress.cpp";

TEST(Sabotage, ABarrierTakenOutOfTheCompressorIsARace) {
  const auto image = kernel_image(kLz4CompressPage);
  const std::string ptx = edit(image.ptx, ptx::Op::bar, kCompressSource,
                               "every lane has read its slot before any lane writes one", removed);
  const auto ran = ptxkit::testing::emulate_compress(ptx, kPageVariant, {matchable_bytes(2000, 1)});
  EXPECT_THAT(ran.report, HasSubstr("race"));
}

// The eight bytes at a position are read from aligned words; without the rounding down it is a word read at a byte
// position, the bug that the catalogue's F081 came from.
TEST(Sabotage, AnAlignmentDroppedIsRefutedAndFaults) {
  const auto image = kernel_image(kLz4CompressPage);
  const auto keep_low_bits = [](std::string instruction) {
    const size_t mask = instruction.find(", -4;");
    return mask == std::string::npos ? instruction : instruction.replace(mask, 5, ", -1;");
  };
  const std::string ptx = edit(image.ptx, ptx::Op::and_, kCompressSource, "at(position / 4)", keep_low_bits);
  ASSERT_NE(ptx, image.ptx);

  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  EXPECT_EQ(report::analyze(std::string(image.ptx), "image.ptx", options).status, rules::Status::good);
  EXPECT_EQ(report::analyze(ptx, "edited.ptx", options).status, rules::Status::critical);

  const auto ran = ptxkit::testing::emulate_compress(ptx, kPageVariant, {matchable_bytes(2000, 1)});
  EXPECT_THAT(ran.report, HasSubstr("misaligned"));
}

// A block for which one check is all that holds the decoder back: without it the emulator sees an access outside the
// buffers, or the harness a byte that no item owns.
void expect_noticed(const std::string& needle, const Block& block) {
  const auto image = kernel_image(kLz4Decompress);
  const std::string ptx = edit(image.ptx, ptx::Op::setp, kDecompressSource, needle, never);
  const auto ran = ptxkit::testing::emulate_decompress(ptx, {block});
  EXPECT_TRUE(!ran.report.empty() || ran.touched_outside) << needle;
}

TEST(Sabotage, ABoundsCheckTakenOutOfTheDecompressorIsNoticed) {
  expect_noticed("fail_if(literal_count > capacity_ - *op_",
                 {{0xc0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'}, 4});
  expect_noticed("fail_if(match_length > capacity_ - *op_", {{0x1f, 'a', 1, 0, 40, 0x00}, 4});
  expect_noticed("fail_if(offset > *op_", {{0x10, 'a', 99, 0, 0x00}, 8});
}

}  // namespace
}  // namespace ptxkit::kernels
