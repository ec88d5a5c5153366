// What every program of the project has around its work.
#pragma once

namespace ptxkit {

// Runs `work` as the body of `main`. An exception that nobody caught (no memory left, as a rule) becomes one line on
// standard error that names the program, and the exit status `failed`.
int run_program(const char* name, int failed, int (*work)(int, char**), int argc, char** argv) noexcept;

}  // namespace ptxkit
