// A bounded run of the .ptz fuzz target in every test run: the corpus that libFuzzer kept (fkr_tests/fuzz/ptz_corpus),
// then files of every codec, damaged by a seeded generator. The checksums of most are corrected afterwards, because
// they would detect most damage at once. usage: ptz_smoke [COUNT [FOLDER]]; with FOLDER, writes a corpus of undamaged
// files for libFuzzer there instead.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/threads/executor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ptxkit {
namespace {

using ByteVector = std::vector<uint8_t>;

ByteVector valid_file(std::mt19937& random) {
  static codec::Executor executor(1);
  const auto seed = [&] { return static_cast<uint32_t>(random()); };
  const ByteVector raw = random() % 8 == 0   ? testing::random_bytes(random() % 300, seed())
                         : random() % 3 == 0 ? testing::shrinking_bytes(random() % 9000, static_cast<int>(seed()))
                                             : testing::matchable_bytes(random() % 9000, seed());
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  static const std::vector<format::PtzCoding> codecs = testing::ptz_codecs();
  const format::PtzHeader header{codecs[random() % codecs.size()], 12};
  if (!codec::compress_ptz(source, sink, executor, header)) std::abort();
  return sink.take();
}

void put(ByteVector& file, size_t at, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) file[at + i] = static_cast<uint8_t>(value >> 8 * i);
}

// Corrects the checksums of header and table. Those of blocks need no correction: the content is decoded before its
// checksum is compared.
void mend(ByteVector& file) {
  if (file.size() < format::kPtzHeaderBytes + format::kPtzFooterBytes) return;
  put(file, 8, format::ptz_checksum(format::Bytes(file).first(8)));
  const size_t footer = file.size() - format::kPtzFooterBytes;
  const size_t table_bytes = size_t{file[footer]} * format::kPtzBlockHeaderBytes;
  if (table_bytes > footer) return;
  put(file, footer + 16, format::ptz_checksum(format::Bytes(file).subspan(footer - table_bytes, table_bytes)));
}

void damage(ByteVector& file, std::mt19937& random) {
  for (auto change = random() % 6; change != 0 && !file.empty(); --change) {
    const size_t at = random() % file.size();
    const auto place = file.begin() + static_cast<ptrdiff_t>(at);
    switch (random() % 12) {
      case 0:
        file.resize(at);
        break;
      case 1:
        file.insert(place, static_cast<uint8_t>(random()));
        break;
      case 2:
        file.erase(place);
        break;
      case 3:
      case 4:
        *place = static_cast<uint8_t>(random());
        break;
      case 5:  // the headers and tables of a block are at its start
        file[random() % std::min<size_t>(file.size(), 300)] = static_cast<uint8_t>(random());
        break;
      default:
        *place ^= static_cast<uint8_t>(1u << random() % 8);
    }
  }
}

}  // namespace
}  // namespace ptxkit

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 5000;
  unsigned kept = 0;
  if (argc <= 2) {
    for (const auto& entry : std::filesystem::directory_iterator("fkr_tests/fuzz/ptz_corpus")) {
      const auto file = ptxkit::testing::read_prefix(entry.path(), 1 << 20);
      LLVMFuzzerTestOneInput(file.data(), file.size());
      ++kept;
    }
    if (kept == 0) {
      std::fprintf(stderr, "ptz_smoke: fkr_tests/fuzz/ptz_corpus is empty\n");
      return 1;
    }
  }
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    auto file = ptxkit::valid_file(random);
    if (argc > 2) {
      std::ofstream(std::string(argv[2]) + "/" + std::to_string(seed), std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
      continue;
    }
    ptxkit::damage(file, random);
    if (random() % 4 != 0) ptxkit::mend(file);
    // A heap copy of the exact size, so that a sanitizer sees an access one byte too far.
    const std::vector<uint8_t> exact(file.begin(), file.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
  std::printf("%u files, %s\n", kept + count, argc > 2 ? "written" : "no crash");
}
