#include "support/json_depth.hpp"

#include <algorithm>

namespace ptxkit {

size_t json_depth(std::string_view text) {
  size_t depth = 0, deepest = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '[':
      case '{':
        deepest = std::max(deepest, ++depth);
        break;
      case ']':
      case '}':
        depth -= depth > 0;
        break;
      case '"':
        for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
        break;
      default:
        break;
    }
  }
  return deepest;
}

}  // namespace ptxkit
