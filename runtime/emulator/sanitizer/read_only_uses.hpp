// The bytes of global memory that a launch reads by ld.global.nc, and those that it writes. PTX ISA 9.7.9.9: such a
// load requires that the memory is not written while the kernel runs; the cache that serves it may hold old bytes,
// whatever order there is between the load and the store.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace ptxkit::emulator {

class ReadOnlyUses {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // Notes an access to global memory, by its offset there, at `pc`. Returns the place of an access of the other kind to
  // one of the bytes, or kNone. Several host threads may call these.
  uint32_t read(uint64_t offset, uint64_t size_bytes, uint32_t pc);
  uint32_t write(uint64_t offset, uint64_t size_bytes, uint32_t pc);

 private:
  static constexpr uint64_t kPageBytes = 64;
  static constexpr size_t kShards = 64;
  // Of each kind: a bit for each byte, and the place of the last access.
  struct Page {
    uint64_t read = 0, written = 0;
    uint32_t read_pc = kNone, write_pc = kNone;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, Page> pages;
  };

  template <class Note>
  uint32_t visit(uint64_t offset, uint64_t size_bytes, const Note& note);

  std::array<Shard, kShards> shards_;
};

}  // namespace ptxkit::emulator
