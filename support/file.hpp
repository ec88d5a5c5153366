// Whole files in and out. Writing never leaves a half-written file: temporary beside it, then rename.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit {

// The whole of `path`, of 4 GiB at most, which a device would pass without end; "-" is standard input. Errors name the
// path and the system's reason.
Result<std::string> read_file(const std::string& path);

// The whole of a small file of ours whose name comes from the environment: no device or pipe, and `most_bytes` at most.
Result<std::string> read_regular_file(const std::string& path, size_t most_bytes);

// Whether write_file could begin on `path`, asked before long work: it is a file or device that may be written, or is
// not there in a folder that may be written to. True of "" (nowhere) and "-". Errors name the path and the reason.
Result<void> check_writable(const std::string& path);

// All of `content`, however many calls it takes; false with errno.
bool write_all(int descriptor, std::string_view content);

// Replaces `path` by `content` in one rename; "-" is standard output. On error nothing at `path` has changed. A link is
// followed; a device or a pipe is written into and stays one.
Result<void> write_file(const std::string& path, std::string_view content);

// The same of what `write` writes to the descriptor that it is given; it returns false with errno where it cannot. The
// file has no name until it is complete, where the system can do that: a signal in the middle leaves nothing behind.
Result<void> replace_file(const std::string& path, const std::function<bool(int descriptor)>& write);

}  // namespace ptxkit
