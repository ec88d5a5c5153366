#include "analyzer/instrument/crash.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"

namespace ptxkit::instrument {
namespace {

constexpr uint32_t kOften = 3;
constexpr int kMisalignedAddress = 716, kIllegalAddress = 700;
constexpr std::string_view kMisaligned[] = {"F051", "F081", "F082", "F021", "F089"};
constexpr std::string_view kOutside[] = {"F054", "F025", "F024", "F030", "F070"};

std::vector<uint32_t> lines_of(const Crash& crash) {
  std::set<uint32_t> lines;
  for (const Standing& standing : crash.standing)
    lines.insert(standing.marker->next_lines.begin(), standing.marker->next_lines.end());
  return {lines.begin(), lines.end()};
}

bool may_explain(std::string_view rule, const Ending& ending) {
  if (ending.error == kMisalignedAddress) return std::ranges::find(kMisaligned, rule) != std::end(kMisaligned);
  if (ending.error == kIllegalAddress) return std::ranges::find(kOutside, rule) != std::end(kOutside);
  return std::ranges::find(kMisaligned, rule) != std::end(kMisaligned) ||
         std::ranges::find(kOutside, rule) != std::end(kOutside);
}

Suspect suspect_at(const ptx::Module& module, const ptx::Function& function, ptx::InstructionId id, std::string rule,
                   std::string message) {
  const ptx::Instruction& instruction = function.instructions[id];
  const auto places = report::source_places(module, instruction.location);
  return {std::move(rule), module.position(instruction.opcode_at).line,
          printable(report::statement_at(module, instruction.at)),
          places.empty() ? "" : fmt::format("{}:{}", places.front().file, places.front().line), std::move(message)};
}

Suspect suspect_at(const Marker& marker, std::string rule, std::string message) {
  return {std::move(rule), marker.line, marker.ptx, marker.source, std::move(message)};
}

// Findings of the rules on instructions that a thread may have died at, by severity.
std::vector<Suspect> from_rules(const ptx::Module& module, const std::vector<uint32_t>& lines, const Ending& ending) {
  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  const report::FileAnalysis analysis = report::analyze(std::string(module.text), module.path, options);
  std::vector<std::pair<const rules::Finding*, Suspect>> found;
  for (const report::KernelAnalysis& kernel : analysis.kernels) {
    if (kernel.function == ptx::kNone) continue;
    const ptx::Function& function = analysis.parsed.module.functions[kernel.function];
    for (const report::RuleVerdict& verdict : kernel.verdicts) {
      if (!may_explain(verdict.rule->id, ending)) continue;
      for (const rules::Finding& finding : verdict.result.findings) {
        if (finding.instruction == ptx::kNone || finding.severity == rules::Severity::info) continue;
        Suspect suspect = suspect_at(analysis.parsed.module, function, finding.instruction,
                                     std::string(verdict.rule->id), finding.message);
        if (std::ranges::binary_search(lines, suspect.line)) found.emplace_back(&finding, std::move(suspect));
      }
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const auto& each) { return std::pair(each.first->severity, each.first->tier); });
  std::vector<Suspect> suspects;
  for (auto& [finding, suspect] : found) suspects.push_back(std::move(suspect));
  return suspects;
}

std::vector<Suspect> from_waiting(const Crash& crash) {
  std::vector<Suspect> suspects;
  for (const Standing& standing : crash.standing) {
    suspects.push_back(
        suspect_at(*standing.marker, crash.ended_count != 0 ? "F037" : "F039",
                   fmt::format("{} here, {} left", plural(standing.threads.size(), "thread waits", "threads wait"),
                               plural(crash.ended_count, "has", "have"))));
  }
  return suspects;
}

std::vector<Suspect> from_loops(const Crash& crash) {
  std::vector<Suspect> suspects;
  for (const Standing& standing : crash.standing) {
    if (standing.loop == nullptr) continue;
    suspects.push_back(suspect_at(*standing.loop, "F063",
                                  fmt::format("thread {} went round this loop {} times in its last markers",
                                              standing.threads.front(), standing.turns)));
  }
  return suspects;
}

// Where no rule speaks: every access that a thread may have died at.
std::vector<Suspect> from_accesses(const ptx::Module& module, const std::vector<uint32_t>& lines,
                                   const Ending& ending) {
  std::vector<Suspect> suspects;
  for (const ptx::Function& function : module.functions) {
    for (ptx::InstructionId id = 0; id < function.instructions.size(); ++id) {
      if (ptx::accesses_of(function, id).count == 0) continue;
      Suspect suspect = suspect_at(module, function, id, ending.error == kMisalignedAddress ? "F051" : "F054",
                                   "no rule refutes this access, but it comes after a last marker");
      if (std::ranges::binary_search(lines, suspect.line)) suspects.push_back(std::move(suspect));
    }
  }
  return suspects;
}

}  // namespace

Result<DebugBuffer> read_debug_buffer(std::span<const std::byte> bytes, const MarkerMap& map, const std::string& path) {
  if (bytes.size() != map.buffer_bytes())
    return fail(fmt::format("a debug buffer of {} records has {} bytes, this has {}", map.records, map.buffer_bytes(),
                            bytes.size()),
                path, "give the marker map of the kernel that wrote it, and its whole buffer");
  DebugBuffer buffer;
  uint32_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  buffer.marker_count = count;
  buffer.lost_count = count > map.records ? count - map.records : 0;
  for (uint64_t number = buffer.lost_count; number < count; ++number) {
    Record record;
    const std::byte* at = bytes.data() + 16 * (1 + number % map.records);
    std::memcpy(&record.id, at, sizeof record.id);
    std::memcpy(&record.thread, at + 4, sizeof record.thread);
    std::memcpy(&record.value, at + 8, sizeof record.value);
    record.number = number;
    if (record.id == 0 || (!map.is_set_by_author && record.value != number)) {
      ++buffer.unwritten_count;
      continue;
    }
    if (map.find(record.id) == nullptr)
      return fail(fmt::format("record {} has marker {}, the map has {}", number, record.id, map.markers.size()), path,
                  "give the marker map of the kernel that wrote it");
    buffer.records.push_back(record);
  }
  return buffer;
}

Crash locate(const MarkerMap& map, const DebugBuffer& buffer) {
  struct Thread {
    const Record* last = nullptr;
    std::map<uint32_t, uint32_t> loops;  // how often each loop's marker was set
  };
  std::map<uint32_t, Thread> threads;
  for (const Record& record : buffer.records) {
    Thread& thread = threads[record.thread];
    thread.last = &record;
    if (map.find(record.id)->kind == MarkerKind::loop) ++thread.loops[record.id];
  }
  Crash crash;
  crash.thread_count = threads.size();
  std::map<uint32_t, Standing> groups;
  for (const auto& [index, thread] : threads) {
    const Marker& marker = *map.find(thread.last->id);
    const bool has_ended = marker.kind == MarkerKind::exit || marker.is_last;
    crash.ended_count += has_ended ? 1 : 0;
    if (marker.kind == MarkerKind::exit) continue;
    Standing& standing = groups[marker.id];
    standing.marker = &marker;
    standing.threads.push_back(index);
    if (standing.threads.size() == 1 || thread.last->number > standing.last_number) {
      standing.last_number = thread.last->number;
      standing.last_value = thread.last->value;
    }
    for (const auto& [id, turns] : thread.loops) {
      if (turns < kOften || turns <= standing.turns) continue;
      standing.loop = map.find(id);
      standing.turns = turns;
    }
  }
  for (auto& [id, standing] : groups) {
    (standing.marker->is_last ? crash.at_last : crash.standing).push_back(std::move(standing));
  }
  std::ranges::sort(crash.standing, std::ranges::greater(), &Standing::last_number);
  crash.is_waiting = !crash.standing.empty() && std::ranges::all_of(crash.standing, [](const Standing& standing) {
    return standing.marker->kind == MarkerKind::barrier;
  });
  return crash;
}

std::vector<Suspect> suspects(const ptx::Module& module, const Crash& crash, const Ending& ending) {
  const std::vector<uint32_t> lines = lines_of(crash);
  if (!ending.deadline) {
    if (auto found = from_rules(module, lines, ending); !found.empty()) return found;
  }
  if (!ending.error) {
    if (crash.is_waiting) return from_waiting(crash);
    if (auto found = from_loops(crash); !found.empty()) return found;
  }
  return ending.deadline ? std::vector<Suspect>() : from_accesses(module, lines, ending);
}

}  // namespace ptxkit::instrument
