#include "runtime/codec/blocks/lz4_block.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/lz4/lz4_format.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using kernels::kLastLiterals;
using kernels::kLastMatchStart;
using kernels::kMinMatch;
using kernels::kNibbleMax;

// Appends to a buffer of fixed size. used() exceeds that size if it was too small.
class BlockWriter {
 public:
  explicit BlockWriter(MutableBytes room) : room_(room) {}

  void byte(uint8_t value) {
    if (used_ < room_.size()) room_[used_] = value;
    ++used_;
  }
  void bytes(Bytes values) {
    if (used_ + values.size() <= room_.size() && !values.empty())
      std::memcpy(&room_[used_], values.data(), values.size());
    used_ += values.size();
  }
  // The bytes of a length beyond its token nibble.
  void extension(size_t length) {
    if (length < kNibbleMax) return;
    length -= kNibbleMax;
    for (; length >= 255; length -= 255) byte(255);
    byte(static_cast<uint8_t>(length));
  }
  // A token with `match_nibble`, the literal length and the literals.
  void literals(Bytes values, unsigned match_nibble) {
    byte(static_cast<uint8_t>(std::min<size_t>(values.size(), kNibbleMax) << 4 | match_nibble));
    extension(values.size());
    bytes(values);
  }
  size_t used() const { return used_; }

 private:
  MutableBytes room_;
  size_t used_ = 0;
};

size_t read_length(Bytes block, size_t& at, unsigned nibble) {
  size_t length = nibble;
  if (nibble < kNibbleMax) return length;
  uint8_t more;
  do {
    PTXKIT_CHECK(at < block.size(), "a chunk encoding ends inside a length");
    more = block[at++];
    length += more;
  } while (more == 255);
  return length;
}

// Positions in a chunk's block: the offset field of the first sequence, the token of the last one.
struct Landmarks {
  size_t first_literal_count;
  unsigned first_match_nibble;
  size_t first_offset_at;  // == block.size() if the block is one sequence of literals
  size_t last_token_at;
  size_t last_literal_count;
};

Landmarks find_landmarks(Bytes block) {
  Landmarks marks{};
  for (size_t at = 0;;) {
    const size_t token_at = at;
    PTXKIT_CHECK(at < block.size(), "a chunk encoding ends before its last sequence");
    const unsigned token = block[at++];
    const size_t literal_count = read_length(block, at, token >> 4);
    at += literal_count;
    if (token_at == 0) {
      marks.first_literal_count = literal_count;
      marks.first_match_nibble = token & 15;
      marks.first_offset_at = at;
    }
    if (at >= block.size()) {
      PTXKIT_CHECK(at == block.size(), "a chunk encoding ends inside its literals");
      marks.last_token_at = token_at;
      marks.last_literal_count = literal_count;
      return marks;
    }
    at += 2;
    read_length(block, at, token & 15);
  }
}

// Writes `literals` and a match of `length` bytes at offset 1, which repeats the last literal.
void run_of_last_byte(BlockWriter& writer, Bytes literals, size_t length) {
  const size_t code = length - kMinMatch;
  writer.literals(literals, static_cast<unsigned>(std::min<size_t>(code, kNibbleMax)));
  writer.byte(1);
  writer.byte(0);
  writer.extension(code);
}

}  // namespace

std::optional<uint32_t> stitch(Bytes raw, std::span<const ChunkEncoding> chunks, MutableBytes output) {
  BlockWriter writer(output);
  size_t pending_begin = 0;  // raw bytes from here to chunk_begin are literals not yet part of a sequence
  size_t chunk_begin = 0;
  const auto literals_until = [&](size_t end) { return raw.subspan(pending_begin, end - pending_begin); };
  for (const ChunkEncoding& chunk : chunks) {
    const size_t chunk_end = chunk_begin + chunk.raw_bytes;
    PTXKIT_CHECK(chunk_end <= raw.size(), "the chunks are longer than the block");
    const bool is_run = chunk.flag == ChunkFlag::zero || chunk.flag == ChunkFlag::filled;
    if (is_run && chunk.raw_bytes > kLastMatchStart) {
      run_of_last_byte(writer, literals_until(chunk_begin + 1), chunk.raw_bytes - 1 - kLastLiterals);
      pending_begin = chunk_end - kLastLiterals;
    } else if (chunk.flag == ChunkFlag::compressed) {
      const Landmarks marks = find_landmarks(chunk.block);
      if (marks.first_offset_at < chunk.block.size()) {
        writer.literals(literals_until(chunk_begin + marks.first_literal_count), marks.first_match_nibble);
        writer.bytes(chunk.block.subspan(marks.first_offset_at, marks.last_token_at - marks.first_offset_at));
        pending_begin = chunk_end - marks.last_literal_count;
      }
    }
    chunk_begin = chunk_end;
  }
  PTXKIT_CHECK(chunk_begin == raw.size(), "the chunks are shorter than the block");
  writer.literals(literals_until(raw.size()), 0);
  if (writer.used() >= raw.size() || writer.used() > output.size()) return std::nullopt;
  return static_cast<uint32_t>(writer.used());
}

std::optional<size_t> encode_literals(Bytes raw, MutableBytes output) {
  if (output.size() < literal_block_bytes(raw.size())) return std::nullopt;
  BlockWriter writer(output);
  writer.literals(raw, 0);
  return writer.used();
}

std::optional<uint32_t> encode_run(Bytes raw, MutableBytes output) {
  if (raw.size() <= kLastMatchStart) return std::nullopt;
  BlockWriter writer(output);
  run_of_last_byte(writer, raw.first(1), raw.size() - 1 - kLastLiterals);
  writer.literals(raw.last(kLastLiterals), 0);
  if (writer.used() >= raw.size() || writer.used() > output.size()) return std::nullopt;
  return static_cast<uint32_t>(writer.used());
}

}  // namespace ptxkit::codec
