// See races.hpp.
#include "runtime/emulator/core/races.hpp"

#include <algorithm>

namespace ptxkit::emulator {

AccessHistory::AccessHistory(uint64_t size_bytes, bool parallel)
    : parallel_(parallel),
      pages_((size_bytes >> kPageShift) + 1),
      locks_(parallel ? new std::mutex[kLocks] : nullptr) {}

bool AccessHistory::conflicts(const CurrentAccess& current, Access access, Epoch oldest) {
  if (access.epoch() <= oldest) return false;
  const CtaOrder& order = *current.order;
  if (order.happens_before(access.epoch(), access.thread(), current.thread)) return false;
  if (current.scope == Scope::none || access.scope() == Scope::none) return true;
  const uint32_t other = order.launch().cta_of(access.epoch());
  return !order.launch().reaches(std::min(current.scope, access.scope()), order.cta(), other);
}

bool AccessHistory::write_conflicts(const CurrentAccess& current, const Cell& cell, Epoch oldest) {
  if (!conflicts(current, cell.write, oldest)) return false;
  for (const Access read : {cell.first_read, cell.second_read})
    if (read.observed() && current.order->happens_before(read.epoch(), read.thread(), current.thread)) return false;
  return true;
}

void AccessHistory::displace(const CurrentAccess& current, Page& page, uint32_t cell, Access read, Access stays) {
  const CtaOrder& order = *current.order;
  const auto warp_of = [&](Access access) {
    return uint64_t{order.launch().cta_of(access.epoch())} << 5 | access.thread() >> 5;
  };
  const uint64_t warp = warp_of(read);
  if (warp == warp_of(stays) || warp == (uint64_t{order.cta()} << 5 | current.thread >> 5)) return;
  if (page.list_of_cell.empty()) page.list_of_cell.resize(page.cells.size());
  uint16_t& number = page.list_of_cell[cell];
  if (number == 0) {
    page.displaced.emplace_back();
    number = static_cast<uint16_t>(page.displaced.size());
  }
  std::vector<Displaced>& reads = page.displaced[number - 1];
  const auto same_warp = std::ranges::find(reads, warp, &Displaced::warp);
  if (same_warp != reads.end())
    same_warp->read = read;
  else if (reads.size() < kMaxDisplaced)
    reads.push_back({read, warp});
}

void AccessHistory::note(const CurrentAccess& current, Access access, bool writes, uint64_t offset,
                         Conflict& conflict) {
  conflict = {.found = true,
              .other_writes = writes,
              .scopes_too_narrow = current.scope != Scope::none && access.scope() != Scope::none,
              .other_cta = current.order->launch().cta_of(access.epoch()),
              .other_thread = access.thread(),
              .other_pc = access.pc(),
              .offset = offset};
}

template <class Visit>
void AccessHistory::visit(uint64_t offset, uint64_t size_bytes, Visit&& visit_cell) {
  constexpr uint64_t kPageBytes = uint64_t{1} << kPageShift;
  for (const uint64_t end = offset + size_bytes; offset < end;) {
    const uint64_t number = offset >> kPageShift, begin = offset & (kPageBytes - 1);
    if (number >= pages_.size()) return;
    const uint64_t stop = std::min(end - offset + begin, kPageBytes);
    std::unique_lock<std::mutex> lock;
    if (parallel_) lock = std::unique_lock(locks_[number % kLocks]);
    auto& page = pages_[number];
    if (!page) {
      page = std::make_unique<Page>();
      page->cells.resize(kPageBytes / 4);
    }
    if (!page->by_byte && (begin | stop) % 4) {
      std::vector<Cell> cells(kPageBytes);
      for (size_t i = 0; i < cells.size(); ++i) cells[i] = page->cells[i / 4];
      page->cells = std::move(cells);
      page->by_byte = true;
      if (!page->list_of_cell.empty()) {
        std::vector<uint16_t> lists(kPageBytes);
        std::vector<std::vector<Displaced>> displaced;
        for (size_t i = 0; i < lists.size(); ++i) {
          if (page->list_of_cell[i / 4] == 0) continue;
          displaced.push_back(page->displaced[page->list_of_cell[i / 4] - 1]);
          lists[i] = static_cast<uint16_t>(displaced.size());
        }
        page->list_of_cell = std::move(lists);
        page->displaced = std::move(displaced);
      }
    }
    const unsigned shift = page->by_byte ? 0 : 2;
    for (uint64_t cell = begin >> shift; cell < stop >> shift; ++cell)
      visit_cell(*page, static_cast<uint32_t>(cell), offset - begin + (cell << shift));
    offset += stop - begin;
  }
}

Conflict AccessHistory::read(const CurrentAccess& current, uint64_t offset, uint64_t size_bytes, Epoch oldest) {
  Conflict conflict;
  const CtaOrder& order = *current.order;
  if (order.launch().full()) return conflict;
  const Access base{uint64_t{order.now()} << 32 | uint64_t{current.thread} << 22 |
                    uint64_t{static_cast<uint8_t>(current.scope)} << 20 | (current.pc & (kMaxCodes - 1))};
  visit(offset, size_bytes, [&](Page& page, uint32_t number, uint64_t place) {
    Cell& cell = page.cells[number];
    // The thread repeats its own read, and no other thread has written: nothing to record.
    if (same(cell.first_read, base) && (cell.write.bits == 0 || same(cell.write, base))) return;
    Access mine = base;
    if (current.scope != Scope::none && cell.write.scope() != Scope::none) mine.bits |= uint64_t{1} << 19;
    if (!conflict.found && write_conflicts(current, cell, oldest)) note(current, cell.write, true, place, conflict);
    const auto is_free = [&](Access access) {
      return access.epoch() <= oldest || order.happens_before(access.epoch(), access.thread(), current.thread);
    };
    if (is_free(cell.first_read)) {
      cell.first_read = mine;
    } else if (is_free(cell.second_read)) {
      cell.second_read = mine;
    } else {
      const bool is_second = cell.second_read.epoch() < cell.first_read.epoch();
      Access& replaced = is_second ? cell.second_read : cell.first_read;
      displace(current, page, number, replaced, is_second ? cell.first_read : cell.second_read);
      replaced = mine;
    }
  });
  return conflict;
}

void AccessHistory::forget(uint64_t offset, uint64_t size_bytes) {
  for (const uint64_t end = offset + size_bytes; offset < end;) {
    const uint64_t stop = std::min(end, ((offset >> kPageShift) + 1) << kPageShift);
    const uint64_t number = offset >> kPageShift;
    if (number >= pages_.size()) return;
    if (pages_[number]) {
      visit(offset, stop - offset, [](Page& page, uint32_t cell, uint64_t) {
        page.cells[cell] = {};
        if (!page.list_of_cell.empty() && page.list_of_cell[cell] != 0)
          page.displaced[page.list_of_cell[cell] - 1].clear();
      });
    }
    offset = stop;
  }
}

Conflict AccessHistory::write(const CurrentAccess& current, uint64_t offset, uint64_t size_bytes, Epoch oldest,
                              bool unchanged) {
  Conflict conflict;
  const CtaOrder& order = *current.order;
  if (order.launch().full()) return conflict;
  const Access mine{uint64_t{order.now()} << 32 | uint64_t{current.thread} << 22 |
                    uint64_t{static_cast<uint8_t>(current.scope)} << 20 | (current.pc & (kMaxCodes - 1))};
  visit(offset, size_bytes, [&](Page& page, uint32_t number, uint64_t place) {
    Cell& cell = page.cells[number];
    if (same(cell.write, mine) && (cell.first_read.bits == 0 || same(cell.first_read, mine)) &&
        cell.second_read.bits == 0)
      return;
    if (unchanged && write_conflicts(current, cell, oldest)) return;
    if (!conflict.found) {
      if (write_conflicts(current, cell, oldest))
        note(current, cell.write, true, place, conflict);
      else if (conflicts(current, cell.first_read, oldest))
        note(current, cell.first_read, false, place, conflict);
      else if (conflicts(current, cell.second_read, oldest))
        note(current, cell.second_read, false, place, conflict);
    }
    if (!page.list_of_cell.empty() && page.list_of_cell[number] != 0) {
      std::vector<Displaced>& reads = page.displaced[page.list_of_cell[number] - 1];
      for (const Displaced& each : reads)
        if (!conflict.found && conflicts(current, each.read, oldest)) note(current, each.read, false, place, conflict);
      reads.clear();
    }
    cell.write = mine;
    cell.first_read.clear_observed();
    cell.second_read.clear_observed();
  });
  return conflict;
}

}  // namespace ptxkit::emulator
