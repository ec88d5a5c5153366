// Combines a ready GPU and the CPU into one backend that runs each stream on the faster of the two.
#pragma once

#include <memory>
#include <optional>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/policy.hpp"

namespace ptxkit::codec {

// `started`: the measured times of both, without the start-up of the GPU. `usual_bytes`: the assumed length of a stream
// of unknown length. Jobs that the GPU does not support (linked blocks, an encoder that it lacks) go to the CPU.
// Batches that do not ask chosen_for() go to `gpu`.
std::unique_ptr<Backend> choosing(std::shared_ptr<Backend> gpu, std::shared_ptr<Backend> cpu, Calibration started,
                                  std::optional<uint64_t> usual_bytes);

}  // namespace ptxkit::codec
