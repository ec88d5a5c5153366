// A GPU that is ready and the CPU as one backend, of which each stream takes the one that is faster for it.
#pragma once

#include <memory>
#include <optional>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/policy.hpp"

namespace ptxkit::codec {

// `started`: what both were measured to take, without the GPU's start. `usual_bytes`: of a stream that does not say how
// long it is. Linked blocks and an encoder that the GPU lacks are the CPU's. Whatever asks nobody who should do it goes
// to `gpu`.
std::unique_ptr<Backend> choosing(std::shared_ptr<Backend> gpu, std::shared_ptr<Backend> cpu, Calibration started,
                                  std::optional<uint64_t> usual_bytes);

}  // namespace ptxkit::codec
