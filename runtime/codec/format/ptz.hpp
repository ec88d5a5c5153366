// The container `.ptz`: independently coded blocks, followed by a table of them. docs/format.md is its specification.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::format {

inline constexpr uint32_t kPtzMagic = 0x1a5a5450;     // "PTZ" and Control-Z
inline constexpr uint32_t kPtzEndMagic = 0x455a5450;  // "PTZE"
inline constexpr uint8_t kPtzVersion = 1;
inline constexpr size_t kPtzHeaderBytes = 16;
inline constexpr size_t kPtzBlockHeaderBytes = 16;
inline constexpr size_t kPtzFooterBytes = 32;
inline constexpr unsigned kPtzMinBlockBits = 12, kPtzMaxBlockBits = 20;
inline constexpr uint32_t kPtzStoredRaw = 1u << 31;  // flag in a stored size

struct PtzHeader {
  PtzCoding coding;
  unsigned block_bits = 18;  // log2 of the size of every block but the last
};

struct PtzBlock {
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;
  bool is_raw = false;    // the stored bytes are the raw bytes
  uint64_t checksum = 0;  // XXH64, seed 0, of the raw bytes
};

uint64_t ptz_checksum(Bytes bytes);

// Incremental form of ptz_checksum().
class PtzChecksum {
 public:
  PtzChecksum();
  ~PtzChecksum();
  PtzChecksum(const PtzChecksum&) = delete;
  PtzChecksum& operator=(const PtzChecksum&) = delete;
  void reset();
  void update(Bytes bytes);
  uint64_t value() const;

 private:
  void* state_;  // XXH64_state_t: keeps xxhash.h out of this header
};

using PtzEntry = std::array<uint8_t, kPtzBlockHeaderBytes>;  // a block header; the table repeats it

// Writes a container: begin(), write() for each block, finish(). Keeps the table until the end, 16 bytes for each
// block, and refuses a block that would make it longer than `table_limit_bytes`.
class PtzWriter {
 public:
  PtzWriter(ByteSink& sink, const PtzHeader& header, uint64_t table_limit_bytes = std::numeric_limits<uint64_t>::max())
      : sink_(sink), header_(header), table_limit_bytes_(table_limit_bytes) {}
  Result<void> begin();
  Result<void> write(const PtzBlock& block, Bytes stored);
  // Enters into the table a block that is written into the file by other means.
  Result<void> note(const PtzBlock& block);
  Result<void> finish();  // writes the table
  uint64_t written_bytes() const { return written_bytes_; }

 private:
  Result<void> put(Bytes bytes);

  ByteSink& sink_;
  PtzHeader header_;
  uint64_t table_limit_bytes_;
  std::deque<PtzEntry> table_;  // not a vector: one that grows needs twice the memory
  uint64_t raw_bytes_ = 0, written_bytes_ = 0;
};

// Reads a container sequentially. Of the table it keeps only the checksum.
class PtzReader {
 public:
  explicit PtzReader(ByteSource& source) : source_(source) {}
  Result<PtzHeader> begin();
  // Reads the next block header into the result and the stored bytes into `stored`. Nothing after the last block, once
  // the table has been compared with the blocks.
  Result<std::optional<PtzBlock>> next(std::vector<uint8_t>& stored);
  uint64_t read_bytes() const { return at_; }

 private:
  Result<void> get(MutableBytes into, const std::string& what);
  Result<void> check_end();
  tl::unexpected<Error> fail_at(uint64_t at, const std::string& what) const;
  std::string block_name() const;

  ByteSource& source_;
  PtzHeader header_;
  PtzChecksum table_;
  uint64_t at_ = 0, raw_bytes_ = 0, block_count_ = 0;
  bool has_short_block_ = false;  // only the last block may be short
};

// Random access to the blocks of a container through its table, even if other blocks are damaged. Reads header and
// table in open(), and later only the blocks asked for. The file must outlive it.
class PtzArchive {
 public:
  static Result<PtzArchive> open(const RandomAccess& file);
  const std::string& name() const { return file_->name(); }
  const PtzHeader& header() const { return header_; }
  size_t block_count() const { return blocks_.size(); }
  const PtzBlock& block(size_t i) const { return blocks_[i]; }
  // The offset of the block's stored bytes in the file.
  uint64_t offset(size_t i) const { return offsets_[i]; }
  // Reads the block's stored bytes. Fails if its header in the file differs from its entry in the table.
  Result<std::vector<uint8_t>> stored(size_t i) const;

 private:
  explicit PtzArchive(const RandomAccess& file) : file_(&file) {}

  const RandomAccess* file_;
  PtzHeader header_;
  std::vector<PtzBlock> blocks_;
  std::vector<uint64_t> offsets_;
};

}  // namespace ptxkit::format
