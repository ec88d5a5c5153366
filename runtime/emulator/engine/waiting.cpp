// See waiting.hpp. PTX ISA 9.0, 9.7.13 (barriers) and 9.7.9 (collectives).
#include "runtime/emulator/engine/waiting.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/emulator/engine/collectives.hpp"
#include "runtime/emulator/instructions/memory/async_work.hpp"
#include "support/check.hpp"

namespace ptxkit::emulator {

namespace {

bool same_collective(const Code& x, const Code& y) {
  return x.sub == y.sub && x.element_bytes == y.element_bytes && x.is_signed == y.is_signed && x.target == y.target;
}

// Runs every waiting collective whose lanes have all arrived.
void complete_collectives(Warp& warp) {
  const ProgramImage& image = *warp.cta->launch->image;
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < warp.fragments.size() && !again; ++i) {
      const Fragment& first = warp.fragments[i];
      if (first.wait != Wait::collective) continue;
      const Code& code = image.codes[first.pc];
      uint32_t there = 0;
      std::vector<Fragment> parts;
      for (const Fragment& each : warp.fragments)
        if (each.wait == Wait::collective && each.members == first.members &&
            same_collective(code, image.codes[each.pc])) {
          there |= each.mask;
          parts.push_back(each);
        }
      if (there != (first.members & warp.live)) continue;
      const uint32_t members = first.members;
      warp.pc = first.pc;
      run_collective(warp, code, parts, members);
      for (Fragment& each : warp.fragments)
        if (each.wait == Wait::collective && each.members == members && (each.mask & there) &&
            same_collective(code, image.codes[each.pc])) {
          each.wait = Wait::none;
          ++each.pc;
        }
      again = true;
    }
  }
}

bool whole_cta(const BarrierState& barrier) { return barrier.expected == 0; }

bool barrier_complete(const Cta& cta, const BarrierState& barrier) {
  uint32_t count = 0;
  for (size_t w = 0; w < cta.warps.size(); ++w) {
    const Warp& warp = *cta.warps[w];
    uint32_t arrived = barrier.arrived[w];
    bool all = (warp.live & ~arrived) == 0;
    if (whole_cta(barrier) && !all) return false;
    count += static_cast<uint32_t>(std::popcount(arrived));
    if (arrived && all) count += kLanes - static_cast<uint32_t>(std::popcount(arrived));
  }
  return whole_cta(barrier) || count + barrier.arrived_threads >= barrier.expected;
}

void complete_barrier(Cta& cta, unsigned id) {
  BarrierState& barrier = cta.barriers[id];
  const ProgramImage& image = *cta.launch->image;
  ++cta.statistics.barriers;
  if (cta.order) {
    std::vector<uint32_t> waiting(cta.warps.size(), 0);
    for (auto& warp : cta.warps)
      for (const Fragment& fragment : warp->fragments)
        if (fragment.wait == Wait::barrier && fragment.arrived && fragment.barrier_id == id)
          waiting[warp->index] |= fragment.mask;
    if (whole_cta(barrier))
      cta.order->barrier_all();
    else
      cta.order->barrier_named(barrier.arrived, waiting, barrier.arrivals);
  }
  for (auto& warp : cta.warps) {
    uint32_t left = warp->exists & ~warp->live;
    if (left && whole_cta(barrier) && checks(cta, kCheckBarriers)) {
      Warp& waiting = *cta.warps[barrier.first_warp];
      waiting.pc = barrier.first_pc;
      if (!already_reported(waiting, FaultKind::barrier_exited))
        report(waiting, {.kind = FaultKind::barrier_exited,
                         .message = "a thread of the CTA left before this barrier",
                         .lane = static_cast<unsigned>(std::countr_zero(barrier.arrived[barrier.first_warp])),
                         .has_other = true,
                         .other_pc = warp->exit_pc,
                         .other_warp = warp->index,
                         .other_lane = warp->exit_lane,
                         .other_message = "left here"});
    }
    for (Fragment& fragment : warp->fragments) {
      if (fragment.wait != Wait::barrier || !fragment.arrived || fragment.barrier_id != id) continue;
      const Code& code = image.codes[fragment.pc];
      const auto kind = static_cast<Barrier>(code.sub);
      if (kind >= Barrier::reduce_and) {
        uint8_t* slot = fragment.frame->values + size_t{code.dst & kRefIndex} * kUnitBytes;
        auto* words = reinterpret_cast<uint32_t*>(slot);
        if (kind == Barrier::reduce_popc) {
          for_lanes(fragment.mask, [&](unsigned i) { words[i] = barrier.predicate_count; });
        } else {
          bool value = kind == Barrier::reduce_and ? barrier.predicate_count == barrier.reduced_lanes
                                                   : barrier.predicate_count != 0;
          *words = (*words & ~fragment.mask) | (value ? fragment.mask : 0);
        }
        if (fragment.frame->undefined) fragment.frame->undefined[code.dst & kRefIndex] &= ~fragment.mask;
      }
      fragment.wait = Wait::none;
      ++fragment.pc;
    }
  }
  uint32_t warps = static_cast<uint32_t>(barrier.arrived.size());
  barrier = {};
  barrier.arrived.assign(warps, 0);
  barrier.arrivals.assign(warps, 0);
}

// Called when lanes have arrived or exited.
void complete_barriers(Cta& cta) {
  for (unsigned id = 0; id < cta.barriers.size(); ++id)
    if (cta.barriers[id].in_use && barrier_complete(cta, cta.barriers[id])) complete_barrier(cta, id);
}

// Counts a fragment at its barrier.
void arrive(Warp& warp, Fragment& fragment) {
  Cta& cta = *warp.cta;
  BarrierState& barrier = cta.barriers[fragment.barrier_id];
  const Code& code = cta.launch->image->codes[fragment.pc];
  const auto kind = static_cast<Barrier>(code.sub);
  warp.pc = fragment.pc;
  if (barrier.in_use && barrier.expected != fragment.barrier_threads) {
    report(warp,
           {.kind = FaultKind::barrier_count,
            .message = fmt::format("barrier {} is used with {} threads here and with {} by others that wait at it",
                                   fragment.barrier_id, fragment.barrier_threads, barrier.expected),
            .lane = static_cast<unsigned>(std::countr_zero(fragment.mask)),
            .has_other = true,
            .other_pc = barrier.first_pc,
            .other_warp = barrier.first_warp,
            .other_message = "arrived here"});
    return;
  }
  if (!barrier.in_use) {
    barrier.in_use = true;
    barrier.expected = fragment.barrier_threads;
    barrier.first_pc = fragment.pc;
    barrier.first_warp = warp.index;
  }
  // A warp that arrives twice in one phase counts twice.
  uint32_t again = barrier.arrived[warp.index] & fragment.mask;
  barrier.arrived_threads += static_cast<uint32_t>(std::popcount(again));
  barrier.arrived[warp.index] |= fragment.mask;
  fragment.arrived = true;
  if (kind >= Barrier::reduce_and) {
    uint32_t predicate;
    std::memcpy(
        &predicate,
        code.c >> 30 ? at<uint8_t>(warp, code.c) : fragment.frame->values + size_t{code.c & kRefIndex} * kUnitBytes, 4);
    predicate ^= static_cast<uint32_t>(code.immediate);
    barrier.predicate_count += static_cast<uint32_t>(std::popcount(predicate & fragment.mask));
    barrier.reduced_lanes += static_cast<uint32_t>(std::popcount(fragment.mask));
  }
  if (kind == Barrier::arrive) {
    if (cta.order) barrier.arrivals[warp.index] = cta.order->arrive();
    fragment.wait = Wait::none;
    fragment.arrived = false;
    ++fragment.pc;
  }
}

// .aligned barriers: a warp arrives as a whole, when all its live lanes are at one instruction. Lanes that called the
// enclosing function one after the other are in frames of their own.
void complete_aligned_barriers(Warp& warp) {
  auto stands_at = [](const Fragment& fragment, uint32_t pc) {
    return fragment.wait == Wait::barrier && !fragment.arrived && fragment.pc == pc;
  };
  for (size_t i = 0; i < warp.fragments.size(); ++i) {
    Fragment& first = warp.fragments[i];
    const uint32_t pc = first.pc;
    if (!stands_at(first, pc)) continue;
    for (size_t j = warp.fragments.size(); j-- > i + 1;) {
      const Fragment& other = warp.fragments[j];
      if (!stands_at(other, pc) || other.frame != first.frame || other.barrier_id != first.barrier_id) continue;
      first.mask |= other.mask;
      warp.fragments.erase(warp.fragments.begin() + static_cast<ptrdiff_t>(j));
    }
    uint32_t there = 0;
    for (const Fragment& each : warp.fragments)
      if (stands_at(each, pc) && each.barrier_id == warp.fragments[i].barrier_id) there |= each.mask;
    if (there != warp.live) continue;
    for (Fragment& each : warp.fragments)
      if (stands_at(each, pc)) arrive(warp, each);
  }
}

}  // namespace

void complete_waits(Warp& warp) {
  complete_collectives(warp);
  complete_aligned_barriers(warp);
  complete_barriers(*warp.cta);
}

// Executes a barrier instruction of the running fragment for the lanes `exec` and sets what the fragment waits for.
bool start_barrier(Warp& warp, const Code& code, Fragment& fragment) {
  const unsigned lane = static_cast<unsigned>(std::countr_zero(fragment.mask));
  const uint32_t id = value_of(warp, code.a, lane), threads = code.b == kZeroRef ? 0 : value_of(warp, code.b, lane);
  bool same = true;
  for_lanes(fragment.mask, [&](unsigned i) {
    same &= value_of(warp, code.a, i) == id && (code.b == kZeroRef || value_of(warp, code.b, i) == threads);
  });
  std::string why;
  if (id > 15)
    why = fmt::format("barrier {} does not exist: there are 0 to 15", id);
  else if (!same)
    why = "lanes of a warp name different barriers or thread counts";
  else if (threads % kLanes)
    why = fmt::format("thread count {} is not a multiple of the warp size", threads);
  else if (code.b != kZeroRef && threads == 0)
    why = "thread count is zero";
  else if (threads > warp.cta->warps.size() * kLanes)
    why = fmt::format("thread count {} exceeds the CTA's threads", threads);
  if (!why.empty()) {
    report(warp, {.kind = FaultKind::barrier_count, .message = why, .lane = lane});
    return false;
  }
  fragment.wait = Wait::barrier;
  fragment.arrived = false;
  fragment.barrier_id = id;
  fragment.barrier_threads = threads;
  if (!code.aligned) arrive(warp, fragment);
  return true;
}

// No lane can run: reports which threads wait where. A fault within a warp is reported first, since it causes the
// others.
void report_deadlock(Cta& cta) {
  const Launch& launch = *cta.launch;
  struct Waiter {
    Warp* warp;
    const Fragment* fragment;
  };
  std::vector<Waiter> waiters;
  for (auto& warp : cta.warps)
    for (const Fragment& fragment : warp->fragments) waiters.push_back({warp.get(), &fragment});
  PTXKIT_CHECK(!waiters.empty(), "a CTA with live lanes has no fragments");
  auto describe = [&](const Waiter& waiter) {
    const Fragment& fragment = *waiter.fragment;
    return fmt::format("warp {} lanes {:#010x} at {}", waiter.warp->index, fragment.mask,
                       where_text(launch, fragment.pc));
  };
  auto list_others = [&](const Waiter& but) {
    std::string text;
    size_t count = 0;
    for (const Waiter& each : waiters) {
      if (each.fragment == but.fragment) continue;
      if (++count > 6) continue;
      text += (text.empty() ? "" : "; ") + describe(each);
    }
    if (count > 6) text += fmt::format("; and {} more", count - 6);
    return text;
  };
  auto emit = [&](FaultKind kind, const Waiter& waiter, const std::string& message) {
    Waiter other{};
    for (const Waiter& each : waiters)
      if (each.fragment != waiter.fragment && (!other.fragment || each.warp == waiter.warp)) {
        other = each;
        if (each.warp == waiter.warp) break;
      }
    waiter.warp->pc = waiter.fragment->pc;
    FaultDetail detail{
        .kind = kind, .message = message, .lane = static_cast<unsigned>(std::countr_zero(waiter.fragment->mask))};
    if (other.fragment) {
      detail.has_other = true;
      detail.other_pc = other.fragment->pc;
      detail.other_warp = other.warp->index;
      detail.other_lane = static_cast<uint32_t>(std::countr_zero(other.fragment->mask));
      detail.other_message = "waits here";
      detail.message += "; elsewhere: " + list_others(waiter);
    }
    report(*waiter.warp, detail);
  };
  for (const Waiter& each : waiters) {
    if (each.fragment->wait != Wait::collective) continue;
    uint32_t there = 0;
    for (const Waiter& other : waiters)
      if (other.warp == each.warp && other.fragment->wait == Wait::collective &&
          other.fragment->members == each.fragment->members)
        there |= other.fragment->mask;
    return emit(FaultKind::warp_mask, each,
                fmt::format("member mask {:#010x} names lanes {:#010x}, which never arrive", each.fragment->members,
                            each.fragment->members & each.warp->live & ~there));
  }
  for (const Waiter& each : waiters) {
    if (each.fragment->wait != Wait::barrier || each.fragment->arrived) continue;
    return emit(FaultKind::barrier_divergence, each,
                fmt::format("only lanes {:#010x} of {:#010x} of the warp reach this aligned barrier",
                            each.fragment->mask, each.warp->live));
  }
  for (const Waiter& each : waiters) {
    if (each.fragment->wait != Wait::mbarrier && each.fragment->wait != Wait::cluster) continue;
    if (each.fragment->wait == Wait::cluster)
      return emit(FaultKind::barrier_deadlock, each, "threads of the cluster never arrive at its barrier");
    bind(*each.warp, each.fragment->frame);
    const Code& code = launch.image->codes[each.fragment->pc];
    return emit(FaultKind::mbarrier_deadlock, each,
                "waits forever for " +
                    mbarrier_text(*each.warp, code, static_cast<unsigned>(std::countr_zero(each.fragment->mask))));
  }
  const Waiter& first = waiters.front();
  const BarrierState& barrier = cta.barriers[first.fragment->barrier_id];
  uint32_t arrived = barrier.arrived_threads;
  for (uint32_t lanes : barrier.arrived) arrived += static_cast<uint32_t>(std::popcount(lanes));
  emit(FaultKind::barrier_deadlock, first,
       fmt::format("barrier {} waits for {} threads and {} have arrived", first.fragment->barrier_id,
                   barrier.expected ? std::to_string(barrier.expected) : "all", arrived));
}

}  // namespace ptxkit::emulator
