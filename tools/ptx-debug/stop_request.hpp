// Work that may go on for long is stopped by Ctrl-C or a deadline and still says what it has.
#pragma once

#include <atomic>

namespace ptxkit::tools {

// Turns true at SIGINT and SIGTERM from the first call on, unless the parent has them ignored. A second signal ends the
// program as it would have without.
const std::atomic<bool>& stop_request();

// The same after `seconds`; at once for 0.
void request_stop_after(double seconds);

}  // namespace ptxkit::tools
