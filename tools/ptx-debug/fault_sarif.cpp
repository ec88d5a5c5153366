// See fault_sarif.hpp.
#include "tools/ptx-debug/fault_sarif.hpp"

#include <algorithm>
#include <ranges>
#include <vector>

#include <fmt/format.h>

#include "analyzer/report/sarif.hpp"
#include "support/check.hpp"

namespace ptxkit::tools {
namespace {

using report::RunFault;

RunFault::Place place_of(const ptx::Module& module, std::string_view function,
                         ptx::InstructionId instruction = ptx::kNone) {
  const auto found = std::ranges::find_if(
      module.functions, [&](const ptx::Function& each) { return each.has_body && each.name == function; });
  PTXKIT_CHECK(found != module.functions.end(), "faults are in functions with a body");
  return {static_cast<ptx::FunctionId>(found - module.functions.begin()), instruction};
}

std::string text_of(const emulator::ThreadId& id) {
  const auto& [block, thread] = id;
  return fmt::format("thread ({},{},{}) of block ({},{},{})", thread[0], thread[1], thread[2], block[0], block[1],
                     block[2]);
}

RunFault run_fault(const ptx::Module& module, const emulator::Fault& fault) {
  RunFault out{.rule = std::string(emulator::rule(fault.kind)),
               .kind = std::string(emulator::name(fault.kind)),
               .meaning = std::string(emulator::text(fault.kind)),
               .message = fault.message,
               .at = place_of(module, fault.site.entry, fault.site.instruction),
               .other = {},
               .properties = {{"thread", text_of(fault.thread)}}};
  if (fault.has_address) {
    out.properties.emplace_back("address", fmt::format("{:#x}", fault.address));
    out.properties.emplace_back("access", fmt::format("{} bytes", fault.access_bytes));
  }
  if (!fault.object.empty())
    out.properties.emplace_back(
        "object", fmt::format("'{}' of {} bytes, offset {}", fault.object, fault.object_bytes, fault.object_offset));
  if (fault.undefined.bytes != 0) {
    std::string ranges;
    for (const auto& [offset_bytes, size_bytes] : fault.undefined.ranges)
      ranges += fmt::format("{}{} to {}", ranges.empty() ? "" : ", ", offset_bytes, offset_bytes + size_bytes - 1);
    out.properties.emplace_back("undefined", fmt::format("{} bytes in {} ranges: {}", fault.undefined.bytes,
                                                         fault.undefined.range_count, ranges));
  }
  if (fault.has_other)
    out.other.emplace(place_of(module, fault.other_site.entry, fault.other_site.instruction),
                      fmt::format("{}: {}", fault.other_message, text_of(fault.other_thread)));
  return out;
}

}  // namespace

std::string fault_sarif(const ptx::Module& module, std::span<const emulator::Fault> faults,
                        std::span<const emulator::Fault> notes, int exit_code) {
  std::vector<RunFault> all;
  for (const emulator::Fault& fault : faults) all.push_back(run_fault(module, fault));
  for (const emulator::Fault& note : notes) {
    all.push_back(run_fault(module, note));
    all.back().is_note = true;
  }
  return to_sarif(module, all, exit_code);
}

std::string gpu_fault_sarif(const ptx::Module& module, std::string_view entry, std::string_view kind,
                            std::string_view what, int exit_code) {
  std::vector<RunFault> all;
  if (!kind.empty()) {
    const std::string text(what);
    all.push_back({.rule = {},
                   .kind = std::string(kind),
                   .meaning = text,
                   .message = text,
                   .at = place_of(module, entry),
                   .other = {},
                   .properties = {}});
  }
  return to_sarif(module, all, exit_code);
}

}  // namespace ptxkit::tools
