// A bounded run of the frame decoder's fuzz target in every test run: valid streams of every shape, damaged by a seeded
// generator. The same seeds give the same inputs everywhere. usage: frame_decoder_smoke [COUNT]
#include <cstdlib>
#include <random>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit {
namespace {

using ByteVector = std::vector<uint8_t>;

ByteVector valid_stream(std::mt19937& random) {
  static codec::Executor executor(1);
  static const auto backend = codec::make_cpu_backend(executor);
  const auto seed = [&] { return static_cast<uint32_t>(random()); };
  const ByteVector raw = random() % 4 == 0 ? testing::random_bytes(random() % 300, seed())
                                           : testing::matchable_bytes(random() % 3000, seed());
  format::FrameHeader header;
  header.block_size_id = static_cast<int>(4 + random() % 4);
  header.independent_blocks = random() % 2;
  // Mostly without checksums, which would detect most damage at once.
  header.block_checksum = random() % 8 == 0;
  header.content_checksum = random() % 8 == 0;
  if (random() % 4 == 0) header.content_bytes = raw.size();
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  if (!codec::compress_stream(source, sink, *backend,
                              {.header = header, .encoder = codec::Encoder::fast, .progress = {}}))
    std::abort();
  ByteVector stream = sink.take();
  // A legacy magic number, then the same bytes.
  if (random() % 6 == 0) stream[0] = 0x02, stream[1] = 0x21, stream[2] = 0x4c;
  if (random() % 6 == 0) {
    const ByteVector skippable = {0x50, 0x2a, 0x4d, 0x18, static_cast<uint8_t>(random() % 4), 0, 0, 0, 1, 2, 3};
    stream.insert(random() % 2 ? stream.begin() : stream.end(), skippable.begin(), skippable.end());
  }
  return stream;
}

}  // namespace
}  // namespace ptxkit

int main(int argc, char** argv) { return ptxkit::fuzz::run_damaged(argc, argv, ptxkit::valid_stream); }
