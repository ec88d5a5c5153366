#include "runtime/codec/format/zstd_frame.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/codec/format/field_reader.hpp"
#include "runtime/codec/format/little_endian.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "support/check.hpp"

namespace ptxkit::format {
namespace {

constexpr uint32_t kSeekTableMagic = 0x184D2A5E, kSeekFooterMagic = 0x8F92EAB1;
constexpr size_t kSkippableHeaderBytes = 8, kSeekFooterBytes = 9;
constexpr uint8_t kSeekChecksumFlag = 1u << 7, kSeekReservedBits = 0x7c;

// Bits of the frame header's descriptor.
constexpr uint8_t kSingleSegment = 1u << 5, kReservedBit = 1u << 3, kChecksumFlag = 1u << 2;

enum class BlockKind : uint8_t { raw, rle, compressed, reserved };

struct BlockHeader {
  bool is_last;
  BlockKind kind;
  uint32_t size_bytes;  // raw or compressed bytes; of rle how often its byte is repeated
  uint32_t payload_bytes() const { return kind == BlockKind::rle ? 1 : size_bytes; }
};

BlockHeader read_block_header(Bytes bytes) {
  const uint32_t word = bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16;
  return {(word & 1) != 0, static_cast<BlockKind>(word >> 1 & 3), word >> 3};
}

// The bytes of a header that begins with this descriptor, magic number and descriptor included.
size_t header_bytes_of(uint8_t descriptor) {
  constexpr size_t kDictionaryBytes[] = {0, 1, 2, 4};
  const bool is_single = (descriptor & kSingleSegment) != 0;
  const size_t size_code = descriptor >> 6;
  const size_t size_bytes = size_code == 0 ? (is_single ? 1 : 0) : size_t{1} << size_code;
  return 5 + (is_single ? 0 : 1) + kDictionaryBytes[descriptor & 3] + size_bytes;
}

uint64_t load_bytes(Bytes bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << 8 * i;
  return value;
}

// `bytes` has header_bytes_of() bytes.
ZstdFrameHeader parse_header(Bytes bytes) {
  const uint8_t descriptor = bytes[4];
  const bool is_single = (descriptor & kSingleSegment) != 0;
  ZstdFrameHeader header{.has_checksum = (descriptor & kChecksumFlag) != 0, .header_bytes = bytes.size()};
  size_t at = 5;
  if (!is_single) {
    const uint64_t base = uint64_t{1} << (10 + (bytes[at] >> 3));
    header.window_bytes = base + base / 8 * (bytes[at] & 7);
    ++at;
  }
  constexpr size_t kDictionaryBytes[] = {0, 1, 2, 4};
  const size_t dictionary_bytes = kDictionaryBytes[descriptor & 3];
  header.dictionary_id = static_cast<uint32_t>(load_bytes(bytes.subspan(at, dictionary_bytes)));
  at += dictionary_bytes;
  if (const Bytes size = bytes.subspan(at); !size.empty())
    header.content_bytes = load_bytes(size) + (size.size() == 2 ? 256 : 0);
  if (is_single) header.window_bytes = *header.content_bytes;
  return header;
}

}  // namespace

std::optional<ZstdFrameHeader> parse_zstd_header(Bytes bytes) {
  if (bytes.size() < 5 || load_little_endian<uint32_t>(bytes) != kZstdMagic) return std::nullopt;
  const size_t header_bytes = header_bytes_of(bytes[4]);
  if (header_bytes > bytes.size()) return std::nullopt;
  return parse_header(bytes.first(header_bytes));
}

void append_zstd_header(unsigned window_bits, std::optional<uint64_t> content_bytes, bool has_checksum,
                        std::vector<uint8_t>& out) {
  const bool is_single = content_bytes && *content_bytes <= uint64_t{1} << window_bits;
  unsigned size_code = 0;
  if (content_bytes) {
    const uint64_t size = *content_bytes;
    size_code = size > UINT32_MAX ? 3 : size >= 65536 + 256 ? 2 : size >= 256 ? 1 : 0;
  }
  append_little_endian(kZstdMagic, out);
  out.push_back(
      static_cast<uint8_t>(size_code << 6 | (is_single ? kSingleSegment : 0) | (has_checksum ? kChecksumFlag : 0)));
  if (!is_single) out.push_back(static_cast<uint8_t>((window_bits - 10) << 3));
  if (!content_bytes) return;
  const size_t size_bytes = size_t{1} << size_code;
  const uint64_t value = *content_bytes - (size_code == 1 ? 256 : 0);
  // A size below 256 has a field in a single segment only, and every such content is one.
  for (size_t i = 0; i < size_bytes; ++i) out.push_back(static_cast<uint8_t>(value >> 8 * i));
}

void append_zstd_end(std::vector<uint8_t>& out) { out.insert(out.end(), {1, 0, 0}); }

void mark_last_zstd_block(MutableBytes blocks) {
  size_t at = 0, next = 0;
  while (next < blocks.size()) {
    at = next;
    next += kZstdBlockHeaderBytes + read_block_header(Bytes(blocks).subspan(at)).payload_bytes();
  }
  PTXKIT_CHECK(next == blocks.size() && next != 0, "the encoder gives whole blocks");
  blocks[at] |= 1;
}

bool unmark_last_zstd_block(MutableBytes blocks) {
  for (size_t at = 0; blocks.size() - at >= kZstdBlockHeaderBytes;) {
    const bool is_last = (blocks[at] & 1) != 0;
    const size_t end = at + kZstdBlockHeaderBytes + read_block_header(Bytes(blocks).subspan(at)).payload_bytes();
    if (is_last) blocks[at] &= 0xFE;
    if (is_last || end > blocks.size()) return is_last && end == blocks.size();
    at = end;
  }
  return false;
}

uint64_t count_zstd_blocks(Bytes blocks) {
  uint64_t count = 0;
  for (size_t at = 0; at < blocks.size(); ++count)
    at += kZstdBlockHeaderBytes + read_block_header(blocks.subspan(at)).payload_bytes();
  return count;
}

tl::unexpected<Error> ZstdFrameReader::broken(std::string what, uint64_t offset, std::string todo) const {
  return fail(std::move(what),
              frame_position(fields_.name(), frame_index_,
                             at_ == At::between ? std::nullopt : std::optional(block_index_), offset),
              std::move(todo));
}

Result<void> ZstdFrameReader::append(size_t count, const char* what, std::vector<uint8_t>& bytes) {
  const uint64_t begin = fields_.offset();
  const auto got = fields_.append(count, bytes);
  if (!got) return tl::unexpected(got.error());
  if (*got < count)
    return broken(fmt::format("truncated: expected {} bytes of {}, found {}", count, what, *got), begin);
  return {};
}

Result<ZstdEvent> ZstdFrameReader::next(std::vector<uint8_t>& bytes) {
  switch (at_) {
    case At::between:
      return begin_frame(bytes);
    case At::in_frame:
      return read_block(bytes);
    case At::after_blocks:
      return end_frame(bytes);
  }
  PTXKIT_CHECK(false, "the reader is in one of three places");
}

Result<ZstdEvent> ZstdFrameReader::begin_frame(std::vector<uint8_t>& bytes) {
  const uint64_t begin = fields_.offset();
  const auto first = fields_.peek(kZstdMostHeaderBytes);
  if (!first) return tl::unexpected(first.error());
  if (first->empty() && frame_index_ != 0) return ZstdEndOfInput{};
  if (first->size() < 4) {
    return broken(fmt::format("truncated: expected 4 bytes of a frame's magic number, found {}", first->size()), begin);
  }
  const auto magic = load_little_endian<uint32_t>(*first);
  if (is_skippable(magic)) return skip_frame(*first);
  if (magic != kZstdMagic) {
    return broken(
        fmt::format("not a Zstandard frame: expected the magic number {:#010x}, found {:#010x}", kZstdMagic, magic),
        begin, frame_index_ == 0 ? "" : "remove what follows the last frame");
  }
  const size_t header_bytes = first->size() < 5 ? 5 : header_bytes_of((*first)[4]);
  if (first->size() < header_bytes) {
    return broken(
        fmt::format("truncated: expected {} bytes of a frame's header, found {}", header_bytes, first->size()), begin);
  }
  const uint8_t descriptor = (*first)[4];
  if ((descriptor & kReservedBit) != 0) {
    return broken(fmt::format("a reserved bit of the frame's header is set: {:#04x}", descriptor), begin + 4);
  }
  header_ = parse_header(first->first(header_bytes));
  if (header_.dictionary_id != 0) {
    return broken(fmt::format("the frame needs the dictionary {:#x}", header_.dictionary_id), begin,
                  "decompress it with `zstd -D DICTIONARY`: dictionaries are not supported");
  }
  if (header_.window_bytes > kZstdLargestWindowBytes) {
    return broken(
        fmt::format("a window of {} bytes, expected at most {}", header_.window_bytes, kZstdLargestWindowBytes), begin,
        "decompress it with `zstd --long=31`");
  }
  bytes.insert(bytes.end(), first->begin(), first->begin() + static_cast<ptrdiff_t>(header_bytes));
  fields_.skip(header_bytes);
  at_ = At::in_frame;
  block_index_ = 0;
  return ZstdFrameBegin{header_, frame_index_, begin};
}

Result<ZstdEvent> ZstdFrameReader::skip_frame(Bytes first) {
  const uint64_t begin = fields_.offset();
  if (first.size() < kSkippableHeaderBytes) {
    return broken(fmt::format("truncated: expected 8 bytes of a skippable frame's header, found {}", first.size()),
                  begin);
  }
  const auto content_bytes = load_little_endian<uint32_t>(first.subspan(4));
  fields_.skip(kSkippableHeaderBytes);
  const auto skipped = fields_.discard(content_bytes);
  if (!skipped) return tl::unexpected(skipped.error());
  if (*skipped < content_bytes) {
    return broken(fmt::format("truncated: expected {} bytes of a skippable frame, found {}", content_bytes, *skipped),
                  begin);
  }
  ++frame_index_;
  return ZstdSkipped{begin, content_bytes};
}

Result<ZstdEvent> ZstdFrameReader::read_block(std::vector<uint8_t>& bytes) {
  const uint64_t begin = fields_.offset();
  const auto first = fields_.peek(kZstdBlockHeaderBytes);
  if (!first) return tl::unexpected(first.error());
  if (first->size() < kZstdBlockHeaderBytes) {
    return broken(fmt::format("truncated: expected 3 bytes of a block's header, found {}", first->size()), begin);
  }
  const BlockHeader block = read_block_header(*first);
  if (block.kind == BlockKind::reserved) return broken("a block of the reserved kind 3", begin);
  if (block.kind == BlockKind::compressed && block.size_bytes == 0) {
    return broken("a compressed block of 0 bytes", begin);
  }
  if (block.size_bytes > header_.block_bytes()) {
    return broken(fmt::format("a block of {} bytes, expected at most {}", block.size_bytes, header_.block_bytes()),
                  begin);
  }
  bytes.insert(bytes.end(), first->begin(), first->begin() + kZstdBlockHeaderBytes);
  fields_.skip(kZstdBlockHeaderBytes);
  if (auto got = append(block.payload_bytes(), "a block", bytes); !got) return tl::unexpected(got.error());
  const ZstdBlock event{block_index_, begin, kZstdBlockHeaderBytes + block.payload_bytes(),
                        block.kind == BlockKind::compressed ? header_.block_bytes() : block.size_bytes, block.is_last};
  if (block.is_last) {
    at_ = At::after_blocks;
  } else {
    ++block_index_;
  }
  return event;
}

Result<ZstdEvent> ZstdFrameReader::end_frame(std::vector<uint8_t>& bytes) {
  const uint64_t begin = fields_.offset();
  if (header_.has_checksum) {
    if (auto got = append(kZstdChecksumBytes, "the content's checksum", bytes); !got)
      return tl::unexpected(got.error());
  }
  at_ = At::between;
  ++frame_index_;
  return ZstdFrameEnd{begin};
}

Result<ZstdExtent> measure_zstd_frame(const RandomAccess& file, uint64_t at, uint64_t frame_index) {
  const uint64_t file_bytes = file.size_bytes();
  uint64_t next = at, block_index = 0;
  const auto broken = [&](const std::string& what, bool is_in_block) {
    return fail(
        what, frame_position(file.name(), frame_index, is_in_block ? std::optional(block_index) : std::nullopt, next));
  };
  uint8_t bytes[kZstdMostHeaderBytes];
  const auto first = MutableBytes(bytes).first(std::min<uint64_t>(sizeof bytes, file_bytes - std::min(at, file_bytes)));
  if (auto read = file.read_at(at, first); !read) return tl::unexpected(read.error());
  if (first.size() >= kSkippableHeaderBytes && is_skippable(load_little_endian<uint32_t>(first))) {
    const uint64_t stored_bytes = kSkippableHeaderBytes + load_little_endian<uint32_t>(Bytes(first).subspan(4));
    if (stored_bytes > file_bytes - at) return broken("truncated: a skippable frame ends behind the file", false);
    return ZstdExtent{stored_bytes, 0, true};
  }
  const auto header = parse_zstd_header(first);
  if (!header || (first[4] & kReservedBit) != 0) return broken("expected a Zstandard frame, found none", false);
  next += header->header_bytes;
  for (bool is_last = false; !is_last; ++block_index) {
    const auto begin = MutableBytes(bytes).first(kZstdBlockHeaderBytes);
    if (next > file_bytes || file_bytes - next < begin.size()) return broken("truncated: expected a block", true);
    if (auto read = file.read_at(next, begin); !read) return tl::unexpected(read.error());
    const BlockHeader block = read_block_header(begin);
    if (block.kind == BlockKind::reserved || block.size_bytes > header->block_bytes())
      return broken("expected a block, found none", true);
    next += begin.size() + block.payload_bytes();
    is_last = block.is_last;
  }
  if (header->has_checksum) next += kZstdChecksumBytes;
  if (next > file_bytes) return broken("truncated: the frame ends behind the file", false);
  return ZstdExtent{next - at, header->content_bytes, false};
}

void append_zstd_seek_table(const std::deque<ZstdSeekEntry>& entries, std::vector<uint8_t>& out) {
  append_little_endian(kSeekTableMagic, out);
  append_little_endian(static_cast<uint32_t>(entries.size() * kZstdSeekEntryBytes + kSeekFooterBytes), out);
  for (const ZstdSeekEntry& entry : entries) {
    append_little_endian(entry.stored_bytes, out);
    append_little_endian(entry.raw_bytes, out);
  }
  append_little_endian(static_cast<uint32_t>(entries.size()), out);
  out.push_back(0);  // no checksums: the frames have their own
  append_little_endian(kSeekFooterMagic, out);
}

Result<std::optional<std::vector<ZstdSeekEntry>>> read_zstd_seek_table(const RandomAccess& file) {
  const uint64_t file_bytes = file.size_bytes();
  uint8_t footer[kSeekFooterBytes];
  if (file_bytes < kSkippableHeaderBytes + kSeekFooterBytes) return std::nullopt;
  if (auto read = file.read_at(file_bytes - kSeekFooterBytes, footer); !read) return tl::unexpected(read.error());
  if (load_little_endian<uint32_t>(Bytes(footer).subspan(5)) != kSeekFooterMagic) return std::nullopt;
  const auto damaged = [&](const std::string& what) {
    return fail("the seek table is damaged: " + what, file.name(), "decompress the whole file, which needs no table");
  };
  const uint8_t flags = footer[4];
  if ((flags & kSeekReservedBits) != 0) return damaged(fmt::format("reserved bits are set: {:#04x}", flags));
  const uint64_t count = load_little_endian<uint32_t>(footer);
  const size_t entry_bytes = kZstdSeekEntryBytes + ((flags & kSeekChecksumFlag) != 0 ? 4 : 0);
  const uint64_t table_bytes = kSkippableHeaderBytes + count * entry_bytes + kSeekFooterBytes;
  if (count > kZstdMostSeekEntries || table_bytes > file_bytes)
    return damaged(fmt::format("{} entries do not fit a file of {} bytes", count, file_bytes));
  std::vector<uint8_t> bytes(static_cast<size_t>(table_bytes));
  if (auto read = file.read_at(file_bytes - table_bytes, bytes); !read) return tl::unexpected(read.error());
  if (load_little_endian<uint32_t>(bytes) != kSeekTableMagic ||
      load_little_endian<uint32_t>(Bytes(bytes).subspan(4)) != table_bytes - kSkippableHeaderBytes) {
    return damaged("it does not begin as a skippable frame of its length");
  }
  std::vector<ZstdSeekEntry> entries;
  entries.reserve(static_cast<size_t>(count));
  uint64_t frames_bytes = 0;
  for (size_t at = kSkippableHeaderBytes; entries.size() < count; at += entry_bytes) {
    entries.push_back({load_little_endian<uint32_t>(Bytes(bytes).subspan(at)),
                       load_little_endian<uint32_t>(Bytes(bytes).subspan(at + 4))});
    if (entries.back().stored_bytes == 0) return damaged(fmt::format("frame {} has 0 bytes", entries.size() - 1));
    frames_bytes += entries.back().stored_bytes;
  }
  if (frames_bytes != file_bytes - table_bytes) {
    return damaged(fmt::format("its frames have {} bytes, the file has {} before the table", frames_bytes,
                               file_bytes - table_bytes));
  }
  return entries;
}

}  // namespace ptxkit::format
