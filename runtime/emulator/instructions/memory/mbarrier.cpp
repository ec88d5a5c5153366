// mbarrier objects: PTX ISA 9.0, 9.7.13.15. Their state is kept outside of the memory that holds them, whose eight
// bytes are opaque to a program. What a program can observe, the tokens of arrive and the parity of phases, follows the
// ISA.
#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/instructions/memory/async_work.hpp"
#include "runtime/emulator/sanitizer/hang.hpp"
#include "support/plural.hpp"

namespace ptxkit::emulator {

namespace {

constexpr uint32_t kMaxCount = (1u << 20) - 1;
constexpr int64_t kMaxBytes = (1 << 20) - 1;

void report_misuse(Warp& warp, unsigned lane, const SharedPlace& place, std::string message) {
  report(warp, {.kind = FaultKind::mbarrier_misuse,
                .message = std::move(message),
                .lane = lane,
                .has_address = true,
                .space = ptx::Space::shared,
                .address = place.offset,
                .access_bytes = 8});
}

// The phase and pending count, which arrive returns and test_wait takes.
uint64_t arrival_token(const Mbarrier& barrier) { return barrier.phase << 20 | barrier.pending; }

bool is_complete(const Mbarrier& barrier, const MbarrierForm& form, uint64_t operand) {
  return form.by_parity ? (barrier.phase & 1) != (operand & 1) : operand >> 20 != barrier.phase;
}

void invalidate(Cta& cta, uint64_t offset) {
  const auto it = cta.mbarriers.find(offset);
  if (it != cta.mbarriers.end()) cta.mbarriers.erase(it);
}

}  // namespace

Mbarrier* find_mbarrier(Warp& warp, unsigned lane, const SharedPlace& place) {
  const auto it = place.cta->mbarriers.find(place.offset);
  if (it != place.cta->mbarriers.end()) return &it->second;
  report_misuse(warp, lane, place, fmt::format("no mbarrier has been initialised at {:#x} of .shared", place.offset));
  return nullptr;
}

void advance_phase(const SharedPlace& place, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  place.cta->timeouts = 0;
  for (const AsyncRange& range : barrier.ranges) add_pending(*place.cta, barrier.ended, range);
  barrier.ranges.clear();
  if (place.cta->order)
    for (auto [rank, thread] : barrier.writers)
      place.cta->cluster->ctas[rank]->order->write(thread, location_of(place.cta, place.offset), Order::release,
                                                   Scope::cluster);
  barrier.writers.clear();
}

void expect_bytes(Warp& warp, unsigned lane, const SharedPlace& place, Mbarrier& barrier, int64_t bytes) {
  barrier.bytes += bytes;
  if (barrier.bytes > kMaxBytes || barrier.bytes < -kMaxBytes)
    report_misuse(warp, lane, place,
                  fmt::format("the mbarrier expects {} bytes, at most {} are possible", barrier.bytes, kMaxBytes));
}

void arrive_at(Warp& warp, unsigned lane, const SharedPlace& place, Mbarrier& barrier, uint32_t count, bool drops,
               uint32_t released) {
  if (count == 0 || count > barrier.pending) {
    report_misuse(warp, lane, place,
                  fmt::format("{} at an mbarrier whose phase waits for {}", plural(count, "arrival"), barrier.pending));
    return;
  }
  if (warp.cta->order && released)
    warp.cta->order->release(warp.index, released, location_of(place.cta, place.offset), Scope::cluster);
  barrier.pending -= count;
  if (drops) barrier.expected -= count;
  advance_phase(place, barrier);
}

namespace {

void run(Warp& warp, const Code& code, uint32_t mask) {
  const MbarrierForm& form = warp.cta->launch->image->mbarriers[code.target];
  uint64_t address[kLanes];
  compute_addresses(warp, code, address);
  uint32_t released = 0;  // lanes already counted by an earlier arrive_at
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    SharedPlace place;
    if (!find_shared(warp, code, lane, address[lane], 8, 8, place)) return;
    const uint32_t operand = form.has_count ? at<const uint32_t>(warp, code.b)[lane] : 1;
    if (form.action == MbarrierAction::init) {
      if (operand == 0 || operand > kMaxCount)
        return report_misuse(warp, lane, place, fmt::format("count {} is not within 1 to {}", operand, kMaxCount));
      if (place.cta->mbarriers.contains(place.offset))
        return report_misuse(warp, lane, place,
                             "there is an mbarrier here already: invalidate it first with mbarrier.inval");
      Mbarrier& made = place.cta->mbarriers[place.offset];
      made.expected = made.pending = operand;
      made.init_pc = warp.pc;
      std::memset(place.cta->shared + place.offset, 0, 8);
      std::memset(place.cta->shared_shadow.data() + place.offset, 0xff, 8);
      note_shared_write(warp, code, lane, *place.cta, place.offset, 8);
      return;
    }
    Mbarrier* barrier = find_mbarrier(warp, lane, place);
    if (!barrier) return;
    // The init of an mbarrier must be ordered before its use by another thread.
    note_shared_read(warp, code, lane, *place.cta, place.offset, 8);
    switch (form.action) {
      case MbarrierAction::invalidate:
        return invalidate(*place.cta, place.offset);
      case MbarrierAction::expect:
        return expect_bytes(warp, lane, place, *barrier, operand);
      case MbarrierAction::complete:
        expect_bytes(warp, lane, place, *barrier, -int64_t{operand});
        return advance_phase(place, *barrier);
      case MbarrierAction::arrive:
      case MbarrierAction::drop: {
        at<uint64_t>(warp, code.dst)[lane] = arrival_token(*barrier);
        if (form.expects) expect_bytes(warp, lane, place, *barrier, operand);
        const uint32_t count = form.expects ? 1 : operand;
        if (form.no_complete && count >= barrier->pending && barrier->bytes == 0)
          return report_misuse(warp, lane, place, "arrive.noComplete completes the phase");
        uint32_t together = 0;
        for_lanes(mask & ~released, [&](unsigned i) { together |= uint32_t{address[i] == address[lane]} << i; });
        released |= together;
        return arrive_at(warp, lane, place, *barrier, count, form.action == MbarrierAction::drop, together);
      }
      default:
        return;
    }
  });
}

uint32_t ready_lanes(Warp& warp, const Code& code, uint32_t mask) {
  const MbarrierForm& form = warp.cta->launch->image->mbarriers[code.target];
  uint64_t address[kLanes];
  compute_addresses(warp, code, address);
  uint32_t ready = 0;
  for_lanes(mask, [&](unsigned lane) {
    SharedPlace place;
    if (warp.cta->stopped || !find_shared(warp, code, lane, address[lane], 8, 8, place)) return;
    const Mbarrier* barrier = find_mbarrier(warp, lane, place);
    if (!barrier) return;
    const uint64_t operand =
        form.by_parity ? uint64_t{at<const uint32_t>(warp, code.b)[lane]} : at<const uint64_t>(warp, code.b)[lane];
    if (is_complete(*barrier, form, operand)) ready |= 1u << lane;
  });
  return ready;
}

void write_ready(Warp& warp, const Code& code, uint32_t mask, uint32_t ready) {
  uint32_t* d = at<uint32_t>(warp, code.dst);
  *d = (*d & ~mask) | ready;
  if (warp.undefined[0]) undefined_lanes(warp, code.dst) &= ~mask;
  uint64_t address[kLanes];
  compute_addresses(warp, code, address);
  for_lanes(ready, [&](unsigned lane) {
    SharedPlace place;
    if (!find_shared(warp, code, lane, address[lane], 8, 8, place)) return;
    Mbarrier& barrier = place.cta->mbarriers[place.offset];
    for (const AsyncRange& range : barrier.ended) finish_range(*place.cta, range);
    barrier.ended.clear();
    if (warp.cta->order)
      warp.cta->order->read(warp.index * kLanes + lane, location_of(place.cta, place.offset), Order::acquire,
                            Scope::cluster);
  });
}

void test(Warp& warp, const Code& code, uint32_t mask) {
  if (warp.cta->searched) {
    uint64_t address[kLanes];
    compute_addresses(warp, code, address);
    note_polled_read(warp, code, mask, address);
  }
  write_ready(warp, code, mask, ready_lanes(warp, code, mask));
}

void count(Warp& warp, const Code& code, uint32_t mask) {
  const uint64_t* a = at<const uint64_t>(warp, code.a);
  for_lanes(mask,
            [&](unsigned lane) { at<uint32_t>(warp, code.dst)[lane] = static_cast<uint32_t>(a[lane]) & kMaxCount; });
}

}  // namespace

bool try_mbarrier(Warp& warp, const Code& code, uint32_t mask, bool times_out) {
  const uint32_t ready = ready_lanes(warp, code, mask);
  if (ready != mask && !times_out && !warp.cta->stopped) return false;
  write_ready(warp, code, mask, ready);
  return true;
}

std::string mbarrier_text(Warp& warp, const Code& code, unsigned lane) {
  uint64_t address[kLanes];
  compute_addresses(warp, code, address);
  SharedPlace place;
  if (!find_shared(warp, code, lane, address[lane], 8, 8, place)) return "an mbarrier";
  const auto it = place.cta->mbarriers.find(place.offset);
  if (it == place.cta->mbarriers.end()) return "an mbarrier that has been invalidated";
  return fmt::format("the mbarrier at {:#x} of .shared, whose phase {} waits for {} more arrivals and {} bytes",
                     place.offset, it->second.phase, it->second.pending, it->second.bytes);
}

void select_mbarrier(Code& code, MbarrierAction action) {
  if (action == MbarrierAction::pending_count) {
    code.run = count;
    return;
  }
  code.undefined = Undefined::none;
  code.run = action == MbarrierAction::test_wait || action == MbarrierAction::try_wait ? test : run;
}

}  // namespace ptxkit::emulator
