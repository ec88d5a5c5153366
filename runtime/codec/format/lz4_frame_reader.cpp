// Reads LZ4 frames. Two points are not obvious from the format document:
//  - A payload is read in steps that start at 64 KiB and double, so a wrong size field in a truncated file does not
//    allocate much memory.
//  - A legacy frame has no end mark. It ends with the file, or where the next block size is a magic number; no legacy
//    block size equals one, because every magic number exceeds the bound of an 8 MiB block.
#include "runtime/codec/format/lz4_frame_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/codec/format/little_endian.hpp"

namespace ptxkit::format {
namespace {

constexpr size_t kReadStepBytes = 64 << 10;
constexpr size_t kReadAheadBytes = 16 << 10;

// Worst-case size of the LZ4 block of `raw_bytes` bytes, as in lz4.h.
constexpr uint32_t worst_block_bytes(uint32_t raw_bytes) { return raw_bytes + raw_bytes / 255 + 16; }

bool is_known_magic(uint32_t magic) { return magic == kFrameMagic || magic == kLegacyMagic || is_skippable(magic); }

}  // namespace

std::string frame_position(const std::string& file, uint64_t frame_index, std::optional<uint64_t> block_index,
                           uint64_t offset) {
  return block_index ? fmt::format("{}, frame {}, block {}, byte {}", file, frame_index, *block_index, offset)
                     : fmt::format("{}, frame {}, byte {}", file, frame_index, offset);
}

std::string FrameReader::position(uint64_t offset) const {
  return frame_position(source_.name(), frame_index_, in_frame_ ? std::optional(block_index_) : std::nullopt, offset);
}

tl::unexpected<Error> FrameReader::broken(std::string what, uint64_t offset, std::string todo) const {
  return fail(std::move(what), position(offset), std::move(todo));
}

Result<size_t> FrameReader::read_some(MutableBytes into) {
  size_t done = 0;
  const auto take = [&] {
    const size_t count = std::min(into.size() - done, ahead_end_ - ahead_begin_);
    std::copy_n(ahead_.begin() + static_cast<ptrdiff_t>(ahead_begin_), count,
                into.begin() + static_cast<ptrdiff_t>(done));
    ahead_begin_ += count;
    done += count;
  };
  take();
  if (const size_t left = into.size() - done; left >= kReadAheadBytes) {
    const auto count = source_.read(into.subspan(done));
    if (!count) return count;
    done += *count;
  } else if (left != 0) {
    ahead_.resize(kReadAheadBytes);
    ahead_begin_ = ahead_end_ = 0;
    const auto count = source_.read_some(ahead_, left);
    if (!count) return count;
    ahead_end_ = *count;
    take();
  }
  offset_ += done;
  return done;
}

Result<void> FrameReader::read_exactly(MutableBytes into, const char* what) {
  const uint64_t begin = offset_;
  const auto count = read_some(into);
  if (!count) return tl::unexpected(count.error());
  if (*count < into.size()) {
    return broken(fmt::format("truncated: expected {} bytes of {}, found {}", into.size(), what, *count), begin);
  }
  return {};
}

Bytes FrameReader::take_ahead(size_t count) {
  if (count > ahead_end_ - ahead_begin_) return {};
  const Bytes taken = Bytes(ahead_).subspan(ahead_begin_, count);
  ahead_begin_ += count;
  offset_ += count;
  return taken;
}

Result<uint32_t> FrameReader::read_u32(const char* what) {
  if (const Bytes ahead = take_ahead(4); !ahead.empty()) return load_little_endian<uint32_t>(ahead);
  uint8_t bytes[4];
  if (auto read = read_exactly(bytes, what); !read) return tl::unexpected(read.error());
  return load_little_endian<uint32_t>(bytes);
}

Result<FrameEvent> FrameReader::next(std::vector<uint8_t> reuse) {
  if (finished_) return EndOfInput{frame_index_};
  Result<FrameEvent> event = !in_frame_       ? begin_frame()
                             : header_.legacy ? read_legacy_block(std::move(reuse))
                                              : read_block(std::move(reuse));
  if (!event) finished_ = true;
  return event;
}

Result<FrameEvent> FrameReader::begin_frame() {
  const uint64_t frame_offset = pending_magic_ ? offset_ - 4 : offset_;
  uint32_t magic;
  if (pending_magic_) {
    magic = *pending_magic_;
    pending_magic_.reset();
  } else {
    uint8_t bytes[4];
    const auto count = read_some(bytes);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0 && frame_index_ != 0) {
      finished_ = true;
      return EndOfInput{frame_index_};
    }
    if (*count < 4) {
      return broken(fmt::format("truncated: expected 4 bytes of a frame's magic number, found {}", *count),
                    frame_offset);
    }
    magic = load_little_endian<uint32_t>(bytes);
  }
  if (is_skippable(magic)) return skip_frame(magic, frame_offset);
  if (magic == kFrameMagic) return begin_lz4_frame(frame_offset);
  if (magic != kLegacyMagic) {
    return broken(
        fmt::format("{}expected the magic number 0x{:08x} of an LZ4 frame, found 0x{:08x}",
                    frame_index_ == 0 ? "not an LZ4 file: " : "bytes after the last frame: ", kFrameMagic, magic),
        frame_offset);
  }
  header_ = FrameHeader{};
  header_.legacy = true;
  header_.content_checksum = false;
  in_frame_ = true;
  block_index_ = 0;
  return FrameBegin{header_, frame_index_, frame_offset};
}

Result<FrameEvent> FrameReader::begin_lz4_frame(uint64_t frame_offset) {
  uint8_t descriptor[15];  // flags, block descriptor, content size, dictionary id, checksum
  const uint64_t descriptor_offset = offset_;
  if (auto read = read_exactly(MutableBytes(descriptor, 2), "the frame header"); !read)
    return tl::unexpected(read.error());
  const unsigned flags = descriptor[0], block_descriptor = descriptor[1];
  if (flags >> 6 != 1) {
    return broken(fmt::format("expected frame format version 1, found {}", flags >> 6), descriptor_offset,
                  "the file was written in a later format or is damaged");
  }
  if (flags & 2) return broken("expected reserved bit 1 of the flags to be 0, found 1", descriptor_offset);
  if (block_descriptor & 0x8f) {
    return broken(
        fmt::format("expected the reserved bits of the block descriptor to be 0, found 0x{:02x}", block_descriptor),
        descriptor_offset + 1);
  }
  const int block_size_id = static_cast<int>(block_descriptor >> 4);
  if (block_size_id < kSmallestBlockSizeId) {
    return broken(fmt::format("expected a block size id of 4 to 7, found {}", block_size_id), descriptor_offset + 1);
  }
  header_ = FrameHeader{};
  header_.block_size_id = block_size_id;
  header_.independent_blocks = flags >> 5 & 1;
  header_.block_checksum = flags >> 4 & 1;
  header_.content_checksum = flags >> 2 & 1;
  const bool has_content_size = flags >> 3 & 1, has_dictionary = flags & 1;
  const size_t rest_bytes = (has_content_size ? 8u : 0u) + (has_dictionary ? 4u : 0u) + 1u;
  if (auto read = read_exactly(MutableBytes(descriptor + 2, rest_bytes), "the frame header"); !read) {
    return tl::unexpected(read.error());
  }
  const uint8_t computed = header_hash(Bytes(descriptor, 1 + rest_bytes));
  const uint8_t recorded = descriptor[1 + rest_bytes];
  if (computed != recorded) {
    return fail_checksum(
        fmt::format("header checksum mismatch: expected 0x{:02x} as recorded, found 0x{:02x} over the header's bytes",
                    recorded, computed),
        position(offset_ - 1));
  }
  if (has_content_size) header_.content_bytes = load_little_endian<uint64_t>(Bytes(descriptor + 2, 8));
  if (has_dictionary) {
    header_.dictionary_id = load_little_endian<uint32_t>(Bytes(descriptor + 2 + (has_content_size ? 8 : 0), 4));
    return broken(fmt::format("the frame needs dictionary {}, expected a frame without one", *header_.dictionary_id),
                  descriptor_offset, "decompress it with the program and the dictionary that wrote it");
  }
  in_frame_ = true;
  block_index_ = 0;
  return FrameBegin{header_, frame_index_, frame_offset};
}

Result<FrameEvent> FrameReader::skip_frame(uint32_t magic, uint64_t frame_offset) {
  const auto content_bytes = read_u32("a skippable frame's size");
  if (!content_bytes) return tl::unexpected(content_bytes.error());
  std::vector<uint8_t> waste(std::min<size_t>(*content_bytes, kReadStepBytes));
  for (uint32_t left = *content_bytes; left != 0;) {
    const size_t step = std::min<size_t>(left, waste.size());
    if (auto read = read_exactly(MutableBytes(waste.data(), step), "a skippable frame"); !read) {
      return tl::unexpected(read.error());
    }
    left -= static_cast<uint32_t>(step);
  }
  ++frame_index_;
  return SkippedFrame{magic, *content_bytes, frame_offset};
}

Result<void> FrameReader::read_payload(std::vector<uint8_t>& payload, size_t payload_bytes) {
  if (const Bytes ahead = take_ahead(payload_bytes); !ahead.empty()) {
    payload.assign(ahead.begin(), ahead.end());
    return {};
  }
  const uint64_t begin = offset_;
  payload.clear();
  while (payload.size() < payload_bytes) {
    const size_t have = payload.size();
    // Doubling keeps the total cost of copying linear, and the cost of a wrong size field small.
    payload.resize(std::min(payload_bytes, std::max(kReadStepBytes, 2 * have)));
    const auto count = read_some(MutableBytes(payload).subspan(have));
    if (!count) return tl::unexpected(count.error());
    if (have + *count < payload.size()) {
      return broken(fmt::format("truncated: expected {} bytes of block data, found {}", payload_bytes, have + *count),
                    begin);
    }
  }
  return {};
}

Result<FrameEvent> FrameReader::read_block(std::vector<uint8_t> storage) {
  const uint64_t block_offset = offset_;
  const auto size_field = read_u32("a block size or the end mark");
  if (!size_field) return tl::unexpected(size_field.error());
  if (*size_field == 0) {
    std::optional<uint32_t> content_checksum;
    if (header_.content_checksum) {
      const auto checksum = read_u32("the content checksum");
      if (!checksum) return tl::unexpected(checksum.error());
      content_checksum = *checksum;
    }
    return end_frame(content_checksum, block_offset);
  }
  BlockRead block;
  block.payload = std::move(storage);
  block.stored = (*size_field & kStoredBit) != 0;
  block.block_index = block_index_;
  block.offset = block_offset;
  const uint32_t payload_bytes = *size_field & ~kStoredBit;
  if (payload_bytes > header_.block_bytes()) {
    return broken(
        fmt::format("expected a block of at most {} bytes, found a size of {}", header_.block_bytes(), payload_bytes),
        block_offset);
  }
  if (auto read = read_payload(block.payload, payload_bytes); !read) return tl::unexpected(read.error());
  if (header_.block_checksum) {
    const uint64_t checksum_offset = offset_;
    const auto recorded = read_u32("the block checksum");
    if (!recorded) return tl::unexpected(recorded.error());
    const uint32_t computed = block_hash(block.payload);
    if (*recorded != computed) {
      return fail_checksum(
          fmt::format("block checksum mismatch: expected 0x{:08x} as recorded, found 0x{:08x} over the block's bytes",
                      *recorded, computed),
          position(checksum_offset));
    }
  }
  ++block_index_;
  return block;
}

Result<FrameEvent> FrameReader::read_legacy_block(std::vector<uint8_t> storage) {
  const uint64_t block_offset = offset_;
  uint8_t bytes[4];
  const auto count = read_some(bytes);
  if (!count) return tl::unexpected(count.error());
  if (*count == 0) return end_frame({}, block_offset);
  if (*count < 4) {
    return broken(fmt::format("truncated: expected 4 bytes of a block size, found {}", *count), block_offset);
  }
  const uint32_t payload_bytes = load_little_endian<uint32_t>(bytes);
  if (is_known_magic(payload_bytes)) {
    pending_magic_ = payload_bytes;
    return end_frame({}, block_offset);
  }
  if (payload_bytes == 0 || payload_bytes > worst_block_bytes(kLegacyBlockBytes)) {
    return broken(fmt::format("expected a legacy block of 1 to {} bytes, found a size of {}",
                              worst_block_bytes(kLegacyBlockBytes), payload_bytes),
                  block_offset);
  }
  BlockRead block;
  block.payload = std::move(storage);
  block.block_index = block_index_;
  block.offset = block_offset;
  if (auto read = read_payload(block.payload, payload_bytes); !read) return tl::unexpected(read.error());
  ++block_index_;
  return block;
}

FrameEvent FrameReader::end_frame(std::optional<uint32_t> content_checksum, uint64_t end_offset) {
  in_frame_ = false;
  ++frame_index_;
  return FrameEnd{content_checksum, block_index_, end_offset};
}

void ContentCheck::begin(const FrameBegin& frame, std::string file) {
  frame_ = frame;
  file_ = std::move(file);
  raw_bytes_ = 0;
  hash_.reset();
}

Result<BackgroundHash::Ticket> ContentCheck::update(Bytes raw, uint64_t block_index, uint64_t offset) {
  raw_bytes_ += raw.size();
  if (frame_.header.content_bytes && raw_bytes_ > *frame_.header.content_bytes) {
    return fail(fmt::format("content size mismatch: expected {} bytes, found at least {}", *frame_.header.content_bytes,
                            raw_bytes_),
                frame_position(file_, frame_.frame_index, block_index, offset));
  }
  if (!frame_.header.content_checksum) return BackgroundHash::Ticket();
  return hash_.update(raw);
}

Result<void> ContentCheck::end(const FrameEnd& end) {
  const auto where = [&] { return frame_position(file_, frame_.frame_index, std::nullopt, end.offset); };
  if (frame_.header.content_bytes && raw_bytes_ != *frame_.header.content_bytes) {
    return fail(
        fmt::format("content size mismatch: expected {} bytes, found {}", *frame_.header.content_bytes, raw_bytes_),
        where());
  }
  if (end.content_checksum && *end.content_checksum != hash_.value()) {
    return fail_checksum(
        fmt::format("content checksum mismatch: expected 0x{:08x} as recorded, found 0x{:08x} over the decoded bytes",
                    *end.content_checksum, hash_.value()),
        where());
  }
  return {};
}

}  // namespace ptxkit::format
