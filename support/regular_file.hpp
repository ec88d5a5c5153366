// Reads files whose names come from an input or from a search. Such a name may denote a device, a pipe without a
// writer, a link to elsewhere, or a file of the kernel; none of these may be read.
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

// Reads a regular file of at most `most_bytes` bytes that lies, after links are followed, below one of `real_roots`
// ("/": anywhere). Errors name the path: there is no such file, it is not a regular file, it belongs to a kernel file
// system (/proc, /sys and others), it is too large, or it lies elsewhere. Never blocks on a pipe and has no effect on a
// device.
Result<RegularFile> read_regular_file(const std::string& path, uint64_t most_bytes,
                                      std::span<const std::string> real_roots);

// `path` without links, "." and ".."; empty if there is no such file or directory.
std::string real_path(const std::string& path);

// Whether `real_path` is `real_root` or lies below it.
bool is_below(std::string_view real_path, std::string_view real_root);

}  // namespace ptxkit
