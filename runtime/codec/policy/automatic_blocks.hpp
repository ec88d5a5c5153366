// Codes blocks on the faster side without a calibration beforehand. All sides give the same bytes, so a stream begins
// on the CPU at once. If enough bytes are left to pay for it, a background thread starts a device and lets it code a
// few blocks. Then batches of the stream are tried on the device and on both sides, and the fastest of the three does
// the rest. The measured rates are kept for the next run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/policy/block_rates.hpp"
#include "runtime/codec/policy/shared_work.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

// How to decide on a device and to start it.
struct AutomaticDevice {
  // Opens the devices, which copy on `copies`. Returns null, after a notice, if there are none. Called once at most,
  // from a background thread.
  std::function<std::unique_ptr<BlockCoder>(Executor& copies)> open;
  uint64_t expected_bytes = 0;  // raw, in all
  unsigned cpu_threads = 0;
  std::string rates_path;      // empty: rates are kept nowhere
  size_t sample_bytes = 0;     // of the blocks that the device codes first
  size_t batch_bytes = 0;      // raw bytes of a batch that is worth sharing
  FallbackNotice notice = {};  // from any thread
};

// Whether `bytes` may pay for the start of a device, according to kept rates or to assumptions about an unknown device.
bool may_be_worth_a_device(const std::optional<BlockRates>& kept, unsigned cpu_threads, uint64_t bytes);

// The destructor waits for a device that is being started.
std::unique_ptr<BlockCoder> automatic_blocks(std::unique_ptr<BlockCoder> cpu, AutomaticDevice device);

}  // namespace ptxkit::codec
