// Reads the sections of an ELF file and the members of a static library, in which compilers store fat binaries. All
// views point into the input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::container {

inline constexpr uint16_t kMachineCuda = 190;  // EM_CUDA: GPU machine code

struct Section {
  std::string_view name, content;  // empty for a section without bytes in the file
};

struct ElfFile {
  uint16_t machine = 0;
  std::vector<Section> sections;
};

bool is_elf(std::string_view bytes);
// Errors: not 64-bit little-endian ELF; a table or section outside the file.
Result<ElfFile> read_elf(std::string_view bytes);

struct Member {
  std::string name;
  std::string_view content;
};

bool is_archive(std::string_view bytes);
// The members of an `ar` archive (GNU and BSD names), without its symbol and name tables. Errors: damaged headers; a
// thin archive, which holds only names.
Result<std::vector<Member>> read_archive(std::string_view bytes);

}  // namespace ptxkit::container
