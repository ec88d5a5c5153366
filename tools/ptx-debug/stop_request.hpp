// Stops long work on Ctrl-C or at a deadline, so that it can still report partial results.
#pragma once

#include <atomic>

namespace ptxkit::tools {

// Becomes true at SIGINT and SIGTERM after the first call, unless the parent process ignores these signals. A second
// signal has its default effect.
const std::atomic<bool>& stop_request();

// Sets the same flag after `seconds`; at once for 0.
void request_stop_after(double seconds);

}  // namespace ptxkit::tools
