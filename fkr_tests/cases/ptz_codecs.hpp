// Every block codec of `.ptz`, for tests that hold for all of them.
#pragma once

#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::testing {

// Of those with options, two combinations.
inline std::vector<format::PtzCoding> ptz_codecs() {
  std::vector<format::PtzCoding> codecs;
  for (const format::PtzCodecRow& row : format::ptz_codecs()) {
    codecs.emplace_back(row.codec);
    if (row.has_elements()) codecs.emplace_back(row.codec, format::Elements::stride4);
    if (!row.has_chunked_form()) continue;
    for (const format::ChunkedRans form : {format::ChunkedRans{4, 1024}, format::ChunkedRans{32, 4096}})
      codecs.emplace_back(row.codec, form);
  }
  return codecs;
}

// Bytes of eight values with matches among them: every codec makes 3000 of them shorter.
inline std::vector<uint8_t> shrinking_bytes(size_t size, int seed) {
  std::vector<uint8_t> bytes = matchable_bytes(size, seed);
  for (uint8_t& byte : bytes) byte &= 7;
  return bytes;
}

}  // namespace ptxkit::testing
