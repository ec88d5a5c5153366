// Reads only the tree and the text. It never opens source files that `.file` names: PTX may name any path.
#include "analyzer/analyze/place.hpp"

#include <algorithm>
#include <utility>

#include "support/printable.hpp"

namespace ptxkit::report {
namespace {

constexpr size_t kInlineDepthLimit = 64;  // a damaged text may have a cycle of inlined_at

}  // namespace

std::vector<SourcePlace> source_places(const ptx::Module& module, ptx::LocationId location) {
  std::vector<SourcePlace> places;
  while (location < module.locations.size() && places.size() < kInlineDepthLimit) {
    const ptx::Location& entry = module.locations[location];
    const ptx::SourceFile* file = module.file(entry.file);
    places.push_back({file ? std::string(file->path) : "file " + std::to_string(entry.file), entry.line, entry.column});
    location = entry.inlined_at;
  }
  return places;
}

std::string_view statement_at(const ptx::Module& module, ptx::Offset at) {
  if (at >= module.text.size()) return {};
  const std::string_view rest = module.text.substr(at);
  return rest.substr(0, std::min(rest.find_first_of(";\n\r"), rest.size()));
}

std::string rendered(const ptx::ParseResult& parsed) {
  std::string out;
  for (const ptx::Diagnostic& diagnostic : parsed.diagnostics) out += ptx::render(parsed.module, diagnostic);
  return without_commands(std::move(out));
}

}  // namespace ptxkit::report
