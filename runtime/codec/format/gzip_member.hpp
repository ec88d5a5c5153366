// The gzip format (RFC 1952), without the coding of its members, and BGZF: members of up to 64 KiB whose header says
// how long they are. https://samtools.github.io/hts-specs/SAMv1.pdf, section 4.1.
//
// A member is a header, a deflate stream, the CRC-32 and the size modulo 2^32 of its content, all little-endian. BGZF
// puts the size of the member, less one, into the subfield BC of the header, and ends a file with an empty member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/field_reader.hpp"
#include "support/result.hpp"

namespace ptxkit::format {

inline constexpr uint16_t kGzipMagic = 0x8b1f;
inline constexpr size_t kGzipTrailerBytes = 8;
inline constexpr size_t kBgzfHeaderBytes = 18;
inline constexpr size_t kBgzfRawBytes = 65280;      // of every member but the last, as bgzip writes them
inline constexpr size_t kBgzfLargestBytes = 65536;  // of a member, raw or stored

struct GzipHeader {
  size_t header_bytes = 0;
  size_t member_bytes = 0;  // of BGZF; 0: not known before it is decoded
};

// Appends a BGZF member around a deflate stream of up to kBgzfLargestBytes - 26 bytes.
void append_bgzf_member(Bytes deflated, uint32_t crc, uint32_t raw_bytes, std::vector<uint8_t>& out);
void append_bgzf_end(std::vector<uint8_t>& out);

// Reads the header of the next member without consuming it. `position` says where it is, for errors.
Result<GzipHeader> peek_gzip_header(FieldReader& fields, const std::string& position);

}  // namespace ptxkit::format
