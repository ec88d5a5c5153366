#pragma once

namespace ptxkit::testing {

// Runs one probe of kernels/probes with `offset` at the driver's optimisation `level` and prints the line of
// tools::run_probe. Exit status 0; 2 if the probe could not be run.
int probe_main(const char* name, int offset, int level);

}  // namespace ptxkit::testing
