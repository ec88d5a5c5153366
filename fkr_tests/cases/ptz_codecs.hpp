// Every block codec of `.ptz`, for tests that hold for all of them.
#pragma once

#include <vector>

#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::testing {

// Of those with options, two combinations.
inline std::vector<format::PtzCoding> ptz_codecs() {
  std::vector<format::PtzCoding> codecs;
  for (const format::PtzCodecRow& row : format::ptz_codecs()) {
    codecs.emplace_back(row.codec);
    if (!row.has_chunked_form()) continue;
    for (const format::ChunkedRans form : {format::ChunkedRans{4, 1024}, format::ChunkedRans{32, 4096}})
      codecs.emplace_back(row.codec, form);
  }
  return codecs;
}

}  // namespace ptxkit::testing
