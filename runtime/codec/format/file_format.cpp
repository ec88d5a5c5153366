#include "runtime/codec/format/file_format.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "runtime/codec/format/gzip_member.hpp"
#include "runtime/codec/format/little_endian.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "support/check.hpp"

namespace ptxkit::format {
namespace {

constexpr FileFormatRow kFormats[] = {
    {FileFormat::lz4, "lz4", ".lz4", "LZ4 frames"},
    {FileFormat::ptz, "ptz", ".ptz", "independent blocks of the codecs below"},
    {FileFormat::zstd, "zstd", ".zst", "Zstandard frames (RFC 8878)"},
    {FileFormat::gzip, "gzip", ".gz", "gzip members of 64 KiB (RFC 1952, BGZF)"},
};

std::optional<FileFormat> format_of_magic(uint32_t magic) {
  if (magic == kFrameMagic || magic == kLegacyMagic) return FileFormat::lz4;
  if (magic == kPtzMagic) return FileFormat::ptz;
  if (magic == kZstdMagic) return FileFormat::zstd;
  if ((magic & 0xffff) == kGzipMagic) return FileFormat::gzip;
  return std::nullopt;
}

}  // namespace

std::span<const FileFormatRow> file_formats() { return kFormats; }

const FileFormatRow& row_of(FileFormat format) {
  const auto* const row = std::ranges::find(kFormats, format, &FileFormatRow::format);
  PTXKIT_CHECK(row != std::end(kFormats), "every format has a row");
  return *row;
}

std::optional<FileFormat> format_of_name(std::string_view name) {
  for (const FileFormatRow& row : kFormats)
    if (name.ends_with(row.suffix) && name.size() > row.suffix.size()) return row.format;
  return std::nullopt;
}

std::optional<FileFormat> format_of_bytes(Bytes first) {
  if (first.size() < 4) return std::nullopt;
  const auto magic = load_little_endian<uint32_t>(first);
  if (!is_skippable(magic)) return format_of_magic(magic);
  if (first.size() < 8) return std::nullopt;
  const uint64_t next = 8 + uint64_t{load_little_endian<uint32_t>(first.subspan(4))};
  return next + 4 <= first.size() ? format_of_magic(load_little_endian<uint32_t>(first.subspan(next))) : std::nullopt;
}

std::string file_suffixes() {
  std::string text;
  for (const FileFormatRow& row : kFormats) {
    if (!text.empty()) text += &row == std::end(kFormats) - 1 ? " or " : ", ";
    text += row.suffix;
  }
  return text;
}

}  // namespace ptxkit::format
