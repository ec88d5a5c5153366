#include "tools/ptx-pack/choose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::pack {
namespace {

using format::PtzCodec;
using format::PtzCoding;
using ByteVector = std::vector<uint8_t>;

constexpr size_t kPieces = 4;  // of a sample; a shorter input is taken whole
constexpr size_t kPieceBytes = 64u << 10;
constexpr size_t kTrialPieceBytes = 1u << 20;          // a block of bbw
constexpr size_t kFrugalTrialPieceBytes = 256u << 10;  // with --memory
constexpr size_t kFrameBlockBytes = 64u << 10;         // the default of LZ4 frames

// Below this, blocks of bbw do not fit into --memory (docs/ptx-pack.md).
constexpr uint64_t kBbwMemoryBytes = 43u << 20;

// Pieces at equal distances, from the first byte to the last.
Result<std::vector<ByteVector>> sample_of(const format::RandomAccess& input, size_t piece_bytes) {
  std::vector<ByteVector> pieces;
  const uint64_t size = input.size_bytes();
  const bool is_whole = size <= kPieces * piece_bytes;
  for (size_t i = 0; i < kPieces; ++i) {
    const uint64_t begin = is_whole ? i * piece_bytes : (size - piece_bytes) / (kPieces - 1) * i;
    if (begin >= size) break;
    ByteVector piece(std::min<uint64_t>(piece_bytes, size - begin));
    if (auto done = input.read_at(begin, piece); !done) return tl::unexpected(done.error());
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

double entropy_of(const std::array<uint32_t, 256>& counts) {
  double total = 0, bits = 0;
  for (const uint32_t count : counts) total += count;
  for (const uint32_t count : counts) {
    if (count != 0) bits -= count * std::log2(count / total);
  }
  return total == 0 ? 0 : bits / total;
}

struct Statistics {
  double entropy = 0;          // bits a byte
  double matched_share = 0;    // of the bytes: in matches of four bytes and more, the latest one by a hash
  double literal_entropy = 0;  // of the other bytes
};

Statistics statistics_of(const ByteVector& sample) {
  constexpr unsigned kHashBits = 15;
  std::array<uint32_t, 256> counts{}, literals{};
  std::vector<uint32_t> table(1u << kHashBits, 0);  // positions plus one
  for (const uint8_t byte : sample) ++counts[byte];
  size_t matched = 0;
  for (size_t at = 0; at < sample.size();) {
    size_t length = 0;
    if (at + 4 <= sample.size()) {
      uint32_t word = 0;
      std::memcpy(&word, &sample[at], 4);
      uint32_t& slot = table[word * 2654435761u >> (32 - kHashBits)];
      const size_t from = slot;
      slot = static_cast<uint32_t>(at + 1);
      if (from != 0 && at + 1 - from < 65536) {
        while (at + length < sample.size() && length < 259 && sample[from - 1 + length] == sample[at + length])
          ++length;
      }
    }
    if (length >= 4) {
      matched += length;
      at += length;
    } else {
      ++literals[sample[at++]];
    }
  }
  return {entropy_of(counts), static_cast<double>(matched) / static_cast<double>(std::max<size_t>(1, sample.size())),
          entropy_of(literals)};
}

// The thresholds are fitted to the corpus and to 145 other files; docs/ptx-pack.md says how often they are right.
std::optional<PtzCoding> smallest_by(const Statistics& of, bool has_bbw) {
  if (of.entropy == 0 && of.matched_share == 0) return std::nullopt;     // of nothing, or of one byte
  if (of.entropy > 7.9 && of.matched_share < 0.02) return std::nullopt;  // stored as it is, in the smaller container
  if (of.literal_entropy > 7.9) return PtzCodec::lzr;                    // coded already but for some repetitions
  if (!has_bbw || (of.entropy > 3.5 && of.literal_entropy > 7.35 && of.matched_share > 0.6))
    return PtzCodec::deflate_like;
  return PtzCodec::bbw;
}

// Processor time of this thread, in seconds.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The bytes of a container for the blocks of the sample. Everything runs on this thread.
uint64_t coded_bytes(const std::optional<PtzCoding>& codec, const std::vector<ByteVector>& sample) {
  codec::Executor executor(1);
  const auto lz4 = codec::make_cpu_backend(executor);
  const size_t block_bytes = codec ? size_t{1} << format::row_of(*codec).block_bits : kFrameBlockBytes;
  uint64_t total = 0;
  for (const ByteVector& piece : sample) {
    for (size_t at = 0; at < piece.size(); at += block_bytes) {
      const auto raw = format::Bytes(piece).subspan(at, std::min(block_bytes, piece.size() - at));
      if (codec) {
        const auto coded = codec::encode_block(*codec, raw);
        total += format::kPtzBlockHeaderBytes * 2 + (coded.empty() ? raw.size() : coded.size());
      } else {
        ByteVector room(raw.size());
        codec::CompressItem item;
        item.raw = raw;
        item.output = room;
        (void)lz4->compress({&item, 1}, codec::Encoder::fast);
        total += 4 + item.compressed_bytes;
      }
    }
  }
  return total;
}

Choice by_trial(const std::vector<ByteVector>& sample, bool by_speed, bool has_bbw) {
  uint64_t raw_bytes = 0;
  for (const ByteVector& piece : sample) raw_bytes += piece.size();
  std::vector<std::optional<PtzCoding>> codecs{std::nullopt};
  for (const format::PtzCodecRow& row : format::ptz_codecs()) {
    if (row.codec == PtzCodec::bbw && !has_bbw) continue;
    codecs.emplace_back(row.codec);
    if (!row.has_elements()) continue;
    const auto kinds = format::ptz_codings(row.codec);
    codecs.insert(codecs.end(), kinds.begin() + 1, kinds.end());
  }
  Choice best;
  std::optional<double> least;
  std::string figures;
  for (const auto& codec : codecs) {
    const double begin = thread_seconds();
    const uint64_t bytes = coded_bytes(codec, sample);
    const double seconds = thread_seconds() - begin;
    figures += fmt::format("{}{} {:.1f} % in {:.0f} ms", figures.empty() ? "" : ", ", codec ? name_of(*codec) : "lz4",
                           100.0 * static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, raw_bytes)),
                           1000 * seconds);
    if (by_speed && bytes >= raw_bytes) continue;  // what shrinks nothing is no codec for the input
    const double cost = by_speed ? seconds : static_cast<double>(bytes);
    if (least && cost >= *least) continue;
    least = cost;
    best.codec = codec;
  }
  best.why = std::move(figures);
  return best;
}

}  // namespace

Result<Choice> choose_codec(const format::RandomAccess& input, const Options& options) {
  const bool has_bbw = options.memory_bytes == 0 || options.memory_bytes >= kBbwMemoryBytes;
  const size_t trial_piece = options.memory_bytes == 0 ? kTrialPieceBytes : kFrugalTrialPieceBytes;
  const bool is_trial = options.chooses != Chooses::by_statistics;
  const auto pieces = sample_of(input, is_trial ? trial_piece : kPieceBytes);
  if (!pieces) return tl::unexpected(pieces.error());
  if (is_trial) return by_trial(*pieces, options.chooses == Chooses::by_speed, has_bbw);
  ByteVector sample;
  for (const ByteVector& piece : *pieces) sample.insert(sample.end(), piece.begin(), piece.end());
  const Statistics of = statistics_of(sample);
  return Choice{smallest_by(of, has_bbw),
                fmt::format("entropy {:.2f} bits a byte, {:.0f} % in matches, others {:.2f} bits", of.entropy,
                            100 * of.matched_share, of.literal_entropy)};
}

}  // namespace ptxkit::pack
