// PTXKIT_CHECK: a bug of ours. Aborts with file, line and the condition; unreachable from any input.
#pragma once

namespace ptxkit {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace ptxkit

#define PTXKIT_CHECK(condition, why) \
  ((condition) ? static_cast<void>(0) : ::ptxkit::check_failed(__FILE__, __LINE__, #condition, why))
