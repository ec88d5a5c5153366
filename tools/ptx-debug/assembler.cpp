// See assembler.hpp.
#include "tools/ptx-debug/assembler.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "support/file.hpp"
#include "tools/ptx-debug/scratch_folder.hpp"
#include "tools/ptx-debug/shell_command.hpp"

namespace ptxkit::tools {
namespace {

constexpr std::chrono::minutes kLimit{10};

// "Compiling entry function 'NAME' for 'sm_75'", and later "Used 8 registers, ...".
constexpr std::string_view kEntry = "Compiling entry function '", kUsed = "Used ";

}  // namespace

Result<Assembler> Assembler::at(std::string program) {
  const auto status = run_shell(shell_quoted(program) + " --version", kLimit);
  if (!status) return tl::unexpected(status.error());
  if (*status != 0) return fail(fmt::format("--ptxas: cannot run '{} --version'", program));
  return Assembler(std::move(program));
}

Assembler::Counts Assembler::assembled(const ptx::Module& module) const {
  const ScratchFolder scratch("ptx-assemble");
  const std::string source = scratch.path() / "module.ptx", said = scratch.path() / "said";
  if (scratch.path().empty() || !write_file(source, module.text)) return {};
  const auto status = run_shell(fmt::format("{} -v -c -O3 -arch={} -o /dev/null {} >{} 2>&1", shell_quoted(program_),
                                            shell_quoted(module.target), shell_quoted(source), shell_quoted(said)),
                                kLimit);
  const auto text = read_file(said);
  if (!status || *status != 0 || !text) return {};
  Counts counts;
  std::string kernel;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const size_t name = line.find(kEntry); name != line.npos) {
      const size_t begin = name + kEntry.size();
      kernel = line.substr(begin, line.find('\'', begin) - begin);
    }
    const size_t used = line.find(kUsed);
    if (kernel.empty() || used == line.npos) continue;
    uint32_t count = 0;
    const char* const digits = line.data() + used + kUsed.size();
    if (std::from_chars(digits, line.data() + line.size(), count).ptr != digits) counts[kernel] = count;
    kernel.clear();
  }
  return counts;
}

std::optional<uint32_t> Assembler::registers(const ptx::Module& module, const std::string& kernel) {
  const size_t key = std::hash<std::string_view>()(module.text);
  std::unique_lock lock(*mutex_);
  if (!known_.contains(key)) {
    lock.unlock();
    Counts counts = assembled(module);
    lock.lock();
    known_.emplace(key, std::move(counts));
  }
  const Counts& counts = known_[key];
  const auto found = counts.find(kernel);
  return found == counts.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace ptxkit::tools
