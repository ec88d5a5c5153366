#include "runtime/launch/launch_file.hpp"

#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/rules/engine/launch_file.hpp"
#include "runtime/launch/object_spec.hpp"

namespace ptxkit {
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

Result<void> check_and_add(const std::string& path, rules::LaunchSet& read, rules::LaunchSet& into) {
  for (auto& [name, facts] : read) {
    if (auto done = check_objects(path, facts); !done) return done;
    into.insert_or_assign(name, std::move(facts));
  }
  return {};
}

}  // namespace

Result<void> read_launch_file(const std::string& path, rules::LaunchSet& into) {
  rules::LaunchSet read;
  return rules::load_launch_file(path, read).and_then([&] { return check_and_add(path, read, into); });
}

Result<void> parse_launch_text(std::string_view json, const std::string& name, rules::LaunchSet& into) {
  rules::LaunchSet read;
  return rules::parse_launch_file(json, name, read).and_then([&] { return check_and_add(name, read, into); });
}

}  // namespace ptxkit
