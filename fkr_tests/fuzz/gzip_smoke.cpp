// A bounded run of the fuzz target of gzip in every test run: members of zlib and of this project, damaged by a seeded
// generator. The same seeds give the same inputs everywhere. usage: gzip_smoke [COUNT]
#include <cstdlib>
#include <random>
#include <vector>

#include <zlib.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"

namespace ptxkit {
namespace {

using ByteVector = std::vector<uint8_t>;

ByteVector member_of_zlib(const ByteVector& raw, std::mt19937& random) {
  constexpr int kGzipBits = 15 + 16;
  z_stream stream{};
  deflateInit2(&stream, static_cast<int>(random() % 10), Z_DEFLATED, kGzipBits, static_cast<int>(1 + random() % 9),
               static_cast<int>(random() % 5));
  Bytef name[] = "name";
  gz_header header{};
  header.name = name;
  header.hcrc = random() % 8 == 0;
  if (random() % 4 == 0) deflateSetHeader(&stream, &header);
  ByteVector file(deflateBound(&stream, raw.size()) + 100);
  stream.next_in = const_cast<Bytef*>(raw.data());
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = file.data();
  stream.avail_out = static_cast<uInt>(file.size());
  deflate(&stream, Z_FINISH);
  file.resize(stream.total_out);
  deflateEnd(&stream);
  return file;
}

ByteVector members(std::mt19937& random) {
  const auto seed = [&] { return static_cast<uint32_t>(random()); };
  const ByteVector raw = random() % 4 == 0 ? testing::random_bytes(random() % 300, seed())
                                           : testing::matchable_bytes(random() % 3000, seed());
  if (random() % 3 != 0) return member_of_zlib(raw, random);
  static codec::Executor executor(1);
  static codec::CpuBlocks coder(executor);
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  if (!codec::compress_gzip(source, sink, executor, coder, {.level = static_cast<int>(1 + random() % 9)})) std::abort();
  return sink.take();
}

ByteVector valid_stream(std::mt19937& random) {
  ByteVector stream = members(random);
  if (random() % 4 == 0) {
    const ByteVector more = members(random);
    stream.insert(stream.end(), more.begin(), more.end());
  }
  if (random() % 8 == 0) stream.resize(stream.size() + random() % 20);  // zeros
  return stream;
}

}  // namespace
}  // namespace ptxkit

int main(int argc, char** argv) { return ptxkit::fuzz::run_damaged(argc, argv, ptxkit::valid_stream); }
