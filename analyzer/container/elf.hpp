// Sections of an ELF file and members of a static library: where compilers put fat binaries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::container {

inline constexpr uint16_t kMachineCuda = 190;  // EM_CUDA: machine code of a GPU

struct Section {
  std::string_view name, content;  // content is empty for a section without bytes in the file
};

struct ElfFile {
  uint16_t machine = 0;
  std::vector<Section> sections;
};

bool is_elf(std::string_view bytes);
// Errors: not the 64-bit little-endian form; a table or section that lies outside the file.
Result<ElfFile> read_elf(std::string_view bytes);

struct Member {
  std::string name;
  std::string_view content;
};

bool is_archive(std::string_view bytes);
// The members of an `ar` archive but for its symbol and name tables (GNU and BSD names). Errors: damaged headers; a
// thin archive, which holds only names.
Result<std::vector<Member>> read_archive(std::string_view bytes);

}  // namespace ptxkit::container
