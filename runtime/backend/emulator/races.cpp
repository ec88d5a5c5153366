// See races.hpp.
#include "runtime/backend/emulator/races.hpp"

#include <algorithm>

namespace ptxkit::emulator {

SharedRaces::SharedRaces(uint64_t size_bytes, uint32_t warp_count)
    : warp_count_(warp_count),
      cells_(size_bytes),
      warp_clock_(size_t{warp_count} * warp_count),
      whole_warp_(warp_count) {}

void SharedRaces::restart() {
  // Time goes on, and everything before is ordered: no need to clear the cells.
  advance();
  all_ = now_;
  advance();
  released_.clear();
}

bool SharedRaces::ordered(Access access, uint32_t thread) const {
  uint32_t warp = thread / 32, other_warp = access.thread() / 32;
  if (warp != other_warp) return access.stamp() <= warp_clock_[size_t{warp} * warp_count_ + other_warp];
  if (access.stamp() <= whole_warp_[warp]) return true;
  if (lane_clock_.empty()) return false;
  return access.stamp() <= lane_clock_[warp][(thread % 32) * 32 + access.thread() % 32];
}

SharedRaces::Conflict SharedRaces::read(uint32_t thread, uint64_t offset, unsigned size_bytes, uint32_t pc,
                                        bool strong) {
  Conflict conflict;
  Access mine = make(thread, pc, strong);
  for (unsigned i = 0; i < size_bytes; ++i) {
    Cell& cell = cells_[offset + i];
    if (conflicts(cell.write, thread, strong) && !conflict.found)
      conflict = {true, true, cell.write.thread(), cell.write.pc(), offset + i};
    bool first_free = !cell.first_read.bits || cell.first_read.stamp() <= all_ || cell.first_read.thread() == thread;
    bool second_free =
        !cell.second_read.bits || cell.second_read.stamp() <= all_ || cell.second_read.thread() == thread;
    if (first_free)
      cell.first_read = mine;
    else if (second_free)
      cell.second_read = mine;
    else if (cell.first_read.stamp() < cell.second_read.stamp())
      cell.first_read = mine;
    else
      cell.second_read = mine;
  }
  return conflict;
}

SharedRaces::Conflict SharedRaces::write(uint32_t thread, uint64_t offset, unsigned size_bytes, uint32_t pc,
                                         bool strong) {
  Conflict conflict;
  Access mine = make(thread, pc, strong);
  for (unsigned i = 0; i < size_bytes; ++i) {
    Cell& cell = cells_[offset + i];
    if (!conflict.found) {
      if (conflicts(cell.write, thread, strong))
        conflict = {true, true, cell.write.thread(), cell.write.pc(), offset + i};
      else if (conflicts(cell.first_read, thread, strong))
        conflict = {true, false, cell.first_read.thread(), cell.first_read.pc(), offset + i};
      else if (conflicts(cell.second_read, thread, strong))
        conflict = {true, false, cell.second_read.thread(), cell.second_read.pc(), offset + i};
    }
    cell.write = mine;
  }
  return conflict;
}

void SharedRaces::barrier_all() {
  advance();
  all_ = now_;
  advance();
}

void SharedRaces::barrier_some(const std::vector<uint32_t>& arrived) {
  advance();
  std::vector<uint32_t> joined(warp_count_, 0);
  for (uint32_t warp = 0; warp < warp_count_; ++warp) {
    if (!arrived[warp]) continue;
    for (uint32_t other = 0; other < warp_count_; ++other)
      joined[other] = std::max(joined[other], warp_clock_[size_t{warp} * warp_count_ + other]);
  }
  for (uint32_t warp = 0; warp < warp_count_; ++warp)
    if (arrived[warp]) joined[warp] = now_;
  for (uint32_t warp = 0; warp < warp_count_; ++warp) {
    if (!arrived[warp]) continue;
    std::copy(joined.begin(), joined.end(), warp_clock_.begin() + size_t{warp} * warp_count_);
    whole_warp_[warp] = now_;
  }
  advance();
}

void SharedRaces::lanes(uint32_t warp, uint32_t members, uint32_t live) {
  advance();
  if ((members & live) == live) {
    whole_warp_[warp] = now_;
  } else {
    if (lane_clock_.empty()) lane_clock_.resize(warp_count_);
    auto& clock = lane_clock_[warp];
    std::array<uint32_t, 32> joined{};
    for (unsigned lane = 0; lane < 32; ++lane)
      if (members >> lane & 1)
        for (unsigned other = 0; other < 32; ++other) joined[other] = std::max(joined[other], clock[lane * 32 + other]);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (members >> lane & 1) joined[lane] = now_;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (members >> lane & 1) std::copy(joined.begin(), joined.end(), clock.begin() + lane * 32);
  }
  advance();
}

void SharedRaces::release(uint32_t thread, uint64_t offset) {
  advance();
  uint32_t warp = thread / 32;
  auto& clock = released_[offset];
  clock.resize(warp_count_);
  for (uint32_t other = 0; other < warp_count_; ++other)
    clock[other] = std::max(clock[other], warp_clock_[size_t{warp} * warp_count_ + other]);
  clock[warp] = now_;
  advance();
}

void SharedRaces::acquire(uint32_t thread, uint64_t offset) {
  auto it = released_.find(offset);
  if (it == released_.end()) return;
  uint32_t warp = thread / 32;
  for (uint32_t other = 0; other < warp_count_; ++other) {
    uint32_t& mine = warp_clock_[size_t{warp} * warp_count_ + other];
    mine = std::max(mine, it->second[other]);
  }
  whole_warp_[warp] = std::max(whole_warp_[warp], it->second[warp]);
}

}  // namespace ptxkit::emulator
