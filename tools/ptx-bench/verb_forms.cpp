// Blocks of lzr with every form of rANS that the container has: `warp`, and `chunked` with each number of lanes and
// each chunk size. No figure is a time: a decoder's cost is the number of warp instructions that the emulator counts
// for the streams of all blocks, per raw byte.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/entropy/rans_format.hpp"
#include "kernels/images.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/check.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/instructions.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using format::PtzCoding;

struct Figures {
  double ratio = 0, instructions_per_byte = 0;
};

// The coded streams of a block.
void append_streams(codec::Bytes block, std::vector<TransformItem>& items) {
  size_t at = kernels::kLzBlockHeaderBytes;
  for (const size_t size : codec::lz_stream_sizes(block.data())) {
    TransformItem item{{}, size};
    bool is_coded = false;
    PTXKIT_CHECK(codec::find_stream(block, at, size, item.from, is_coded), "our own encoder wrote the block");
    if (is_coded) items.push_back(item);
  }
}

Result<Figures> measure(const Input& input, const PtzCoding& coding, codec::Executor& executor) {
  std::vector<std::vector<uint8_t>> coded(input.chunk_count());
  executor.for_each(coded.size(), [&](size_t i, unsigned) { coded[i] = codec::encode_block(coding, input.chunk(i)); });
  std::vector<TransformItem> items;
  for (size_t i = 0; i < coded.size(); ++i) {
    if (coded[i].empty()) continue;
    std::vector<uint8_t> raw(input.chunk(i).size());
    if (!codec::decode_block(coding, coded[i], raw) || !std::ranges::equal(raw, input.chunk(i)))
      return fail(fmt::format("{}: block {} is decoded to other bytes", name_of(coding), i), input.name);
    append_streams(coded[i], items);
  }
  const auto* image =
      kernels::find_kernel_image(coding.chunked ? kernels::kRansChunkedDecode : kernels::kRansWarpDecode, 9, 0);
  if (image == nullptr) return fail("the program has no image of the decoder");
  const auto instructions = transform_instructions(*image, 1, items, {});
  if (!instructions) return tl::unexpected(instructions.error());
  return Figures{stored_ratio(input, coded),
                 static_cast<double>(*instructions) / static_cast<double>(input.raw.size())};
}

double geometric_mean(const std::vector<Figures>& all, double Figures::* member) {
  const double sum = std::accumulate(
      all.begin(), all.end(), 0.0, [&](double before, const Figures& each) { return before + std::log(each.*member); });
  return std::exp(sum / static_cast<double>(all.size()));
}

}  // namespace

// The geometric means over the inputs are lines of a Markdown table.
Result<Measurements> run_forms(const Settings& settings) {
  codec::Executor executor;
  Measurements all;
  std::vector<Input> inputs;
  for (const std::string& file : settings.files) {
    auto input = load_input({file}, std::min<size_t>(settings.size_bytes, std::filesystem::file_size(file)));
    if (!input) return tl::unexpected(input.error());
    inputs.push_back(std::move(*input));
  }
  all.notes = {"| block | lanes | chunk | ratio | decoder, warp instructions a byte |", "|---|--:|--:|--:|--:|"};
  for (const size_t block_bytes : settings.chunk_bytes) {
    for (const PtzCoding& coding : format::ptz_codings(format::PtzCodec::lzr)) {
      std::vector<Figures> of_inputs;
      for (Input& input : inputs) {
        input.chunk_bytes = block_bytes;
        const auto figures = measure(input, coding, executor);
        if (!figures) return tl::unexpected(figures.error());
        of_inputs.push_back(*figures);
        Row row{input.name, name_of(coding), block_bytes, input.raw.size(), figures->ratio, {}};
        row.instructions_per_byte = figures->instructions_per_byte;
        all.rows.push_back(std::move(row));
      }
      const auto& form = coding.chunked;
      all.notes.push_back(fmt::format(
          "| {} KiB | {} | {} | {:.4f} | {:.4f} |", block_bytes >> 10, form ? fmt::format("{}", form->lanes) : "`warp`",
          form ? fmt::format("{} KiB", form->chunk_bytes >> 10) : "16 KiB", geometric_mean(of_inputs, &Figures::ratio),
          geometric_mean(of_inputs, &Figures::instructions_per_byte)));
    }
  }
  return all;
}

}  // namespace ptxkit::bench
