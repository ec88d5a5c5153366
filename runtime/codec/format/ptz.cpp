#include "runtime/codec/format/ptz.hpp"

#include <algorithm>
#include <array>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace ptxkit::format {
namespace {

using ByteVector = std::vector<uint8_t>;

template <class T>
void append(ByteVector& to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}
template <class T>
T number_at(Bytes from, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from[at + i]) << 8 * i);
  return value;
}

PtzEntry entry_of(const PtzBlock& block) {
  ByteVector bytes;
  append(bytes, block.raw_bytes);
  append(bytes, block.stored_bytes | (block.is_raw ? kPtzStoredRaw : 0));
  append(bytes, block.checksum);
  PtzEntry entry;
  std::copy(bytes.begin(), bytes.end(), entry.begin());
  return entry;
}
// The bytes after the table.
ByteVector footer_of(uint64_t block_count, uint64_t raw_bytes, const PtzChecksum& table) {
  ByteVector bytes;
  append(bytes, block_count);
  append(bytes, raw_bytes);
  append(bytes, table.value());
  append(bytes, uint32_t{0});
  append(bytes, kPtzEndMagic);
  return bytes;
}
PtzBlock block_at(Bytes from, size_t at) {
  const auto stored = number_at<uint32_t>(from, at + 4);
  return {number_at<uint32_t>(from, at), stored & ~kPtzStoredRaw, (stored & kPtzStoredRaw) != 0,
          number_at<uint64_t>(from, at + 8)};
}

// Parses a header. Returns what is wrong with it, or an empty string.
std::string read_header(Bytes from, PtzHeader& header) {
  if (const auto magic = number_at<uint32_t>(from, 0); magic != kPtzMagic) {
    return fmt::format("not a .ptz file: expected its magic number 0x{:08x}, found 0x{:08x}", kPtzMagic, magic);
  }
  if (number_at<uint64_t>(from, 8) != ptz_checksum(from.first(8))) return "the header's checksum is wrong";
  if (from[4] != kPtzVersion) return "expected version 1, found " + std::to_string(from[4]);
  if (find_ptz_codec(from[5]) == nullptr) return "unknown codec " + std::to_string(from[5]);
  if (from[6] < kPtzMinBlockBits || from[6] > kPtzMaxBlockBits) {
    return "expected a block size of 2^12 to 2^20, found 2^" + std::to_string(from[6]);
  }
  const auto coding = read_ptz_coding(from[5], from[7]);
  if (!coding) return fmt::format("codec {} has no options 0x{:02x}", from[5], from[7]);
  header = {*coding, from[6]};
  return {};
}

constexpr size_t kTablePieceBytes = size_t{4096} * kPtzBlockHeaderBytes;  // of the table, read or written at a time

// What is wrong with a block header, or an empty string.
std::string check_block(const PtzBlock& block, const PtzHeader& header) {
  if (block.raw_bytes == 0 || block.raw_bytes > 1u << header.block_bits) return "the raw size is out of range";
  const bool fits = block.is_raw ? block.stored_bytes == block.raw_bytes : block.stored_bytes < block.raw_bytes;
  return fits ? "" : "the stored size is out of range";
}

// Only the last block may be short, because readers compute raw offsets as block number times block size.
constexpr const char* kBehindShort =
    "it comes after a block that is shorter than the others, which only the last may be";

}  // namespace

uint64_t ptz_checksum(Bytes bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

PtzChecksum::PtzChecksum() : state_(XXH64_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH64_reset(static_cast<XXH64_state_t*>(state_), 0);
}
PtzChecksum::~PtzChecksum() { XXH64_freeState(static_cast<XXH64_state_t*>(state_)); }
void PtzChecksum::reset() { XXH64_reset(static_cast<XXH64_state_t*>(state_), 0); }
void PtzChecksum::update(Bytes bytes) {
  if (!bytes.empty()) XXH64_update(static_cast<XXH64_state_t*>(state_), bytes.data(), bytes.size());
}
uint64_t PtzChecksum::value() const { return XXH64_digest(static_cast<const XXH64_state_t*>(state_)); }

Result<void> PtzWriter::put(Bytes bytes) {
  written_bytes_ += bytes.size();
  return sink_.write(bytes);
}

Result<void> PtzWriter::begin() {
  ByteVector bytes;
  append(bytes, kPtzMagic);
  for (const unsigned byte : {unsigned{kPtzVersion}, static_cast<unsigned>(header_.coding.codec), header_.block_bits,
                              unsigned{option_byte(header_.coding)}})
    bytes.push_back(static_cast<uint8_t>(byte));
  append(bytes, ptz_checksum(bytes));
  return put(bytes);
}

Result<void> PtzWriter::note(const PtzBlock& block) {
  if ((table_.size() + 1) * kPtzBlockHeaderBytes > table_limit_bytes_) {
    return fail(fmt::format("the table of blocks has room for {} bytes, and after {} bytes of input it is full",
                            table_limit_bytes_, raw_bytes_),
                {}, "raise the memory budget");
  }
  table_.push_back(entry_of(block));
  raw_bytes_ += block.raw_bytes;
  return {};
}

Result<void> PtzWriter::write(const PtzBlock& block, Bytes stored) {
  if (auto done = note(block); !done) return done;
  if (auto done = put(table_.back()); !done) return done;
  return put(stored);
}

Result<void> PtzWriter::finish() {
  if (auto done = put(PtzEntry{}); !done) return done;  // a block header of zeros ends the blocks
  PtzChecksum checksum;
  ByteVector piece;
  for (size_t i = 0; i < table_.size(); ++i) {
    checksum.update(table_[i]);
    piece.insert(piece.end(), table_[i].begin(), table_[i].end());
    if (piece.size() < kTablePieceBytes && i + 1 != table_.size()) continue;
    if (auto done = put(piece); !done) return done;
    piece.clear();
  }
  return put(footer_of(table_.size(), raw_bytes_, checksum));
}

tl::unexpected<Error> PtzReader::fail_at(uint64_t at, const std::string& what) const {
  return fail(what, source_.name() + ", byte " + std::to_string(at));
}

std::string PtzReader::block_name() const { return "block " + std::to_string(block_count_) + ": "; }

Result<void> PtzReader::get(MutableBytes into, const std::string& what) {
  const auto got = source_.read(into);
  if (!got) return tl::unexpected(got.error());
  if (*got != into.size()) {
    return fail_at(at_, "truncated: expected " + std::to_string(into.size()) + " bytes of " + what + ", found " +
                            std::to_string(*got));
  }
  at_ += *got;
  return {};
}

Result<PtzHeader> PtzReader::begin() {
  std::array<uint8_t, kPtzHeaderBytes> bytes{};
  if (auto done = get(bytes, "the header"); !done) return tl::unexpected(done.error());
  if (const std::string wrong = read_header(bytes, header_); !wrong.empty()) return fail_at(0, wrong);
  return header_;
}

Result<std::optional<PtzBlock>> PtzReader::next(std::vector<uint8_t>& stored) {
  PtzEntry bytes{};
  const uint64_t at = at_;
  if (auto done = get(bytes, "a block header"); !done) return tl::unexpected(done.error());
  if (std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; })) {
    if (auto done = check_end(); !done) return tl::unexpected(done.error());
    return std::optional<PtzBlock>();
  }
  const PtzBlock block = block_at(bytes, 0);
  if (const std::string wrong = check_block(block, header_); !wrong.empty()) return fail_at(at, block_name() + wrong);
  if (has_short_block_) return fail_at(at, block_name() + kBehindShort);
  has_short_block_ = block.raw_bytes != 1u << header_.block_bits;
  stored.resize(block.stored_bytes);
  if (auto done = get(stored, block_name() + "data"); !done) return tl::unexpected(done.error());
  table_.update(bytes);
  raw_bytes_ += block.raw_bytes;
  ++block_count_;
  return std::optional(block);
}

Result<void> PtzReader::check_end() {
  const uint64_t at = at_, table_bytes = block_count_ * kPtzBlockHeaderBytes;
  PtzChecksum found_table;
  for (uint64_t done_bytes = 0; done_bytes < table_bytes;) {
    ByteVector piece(std::min<uint64_t>(kTablePieceBytes, table_bytes - done_bytes));
    if (auto done = get(piece, "the block table"); !done) return done;
    found_table.update(piece);
    done_bytes += piece.size();
  }
  ByteVector footer(kPtzFooterBytes);
  if (auto done = get(footer, "the block table"); !done) return done;
  if (found_table.value() != table_.value() || footer != footer_of(block_count_, raw_bytes_, table_)) {
    return fail_at(at, "the block table does not say what the blocks say");
  }
  uint8_t more = 0;
  const auto got = source_.read({&more, 1});
  if (!got) return tl::unexpected(got.error());
  if (*got != 0) return fail_at(at_, "there are bytes behind the end");
  return {};
}

Result<PtzArchive> PtzArchive::open(const RandomAccess& file) {
  PtzArchive archive(file);
  const std::string& name = file.name();
  constexpr size_t kLeast = kPtzHeaderBytes + kPtzBlockHeaderBytes + kPtzFooterBytes;
  if (file.size_bytes() < kLeast) return fail("truncated: too short for a .ptz file", name);
  std::array<uint8_t, kPtzHeaderBytes> header{};
  if (auto done = file.read_at(0, header); !done) return tl::unexpected(done.error());
  if (const std::string wrong = read_header(header, archive.header_); !wrong.empty())
    return fail(wrong, name + ", byte 0");
  const uint64_t footer_at = file.size_bytes() - kPtzFooterBytes;
  std::array<uint8_t, kPtzFooterBytes> footer{};
  if (auto done = file.read_at(footer_at, footer); !done) return tl::unexpected(done.error());
  if (number_at<uint32_t>(footer, 28) != kPtzEndMagic) {
    return fail("truncated: the file does not end with a block table", name, "read it in order instead");
  }
  if (number_at<uint32_t>(footer, 24) != 0) return fail("a reserved field of the footer is not 0", name);
  const auto count = number_at<uint64_t>(footer, 0);
  if (count > (file.size_bytes() - kLeast) / kPtzBlockHeaderBytes)
    return fail("the block table is larger than the file", name);
  const uint64_t table_at = footer_at - count * kPtzBlockHeaderBytes;
  PtzChecksum checksum;
  for (uint64_t at = table_at; at < footer_at;) {
    ByteVector piece(std::min<uint64_t>(kTablePieceBytes, footer_at - at));
    if (auto done = file.read_at(at, piece); !done) return tl::unexpected(done.error());
    checksum.update(piece);
    for (size_t entry = 0; entry < piece.size(); entry += kPtzBlockHeaderBytes) {
      archive.blocks_.push_back(block_at(piece, entry));
    }
    at += piece.size();
  }
  if (number_at<uint64_t>(footer, 16) != checksum.value()) {
    return fail("the block table's checksum is wrong", name, "read it in order instead");
  }
  uint64_t at = kPtzHeaderBytes, raw_bytes = 0;
  for (const PtzBlock& block : archive.blocks_) {
    const auto wrong_block = [&](const std::string& what) {
      return fail("block " + std::to_string(archive.offsets_.size()) + ": " + what, name);
    };
    at += kPtzBlockHeaderBytes;
    if (const std::string wrong = check_block(block, archive.header_);
        !wrong.empty() || at > table_at || block.stored_bytes > table_at - at) {
      return wrong_block("the table's entry does not fit the file");
    }
    if (raw_bytes % (1u << archive.header_.block_bits) != 0) return wrong_block(kBehindShort);
    archive.offsets_.push_back(at);
    at += block.stored_bytes;
    raw_bytes += block.raw_bytes;
  }
  if (at + kPtzBlockHeaderBytes != table_at) return fail("the table's entries do not fill the file", name);
  PtzEntry end{};
  if (auto done = file.read_at(at, end); !done) return tl::unexpected(done.error());
  if (end != PtzEntry{}) return fail("the blocks do not end with zeros", name);
  if (number_at<uint64_t>(footer, 8) != raw_bytes) {
    return fail("the table's entries are not of as many bytes as its end says", name);
  }
  return archive;
}

Result<ByteVector> PtzArchive::stored(size_t i) const {
  PtzEntry header{};
  if (auto done = file_->read_at(offsets_[i] - header.size(), header); !done) return tl::unexpected(done.error());
  if (header != entry_of(blocks_[i])) {
    return fail("block " + std::to_string(i) + ": the block table does not say what the block says", file_->name());
  }
  ByteVector bytes(blocks_[i].stored_bytes);
  if (auto done = file_->read_at(offsets_[i], bytes); !done) return tl::unexpected(done.error());
  return bytes;
}

}  // namespace ptxkit::format
