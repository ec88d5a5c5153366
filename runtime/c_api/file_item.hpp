// Items that are whole files in memory: LZ4 frames and `.ptz` containers, through the streams.
#pragma once

#include "runtime/c_api/codecs.hpp"
#include "runtime/c_api/context.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::c_api {

// The container of `raw`; returns its bytes.
Answer<size_t> compress_file_item(ptxkit_context& context, const Coding& coding, codec::Bytes raw,
                                  codec::MutableBytes output);
// The content of all frames, or of a container; returns its bytes.
Answer<size_t> decompress_file_item(ptxkit_context& context, bool is_lz4, codec::Bytes stored,
                                    codec::MutableBytes output);

// The most bytes of a container of `raw_bytes` bytes.
size_t ptz_bound(const format::PtzCodecRow& row, size_t raw_bytes);
// What the headers say. PTXKIT_UNSUPPORTED: a frame does not say its content's size.
Answer<size_t> raw_size_of_file(bool is_lz4, codec::Bytes stored);
Answer<size_t> raw_size_of_zstd(codec::Bytes stored);

}  // namespace ptxkit::c_api
