// A program enters the sandbox before it reads untrusted input, so that exploiting a fault in a parser gains little:
// the kernel then refuses new files other than the announced outputs, programs, access to other processes, and sockets,
// by Landlock (Linux 5.13 and later) and seccomp. Reading files is not restricted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit {

struct SandboxNeeds {
  // Files that will be written, by write_file or in place; in their folders files may be made, replaced and removed. A
  // folder stands for the files in it. Empty paths and "-" count for nothing.
  std::vector<std::string> outputs = {};
  // The user has named a program to start: permits programs, processes, and writing to the directory for temporary
  // files.
  bool may_run_programs = false;
  // Whether an output that is a link to a file, or to none yet, is written where it leads.
  bool follows_links = true;
};

// Enters the sandbox irrevocably, for the caller and all threads that it starts later; no other thread may exist yet.
// Returns what is in force, such as "Landlock 7 and seccomp". Fails if the kernel lacks one of them: `what` names it,
// and the other is in force.
Result<std::string> enter_sandbox(const SandboxNeeds& needs);

// The values of `--sandbox`.
constexpr std::string_view kSandboxAuto = "auto", kSandboxRequire = "require", kSandboxOff = "off";

// Why `when` is none of them; nothing where it is one.
std::optional<std::string> sandbox_fault(std::string_view when);

// Does what `when` says. The value tells what is missing of the sandbox, empty where nothing is or none was wanted; an
// error is the same where one is required. `gpu_user` is what may use a GPU, whose driver opens files and devices of
// its own: then there is no sandbox. Empty: nothing does.
Result<std::string> begin_sandbox(std::string_view when, const SandboxNeeds& needs, std::string_view gpu_user = {});

// Why it is no use to enter in this build, a sanitizer's or one that counts lines, which write and trace at exit; empty
// for all others.
std::string sandbox_conflict();

}  // namespace ptxkit
