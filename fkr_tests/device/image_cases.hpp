// Instruction forms of textures and surfaces as programs, made from the ISA table: fetches of every shape, type and way
// to choose a level, loads, stores and reductions of surfaces, questions to both. What the emulator makes of each a GPU
// must make bit for bit.
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

inline constexpr uint32_t kImageThreads = 64, kImageInBytes = 128, kImageOutBytes = 64;  // of each thread: its row

struct CaseImage {
  emulator::ImageUse use = emulator::ImageUse::texture;
  emulator::ImageDescription description;
  emulator::Sampling sampling;
  std::vector<uint8_t> texels;
};

// Instructions of one row of the table in one entry `images(in, out, handles)`, each with an image of its own: that of
// handle i, or where `is_named` that of the variable `image<i>`.
struct ImageCase {
  std::string name;  // "tex .1d .v4 .{u32|s32|f32} ... ({D:0*4}|q?, ...), part 2"
  std::vector<std::string> instructions;
  std::string ptx;
  std::vector<uint8_t> in;  // a row for each thread of each instruction
  std::vector<CaseImage> images;
  bool is_named = false;

  size_t out_bytes() const { return instructions.size() * kImageThreads * kImageOutBytes; }
};
// How GoogleTest names one.
inline void PrintTo(const ImageCase& each, std::ostream* out) { *out << each.name; }

// What a run leaves: the rows of `out`, then the texels of each image.
struct ImageResult {
  std::vector<uint8_t> out;
  std::vector<std::vector<uint8_t>> texels;
};

// The opcodes that have cases, and those of one. Questions that the driver of an H200 answers are those for width,
// height and depth: a kernel with any other it does not load (error 801) or does not find (500), by handle and by name.
std::span<const ptx::Op> image_ops();
std::vector<ImageCase> image_cases(ptx::Op op);

// After the emulator has run it, with every check: a fault is an error.
Result<ImageResult> emulate_images(const ImageCase& each);

// Why the emulator's bits of instruction i differ from an H200's and stay so; empty where they may not.
std::string_view image_exception(const ImageCase& each, size_t i);

// Six digits for each instruction: what is recorded of an H200's rows and texels.
std::string image_hashes(const ImageCase& each, const ImageResult& result);

}  // namespace ptxkit::testing
