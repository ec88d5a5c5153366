// See pending_registers.hpp.
#include "runtime/emulator/sanitizer/pending_registers.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace ptxkit::emulator {

namespace {

using Pending = WarpgroupOrder::Pending;

void report_pending(Warp& warp, const Pending& use, std::string_view verb) {
  const bool committed = use.group < warp.warpgroup.commits;
  report(warp,
         {.kind = use.is_load ? FaultKind::async_pending : FaultKind::wgmma_pending,
          .message = fmt::format("{} is {} while {} still {} it: {}", register_name(warp, use.ref), verb,
                                 use.is_load ? "tcgen05.ld" : "wgmma.mma_async", use.is_result ? "writes" : "reads",
                                 use.is_load ? "tcgen05.wait::ld has not been executed"
                                 : committed ? "wgmma.wait_group has not been executed for its group"
                                             : "its group has not been committed"),
          .lane = static_cast<unsigned>(std::countr_zero(warp.active)),
          .has_other = true,
          .other_pc = use.pc,
          .other_warp = warp.index,
          .other_lane = static_cast<uint32_t>(std::countr_zero(warp.active)),
          .other_message = "started here"});
}

// Notes it once for each load.
void note_computed(Warp& warp, const Pending& use) {
  constexpr uint64_t kLoads = uint64_t{1} << 63;  // distinct from the keys of objects in shared memory
  const std::pair key{kLoads | use.pc, 0u};
  if (!warp.cta->noted.insert(key).second) return;
  Launch& launch = *warp.cta->launch;
  {
    std::lock_guard lock(launch.mutex);
    if (!launch.noted.insert(key).second) return;
  }
  const auto lane = static_cast<uint32_t>(std::countr_zero(warp.active));
  note(warp, {.kind = FaultKind::async_early,
              .message = fmt::format("{} is used in a computation before tcgen05.wait::ld: ptxas waits here, but the "
                                     "ISA does not guarantee it; put the wait first",
                                     register_name(warp, use.ref)),
              .lane = lane,
              .has_other = true,
              .other_pc = use.pc,
              .other_warp = warp.index,
              .other_lane = lane,
              .other_message = "started here"});
}

}  // namespace

void move_registers(Warp& warp, std::span<const MovedRegister> moves, bool computes) {
  WarpgroupOrder& order = warp.warpgroup;
  if (order.pending.empty()) return;
  std::vector<Pending> handed_on;
  const auto find = [&](uint32_t ref, auto&& is_it) {
    return std::ranges::find_if(
        order.pending, [&](const Pending& each) { return each.frame == warp.frame && each.ref == ref && is_it(each); });
  };
  for (const auto& [to, from] : moves) {
    const auto source = find(from, [](const Pending& each) { return each.is_result; });
    if (source == order.pending.end()) continue;
    if (!source->is_load) {
      report_pending(warp, *source, "used");
      continue;
    }
    if (computes) {
      note_computed(warp, *source);
      continue;  // the machine code has waited by then, so the result is a finished value
    }
    if (to == MovedRegister::kUnwatched) continue;
    handed_on.push_back(*source);
    handed_on.back().ref = to;
    handed_on.back().is_moved = true;
  }
  for (const auto& [to, from] : moves) {
    order.forget_moved(warp.frame, to);
    const auto target = find(to, [](const Pending& each) { return each.is_result; });
    if (target != order.pending.end()) report_pending(warp, *target, "written");
  }
  order.pending.insert(order.pending.end(), handed_on.begin(), handed_on.end());
}

void watch_registers(Warp& warp, const WatchedRegister* registers, uint32_t count) {
  WarpgroupOrder& order = warp.warpgroup;
  for (uint32_t i = 0; i < count; ++i) {
    const auto& [ref, written] = registers[i];
    if (written) order.forget_moved(warp.frame, ref);
    for (const Pending& each : order.pending)
      if (each.frame == warp.frame && each.ref == ref && (written || each.is_result)) {
        report_pending(warp, each, written ? "written" : "used");
        break;
      }
    if (written) order.written.push_back({warp.frame, ref});
  }
  // A loop without a fence writes the same registers again and again: remove duplicates.
  if (order.written.size() < 4096) return;
  auto less = [](const auto& x, const auto& y) { return std::tie(x.frame, x.ref) < std::tie(y.frame, y.ref); };
  auto same = [](const auto& x, const auto& y) { return x.frame == y.frame && x.ref == y.ref; };
  std::sort(order.written.begin(), order.written.end(), less);
  order.written.erase(std::unique(order.written.begin(), order.written.end(), same), order.written.end());
}

void start_product(Warp& warp, const MatrixForm& form) {
  WarpgroupOrder& order = warp.warpgroup;
  const Ref* refs = warp.cta->launch->image->refs.data();
  auto fault = [&](std::string message) {
    report(warp, {.kind = FaultKind::wgmma_fence, .message = std::move(message)});
  };
  if (!order.fenced) fault("no wgmma.fence has been executed before the first wgmma.mma_async");
  std::vector<Pending> started;
  auto use = [&](const RegisterList& list, bool is_result) {
    for (uint32_t i = 0; i < list.count; ++i) {
      const Ref ref = refs[list.first + i];
      const bool written = std::any_of(order.written.begin(), order.written.end(),
                                       [&](const auto& each) { return each.frame == warp.frame && each.ref == ref; });
      if (order.fenced && written)
        fault(fmt::format("{} has been written and no wgmma.fence has been executed since", register_name(warp, ref)));
      for (const Pending& each : order.pending) {
        // Products of one shape may follow each other with the same accumulators without a wait.
        const bool follows = is_result && each.is_result && each.shape_n == form.shape.n;
        if (each.frame != warp.frame || each.ref != ref || follows || (!is_result && !each.is_result)) continue;
        report_pending(warp, each, is_result ? "written" : "used");
        break;
      }
      started.push_back({.frame = warp.frame,
                         .ref = ref,
                         .is_result = is_result,
                         .pc = warp.pc,
                         .shape_n = form.shape.n,
                         .group = order.commits});
    }
  };
  use(form.d, true);
  if (!form.a_in_shared) use(form.a, false);
  std::erase_if(order.pending, [&](const Pending& each) {
    return std::any_of(started.begin(), started.end(), [&](const Pending& fresh) {
      return fresh.frame == each.frame && fresh.ref == each.ref && fresh.is_result == each.is_result;
    });
  });
  order.pending.insert(order.pending.end(), started.begin(), started.end());
}

void start_load(Warp& warp, std::span<const uint32_t> registers) {
  for (const uint32_t ref : registers) {
    warp.warpgroup.forget_moved(warp.frame, ref);
    warp.warpgroup.pending.push_back(
        {.frame = warp.frame, .ref = ref, .is_result = true, .is_load = true, .pc = warp.pc});
  }
}

}  // namespace ptxkit::emulator
