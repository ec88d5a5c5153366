// DslError: misuse of the DSL that tracing detects. It names the place of the misuse, the place that causes it (where a
// branch diverged, where a scope closed), and the remedy.
#pragma once

#include <stdexcept>
#include <string>

#include "builder/types.hpp"

namespace ptxkit::dsl {

class DslError : public std::runtime_error {
 public:
  // `what` happened at `where`; `other_what` at `other` explains it; `remedy` says what to write instead.
  DslError(const std::string& what, Where where, const std::string& other_what, Where other, const std::string& remedy);
  DslError(const std::string& what, Where where, const std::string& remedy);

  Where where() const { return where_; }
  Where other() const { return other_; }  // equals where() if there is no second place

 private:
  Where where_;
  Where other_;
};

// `where` as "kernels/lz4/decode.cpp:41": the path is relative to the project's root, so that emitted text does not
// depend on the build's directory.
std::string place(Where where);
std::string relative_path(const char* file_name);

}  // namespace ptxkit::dsl
