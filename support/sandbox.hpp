// What a program gives up before it reads input of others, so that a fault in a parser is worth little to an attacker:
// new files but those it was told to write, programs, other processes, sockets. It is the kernel that refuses, by
// Landlock (Linux 5.13 and later) and seccomp; reading files stays as it is.
#pragma once

#include <string>
#include <vector>

#include "support/result.hpp"

namespace ptxkit {

struct SandboxNeeds {
  // Files that will be written, by write_file or in place; in their folders files may be made, replaced and removed.
  // Empty paths and "-" count for nothing.
  std::vector<std::string> outputs = {};
  // The user has named a program to start: then programs and processes are allowed, and writing to the folder for
  // temporary files.
  bool may_run_programs = false;
};

// Enters it for good, with every thread that the caller makes later; others must not be there yet. Returns what is in
// force, "Landlock 7 and seccomp". Error: the kernel lacks one of them, which `what` names; the other is in force.
Result<std::string> enter_sandbox(const SandboxNeeds& needs);

// Why it is no use to enter in this build, a sanitizer's or one that counts lines, which write and trace at exit; empty
// for all others.
std::string sandbox_conflict();

}  // namespace ptxkit
