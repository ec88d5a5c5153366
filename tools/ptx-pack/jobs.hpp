// The two jobs that write no file: listing and measuring. What they say is buffered.
#pragma once

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// One line for the whole of `path` on standard output, after a heading when `with_heading`.
Result<void> list_file(const std::string& path, bool with_heading);

// Compresses and decompresses `path` in memory for a second each and prints sizes and speeds on standard output.
Result<void> bench_file(const std::string& path, codec::Backend& backend, std::optional<codec::Encoder> encoder,
                        const format::FrameHeader& header);

// Writes what is buffered; an error where not all of it, from the start, came through.
Result<void> flush_standard_output();

}  // namespace ptxkit::pack
