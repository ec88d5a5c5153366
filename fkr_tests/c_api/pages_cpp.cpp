#include "fkr_tests/c_api/pages.hpp"
#include "runtime/library/lz4.hpp"

int main() {
  using namespace ptxkit;
  auto raw = pages();
  auto lz4 = library::Lz4::open({.where = library::Where::cpu, .cpu_threads = 1});
  if (!lz4) return 1;
  std::vector<uint8_t> packed(kPages * kPageBytes), back(kPages * kPageBytes);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<codec::CompressItem> items(kPages);
    for (size_t i = 0; i < kPages; ++i) {
      items[i].raw = raw[i];
      items[i].output = {packed.data() + i * kPageBytes, kPageBytes};
    }
    if (!lz4->compress(items)) return 1;
    std::vector<codec::DecompressItem> blocks(kPages);
    for (size_t i = 0; i < kPages; ++i) {
      blocks[i].block = codec::Bytes(items[i].output).first(items[i].compressed_bytes);
      blocks[i].output = {back.data() + i * kPageBytes, kPageBytes};
    }
    if (!lz4->decompress(blocks)) return 1;
    for (const codec::DecompressItem& block : blocks)
      if (block.raw_bytes != kPageBytes) return 1;
  }
  return 0;
}
