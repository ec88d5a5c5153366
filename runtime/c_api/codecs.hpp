// The codecs of the ABI: LZ4, and one for each row of runtime/codec/format/codecs.def.
#pragma once

#include "runtime/c_api/status.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::c_api {

// What a codec and a level stand for.
struct Coding {
  const format::PtzCodecRow* ptz = nullptr;                // null: LZ4
  codec::MatchSearch search = codec::MatchSearch::chains;  // of `.ptz`
  bool is_high = false;                                    // of LZ4

  bool is_lz4() const { return ptz == nullptr; }
};

// Errors: no such codec; no such level.
Answer<Coding> coding_of(ptxkit_codec codec, int32_t level);
Answer<ptxkit_codec_info> info_of(ptxkit_codec codec);

}  // namespace ptxkit::c_api
