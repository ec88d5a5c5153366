#pragma once

namespace ptxkit::testing {

// Runs crash case `number` (0 fails, 1 spins) and writes its status, whether it timed out (two ints) and its debug
// buffer to standard output. Exit status 0; 2 if it could not be run.
int crash_main(int number);

}  // namespace ptxkit::testing
