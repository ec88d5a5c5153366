// Assembles the frame and a body; cmake/PtxkitEmbed.cmake compiles the texts in.
#include "kernels/probes/probes.hpp"

#include <utility>

#include "support/check.hpp"
#include "support/embedded.hpp"

namespace ptxkit::kernels {

extern const EmbeddedFile probe_files[];
extern const size_t probe_files_count;

namespace {

constexpr std::string_view kBodySuffix = ".body.ptx";

std::string_view content_of(std::string_view file_name) {
  for (size_t i = 0; i < probe_files_count; ++i) {
    if (probe_files[i].name == file_name) return probe_files[i].content;
  }
  return {};
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::vector<std::string_view> probe_names() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < probe_files_count; ++i) {
    std::string_view name = probe_files[i].name;
    if (!name.ends_with(kBodySuffix)) continue;
    name.remove_suffix(kBodySuffix.size());
    names.push_back(name);
  }
  return names;
}

std::string probe_ptx(std::string_view name, ProbeOffset offset) {
  static constexpr std::pair<std::string_view, std::string_view> kVariants[] = {
      {"0", "mov.u32 %offset, 0;"},
      {"1", "mov.u32 %offset, 1;"},
      {"2", "mov.u32 %offset, 2;"},
      {"as a parameter", "ld.param.u32 %offset, [offset];"}};
  const auto& [variant, statement] = kVariants[static_cast<size_t>(offset)];
  const std::string_view body = content_of(std::string(name) + std::string(kBodySuffix));
  PTXKIT_CHECK(!body.empty(), "no such probe");
  std::string text(content_of("frame.ptx.in"));
  replace_all(text, "@NAME@", name);
  replace_all(text, "@VARIANT@", variant);
  replace_all(text, "@OFFSET@", statement);
  replace_all(text, "@BODY@\n", body);
  return text;
}

}  // namespace ptxkit::kernels
