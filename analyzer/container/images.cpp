// See images.hpp.
#include "analyzer/container/images.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "analyzer/container/bytes.hpp"
#include "analyzer/container/elf.hpp"
#include "analyzer/container/fatbin.hpp"

namespace ptxkit::container {
namespace {

bool is_fatbin(std::string_view bytes) { return field<uint32_t>(bytes, 0) == kFatbinMagic; }

class Reader {
 public:
  Result<void> read(std::string_view bytes, const std::string& name) {
    if (is_fatbin(bytes)) return read_fatbins(bytes, name);
    if (is_elf(bytes)) return read_sections(bytes, name);
    return {};
  }

  Contents contents;

 private:
  // Reads consecutive containers. Linkers pad with zeros between them.
  Result<void> read_fatbins(std::string_view bytes, const std::string& name) {
    for (size_t at = 0; (at = bytes.find_first_not_of('\0', at)) != bytes.npos;) {
      const std::string where = fmt::format("{}:fatbin[{}]", name, fatbin_count_);
      const auto size = fatbin_size(bytes.substr(at));
      if (!size) return locate_error(size.error(), where);
      if (const auto done = read_fatbin(bytes.substr(at, *size), where); !done) return done;
      ++fatbin_count_;
      at += *size;
    }
    return {};
  }

  Result<void> read_fatbin(std::string_view container, const std::string& where) {
    const auto entries = fatbin_entries(container);
    if (!entries) return locate_error(entries.error(), where);
    std::map<std::string, unsigned> seen;
    for (const FatbinEntry& entry : *entries) {
      if (entry.kind == FatbinEntry::Kind::elf) contents.machine_code.push_back(entry.target);
      if (entry.kind != FatbinEntry::Kind::ptx) continue;
      const unsigned earlier = seen[entry.target]++;
      const std::string name =
          fmt::format("{}.{}{}.ptx", where, entry.target, earlier ? fmt::format("#{}", earlier + 1) : "");
      auto text = ptx_text(entry);
      if (!text) return locate_error(text.error(), name);
      contents.images.push_back({name, std::move(*text)});
    }
    return {};
  }

  Result<void> read_sections(std::string_view bytes, const std::string& name) {
    const auto file = read_elf(bytes);
    if (!file) return locate_error(file.error(), name);
    for (const Section& section : file->sections) {
      if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin") {
        if (const auto done = read_fatbins(section.content, name); !done) return done;
      } else if (section.name == ".nv_debug_ptx_txt" && file->machine == kMachineCuda) {
        // In this section NUL bytes end lines.
        std::string text(section.content);
        std::ranges::replace(text, '\0', '\n');
        contents.images.push_back({name + ":debug.ptx", std::move(text)});
      }
    }
    if (file->machine == kMachineCuda) contents.machine_code.emplace_back("a cubin");
    return {};
  }

  static tl::unexpected<Error> locate_error(Error error, const std::string& where) {
    error.where = error.where.empty() ? where : where + ", " + error.where;
    return tl::unexpected<Error>(std::move(error));
  }

  unsigned fatbin_count_ = 0;
};

}  // namespace

bool is_container(std::string_view bytes) { return is_fatbin(bytes) || is_elf(bytes) || is_archive(bytes); }

Result<Contents> read_images(std::string bytes, const std::string& path) {
  if (!is_container(bytes)) {
    Contents text;
    text.images.push_back({path, std::move(bytes)});
    return text;
  }
  Reader reader;
  if (!is_archive(bytes)) {
    if (const auto done = reader.read(bytes, path); !done) return tl::unexpected(done.error());
    return std::move(reader.contents);
  }
  const auto members = read_archive(bytes);
  if (!members) {
    Error error = members.error();
    error.where = path;
    return tl::unexpected(std::move(error));
  }
  for (const Member& member : *members) {
    if (const auto done = reader.read(member.content, fmt::format("{}({})", path, member.name)); !done) {
      return tl::unexpected(done.error());
    }
  }
  return std::move(reader.contents);
}

}  // namespace ptxkit::container
