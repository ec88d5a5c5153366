// The two jobs that write no file: listing and measuring.
#pragma once

#include "runtime/codec/backend.hpp"
#include "runtime/format/lz4_frame.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// One line for the whole of `path` on standard output, after a heading when `with_heading`.
Result<void> list_file(const std::string& path, bool with_heading);

// Compresses and decompresses `path` in memory for a second each and prints sizes and speeds on standard output.
Result<void> bench_file(const std::string& path, codec::Backend& backend, std::optional<codec::Encoder> encoder,
                        const format::FrameHeader& header);

}  // namespace ptxkit::pack
