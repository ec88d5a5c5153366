// A backend whose host memory is the caller's.
#pragma once

#include <functional>
#include <memory>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

// Memory for the batches of streams, at least 64-byte aligned; null says there is none. Called from any thread.
using AllocateHostMemory = std::function<std::shared_ptr<uint8_t>(size_t size_bytes)>;

// `backend` itself where `allocate` is empty.
std::unique_ptr<Backend> with_allocator(std::unique_ptr<Backend> backend, const AllocateHostMemory& allocate);

}  // namespace ptxkit::codec
