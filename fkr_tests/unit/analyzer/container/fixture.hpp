// Writes containers for tests: fat binaries, ELF files with sections, static libraries. liblz4 and libzstd compress the
// payloads.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lz4.h>
#include <zstd.h>

namespace ptxkit::container {

inline constexpr std::string_view kPtx =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

template <class T>
void put(std::string& bytes, size_t at, T value) {
  if (bytes.size() < at + sizeof value) bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline std::string padded(std::string bytes, size_t unit) {
  bytes.resize((bytes.size() + unit - 1) / unit * unit);
  return bytes;
}

struct EntrySpec {
  uint16_t kind = 1;
  uint32_t sm = 80;
  uint64_t flags = 0x11;
  std::string payload;
  uint64_t uncompressed_bytes = 0;
};

inline EntrySpec plain(std::string_view text, uint32_t sm = 80) { return {1, sm, 0x11, std::string(text) + '\0', 0}; }

inline EntrySpec lz4(std::string_view text) {
  const std::string source = std::string(text) + '\0';
  std::string packed(LZ4_compressBound(static_cast<int>(source.size())), '\0');
  packed.resize(LZ4_compress_default(source.data(), packed.data(), static_cast<int>(source.size()),
                                     static_cast<int>(packed.size())));
  return {1, 80, 0x2011, packed, source.size()};
}

inline EntrySpec zstd(std::string_view text) {
  const std::string source = std::string(text) + '\0';
  std::string packed(ZSTD_compressBound(source.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), source.data(), source.size(), 3));
  return {1, 80, 0x8011, packed, source.size()};
}

inline std::string fatbin(const std::vector<EntrySpec>& entries) {
  std::string content;
  for (const EntrySpec& entry : entries) {
    const std::string payload = padded(entry.payload, 8);
    std::string header(80, '\0');
    put<uint16_t>(header, 0, entry.kind);
    put<uint16_t>(header, 2, 0x101);
    put<uint32_t>(header, 4, 80);
    put<uint64_t>(header, 8, payload.size());
    put<uint32_t>(header, 16, entry.uncompressed_bytes ? static_cast<uint32_t>(entry.payload.size()) : 0);
    put<uint32_t>(header, 28, entry.sm);
    put<uint64_t>(header, 40, entry.flags);
    put<uint64_t>(header, 56, entry.uncompressed_bytes);
    content += header + payload;
  }
  std::string bytes(16, '\0');
  put<uint32_t>(bytes, 0, 0xba55ed50);
  put<uint16_t>(bytes, 4, 1);
  put<uint16_t>(bytes, 6, 16);
  put<uint64_t>(bytes, 8, content.size());
  return bytes + content;
}

// An ELF-64 file of the given sections, followed by the table of their names.
inline std::string elf(std::vector<std::pair<std::string, std::string>> sections, uint16_t machine = 62) {
  std::string bytes(64, '\0'), names(1, '\0'), table(64, '\0');
  bytes.replace(0, 7, "\177ELF\2\1\1");
  put<uint16_t>(bytes, 18, machine);
  sections.emplace_back(".shstrtab", "");
  for (auto& [name, content] : sections) {
    const auto name_at = static_cast<uint32_t>(names.size());
    names += name + '\0';
    if (name == ".shstrtab") content = names;
    bytes = padded(std::move(bytes), 8);
    std::string header(64, '\0');
    put<uint32_t>(header, 0, name_at);
    put<uint32_t>(header, 4, 1);
    put<uint64_t>(header, 24, bytes.size());
    put<uint64_t>(header, 32, content.size());
    table += header;
    bytes += content;
  }
  bytes = padded(std::move(bytes), 8);
  put<uint64_t>(bytes, 40, bytes.size());
  put<uint16_t>(bytes, 58, 64);
  put<uint16_t>(bytes, 60, static_cast<uint16_t>(sections.size() + 1));
  put<uint16_t>(bytes, 62, static_cast<uint16_t>(sections.size()));
  return bytes + table;
}

inline std::string archive_member(std::string name, std::string_view content) {
  name.resize(16, ' ');
  std::string size = std::to_string(content.size());
  size.resize(10, ' ');
  std::string member = name + std::string(32, ' ') + size + "`\n" + std::string(content);
  if (member.size() % 2) member += '\n';
  return member;
}

}  // namespace ptxkit::container
