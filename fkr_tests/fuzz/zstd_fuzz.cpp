// Fuzzes the reader of Zstandard frames. Decoding must end with raw bytes or with an error that names the position.
// libzstd is the oracle: both must accept the same streams and give the same bytes, with the exceptions in
// may_differ().
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <zstd.h>

#include "fkr_tests/fuzz/limited_sink.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"

namespace {

using ptxkit::fuzz::kMaxRawBytes;
using ptxkit::fuzz::LimitedSink;
using ByteVector = std::vector<uint8_t>;

struct OracleAnswer {
  bool is_complete = false;  // every byte was read, and the last frame is complete
  bool is_too_long = false;
  std::string error;
  ByteVector raw;
};

OracleAnswer decode_with_libzstd(const uint8_t* data, size_t size) {
  OracleAnswer answer;
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  if (context == nullptr) std::abort();
  ByteVector room(1 << 17);
  ZSTD_inBuffer in{data, size, 0};
  while (true) {
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    const size_t before = in.pos, code = ZSTD_decompressStream(context, &out, &in);
    if (ZSTD_isError(code)) {
      answer.error = ZSTD_getErrorName(code);
      break;
    }
    answer.raw.insert(answer.raw.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(out.pos));
    answer.is_too_long = answer.raw.size() > kMaxRawBytes;
    answer.is_complete = in.pos == size && code == 0 && size != 0;
    if (answer.is_complete || answer.is_too_long || (in.pos == before && out.pos == 0)) break;
  }
  ZSTD_freeDCtx(context);
  return answer;
}

// libzstd takes frames of its versions before 0.8, and blocks of one repeated byte that are longer than a block may be.
// Its streams take a compressed block of 0 bytes, which its functions for whole buffers refuse, as RFC 8878 has it.
bool may_differ(const std::string& ours) {
  return ours.find("not a Zstandard frame: expected the magic number 0xfd2fb528, found 0xfd2fb52") != ours.npos ||
         ours == "a compressed block of 0 bytes" ||
         (ours.find("a block of ") != ours.npos && ours.find("expected at most") != ours.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ptxkit::codec::Executor executor(1);
  static ptxkit::codec::ZstdCoder coder(executor);
  ptxkit::format::MemorySource source({data, size}, "fuzz");
  LimitedSink sink;
  const auto decoded = ptxkit::codec::decompress_zstd(source, sink, executor, coder);
  const std::string error = decoded ? "" : decoded.error().what;
  if (!decoded && error != "enough" && decoded.error().where.empty()) std::abort();

  const OracleAnswer oracle = decode_with_libzstd(data, size);
  if (oracle.is_too_long || error == "enough") return 0;
  if (decoded.has_value() == oracle.is_complete && (!decoded || sink.raw == oracle.raw)) return 0;
  if (!decoded && may_differ(error)) return 0;
  std::fprintf(stderr, "ours: %s, %zu bytes; libzstd: %s, %zu bytes\n",
               decoded ? "decoded" : (error + " at " + decoded.error().where).c_str(), sink.raw.size(),
               oracle.is_complete ? "decoded" : ("refused: " + oracle.error).c_str(), oracle.raw.size());
  std::abort();
}
