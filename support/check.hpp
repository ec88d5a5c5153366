// PTXKIT_CHECK states an internal invariant. If it is false the program aborts with file, line and condition. No input
// may make it fail.
#pragma once

namespace ptxkit {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace ptxkit

#define PTXKIT_CHECK(condition, why) \
  ((condition) ? static_cast<void>(0) : ::ptxkit::check_failed(__FILE__, __LINE__, #condition, why))
