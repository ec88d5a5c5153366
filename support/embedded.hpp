// Files embedded in a program; see cmake/PtxkitEmbed.cmake.
#pragma once

#include <cstddef>
#include <string_view>

namespace ptxkit {

struct EmbeddedFile {
  std::string_view name;  // without its directory
  std::string_view content;
};

}  // namespace ptxkit
