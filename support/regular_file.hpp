// Reading a file whose name came from an input, or was found by a search: it may be a device, a pipe that nobody writes
// to, a link that leads elsewhere, or one of the kernel's own files, and none of these may be read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit {

struct RegularFile {
  std::string content;
  std::string real_path;  // absolute, without links
  uint32_t owner = 0, group = 0, mode = 0;
};

// The whole of a regular file that lies, after links are followed, below one of `real_roots` ("/": anywhere). Errors
// name the path: there is none, it is no regular file, it is a file of the kernel (/proc, /sys and their like), it has
// more than `most_bytes`, it lies elsewhere. Opening it waits for nothing and has no effect on a device.
Result<RegularFile> read_regular_file(const std::string& path, uint64_t most_bytes,
                                      std::span<const std::string> real_roots);

// `path` without links, "." and ".."; empty where there is no such file or folder.
std::string real_path(const std::string& path);

// Whether a real path is `real_root` or lies below it.
bool is_below(std::string_view real_path, std::string_view real_root);

}  // namespace ptxkit
