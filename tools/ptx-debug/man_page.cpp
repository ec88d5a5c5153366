#include <string>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/identity.hpp"
#include "support/roff.hpp"
#include "tools/ptx-debug/config.hpp"
#include "tools/ptx-debug/flag_tree.hpp"

namespace ptxkit::tools {
std::string man_page(const std::vector<VerbFlags>& verbs, const std::string& summary) {
  std::string out = fmt::format(
      ".TH PTX\\-DEBUG 1 \"\" \"ptxkit {}\" \"User Commands\"\n.SH NAME\nptx\\-debug \\- {}\n.SH SYNOPSIS\n"
      "\\fBptx\\-debug\\fR \\fIVERB\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n.SH VERBS\n",
      report::tool_version(), roff(summary));
  for (const VerbFlags& verb : verbs) {
    out += fmt::format(".SS {}", verb.name);
    for (const Flag& flag : verb.operands) out += " " + roff(flag.names.front());
    out += "\n" + roff(verb.help) + "\n";
    for (const Flag& flag : verb.options) out += roff_option(flag.names, flag.value, flag.help);
  }
  out += fmt::format(
      ".SH EXIT STATUS\nOf \\fBanalyze\\fR:\n"
      ".TP\n0\nscore at least 90\n.TP\n1\nscore 70 to 89: a high finding that is likely is enough\n"
      ".TP\n2\nscore below 70, or below \\-\\-min\\-score: a high finding that is proved or observed is enough; or a "
      "finding "
      "that \\-\\-fail\\-on names\n"
      ".TP\n3\na critical finding\n.TP\n10\na text does not parse\n.TP\n11\na file cannot be read or written\n"
      ".TP\n64\nwrong usage\n"
      ".SH ENVIRONMENT\n.TP\nNO_COLOR\nnot empty: no colour, unless \\-\\-color says always\n"
      ".SH FILES\n.TP\n{}\noptions of \\fBanalyze\\fR as \\fIname\\fR = \\fIvalue\\fR, in the working folder or above "
      "it up to the top of its git repository. The file is used only if you or root own it and no other user may write "
      "it. It cannot set programs or outputs, and it reads files of the repository only. A file that \\-\\-config "
      "names may set everything.\n",
      roff(kConfigName));
  return out;
}

}  // namespace ptxkit::tools
