#include "tools/ptx-pack/man_page.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "support/roff.hpp"

namespace ptxkit::pack {

std::string man_page(const CLI::App& app, const std::string& name, const std::string& version) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::string description = app.get_description();
  std::string summary = description.substr(0, description.find_first_of(".\n"));
  summary.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(summary.front())));
  std::string out = fmt::format(
      ".TH {} 1 \"\" \"ptxkit {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "\\fB{}\\fR [\\fIOPTION\\fR]... [\\fIFILE\\fR]...\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
      roff(title), version, roff(name), roff(summary), roff(name), roff(description));
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    std::vector<std::string> names;
    for (const std::string& each : option->get_snames()) names.push_back("-" + each);
    for (const std::string& each : option->get_lnames()) names.push_back("--" + each);
    if (names.empty()) names.push_back(option->get_name(true));
    const bool has_value = option->get_items_expected_max() != 0 && option->nonpositional();
    out += roff_option(names, has_value ? option->get_type_name() : std::string(), option->get_description());
  }
  return out + fmt::format(".SH EXIT STATUS\n{}\n", roff(app.get_footer()));
}

}  // namespace ptxkit::pack
