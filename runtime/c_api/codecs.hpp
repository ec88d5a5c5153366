// The codecs of the ABI: LZ4, one for each row of runtime/codec/format/codecs.def, those of libzstd and libdeflate, and
// typed rANS.
#pragma once

#include <optional>

#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/ptz.hpp"

namespace ptxkit::c_api {

// What a codec and a level stand for.
struct Coding {
  enum class Kind : uint8_t { lz4, ptz, zstd, deflate, typed } kind = Kind::lz4;
  const format::PtzCodecRow* ptz = nullptr;                     // of `.ptz` and typed rANS
  format::Elements elements = format::Elements::bytes;          // of typed rANS
  codec::MatchSearch search = codec::MatchSearch::chains;       // of `.ptz`
  bool is_high = false;                                         // of LZ4
  int level = 0;                                                // of libzstd or libdeflate
  codec::DeflateWrapper wrapper = codec::DeflateWrapper::none;  // of libdeflate

  bool is_lz4() const { return kind == Kind::lz4; }
  // Of `.ptz` and typed rANS: what the header of a container says.
  format::PtzHeader ptz_header() const;
};

// Errors: no such codec; no such level.
Answer<Coding> coding_of(ptxkit_codec codec, int32_t level);
Answer<ptxkit_codec_info> info_of(ptxkit_codec codec);

// The elements that dtype and stride stand for; none for codecs other than typed rANS. Errors: no such dtype or stride;
// a codec that has none.
Answer<std::optional<format::Elements>> elements_of(ptxkit_codec codec, uint32_t dtype, uint32_t stride);

}  // namespace ptxkit::c_api
