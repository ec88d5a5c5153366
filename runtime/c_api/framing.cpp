#include "runtime/c_api/framing.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/codec/blocks/lz4_block.hpp"
#include "runtime/codec/format/lz4_frame.hpp"

namespace ptxkit::c_api {
namespace {

using codec::ChunkFlag;

constexpr size_t kStitchedPieceBytes = size_t{4} << 20;  // of raw and numcodecs
constexpr size_t kBlockBytes = size_t{64} << 10;         // of frame and hdf5
constexpr size_t kNumcodecsHeaderBytes = 4, kHdf5HeaderBytes = 12, kHdf5BlockHeaderBytes = 4;
constexpr size_t kFrameBlockHeaderBytes = 4, kFrameEndBytes = 4;

template <class T>
void put_big_endian(uint8_t* at, T value) {
  for (size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<uint8_t>(value >> 8 * (sizeof value - 1 - i));
}
template <class T>
T get_big_endian(const uint8_t* at) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value = static_cast<T>(value << 8 | at[i]);
  return value;
}
void put_little_endian(uint8_t* at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> 8 * i);
}
uint32_t get_little_endian(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 | static_cast<uint32_t>(at[2]) << 16 |
         static_cast<uint32_t>(at[3]) << 24;
}

// A piece as a block that is shorter than its raw bytes; otherwise nothing, and the caller stores the raw bytes.
std::optional<size_t> write_short_block(const CompressItem& piece, MutableBytes output) {
  switch (piece.flag) {
    case ChunkFlag::compressed:
      if (piece.compressed_bytes > output.size()) return std::nullopt;
      std::memmove(output.data(), piece.output.data(), piece.compressed_bytes);
      return piece.compressed_bytes;
    case ChunkFlag::zero:
    case ChunkFlag::filled:
      return codec::encode_run(piece.raw, output);
    case ChunkFlag::incompressible:
      break;
  }
  return std::nullopt;
}

// One LZ4 block from the pieces of `raw`.
std::optional<size_t> write_block(Bytes raw, std::span<const CompressItem> pieces, MutableBytes output) {
  if (pieces.size() == 1) {
    if (const auto length = write_short_block(pieces[0], output)) return length;
  } else {
    std::vector<codec::ChunkEncoding> chunks;
    chunks.reserve(pieces.size());
    for (const CompressItem& piece : pieces) {
      chunks.push_back(
          {static_cast<uint32_t>(piece.raw.size()), piece.flag, Bytes(piece.output).first(piece.compressed_bytes)});
    }
    if (const auto length = codec::stitch(raw, chunks, output)) return *length;
  }
  return codec::encode_literals(raw, output);
}

// Blocks with a header each: put_header(at, stored bytes, is raw).
template <class PutHeader>
std::optional<size_t> write_blocks(std::span<const CompressItem> pieces, MutableBytes output, size_t header_bytes,
                                   PutHeader put_header) {
  size_t used = 0;
  for (const CompressItem& piece : pieces) {
    if (output.size() - used < header_bytes) return std::nullopt;
    const MutableBytes room = output.subspan(used + header_bytes);
    std::optional<size_t> length = write_short_block(piece, room.first(std::min(room.size(), piece.raw.size())));
    const bool is_raw = !length || *length >= piece.raw.size();
    if (is_raw) {
      if (room.size() < piece.raw.size()) return std::nullopt;
      std::memcpy(room.data(), piece.raw.data(), piece.raw.size());
      length = piece.raw.size();
    }
    put_header(output.data() + used, static_cast<uint32_t>(*length), is_raw);
    used += header_bytes + *length;
  }
  return used;
}

std::optional<size_t> write_frame(Bytes raw, std::span<const CompressItem> pieces, MutableBytes output) {
  const format::FrameHeader header{
      .block_size_id = format::kSmallestBlockSizeId, .content_checksum = false, .content_bytes = raw.size()};
  std::vector<uint8_t> head;
  format::append_frame_header(header, head);
  if (output.size() < head.size() + kFrameEndBytes) return std::nullopt;
  std::ranges::copy(head, output.begin());
  const auto used = write_blocks(pieces, output.subspan(head.size(), output.size() - head.size() - kFrameEndBytes),
                                 kFrameBlockHeaderBytes, [](uint8_t* at, uint32_t stored_bytes, bool is_raw) {
                                   put_little_endian(at, stored_bytes | (is_raw ? format::kStoredBit : 0));
                                 });
  if (!used) return std::nullopt;
  put_little_endian(output.data() + head.size() + *used, 0);  // the end mark
  return head.size() + *used + kFrameEndBytes;
}

std::optional<size_t> write_hdf5(Bytes raw, std::span<const CompressItem> pieces, MutableBytes output) {
  if (output.size() < kHdf5HeaderBytes) return std::nullopt;
  put_big_endian(output.data(), static_cast<uint64_t>(raw.size()));
  put_big_endian(output.data() + 8, static_cast<uint32_t>(std::min(raw.size(), kBlockBytes)));
  const auto used = write_blocks(pieces, output.subspan(kHdf5HeaderBytes), kHdf5BlockHeaderBytes,
                                 [](uint8_t* at, uint32_t stored_bytes, bool) { put_big_endian(at, stored_bytes); });
  if (!used) return std::nullopt;
  return kHdf5HeaderBytes + *used;
}

// The flag of a stored item and the bytes that it asks for.
std::optional<size_t> write_stored(Bytes raw, std::span<const CompressItem> pieces, MutableBytes output) {
  if (output.empty()) return std::nullopt;
  const MutableBytes room = output.subspan(1);
  const CompressItem& first = pieces[0];
  const bool is_run = first.flag == ChunkFlag::zero || first.flag == ChunkFlag::filled;
  const bool is_one_run = is_run && std::ranges::all_of(pieces, [&](const CompressItem& piece) {
                            return piece.flag == first.flag && (piece.raw.empty() || piece.raw[0] == raw[0]);
                          });
  std::optional<size_t> length;
  ChunkFlag flag = ChunkFlag::compressed;
  if (is_one_run) {
    flag = first.flag;
    length = flag == ChunkFlag::zero ? 0 : 1;
    if (*length > room.size()) return std::nullopt;
    if (*length == 1) room[0] = raw[0];
  } else if (first.flag != ChunkFlag::incompressible || pieces.size() > 1) {
    length = write_block(raw, pieces, room.first(std::min(room.size(), raw.size())));
  }
  if (!is_one_run && (!length || *length >= raw.size())) {
    if (room.size() < raw.size()) return std::nullopt;
    flag = ChunkFlag::incompressible;
    length = raw.size();
    if (!raw.empty()) std::memcpy(room.data(), raw.data(), raw.size());
  }
  output[0] = static_cast<uint8_t>(flag);
  return 1 + *length;
}

tl::unexpected<Failure> malformed(std::string what) { return refuse(PTXKIT_CANNOT_DECOMPRESS, std::move(what)); }

Answer<Parts> split_hdf5(Bytes item) {
  if (item.size() < kHdf5HeaderBytes) {
    return malformed("an HDF5 chunk of LZ4 begins with 12 bytes, found " + std::to_string(item.size()));
  }
  const auto raw_bytes = get_big_endian<uint64_t>(item.data());
  const auto block_bytes = get_big_endian<uint32_t>(item.data() + 8);
  Parts all{{}, static_cast<size_t>(raw_bytes)};
  if (raw_bytes != 0 && block_bytes == 0) return malformed("the HDF5 chunk has blocks of 0 bytes");
  size_t at = kHdf5HeaderBytes;
  for (uint64_t begin = 0; begin < raw_bytes; begin += std::min<uint64_t>(block_bytes, raw_bytes - begin)) {
    const size_t part_bytes = static_cast<size_t>(std::min<uint64_t>(block_bytes, raw_bytes - begin));
    if (item.size() - at < kHdf5BlockHeaderBytes) return malformed("the HDF5 chunk ends before its last block");
    const size_t stored_bytes = get_big_endian<uint32_t>(item.data() + at);
    at += kHdf5BlockHeaderBytes;
    if (item.size() - at < stored_bytes) return malformed("the HDF5 chunk ends inside a block");
    all.parts.push_back(
        {item.subspan(at, stored_bytes), static_cast<size_t>(begin), part_bytes, stored_bytes == part_bytes});
    at += stored_bytes;
  }
  if (at != item.size()) return malformed("the HDF5 chunk has bytes behind its last block");
  return all;
}

}  // namespace

size_t piece_bytes(ptxkit_framing framing) {
  return framing == PTXKIT_FRAMING_FRAME || framing == PTXKIT_FRAMING_HDF5 ? kBlockBytes : kStitchedPieceBytes;
}

size_t piece_count(ptxkit_framing framing, size_t item_bytes) {
  const size_t whole = item_bytes / piece_bytes(framing), rest = item_bytes % piece_bytes(framing);
  const size_t count = whole + (rest != 0);
  const bool has_blocks = framing == PTXKIT_FRAMING_FRAME || framing == PTXKIT_FRAMING_HDF5;
  return count != 0 || has_blocks ? count : 1;
}

std::optional<size_t> framed_bound(ptxkit_framing framing, size_t item_bytes) {
  if (item_bytes > std::numeric_limits<size_t>::max() / 2) return std::nullopt;
  const size_t blocks = piece_count(framing, item_bytes);
  switch (framing) {
    case PTXKIT_FRAMING_NUMCODECS:
      return kNumcodecsHeaderBytes + codec::literal_block_bytes(item_bytes);
    case PTXKIT_FRAMING_HDF5:
      return kHdf5HeaderBytes + item_bytes + blocks * kHdf5BlockHeaderBytes;
    case PTXKIT_FRAMING_FRAME:
      return format::kMaxFrameHeaderBytes + item_bytes + blocks * kFrameBlockHeaderBytes + kFrameEndBytes;
    case PTXKIT_FRAMING_STORED:
      return 1 + item_bytes;
    default:
      return codec::literal_block_bytes(item_bytes);
  }
}

std::optional<size_t> direct_offset(ptxkit_framing framing) {
  switch (framing) {
    case PTXKIT_FRAMING_RAW:
      return 0;
    case PTXKIT_FRAMING_NUMCODECS:
      return kNumcodecsHeaderBytes;
    case PTXKIT_FRAMING_STORED:
      return 1;
    default:
      return std::nullopt;
  }
}

std::optional<size_t> join(ptxkit_framing framing, Bytes raw, std::span<const CompressItem> pieces,
                           MutableBytes output) {
  switch (framing) {
    case PTXKIT_FRAMING_FRAME:
      return write_frame(raw, pieces, output);
    case PTXKIT_FRAMING_HDF5:
      return write_hdf5(raw, pieces, output);
    case PTXKIT_FRAMING_STORED:
      return write_stored(raw, pieces, output);
    case PTXKIT_FRAMING_NUMCODECS: {
      if (output.size() < kNumcodecsHeaderBytes) return std::nullopt;
      const auto used = write_block(raw, pieces, output.subspan(kNumcodecsHeaderBytes));
      put_little_endian(output.data(), static_cast<uint32_t>(raw.size()));
      return used ? std::optional(kNumcodecsHeaderBytes + *used) : std::nullopt;
    }
    default:
      return write_block(raw, pieces, output);
  }
}

Answer<Parts> split(ptxkit_framing framing, Bytes item) {
  if (framing == PTXKIT_FRAMING_HDF5) return split_hdf5(item);
  if (framing == PTXKIT_FRAMING_NUMCODECS) {
    if (item.size() < kNumcodecsHeaderBytes) {
      return malformed("an item with its size in front has 4 bytes or more, found " + std::to_string(item.size()));
    }
    const size_t raw_bytes = get_little_endian(item.data());
    return Parts{{{item.subspan(kNumcodecsHeaderBytes), 0, raw_bytes}}, raw_bytes};
  }
  return Parts{{{item, 0}}, {}};
}

std::optional<size_t> block_raw_bytes(Bytes block) {
  size_t at = 0, raw_bytes = 0;
  const auto length = [&](unsigned nibble) -> std::optional<size_t> {
    size_t sum = nibble;
    if (nibble < 15) return sum;
    uint8_t more;
    do {
      if (at == block.size()) return std::nullopt;
      more = block[at++];
      sum += more;
    } while (more == 255);
    return sum;
  };
  while (at < block.size()) {
    const unsigned token = block[at++];
    const auto literals = length(token >> 4);
    if (!literals || *literals > block.size() - at) return std::nullopt;
    at += *literals;
    raw_bytes += *literals;
    if (at == block.size()) return raw_bytes;
    if (block.size() - at < 2) return std::nullopt;
    at += 2;
    const auto match = length(token & 15);
    if (!match) return std::nullopt;
    raw_bytes += *match + 4;
  }
  return std::nullopt;
}

}  // namespace ptxkit::c_api
