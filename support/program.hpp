// What every program of the project has around its work.
#pragma once

#include <string_view>

namespace ptxkit {

// The first thing that each `main` does. A parent may close any of the descriptors 0, 1 and 2; the next file that is
// opened would take the number, be read as standard input or be written over by messages. A missing one is opened on
// /dev/null, against its direction: reading or writing still fails, as on a closed descriptor. False: it cannot be.
bool open_standard_descriptors() noexcept;

// Runs `work` as the body of `main`. An exception that nobody caught (no memory left, as a rule) becomes one line on
// standard error that names the program, and the exit status `failed`.
int run_program(const char* name, int failed, int (*work)(int, char**), int argc, char** argv) noexcept;

// Writes `text` to standard error. A standard error that takes nothing (closed, a full disk) is no reason to stop.
void tell(std::string_view text) noexcept;

}  // namespace ptxkit
