// The checksums of gzip and zlib.
#pragma once

#include <cstdint>
#include <span>

namespace ptxkit::kernels {

uint32_t crc32_reference(std::span<const uint8_t> bytes);
uint32_t adler32_reference(std::span<const uint8_t> bytes);

}  // namespace ptxkit::kernels
