// What every program of this project does around its work.
#pragma once

#include <string_view>

namespace ptxkit {

// Call it first in main(). A parent process may have closed descriptors 0, 1 or 2; the next opened file would get that
// number and be read as standard input or overwritten by messages. Opens each closed one on /dev/null in the wrong
// direction, so that reading or writing still fails, as on a closed descriptor. False if that is impossible.
bool open_standard_descriptors() noexcept;

// Runs `work` as the body of main(). An uncaught exception (usually exhausted memory) becomes one line on standard
// error that begins with `name`, and the exit status `failed`.
int run_program(const char* name, int failed, int (*work)(int, char**), int argc, char** argv) noexcept;

// Writes `text` to standard error. Errors (closed descriptor, full disk) are ignored.
void tell(std::string_view text) noexcept;

}  // namespace ptxkit
