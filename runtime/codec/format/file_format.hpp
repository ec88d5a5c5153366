// The formats of files that programs read and write: their names, what names of files end in, and how a file of each
// begins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::format {

enum class FileFormat : uint8_t { lz4, ptz, zstd, gzip };

struct FileFormatRow {
  FileFormat format;
  std::string_view name;    // the value of --codec; of ptz, the codecs of codecs.def have their own
  std::string_view suffix;  // of files
  std::string_view summary;
};

std::span<const FileFormatRow> file_formats();
const FileFormatRow& row_of(FileFormat format);
// By the end of a name that has more than the suffix; nothing for other names.
std::optional<FileFormat> format_of_name(std::string_view name);
// By the first bytes of a file; 16 tell a skippable frame of up to 4 bytes before the first LZ4 or Zstandard frame.
// Nothing for others.
std::optional<FileFormat> format_of_bytes(Bytes first);
std::string file_suffixes();  // ".lz4, .ptz, .zst or .gz"

}  // namespace ptxkit::format
