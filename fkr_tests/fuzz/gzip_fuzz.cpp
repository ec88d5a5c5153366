// Fuzzes the reader of gzip members. Decoding must end with raw bytes or with an error that names the position. zlib is
// the oracle: both must accept the same streams and give the same bytes, with the exceptions in may_differ().
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <zlib.h>

#include "fkr_tests/fuzz/limited_sink.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"

namespace {

using ptxkit::fuzz::kMaxRawBytes;
using ptxkit::fuzz::LimitedSink;
using ByteVector = std::vector<uint8_t>;

struct OracleAnswer {
  bool is_complete = false;  // every member is complete, and nothing but zeros follows
  bool is_too_long = false;
  bool has_header_crc = false;
  std::string error;
  ByteVector raw;
};

OracleAnswer decode_with_zlib(const uint8_t* data, size_t size) {
  constexpr int kGzipBits = 15 + 16;
  OracleAnswer answer;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipBits) != Z_OK) std::abort();
  ByteVector room(1 << 17);
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  const auto begin_member = [&] { answer.has_header_crc |= stream.avail_in > 3 && (stream.next_in[3] & 2) != 0; };
  begin_member();
  while (!answer.is_too_long) {
    stream.next_out = room.data();
    stream.avail_out = static_cast<uInt>(room.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    answer.raw.insert(answer.raw.end(), room.begin(), room.end() - stream.avail_out);
    answer.is_too_long = answer.raw.size() > kMaxRawBytes;
    if (code == Z_STREAM_END) {
      const uint8_t* const rest = stream.next_in;
      const uint8_t* const end = rest + stream.avail_in;
      answer.is_complete = std::all_of(rest, end, [](uint8_t byte) { return byte == 0; });
      if (answer.is_complete || end - rest < 2 || rest[0] != 0x1f || rest[1] != 0x8b) break;
      inflateReset(&stream);
      begin_member();
    } else if (code != Z_OK) {
      answer.error = stream.msg != nullptr ? stream.msg : "it ends early";
      break;
    }
  }
  inflateEnd(&stream);
  return answer;
}

// zlib checks the header's CRC, which gzip and this project do not; and it ignores the size that BGZF's field BC says,
// which this project believes.
bool may_differ(const OracleAnswer& oracle, const uint8_t* data, size_t size) {
  constexpr uint8_t kBgzf[] = {'B', 'C', 2, 0};
  return oracle.has_header_crc || std::search(data, data + size, std::begin(kBgzf), std::end(kBgzf)) != data + size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ptxkit::codec::Executor executor(1);
  static ptxkit::codec::DeflateCoder coder(executor);
  ptxkit::format::MemorySource source({data, size}, "fuzz");
  LimitedSink sink;
  const auto decoded = ptxkit::codec::decompress_gzip(source, sink, executor, coder);
  const std::string error = decoded ? "" : decoded.error().what;
  if (!decoded && error != "enough" && decoded.error().where.empty()) std::abort();

  const OracleAnswer oracle = decode_with_zlib(data, size);
  if (oracle.is_too_long || error == "enough") return 0;
  if (decoded.has_value() == oracle.is_complete && (!decoded || sink.raw == oracle.raw)) return 0;
  // What both read is the same in any case.
  if (decoded.has_value() != oracle.is_complete && may_differ(oracle, data, size)) return 0;
  std::fprintf(stderr, "ours: %s, %zu bytes; zlib: %s, %zu bytes\n",
               decoded ? "decoded" : (error + " at " + decoded.error().where).c_str(), sink.raw.size(),
               oracle.is_complete ? "decoded" : ("refused: " + oracle.error).c_str(), oracle.raw.size());
  std::abort();
}
