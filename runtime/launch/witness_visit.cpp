#include "runtime/launch/witness_visit.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace ptxkit {
namespace {

using emulator::Visit;
using rules::Witness;
using Thread = std::optional<uint32_t> const (&)[3];

// What a witness of a rule describes.
enum class Kind : uint8_t {
  access,   // a thread accesses an address
  race,     // two threads access one byte
  barrier,  // one thread comes here, another does not
  other,
};

Kind kind_of(std::string_view rule) {
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"F021", Kind::access}, {"F025", Kind::access},  {"F026", Kind::access},  {"F029", Kind::access},
      {"F036", Kind::race},   {"F037", Kind::barrier}, {"F038", Kind::barrier}, {"F050", Kind::race},
      {"F051", Kind::access}, {"F054", Kind::access},  {"F055", Kind::access},  {"F060", Kind::access},
      {"F071", Kind::access}, {"F081", Kind::access},  {"F082", Kind::access}};
  const auto* const found = std::ranges::find(kKinds, rule, &std::pair<std::string_view, Kind>::first);
  return found == std::end(kKinds) ? Kind::other : found->second;
}

bool is_named(Thread thread) { return thread[0] || thread[1] || thread[2]; }

bool is_thread(Thread thread, const Visit& visit) {
  for (unsigned d = 0; d < 3; ++d)
    if (thread[d] && *thread[d] != visit.thread.thread[d]) return false;
  return true;
}

bool overlap(const Visit& x, const Visit& y) {
  return x.object == y.object && x.object_offset < y.object_offset + static_cast<int64_t>(y.access_bytes) &&
         y.object_offset < x.object_offset + static_cast<int64_t>(x.access_bytes);
}

// The visits of one block.
class Block {
 public:
  explicit Block(std::vector<const Visit*> visits) : visits_(std::move(visits)) {}

  // An instruction with several operations has several visits of a thread.
  bool has_reached(Thread thread, uint32_t line, uint64_t times) const {
    return std::ranges::any_of(visits_, [&](const Visit* visit) {
      return !visit->has_address && visit->line == line && is_thread(thread, *visit) && visit->times >= times;
    });
  }
  bool has_accessed(Thread thread, uint32_t line, int64_t offset) const {
    return std::ranges::any_of(accesses(thread, line),
                               [&](const Visit* visit) { return visit->object_offset == offset; });
  }
  bool have_met(const Witness& witness, uint32_t line, uint32_t other_line) const {
    const auto mine = accesses(witness.tid, line), theirs = accesses(witness.other_tid, other_line);
    return std::ranges::any_of(mine, [&](const Visit* x) {
      return std::ranges::any_of(theirs, [&](const Visit* y) { return overlap(*x, *y); });
    });
  }

 private:
  std::vector<const Visit*> accesses(Thread thread, uint32_t line) const {
    std::vector<const Visit*> found;
    std::ranges::copy_if(visits_, std::back_inserter(found), [&](const Visit* visit) {
      return visit->has_address && !visit->object.empty() && visit->line == line && is_thread(thread, *visit);
    });
    return found;
  }

  std::vector<const Visit*> visits_;
};

}  // namespace

std::vector<uint32_t> lines_to_watch(const ptx::Module& module, std::string_view rule, const rules::Finding& finding) {
  std::vector<uint32_t> lines = {module.position(finding.at).line};
  if (kind_of(rule) == Kind::race && !finding.path.empty())
    lines.push_back(module.position(finding.path.back().at).line);
  return lines;
}

bool matches_witness(const ptx::Module& module, std::string_view rule, const rules::Finding& finding,
                     std::span<const Visit> visits) {
  if (!finding.witness) return false;
  const Witness& witness = *finding.witness;
  const std::vector<uint32_t> lines = lines_to_watch(module, rule, finding);
  if (!is_named(witness.tid) && !witness.address) return false;
  std::map<std::array<uint32_t, 3>, std::vector<const Visit*>> blocks;
  for (const Visit& visit : visits) blocks[visit.thread.block].push_back(&visit);
  return std::ranges::any_of(blocks, [&](auto& entry) {
    const Block block(std::move(entry.second));
    if (!block.has_reached(witness.tid, lines[0], witness.iteration.value_or(0) + 1)) return false;
    switch (kind_of(rule)) {
      case Kind::access:
        return (!witness.address ||
                block.has_accessed(witness.tid, lines[0], static_cast<int64_t>(*witness.address))) &&
               (!is_named(witness.other_tid) || block.has_reached(witness.other_tid, lines[0], 1));
      case Kind::race:
        return is_named(witness.other_tid) && block.have_met(witness, lines[0], lines.back());
      case Kind::barrier:
        return is_named(witness.other_tid) && !block.has_reached(witness.other_tid, lines[0], 1);
      case Kind::other:
        return false;
    }
    return false;
  });
}

}  // namespace ptxkit
