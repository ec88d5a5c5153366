#include "support/roff.hpp"

#include <fmt/format.h>

namespace ptxkit {

std::string roff(std::string_view text) {
  std::string out;
  bool is_line_begin = true;
  for (const char c : text) {
    if (is_line_begin && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    is_line_begin = c == '\n';
  }
  return out;
}

std::string roff_option(const std::vector<std::string>& names, std::string_view value, std::string_view help) {
  std::string head;
  for (const std::string& name : names) head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", roff(name));
  if (!value.empty()) head += fmt::format(" \\fI{}\\fR", roff(value));
  return fmt::format(".TP\n{}\n{}\n", head, roff(help));
}

}  // namespace ptxkit
