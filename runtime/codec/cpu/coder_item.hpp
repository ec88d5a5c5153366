// An item that is compressed or decompressed as a whole, by one thread.
#pragma once

#include <cstdint>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::codec {

struct CoderItem {
  format::Bytes input;
  format::MutableBytes output;
  // Results:
  size_t output_bytes = 0;
  enum class Status : uint8_t { ok, damaged, bad_checksum, output_too_small } status = Status::ok;
};

}  // namespace ptxkit::codec
