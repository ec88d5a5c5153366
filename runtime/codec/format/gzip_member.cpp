#include "runtime/codec/format/gzip_member.hpp"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "runtime/codec/format/little_endian.hpp"
#include "support/check.hpp"

namespace ptxkit::format {
namespace {

constexpr size_t kFixedHeaderBytes = 10;
constexpr uint8_t kDeflate = 8;
// Flags of the header.
constexpr uint8_t kHasHeaderCrc = 2, kHasExtra = 4, kHasName = 8, kHasComment = 16, kReservedFlags = 0xe0;

// The size of the member that the subfield BC of an extra field says; 0 if there is none.
size_t bgzf_member_bytes(Bytes extra) {
  while (extra.size() >= 4) {
    const size_t length = load_little_endian<uint16_t>(extra.subspan(2));
    if (length > extra.size() - 4) return 0;
    if (extra[0] == 'B' && extra[1] == 'C' && length == 2)
      return size_t{load_little_endian<uint16_t>(extra.subspan(4))} + 1;
    extra = extra.subspan(4 + length);
  }
  return 0;
}

}  // namespace

void append_bgzf_member(Bytes deflated, uint32_t crc, uint32_t raw_bytes, std::vector<uint8_t>& out) {
  const size_t member_bytes = kBgzfHeaderBytes + deflated.size() + kGzipTrailerBytes;
  PTXKIT_CHECK(member_bytes <= kBgzfLargestBytes, "a BGZF member says its size in 16 bits");
  // No time, no name, no operating system; an extra field of 6 bytes: BC, 2 bytes.
  out.insert(out.end(), {0x1f, 0x8b, kDeflate, kHasExtra, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C', 2, 0});
  append_little_endian(static_cast<uint16_t>(member_bytes - 1), out);
  out.insert(out.end(), deflated.begin(), deflated.end());
  append_little_endian(crc, out);
  append_little_endian(raw_bytes, out);
}

void append_bgzf_end(std::vector<uint8_t>& out) {
  constexpr uint8_t kEmptyDeflate[] = {3, 0};
  append_bgzf_member(kEmptyDeflate, 0, 0, out);
}

Result<GzipHeader> peek_gzip_header(FieldReader& fields, const std::string& position) {
  Bytes bytes;
  // Makes `bytes` hold at least `count`.
  const auto need = [&](size_t count) -> Result<void> {
    if (bytes.size() >= count) return {};
    if (count > FieldReader::kAheadBytes)
      return fail(fmt::format("a header of more than {} bytes", FieldReader::kAheadBytes), position);
    const auto peeked = fields.peek(count);
    if (!peeked) return tl::unexpected(peeked.error());
    bytes = *peeked;
    if (bytes.size() >= count) return {};
    return fail(fmt::format("truncated: expected {} bytes of a member's header, found {}", count, bytes.size()),
                position);
  };
  if (auto got = need(kFixedHeaderBytes); !got) return tl::unexpected(got.error());
  const auto magic = load_little_endian<uint16_t>(bytes);
  if (magic != kGzipMagic)
    return fail(fmt::format("not a gzip member: expected the bytes 1f 8b, found {:02x} {:02x}", bytes[0], bytes[1]),
                position);
  if (bytes[2] != kDeflate) return fail(fmt::format("method {} is unknown, expected 8 (deflate)", bytes[2]), position);
  const uint8_t flags = bytes[3];
  if ((flags & kReservedFlags) != 0)
    return fail(fmt::format("reserved flags of the header are set: {:#04x}", flags), position);
  GzipHeader header{.header_bytes = kFixedHeaderBytes};
  if ((flags & kHasExtra) != 0) {
    if (auto got = need(header.header_bytes + 2); !got) return tl::unexpected(got.error());
    const size_t extra_bytes = load_little_endian<uint16_t>(bytes.subspan(header.header_bytes));
    header.header_bytes += 2;
    if (auto got = need(header.header_bytes + extra_bytes); !got) return tl::unexpected(got.error());
    header.member_bytes = bgzf_member_bytes(bytes.subspan(header.header_bytes, extra_bytes));
    header.header_bytes += extra_bytes;
  }
  for (const uint8_t text : {kHasName, kHasComment}) {
    if ((flags & text) == 0) continue;
    while (true) {
      const Bytes rest = bytes.subspan(header.header_bytes);
      const auto end = std::ranges::find(rest, 0);
      header.header_bytes += static_cast<size_t>(end - rest.begin()) + (end != rest.end());
      if (end != rest.end()) break;
      if (auto got = need(header.header_bytes + 1); !got) return tl::unexpected(got.error());
    }
  }
  if ((flags & kHasHeaderCrc) != 0) header.header_bytes += 2;
  if (auto got = need(header.header_bytes); !got) return tl::unexpected(got.error());
  if (header.member_bytes < header.header_bytes + kGzipTrailerBytes) header.member_bytes = 0;
  return header;
}

}  // namespace ptxkit::format
