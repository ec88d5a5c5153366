// Instruction forms of textures and surfaces as programs, made from the ISA table: fetches of every shape, type and
// choice of level; loads, stores and reductions of surfaces; queries of both. A GPU must give the emulator's result bit
// for bit.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/texture.hpp"
#include "support/result.hpp"

namespace ptxkit::testing {

inline constexpr uint32_t kImageThreads = 64, kImageInBytes = 128, kImageOutBytes = 64;  // of each thread, in its row

struct CaseImage {
  emulator::ImageUse use = emulator::ImageUse::texture;
  emulator::ImageDescription description;
  emulator::Sampling sampling;
  std::vector<uint8_t> texels;
};

// Instructions of one row of the table in one entry `images(in, out, handles)`. Instruction i has an image of its own:
// that of handle i, or that of the variable `image<i>` if `is_named`.
struct ImageCase {
  std::string name;  // "tex .1d .v4 .{u32|s32|f32} ... ({D:0*4}|q?, ...), part 2"
  std::vector<std::string> instructions;
  std::string ptx;
  std::vector<uint8_t> in;  // a row for each thread of each instruction
  std::vector<CaseImage> images;
  bool is_named = false;

  size_t out_bytes() const { return instructions.size() * kImageThreads * kImageOutBytes; }
};
// The name in GoogleTest.
inline void PrintTo(const ImageCase& each, std::ostream* out) { *out << each.name; }

// The result of a run: the rows of `out`, then the texels of each image.
struct ImageResult {
  std::vector<uint8_t> out;
  std::vector<std::vector<uint8_t>> texels;
};

// The opcodes that have cases, and the cases of one opcode. The driver of an H200 answers queries of width, height and
// depth only: a kernel with another query is not loaded (error 801) or not found (500), by handle and by name.
std::span<const ptx::Op> image_ops();
std::vector<ImageCase> image_cases(ptx::Op op);

// The result on the emulator with every check. A fault is an error.
Result<ImageResult> emulate_images(const ImageCase& each);

// The reason why the emulator's bits of instruction i differ permanently from an H200's; empty if they must be equal.
std::string_view image_exception(const ImageCase& each, size_t i);

// Six digits for each instruction: a hash of its rows and texels, as it is recorded for an H200.
std::string image_hashes(const ImageCase& each, const ImageResult& result);

}  // namespace ptxkit::testing
