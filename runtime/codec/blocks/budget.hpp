// Where the bytes of a compressed file go: literals, lengths, offsets, tables.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::codec {

enum class Part : uint8_t {
  literals,
  lengths,  // of LZ4: tokens, which hold lengths of literals and of matches, and the bytes that continue them
  offsets,
  flags,      // literal or match
  rows,       // of the Burrows-Wheeler transform
  column,     // of the same, as coded zero runs
  planes,     // of numbers: coded planes of bytes
  tables,     // of entropy coders: frequencies or code lengths, sizes, states
  stored,     // blocks that did not shrink, planes of numbers that are copied
  container,  // headers, checksums, sizes, block table
};
inline constexpr size_t kParts = 10;
std::string_view name_of(Part part);

struct Budget {
  std::array<uint64_t, kParts> bytes{};

  uint64_t& operator[](Part part) { return bytes[static_cast<size_t>(part)]; }
  uint64_t total_bytes() const;
};

// Adds the bytes of a coded block of `raw_bytes`. False if the block is damaged; then the budget is unspecified. What
// the streams hold is not decoded.
bool add_lz4_block(format::Bytes block, Budget& budget);
bool add_ptz_block(const format::PtzCoding& coding, format::Bytes block, size_t raw_bytes, Budget& budget);

}  // namespace ptxkit::codec
