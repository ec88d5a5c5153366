// Z3, opened at run time: a question in SMT-LIB 2 and its answer.
//
// An answer depends on the question, the limit and the version of Z3 alone: work is bounded by Z3's own count of steps,
// not by time, and each question has a context of its own. So threads may ask at the same time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "support/result.hpp"

namespace ptxkit::prove {

struct Reply {
  enum class Kind : uint8_t { unsatisfiable, satisfiable, unknown } kind = Kind::unknown;
  uint32_t steps = 0;                       // that were taken
  std::map<std::string, uint64_t> model{};  // of a satisfiable question: its symbols; those left out may have any value
};

class Solver {
 public:
  // Opens libz3.so.4, or the library that PTXKIT_LIBZ3 names. Fails where there is none.
  static Result<std::shared_ptr<const Solver>> open();

  const std::string& version() const { return version_; }
  // Declarations, definitions and assertions, without commands; `limit` is in Z3's steps. A question that Z3 cannot
  // read is unknown.
  Reply ask(const std::string& question, uint32_t limit) const;

 private:
  struct Api;
  Solver() = default;

  std::shared_ptr<const Api> api_;
  std::string version_;
};

}  // namespace ptxkit::prove
