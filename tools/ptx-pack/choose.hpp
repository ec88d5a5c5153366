// Chooses a codec for an input by a sample of it: --auto by statistics of the sample, --trial by coding it.
#pragma once

#include <optional>
#include <string>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

struct Choice {
  std::optional<format::PtzCoding> codec;  // empty: LZ4 frames
  std::string why;                         // for people: "entropy 4.57 bits a byte, …"
};

// `options.chooses` says how, `options.memory_bytes` leaves out the codecs that it has no room for.
Result<Choice> choose_codec(const format::RandomAccess& input, const Options& options);

}  // namespace ptxkit::pack
