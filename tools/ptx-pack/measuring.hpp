// Measures the rates that --policy auto needs in a process of its own, after the command that lacked them has ended.
// Measuring takes ten seconds on all cores and the GPU, and the work of the command would falsify it.
#pragma once

#include "runtime/codec/select_backend.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// Starts a ptx-pack that waits for the end of this process and then measures. It prints nothing. If it cannot be
// started nothing is measured.
void measure_rates_after_this(const Options& options);

// --measure-rates. Where `options.waits_for_end`, once standard input has ended; and one process at a time for each
// file of rates, the others do nothing.
Result<void> measure_rates_now(const Options& options, codec::BackendRequest request);

}  // namespace ptxkit::pack
