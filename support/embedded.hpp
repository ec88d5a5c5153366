// Files that a program carries in itself; see cmake/PtxkitEmbed.cmake.
#pragma once

#include <cstddef>
#include <string_view>

namespace ptxkit {

struct EmbeddedFile {
  std::string_view name;  // without its folder
  std::string_view content;
};

}  // namespace ptxkit
