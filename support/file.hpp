// Reads and writes whole files. Writing never leaves a half-written file: it writes a temporary file in the same
// directory and renames it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

#include "support/result.hpp"

namespace ptxkit {

// Reads all of `path`; "-" is standard input. More than `most_bytes` is an error, which also ends the reading of an
// endless device. Errors name the path and the system's reason.
Result<std::string> read_file(const std::string& path, uint64_t most_bytes = uint64_t{4} << 30);

// Reads a small file of this project whose name comes from the environment. Devices, pipes and files larger than
// `most_bytes` are errors.
Result<std::string> read_regular_file(const std::string& path, size_t most_bytes);

// Checks before long work whether write_file could write to `path`: an existing file or device must be writable,
// otherwise its directory. "" (no output) and "-" always pass. Errors name the path and the reason.
Result<void> check_writable(const std::string& path);

// Writes all of `content`, with as many system calls as needed. False with errno on failure.
bool write_all(int descriptor, std::string_view content);

// Replaces the file at `path` by `content` with one rename; "-" is standard output. After an error `path` is unchanged.
// Symbolic links are followed. A device or a pipe is written to and not replaced.
Result<void> write_file(const std::string& path, std::string_view content);

// Like write_file, with content that `write` writes to the given descriptor; it returns false with errno on failure.
// Where the system supports it, the file has no name until it is complete, so a signal in between leaves nothing
// behind. A file that is replaced keeps its permissions; a new one has those of `permissions` that the umask allows.
Result<void> replace_file(const std::string& path, const std::function<bool(int descriptor)>& write,
                          mode_t permissions = 0666);

// The mode bits of an open file of status `info`, 07777 at most. Where the file has an access control list (acl(5)),
// st_mode has the list's mask in place of the group's rights, which can be fewer.
mode_t mode_of(int descriptor, const struct stat& info);

}  // namespace ptxkit
