// The handle of batches and streams.
#pragma once

#include "runtime/c_api/status.hpp"
#include "runtime/library/engine.hpp"
#include "runtime/library/lz4.hpp"

// Opaque to callers.
struct ptxkit_context {
  ptxkit::library::Lz4 lz4;
};
