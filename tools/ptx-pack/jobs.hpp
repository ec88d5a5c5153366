// The two jobs that write no file: listing and measuring. Their output is buffered.
#pragma once

#include <optional>
#include <string>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// Prints one line for all of an input on standard output, after a heading if `with_heading`. `with_budget`: and a line
// for each kind of content, with its bytes.
Result<void> list_file(const InputName& name, bool with_heading, bool with_budget);

// Compresses and decompresses `path` in memory for a second each and prints sizes and speeds on standard output.
Result<void> bench_file(const std::string& path, codec::Backend& backend, std::optional<codec::Encoder> encoder,
                        const format::FrameHeader& header);

// Writes buffered output. Fails if any output since the start of the program was lost.
Result<void> flush_standard_output();

}  // namespace ptxkit::pack
