// A bounded run of the fuzz target of Zstandard in every test run: frames of libzstd and of this project, damaged by a
// seeded generator. The same seeds give the same inputs everywhere. usage: zstd_smoke [COUNT]
#include <cstdlib>
#include <random>
#include <vector>

#include <zstd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"

namespace ptxkit {
namespace {

using ByteVector = std::vector<uint8_t>;

// Mostly without checksums, which would detect most damage at once.
ByteVector frame(std::mt19937& random) {
  const auto seed = [&] { return static_cast<uint32_t>(random()); };
  const ByteVector raw = random() % 4 == 0 ? testing::random_bytes(random() % 300, seed())
                                           : testing::matchable_bytes(random() % 3000, seed());
  const bool has_checksum = random() % 8 == 0, has_size = random() % 2 == 0;
  if (random() % 3 != 0) {
    ByteVector file(ZSTD_compressBound(raw.size()));
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, static_cast<int>(random() % 25) - 5);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, has_checksum);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, has_size);
    file.resize(ZSTD_compress2(context, file.data(), file.size(), raw.data(), raw.size()));
    ZSTD_freeCCtx(context);
    return file;
  }
  static codec::Executor executor(1);
  static codec::CpuBlocks coder(executor);
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  codec::ZstdCompressOptions options{.level = static_cast<int>(1 + random() % 3), .has_checksum = has_checksum};
  if (has_size) options.content_bytes = raw.size();
  options.is_seekable = random() % 4 == 0;
  if (!codec::compress_zstd(source, sink, executor, coder, options)) std::abort();
  return sink.take();
}

ByteVector valid_stream(std::mt19937& random) {
  ByteVector stream = frame(random);
  if (random() % 4 == 0) {
    const ByteVector more = frame(random);
    stream.insert(stream.end(), more.begin(), more.end());
  }
  if (random() % 6 == 0) {
    const ByteVector skippable = {0x50, 0x2a, 0x4d, 0x18, static_cast<uint8_t>(random() % 4), 0, 0, 0, 1, 2, 3};
    stream.insert(random() % 2 ? stream.begin() : stream.end(), skippable.begin(), skippable.end());
  }
  return stream;
}

}  // namespace
}  // namespace ptxkit

int main(int argc, char** argv) { return ptxkit::fuzz::run_damaged(argc, argv, ptxkit::valid_stream); }
