// Fuzzes the .ptz readers: reading sequentially and by the table must end with raw bytes or with an error that names
// the position, and the budget of a block counts its bytes once. With clang: -fsanitize=fuzzer,address; with any
// compiler: ptz_smoke.cpp runs it on seeded mutations.
#include <cstdint>
#include <cstdlib>

#include "runtime/codec/blocks/budget.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/threads/executor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit;
  static codec::Executor executor(1);
  format::MemorySource source({data, size}, "fuzz");
  format::NullSink sink;
  const auto decoded = codec::decompress_ptz(source, sink, executor);
  if (!decoded && decoded.error().where.empty()) std::abort();
  const format::MemoryFile file({data, size}, "fuzz");
  const auto archive = format::PtzArchive::open(file);
  if (!archive) {
    if (archive.error().where.empty()) std::abort();
    return 0;
  }
  uint64_t raw_bytes = 0;
  for (size_t i = 0; i < archive->block_count() && raw_bytes < (16u << 20); ++i) {
    const auto block = codec::read_ptz_block(*archive, i);
    if (!block && block.error().where.empty()) std::abort();
    raw_bytes += archive->block(i).raw_bytes;
    const auto stored = archive->stored(i);
    codec::Budget budget;
    if (!stored || archive->block(i).is_raw) continue;
    if (codec::add_ptz_block(archive->header().coding, *stored, archive->block(i).raw_bytes, budget)) {
      if (budget.total_bytes() != stored->size()) std::abort();
    } else if (block) {
      std::abort();  // a block that is decoded has a budget
    }
  }
  return 0;
}
