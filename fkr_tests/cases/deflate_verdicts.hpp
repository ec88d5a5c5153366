// What libdeflate and zlib make of an item of Deflate, as oracles of our decoders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <libdeflate.h>
#include <zlib.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::testing {

// Nothing if the library refuses the item. Members of gzip, and zeros behind them, are taken apart here.
using DeflateVerdict = std::optional<Bytes>;

inline DeflateVerdict libdeflate_verdict(const Bytes& item, size_t room, kernels::DeflateFraming framing) {
  static libdeflate_decompressor* const decompressor = libdeflate_alloc_decompressor();
  const auto call = framing == kernels::DeflateFraming::raw    ? libdeflate_deflate_decompress_ex
                    : framing == kernels::DeflateFraming::zlib ? libdeflate_zlib_decompress_ex
                                                               : libdeflate_gzip_decompress_ex;
  Bytes bytes(room + 1);
  size_t at = 0, size = 0;
  do {
    size_t read = 0, written = 0;
    if (call(decompressor, item.data() + at, item.size() - at, bytes.data() + size, room - size, &read, &written) !=
        LIBDEFLATE_SUCCESS)
      return {};
    at += read;
    size += written;
    if (framing != kernels::DeflateFraming::gzip && at != item.size()) return {};
  } while (!std::all_of(item.begin() + static_cast<ptrdiff_t>(at), item.end(), [](uint8_t byte) { return byte == 0; }));
  bytes.resize(size);
  return bytes;
}

inline DeflateVerdict zlib_verdict(const Bytes& item, size_t room, kernels::DeflateFraming framing) {
  z_stream stream{};
  inflateInit2(&stream, framing == kernels::DeflateFraming::raw    ? -15
                        : framing == kernels::DeflateFraming::zlib ? 15
                                                                   : 31);
  Bytes bytes(room + 1);
  stream.next_in = const_cast<Bytef*>(item.data());
  stream.avail_in = static_cast<uInt>(item.size());
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(room);
  int code = Z_OK;
  while (true) {
    code = inflate(&stream, Z_FINISH);
    const bool is_padding =
        std::all_of(stream.next_in, stream.next_in + stream.avail_in, [](Bytef byte) { return byte == 0; });
    if (code != Z_STREAM_END || framing != kernels::DeflateFraming::gzip || is_padding) break;
    inflateReset(&stream);
  }
  const bool is_whole = framing == kernels::DeflateFraming::gzip || stream.avail_in == 0;
  bytes.resize(room - stream.avail_out);
  inflateEnd(&stream);
  if (code != Z_STREAM_END || !is_whole) return {};
  return bytes;
}

}  // namespace ptxkit::testing
