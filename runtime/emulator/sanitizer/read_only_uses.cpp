// See read_only_uses.hpp.
#include "runtime/emulator/sanitizer/read_only_uses.hpp"

#include <algorithm>

namespace ptxkit::emulator {

template <class Note>
uint32_t ReadOnlyUses::visit(uint64_t offset, uint64_t size_bytes, const Note& note) {
  uint32_t other = kNone;
  for (const uint64_t end = offset + size_bytes; offset < end;) {
    const uint64_t number = offset / kPageBytes, begin = offset % kPageBytes;
    const uint64_t count = std::min(end - offset, kPageBytes - begin);
    const uint64_t bytes = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << begin;
    Shard& shard = shards_[number % kShards];
    std::lock_guard lock(shard.mutex);
    const uint32_t found = note(shard.pages[number], bytes);
    if (found != kNone) other = found;
    offset += count;
  }
  return other;
}

uint32_t ReadOnlyUses::read(uint64_t offset, uint64_t size_bytes, uint32_t pc) {
  return visit(offset, size_bytes, [&](Page& page, uint64_t bytes) {
    page.read |= bytes;
    page.read_pc = pc;
    return (page.written & bytes) != 0 ? page.write_pc : kNone;
  });
}

uint32_t ReadOnlyUses::write(uint64_t offset, uint64_t size_bytes, uint32_t pc) {
  return visit(offset, size_bytes, [&](Page& page, uint64_t bytes) {
    page.written |= bytes;
    page.write_pc = pc;
    return (page.read & bytes) != 0 ? page.read_pc : kNone;
  });
}

}  // namespace ptxkit::emulator
