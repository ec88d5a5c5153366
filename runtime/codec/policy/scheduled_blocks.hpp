// Combines a device and the CPU into one coder of blocks, as scheduled_backend.hpp does for LZ4.
#pragma once

#include <memory>

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/policy/shared_work.hpp"

namespace ptxkit::codec {

// `notice` is called from any thread, at most once. With Sharing::both, `device` and `cpu` must not use the same
// Executor: each would wait for the other.
std::unique_ptr<BlockCoder> schedule(std::unique_ptr<BlockCoder> device, std::unique_ptr<BlockCoder> cpu,
                                     Sharing sharing, FallbackNotice notice);

}  // namespace ptxkit::codec
