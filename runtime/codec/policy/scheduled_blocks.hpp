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

// How much of `count` blocks of `raw_bytes` each the device and the CPU take at a time when they share them: the CPU
// one block for each of its threads, the device enough to be busy.
SharedWork::Grain shared_grain(BlockCoder& device, BlockCoder& cpu, const BlockCoding& codec, size_t raw_bytes,
                               size_t count);

}  // namespace ptxkit::codec
