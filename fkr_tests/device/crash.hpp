#pragma once

namespace ptxkit::testing {

// Runs crash case `number` (0 dies, 1 spins) and writes its status, whether it timed out (two ints) and its debug
// buffer to standard output. Exit status 0; 2 when it could not be run at all.
int crash_main(int number);

}  // namespace ptxkit::testing
