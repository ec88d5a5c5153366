// A block of the codec of planes: an item of typed rANS (docs/format.md, "Typed arrays").
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/typed/typed_format.hpp"
#include "runtime/codec/blocks/budget.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::codec {

kernels::TypedLayout layout_of(format::Elements elements);

// As encode_block() and decode_block(). A block whose header names another layout than `elements` is damaged.
std::vector<uint8_t> encode_typed_block(format::Elements elements, format::Bytes raw);
bool decode_typed_block(format::Elements elements, format::Bytes coded, format::MutableBytes raw);
// Whether the header of `coded` is that of a block of `raw_bytes` with this layout.
bool opens_as_typed_block(format::Elements elements, format::Bytes coded, size_t raw_bytes);

// As add_ptz_block().
bool add_typed_block(format::Elements elements, format::Bytes block, size_t raw_bytes, Budget& budget);

}  // namespace ptxkit::codec
