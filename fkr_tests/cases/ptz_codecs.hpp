// Every block codec of `.ptz`, for tests that hold for all of them.
#pragma once

#include <vector>

#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::testing {

inline std::vector<format::PtzCodec> ptz_codecs() {
  std::vector<format::PtzCodec> codecs;
  for (const format::PtzCodecRow& row : format::ptz_codecs()) codecs.push_back(row.codec);
  return codecs;
}

}  // namespace ptxkit::testing
