// A backend whose host memory comes from an allocator of the caller.
#pragma once

#include <functional>
#include <memory>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

// Allocates memory for the batches of streams, aligned to 64 bytes or more; null when there is none. Called from any
// thread.
using AllocateHostMemory = std::function<std::shared_ptr<uint8_t>(size_t size_bytes)>;

// Returns `backend` itself if `allocate` is empty.
std::unique_ptr<Backend> with_allocator(std::unique_ptr<Backend> backend, const AllocateHostMemory& allocate);

}  // namespace ptxkit::codec
