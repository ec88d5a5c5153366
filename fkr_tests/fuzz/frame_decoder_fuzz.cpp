// Fuzzes the LZ4 frame decoder. Decoding must end with raw bytes or with an error that names the position. liblz4 is
// the oracle: both must accept the same streams and give the same bytes, with the exceptions in may_differ(). With
// clang: -fsanitize=fuzzer,address; with any compiler: frame_decoder_smoke.cpp runs it on seeded mutations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include <lz4frame.h>

#include "fkr_tests/fuzz/limited_sink.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace {

using ByteVector = std::vector<uint8_t>;

using ptxkit::fuzz::kMaxRawBytes;
using ptxkit::fuzz::LimitedSink;

struct OracleAnswer {
  bool is_complete = false;  // every byte was read, and the last frame is complete
  bool is_too_long = false;
  std::string error;
  ByteVector raw;
};

OracleAnswer decode_with_liblz4(const uint8_t* data, size_t size) {
  OracleAnswer answer;
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) std::abort();
  ByteVector room(1 << 16);
  size_t position = 0;
  for (;;) {
    size_t written = room.size(), read = size - position;
    const size_t expected = LZ4F_decompress(context, room.data(), &written, data + position, &read, nullptr);
    if (LZ4F_isError(expected)) {
      answer.error = LZ4F_getErrorName(expected);
      break;
    }
    answer.raw.insert(answer.raw.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(written));
    position += read;
    answer.is_too_long = answer.raw.size() > kMaxRawBytes;
    answer.is_complete = position == size && expected == 0;
    if (answer.is_complete || answer.is_too_long || (read == 0 && written == 0)) break;
  }
  LZ4F_freeDecompressionContext(context);
  return answer;
}

bool contains(const uint8_t* data, size_t size, std::initializer_list<uint8_t> bytes) {
  return std::search(data, data + size, bytes.begin(), bytes.end()) != data + size;
}

// lz4_block_fuzz.cpp examines these two exceptions, which concern blocks, more closely.
bool may_differ(const std::string& ours, const OracleAnswer& oracle) {
  return ours.find("a match has offset 0") != std::string::npos ||  // liblz4 accepts it, against the format
         (ours.empty() &&
          oracle.error == "ERROR_decompressionFailed");  // it refuses blocks that ignore encoders' rules
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ptxkit::codec::Executor executor(1);
  static const auto backend = ptxkit::codec::make_cpu_backend(executor);
  ptxkit::format::MemorySource source({data, size}, "fuzz");
  LimitedSink sink;
  const auto decoded = ptxkit::codec::decompress_stream(source, sink, *backend);
  if (!decoded && decoded.error().what != "enough" && decoded.error().where.empty()) std::abort();

  const OracleAnswer oracle = decode_with_liblz4(data, size);
  // The legacy format is one of the program lz4, not of liblz4.
  const bool is_legacy = contains(data, size, {0x02, 0x21, 0x4c, 0x18});
  if (is_legacy || oracle.is_too_long || (!decoded && decoded.error().what == "enough")) return 0;
  if (decoded.has_value() == oracle.is_complete && (!decoded || sink.raw == oracle.raw)) return 0;
  if (decoded.has_value() != oracle.is_complete && may_differ(decoded ? "" : decoded.error().what, oracle)) return 0;
  std::fprintf(stderr, "ours: %s, %zu bytes; liblz4: %s, %zu bytes\n",
               decoded ? "decoded" : (decoded.error().what + " at " + decoded.error().where).c_str(), sink.raw.size(),
               oracle.is_complete ? "decoded" : ("refused: " + oracle.error).c_str(), oracle.raw.size());
  std::abort();
}
