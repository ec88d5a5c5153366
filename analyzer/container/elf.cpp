// ELF-64 as in the System V ABI; `ar` as in System V and GNU binutils.
#include "analyzer/container/elf.hpp"

#include <charconv>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "analyzer/container/bytes.hpp"

namespace ptxkit::container {
namespace {

constexpr std::string_view kElfMagic = "\177ELF";
constexpr std::string_view kArchiveMagic = "!<arch>\n", kThinMagic = "!<thin>\n";
constexpr uint64_t kSectionHeaderBytes = 64, kMemberHeaderBytes = 60;
constexpr uint32_t kNoBits = 8;  // SHT_NOBITS

struct SectionHeader {
  uint32_t name = 0, type = 0;
  uint64_t offset = 0, size = 0;
};

std::optional<SectionHeader> section_header(std::string_view bytes, uint64_t at) {
  const auto header = range(bytes, at, kSectionHeaderBytes);
  if (!header) return std::nullopt;
  return SectionHeader{*field<uint32_t>(*header, 0), *field<uint32_t>(*header, 4), *field<uint64_t>(*header, 24),
                       *field<uint64_t>(*header, 32)};
}

std::string_view trimmed(std::string_view text) { return text.substr(0, text.find_last_not_of(' ') + 1); }

std::optional<uint64_t> decimal(std::string_view text) {
  text = trimmed(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool is_elf(std::string_view bytes) { return bytes.starts_with(kElfMagic); }

Result<ElfFile> read_elf(std::string_view bytes) {
  const auto header = range(bytes, 0, 64);
  if (!header) return fail("the ELF header is cut off");
  if ((*header)[4] != 2 || (*header)[5] != 1) return fail("expected a 64-bit little-endian ELF file");
  ElfFile file;
  file.machine = *field<uint16_t>(bytes, 18);
  const uint64_t table = *field<uint64_t>(bytes, 40);
  const uint64_t entry_bytes = *field<uint16_t>(bytes, 58);
  uint64_t count = *field<uint16_t>(bytes, 60);
  uint32_t names_index = *field<uint16_t>(bytes, 62);
  if (table == 0) return file;
  if (entry_bytes != kSectionHeaderBytes)
    return fail(fmt::format("expected section headers of {} bytes, found {}", kSectionHeaderBytes, entry_bytes));
  const auto first = section_header(bytes, table);
  if (!first) return fail(fmt::format("the section table at byte {} is cut off", table), {}, "is the file cut off?");
  if (count == 0) count = first->size;  // a count beyond 16 bits is in section header 0
  if (names_index == 0xffff) names_index = *field<uint32_t>(bytes, table + 40);
  if (count > (bytes.size() - table) / kSectionHeaderBytes)
    return fail(fmt::format("the section table at byte {} is cut off", table), {}, "is the file cut off?");
  const auto section_content = [&](const SectionHeader& section) {
    return section.type == kNoBits ? std::optional(std::string_view()) : range(bytes, section.offset, section.size);
  };
  const auto names_header =
      names_index < count ? section_header(bytes, table + names_index * kSectionHeaderBytes) : std::nullopt;
  const auto names = names_header ? section_content(*names_header) : std::nullopt;
  if (!names) return fail("the table of section names lies outside the file");
  for (uint64_t i = 0; i < count; ++i) {
    const SectionHeader section = *section_header(bytes, table + i * kSectionHeaderBytes);
    if (section.name > names->size()) return fail(fmt::format("the name of section {} lies outside the file", i));
    const std::string_view name = names->substr(section.name, names->find('\0', section.name) - section.name);
    const auto content = section_content(section);
    if (!content)
      return fail(fmt::format("section {} '{}' lies outside the file", i, name), {}, "is the file cut off?");
    file.sections.push_back({name, *content});
  }
  return file;
}

bool is_archive(std::string_view bytes) { return bytes.starts_with(kArchiveMagic) || bytes.starts_with(kThinMagic); }

Result<std::vector<Member>> read_archive(std::string_view bytes) {
  if (bytes.starts_with(kThinMagic))
    return fail("a thin archive names its members and does not hold them", {}, "name the object files instead");
  std::vector<Member> members;
  std::string_view long_names;
  for (uint64_t at = kArchiveMagic.size(); at < bytes.size();) {
    const auto header = range(bytes, at, kMemberHeaderBytes);
    const auto size = header && header->ends_with("`\n") ? decimal(header->substr(48, 10)) : std::nullopt;
    auto content = size ? range(bytes, at + kMemberHeaderBytes, *size) : std::nullopt;
    if (!content) return fail(fmt::format("the archive member at byte {} is damaged or cut off", at));
    std::string_view name = trimmed(header->substr(0, 16));
    at += kMemberHeaderBytes + *size + (*size & 1);
    if (name == "//") {
      long_names = *content;
      continue;
    }
    if (name == "/" || name == "/SYM64/" || name.starts_with("__.SYMDEF")) continue;
    if (name.starts_with("#1/")) {  // BSD: the name precedes the content
      const auto name_bytes = decimal(name.substr(3));
      if (!name_bytes || *name_bytes > content->size()) return fail("an archive member's name is cut off");
      name = content->substr(0, *name_bytes);
      name = name.substr(0, name.find('\0'));
      content->remove_prefix(*name_bytes);
    } else if (name.starts_with("/")) {
      const auto offset = decimal(name.substr(1));
      if (!offset || *offset > long_names.size()) return fail("an archive member's name lies outside the name table");
      name = long_names.substr(*offset, long_names.find('\n', *offset) - *offset);
    }
    if (name.ends_with('/')) name.remove_suffix(1);
    members.push_back({std::string(name), *content});
  }
  return members;
}

}  // namespace ptxkit::container
