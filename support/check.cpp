#include "support/check.hpp"

#include <cstdio>
#include <cstdlib>

#include "support/result.hpp"

namespace ptxkit {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "ptxkit internal error: %s:%d: %s is false: %s\n", file, line, condition, why);
  std::abort();
}

std::string Error::message() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  text += what;
  if (!remedy().empty()) text.append("; ").append(remedy());
  return text;
}

std::string_view Error::remedy() const noexcept {
  if (!todo.empty() || kind != ErrorKind::no_memory) return todo;
  return "use smaller blocks, fewer threads or a memory budget";
}

}  // namespace ptxkit
