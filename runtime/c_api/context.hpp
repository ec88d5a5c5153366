// The handle of batches and streams.
#pragma once

#include <map>
#include <mutex>

#include "runtime/c_api/status.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/library/engine.hpp"
#include "runtime/library/lz4.hpp"

// Opaque to callers.
struct ptxkit_context {
  ptxkit::library::Lz4 lz4;
  ptxkit::codec::ZstdCoder zstd{lz4.engine().executor()};        // of batches
  ptxkit::codec::DeflateCoder deflate{lz4.engine().executor()};  // of batches
  std::mutex mutex = {};                                         // of what follows
  ptxkit::codec::DeviceTimes times = {};
  std::map<void*, ptxkit::codec::HostMemory> memories = {};

  void add(const ptxkit::codec::DeviceTimes& more) {
    const std::lock_guard lock(mutex);
    times += more;
  }
};
