// Scalar references of the kernels of batches (lz4_batch_*), for one item.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

struct BatchItem {
  BatchStatus status;
  uint64_t size_bytes;  // the value that the kernel stores in output_bytes: 0 unless ok
};

// Decodes `src` into `dst`. Whatever the input, it reads no byte outside `src` and `dst` and writes none outside `dst`.
BatchItem lz4_batch_decompress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, BatchFraming framing);

// The decoded size of `src`; 0 unless ok.
BatchItem lz4_batch_size_reference(std::span<const uint8_t> src, BatchFraming framing);

// The two of framings `frame` and `hdf5`.
BatchItem lz4_batch_framed_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, BatchFraming framing);
BatchItem lz4_batch_framed_size_reference(std::span<const uint8_t> src, BatchFraming framing);

}  // namespace ptxkit::kernels
