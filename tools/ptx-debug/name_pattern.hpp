// A regular expression on the command line that selects kernels or functions by name.
#pragma once

#include <regex>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::tools {

class NamePattern {
 public:
  // ECMAScript without back references, of at most 4000 bytes. Error: not a valid expression; the message begins with
  // `option`.
  static Result<NamePattern> parse(std::string_view option, const std::string& text);

  // Whether it matches somewhere in the name.
  bool matches(std::string_view name) const {
    return std::regex_search(name.begin(), name.end(), regex_, std::regex_constants::match_continuous);
  }

 private:
  std::regex regex_;  // of a name's beginning up to the end of the match
};

}  // namespace ptxkit::tools
