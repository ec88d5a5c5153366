#include "runtime/codec/blocks/budget.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "kernels/bwt/abi.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_chunked_reference.hpp"
#include "runtime/codec/blocks/bbw_block.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/blocks/typed_block.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::PtzCoder;
using format::PtzCoding;

// A mask of 32 bytes and a frequency, u16, for each of its symbols.
size_t frequency_table_bytes(Bytes stream, size_t at) {
  size_t symbols = 0;
  for (size_t i = at; i < std::min(at + 32, stream.size()); ++i) symbols += std::popcount(stream[i]);
  return 32 + 2 * symbols;
}

size_t rans_warp_tables(Bytes stream, size_t raw_bytes) {
  constexpr size_t kHeader = kernels::kRansWarpHeaderBytes;
  if (stream.size() < kHeader || stream[5] > kernels::kMaxChunkBits) return stream.size() + 1;
  const size_t chunk_count = (raw_bytes + (size_t{1} << stream[5]) - 1) >> stream[5];
  return kHeader + frequency_table_bytes(stream, kHeader) + chunk_count * (4 + 4 * kernels::kRansWarpLanes);
}

size_t rans_chunked_tables(Bytes stream, size_t raw_bytes) {
  kernels::RansChunkedStream opened;
  if (kernels::open_rans_chunked(stream, raw_bytes, opened) != kernels::StreamStatus::ok) return stream.size() + 1;
  size_t bytes = kernels::kRansLengthsAt;
  for (const kernels::RansChunk& chunk : opened.chunks) bytes += 2 + 1 + 8 * chunk.lanes;
  return bytes;
}

// The bytes of a coded stream that are no code words; more than there are if the stream is damaged.
size_t table_bytes(const PtzCoding& coding, Bytes stream, size_t raw_bytes) {
  constexpr size_t kLaned = kernels::kLanedHeaderBytes + kernels::kLaneSizesBytes;
  switch (format::row_of(coding).coder) {
    case PtzCoder::rans:
      return coding.chunked ? rans_chunked_tables(stream, raw_bytes) : rans_warp_tables(stream, raw_bytes);
    case PtzCoder::fse:
      return kLaned + 1 + frequency_table_bytes(stream, kernels::kLanedHeaderBytes + 1);
    case PtzCoder::huffman:
      return kLaned + kernels::kCodeLengthsBytes;
  }
  return stream.size() + 1;
}

// The stream at byte `at`, which decodes to `raw_bytes`.
bool add_stream(const PtzCoding& coding, Bytes block, size_t& at, size_t raw_bytes, Part part, Budget& budget) {
  Bytes content;
  bool is_coded = false;
  if (!find_stream(block, at, raw_bytes, content, is_coded)) return false;
  const size_t tables = is_coded ? table_bytes(coding, content, raw_bytes) : 0;
  if (tables > content.size()) return false;
  budget[Part::container] += 4;
  budget[Part::tables] += tables;
  budget[part] += content.size() - tables;
  return true;
}

bool add_lz_block(const PtzCoding& coding, Bytes block, Budget& budget) {
  if (block.size() < kernels::kLzBlockHeaderBytes) return false;
  budget[Part::container] += kernels::kLzBlockHeaderBytes;
  constexpr Part kOrder[] = {Part::flags, Part::literals, Part::lengths, Part::offsets, Part::offsets};
  size_t at = kernels::kLzBlockHeaderBytes, stream = 0;
  for (const size_t raw_bytes : lz_stream_sizes(block.data())) {
    if (!add_stream(coding, block, at, raw_bytes, kOrder[stream++], budget)) return false;
  }
  return at == block.size();
}

bool add_bbw_block(const PtzCoding& coding, Bytes block, size_t raw_bytes, Budget& budget) {
  size_t at = kernels::bwt_column_at(static_cast<uint32_t>(raw_bytes));
  if (block.size() < at + 4) return false;
  budget[Part::rows] += at;
  budget[Part::container] += 4;
  const size_t run_bytes = read_u32(&block[at]);
  at += 4;
  for (size_t from = 0; from < run_bytes; from += kBbwSectionBytes) {
    if (!add_stream(coding, block, at, std::min(kBbwSectionBytes, run_bytes - from), Part::column, budget))
      return false;
  }
  return at == block.size();
}

}  // namespace

std::string_view name_of(Part part) {
  constexpr std::array<std::string_view, kParts> kNames = {"literals", "lengths", "offsets", "flags",  "rows",
                                                           "column",   "planes",  "tables",  "stored", "container"};
  return kNames[static_cast<size_t>(part)];
}

uint64_t Budget::total_bytes() const { return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}); }

bool add_lz4_block(Bytes block, Budget& budget) {
  size_t at = 0;
  // The bytes that continue a length of 15, the largest in a token's half.
  const auto extension = [&](size_t half) -> std::optional<size_t> {
    size_t length = half;
    for (uint8_t more = 255; half == 15 && more == 255; length += more) {
      if (at == block.size()) return std::nullopt;
      more = block[at++];
      ++budget[Part::lengths];
    }
    return length;
  };
  while (at < block.size()) {
    const unsigned token = block[at++];
    ++budget[Part::lengths];
    const auto literals = extension(token >> 4);
    if (!literals || *literals > block.size() - at) return false;
    at += *literals;
    budget[Part::literals] += *literals;
    if (at == block.size()) return true;
    if (block.size() - at < 2) return false;
    at += 2;
    budget[Part::offsets] += 2;
    if (!extension(token & 15)) return false;
  }
  return false;  // empty, or without a last sequence
}

bool add_ptz_block(const PtzCoding& coding, Bytes block, size_t raw_bytes, Budget& budget) {
  switch (format::row_of(coding).model) {
    case format::PtzModel::lz77:
      return add_lz_block(coding, block, budget);
    case format::PtzModel::bwt:
      return add_bbw_block(coding, block, raw_bytes, budget);
    case format::PtzModel::planes:
      return add_typed_block(coding.elements, block, raw_bytes, budget);
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another model");
}

}  // namespace ptxkit::codec
