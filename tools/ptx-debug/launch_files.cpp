#include "tools/ptx-debug/launch_files.hpp"

#include <fmt/format.h>

#include "analyzer/rules/engine/launch_file.hpp"
#include "runtime/launch/object_spec.hpp"

namespace ptxkit::tools {
namespace {

Result<void> check_object(const std::string& path, const std::string& whose, const std::string& spelling) {
  if (spelling.empty()) return {};
  const auto spec = parse_object_spec(spelling);
  if (spec) return {};
  return fail(fmt::format("launch file: 'object' of {}: {}", whose, spec.error().what), path, spec.error().todo);
}

Result<void> check_objects(const std::string& path, const flow::LaunchFacts& facts) {
  for (const auto& [name, known] : facts.parameters) {
    const std::string whose = fmt::format("parameter '{}'", name);
    if (auto done = check_object(path, whose, known.object); !done) return done;
    for (const flow::MemberFacts& member : known.members)
      if (auto done = check_object(path, whose, member.object); !done) return done;
  }
  for (const auto& [name, known] : facts.variables)
    if (auto done = check_object(path, fmt::format("variable '{}'", name), known.object); !done) return done;
  return {};
}

}  // namespace

Result<void> read_launch_file(const std::string& path, rules::LaunchSet& into) {
  rules::LaunchSet read;
  if (auto done = rules::load_launch_file(path, read); !done) return done;
  for (auto& [name, facts] : read) {
    if (auto done = check_objects(path, facts); !done) return done;
    into.insert_or_assign(name, std::move(facts));
  }
  return {};
}

}  // namespace ptxkit::tools
