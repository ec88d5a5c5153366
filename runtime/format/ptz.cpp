#include "runtime/format/ptz.hpp"

#include <algorithm>
#include <array>

#include <xxhash.h>

namespace ptxkit::format {
namespace {

using ByteVector = std::vector<std::uint8_t>;

template <class T>
void append(ByteVector& to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}
template <class T>
T number_at(Bytes from, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from[at + i]) << 8 * i);
  return value;
}

void append(ByteVector& to, const PtzBlock& block) {
  append(to, block.raw_bytes);
  append(to, block.stored_bytes | (block.is_raw ? kPtzStoredRaw : 0));
  append(to, block.checksum);
}
PtzBlock block_at(Bytes from, std::size_t at) {
  const auto stored = number_at<std::uint32_t>(from, at + 4);
  return {number_at<std::uint32_t>(from, at), stored & ~kPtzStoredRaw, (stored & kPtzStoredRaw) != 0,
          number_at<std::uint64_t>(from, at + 8)};
}

// Why a header is none, or nothing.
std::string read_header(Bytes from, PtzHeader& header) {
  if (number_at<std::uint32_t>(from, 0) != kPtzMagic) return "not a .ptz file: expected its magic number";
  if (number_at<std::uint64_t>(from, 8) != ptz_checksum(from.first(8))) return "the header's checksum is wrong";
  if (from[4] != kPtzVersion) return "expected version 1, found " + std::to_string(from[4]);
  if (from[5] < 1 || from[5] > static_cast<int>(PtzCodec::bbw)) return "unknown codec " + std::to_string(from[5]);
  if (from[6] < kPtzMinBlockBits || from[6] > kPtzMaxBlockBits) {
    return "expected a block size of 2^12 to 2^20, found 2^" + std::to_string(from[6]);
  }
  if (from[7] != 0) return "a reserved byte is not 0";
  header = {static_cast<PtzCodec>(from[5]), from[6]};
  return {};
}

// Why a block cannot be, or nothing.
std::string check_block(const PtzBlock& block, const PtzHeader& header) {
  if (block.raw_bytes == 0 || block.raw_bytes > 1u << header.block_bits) return "the raw size is out of range";
  const bool fits = block.is_raw ? block.stored_bytes == block.raw_bytes : block.stored_bytes < block.raw_bytes;
  return fits ? "" : "the stored size is out of range";
}

}  // namespace

std::uint64_t ptz_checksum(Bytes bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

Result<void> PtzWriter::put(Bytes bytes) {
  written_bytes_ += bytes.size();
  return sink_.write(bytes);
}

Result<void> PtzWriter::begin() {
  ByteVector bytes;
  append(bytes, kPtzMagic);
  for (const unsigned byte : {unsigned{kPtzVersion}, static_cast<unsigned>(header_.codec), header_.block_bits, 0u})
    bytes.push_back(static_cast<std::uint8_t>(byte));
  append(bytes, ptz_checksum(bytes));
  return put(bytes);
}

Result<void> PtzWriter::write(const PtzBlock& block, Bytes stored) {
  ByteVector bytes;
  append(bytes, block);
  table_.insert(table_.end(), bytes.begin(), bytes.end());
  raw_bytes_ += block.raw_bytes;
  if (auto done = put(bytes); !done) return done;
  return put(stored);
}

Result<void> PtzWriter::finish() {
  ByteVector bytes(kPtzBlockHeaderBytes);  // a block of nothing ends the blocks
  bytes.insert(bytes.end(), table_.begin(), table_.end());
  const std::uint64_t count = table_.size() / kPtzBlockHeaderBytes;
  append(bytes, count);
  append(bytes, raw_bytes_);
  append(bytes, ptz_checksum(table_));
  append(bytes, std::uint32_t{0});
  append(bytes, kPtzEndMagic);
  return put(bytes);
}

tl::unexpected<Error> PtzReader::fail_at(std::uint64_t at, const std::string& what) const {
  return fail(what, source_.name() + ", byte " + std::to_string(at));
}

std::string PtzReader::block_name() const {
  return "block " + std::to_string(table_.size() / kPtzBlockHeaderBytes) + ": ";
}

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
  std::array<std::uint8_t, kPtzHeaderBytes> bytes{};
  if (auto done = get(bytes, "the header"); !done) return tl::unexpected(done.error());
  if (const std::string wrong = read_header(bytes, header_); !wrong.empty()) return fail_at(0, wrong);
  return header_;
}

Result<std::optional<PtzBlock>> PtzReader::next(std::vector<std::uint8_t>& stored) {
  std::array<std::uint8_t, kPtzBlockHeaderBytes> bytes{};
  const std::uint64_t at = at_;
  if (auto done = get(bytes, "a block header"); !done) return tl::unexpected(done.error());
  if (std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; })) {
    if (auto done = check_end(); !done) return tl::unexpected(done.error());
    return std::optional<PtzBlock>();
  }
  const PtzBlock block = block_at(bytes, 0);
  if (const std::string wrong = check_block(block, header_); !wrong.empty()) return fail_at(at, block_name() + wrong);
  stored.resize(block.stored_bytes);
  if (auto done = get(stored, block_name() + "data"); !done) return tl::unexpected(done.error());
  table_.insert(table_.end(), bytes.begin(), bytes.end());
  raw_bytes_ += block.raw_bytes;
  return std::optional(block);
}

Result<void> PtzReader::check_end() {
  ByteVector expected = table_;
  append(expected, std::uint64_t{table_.size() / kPtzBlockHeaderBytes});
  append(expected, raw_bytes_);
  append(expected, ptz_checksum(table_));
  append(expected, std::uint32_t{0});
  append(expected, kPtzEndMagic);
  ByteVector found(expected.size());
  const std::uint64_t at = at_;
  if (auto done = get(found, "the block table"); !done) return done;
  if (found != expected) return fail_at(at, "the block table does not say what the blocks say");
  std::uint8_t more = 0;
  const auto got = source_.read({&more, 1});
  if (!got) return tl::unexpected(got.error());
  if (*got != 0) return fail_at(at_, "there are bytes behind the end");
  return {};
}

Result<PtzArchive> PtzArchive::open(Bytes file, const std::string& name) {
  PtzArchive archive;
  archive.file_ = file;
  constexpr std::size_t kLeast = kPtzHeaderBytes + kPtzBlockHeaderBytes + kPtzFooterBytes;
  if (file.size() < kLeast) return fail("truncated: too short for a .ptz file", name);
  if (const std::string wrong = read_header(file, archive.header_); !wrong.empty())
    return fail(wrong, name + ", byte 0");
  const std::size_t footer = file.size() - kPtzFooterBytes;
  if (number_at<std::uint32_t>(file, footer + 28) != kPtzEndMagic) {
    return fail("truncated: the file does not end with a block table", name, "read it in order instead");
  }
  const auto count = number_at<std::uint64_t>(file, footer);
  if (count > (file.size() - kLeast) / kPtzBlockHeaderBytes)
    return fail("the block table is larger than the file", name);
  const std::size_t table = footer - count * kPtzBlockHeaderBytes;
  if (number_at<std::uint64_t>(file, footer + 16) != ptz_checksum(file.subspan(table, footer - table))) {
    return fail("the block table's checksum is wrong", name, "read it in order instead");
  }
  std::size_t at = kPtzHeaderBytes;
  for (std::size_t i = 0; i < count; ++i) {
    const PtzBlock block = block_at(file, table + i * kPtzBlockHeaderBytes);
    at += kPtzBlockHeaderBytes;
    if (const std::string wrong = check_block(block, archive.header_);
        !wrong.empty() || at > table || block.stored_bytes > table - at) {
      return fail("block " + std::to_string(i) + ": the table's entry does not fit the file", name);
    }
    archive.blocks_.push_back(block);
    archive.offsets_.push_back(at);
    at += block.stored_bytes;
  }
  return archive;
}

}  // namespace ptxkit::format
