// DslError: misuse of the DSL that only shows while a kernel is traced. It names the place of the misuse, the other
// place that makes it one (where a branch diverged, where a scope closed), and the remedy.
#pragma once

#include <stdexcept>
#include <string>

#include "builder/types.hpp"

namespace ptxkit::dsl {

class DslError : public std::runtime_error {
 public:
  // `what` at `where`; `other_what` at `other` explains it; `remedy` says what to write instead.
  DslError(const std::string& what, Where where, const std::string& other_what, Where other, const std::string& remedy);
  DslError(const std::string& what, Where where, const std::string& remedy);

  Where where() const { return where_; }
  Where other() const { return other_; }  // equals where() if there is no second place

 private:
  Where where_;
  Where other_;
};

// `where` as "kernels/lz4/decode.cpp:41": the path relative to the project's root, so that what is emitted does not
// depend on the directory of the build.
std::string place(Where where);
std::string relative_path(const char* file_name);

}  // namespace ptxkit::dsl
