// The engine: fetches the Codes of fragments, executes control flow, and makes lanes wait for each other.
//
// A warp runs its fragments one at a time; state.hpp gives the order. Lanes reconverge only at labels, after calls and
// after waits, so the loop tests for it only there, and only while the warp is divergent.
#include "runtime/emulator/engine/engine.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "runtime/emulator/core/frames.hpp"
#include "runtime/emulator/core/limits.hpp"
#include "runtime/emulator/engine/builtins.hpp"
#include "runtime/emulator/engine/collectives.hpp"
#include "runtime/emulator/engine/waiting.hpp"
#include "runtime/emulator/instructions/memory/async_work.hpp"
#include "runtime/emulator/sanitizer/hang.hpp"
#include "runtime/emulator/sanitizer/undefined.hpp"
#include "runtime/emulator/sanitizer/visits.hpp"
#include "support/check.hpp"

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kFragmentSlice = 2048;  // steps before another fragment of the warp runs
constexpr uint64_t kWarpSlice = 65536;     // steps before another warp runs
constexpr uint64_t kPollBudget = 8192;     // steps before another CTA runs, if this one polls memory that others write
constexpr uint64_t kDeadlineInterval = 1024;  // steps between tests of a deadline
constexpr uint64_t kCycleSlice = 64;          // steps of a turn in which all lanes are known to be in a cycle
constexpr unsigned kMaxTimeouts = 64;         // time-outs of mbarrier waits before they count as a deadlock

bool deeper_first(const Fragment& x, const Fragment& y) {
  if (x.frame->depth != y.frame->depth) return x.frame->depth > y.frame->depth;
  return x.pc < y.pc;
}

enum class FragmentChoice : uint8_t {
  place,       // deepest call, then lowest address
  oldest,      // the one that ran longest ago
  newest,      // the one that ran last
  last_place,  // the opposite of `place`
};

size_t choose_fragment(const Warp& warp, FragmentChoice choice) {
  size_t best = warp.fragments.size();
  for (size_t i = 0; i < warp.fragments.size(); ++i) {
    const Fragment& each = warp.fragments[i];
    if (each.wait != Wait::none) continue;
    if (best == warp.fragments.size())
      best = i;
    else if (choice == FragmentChoice::oldest       ? each.turn < warp.fragments[best].turn
             : choice == FragmentChoice::newest     ? each.turn > warp.fragments[best].turn
             : choice == FragmentChoice::last_place ? deeper_first(warp.fragments[best], each)
                                                    : deeper_first(each, warp.fragments[best]))
      best = i;
  }
  return best;
}

// Merges the fragments at the same place in the same frame into fragment `index`, unless they wait. Returns its new
// index.
size_t merge_fragments(Warp& warp, size_t index) {
  for (size_t i = warp.fragments.size(); i-- > 0;) {
    if (i == index) continue;
    Fragment &mine = warp.fragments[index], &other = warp.fragments[i];
    if (other.wait != Wait::none || other.pc != mine.pc || other.frame != mine.frame) continue;
    mine.mask |= other.mask;
    warp.fragments.erase(warp.fragments.begin() + static_cast<ptrdiff_t>(i));
    if (i < index) --index;
  }
  return index;
}

// Splits the running fragment: `lanes` of it become a fragment of their own at `pc`. Returns its index.
size_t split(Warp& warp, size_t index, uint32_t lanes, uint32_t pc) {
  Fragment part = warp.fragments[index];
  part.mask = lanes;
  part.pc = pc;
  warp.fragments[index].mask &= ~lanes;
  warp.fragments.push_back(part);
  return warp.fragments.size() - 1;
}

void remove_lanes(Warp& warp, size_t index, uint32_t lanes) {
  warp.fragments[index].mask &= ~lanes;
  if (warp.fragments[index].mask == 0) warp.fragments.erase(warp.fragments.begin() + static_cast<ptrdiff_t>(index));
}

// Ends a phase of the cluster's barrier once all threads of the cluster have arrived.
void complete_cluster_barrier(Cta& cta) {
  auto each_warp = [&](auto&& f) {
    if (!cta.cluster) {
      for (auto& warp : cta.warps) f(*warp);
      return;
    }
    for (Cta* other : cta.cluster->ctas)
      for (auto& warp : other->warps) f(*warp);
  };
  bool all = true;
  each_warp([&](Warp& warp) { all &= (warp.live & ~warp.cluster_arrived) == 0; });
  if (!all) return;
  each_warp([&](Warp& warp) { warp.cluster_arrived = 0; });
  if (!cta.order) return;
  std::vector<CtaOrder*> orders;
  if (cta.cluster)
    for (Cta* other : cta.cluster->ctas) orders.push_back(other->order.get());
  else
    orders.push_back(cta.order.get());
  CtaOrder::barrier_cluster(orders);
}

void exit_lanes(Warp& warp, size_t index, uint32_t lanes, uint32_t pc) {
  ++warp.cta->stores;
  note_change(*warp.cta);
  Frame* frame = warp.fragments[index].frame;
  for (Frame* each = frame; each;) {
    Frame* caller = each->caller;
    leave_frame(warp, each, lanes);
    each = caller;
  }
  warp.live &= ~lanes;
  warp.cluster_arrived &= ~lanes;
  if (warp.cta->launch->explicit_cluster) complete_cluster_barrier(*warp.cta);
  warp.exit_pc = pc;
  warp.exit_lane = static_cast<unsigned>(std::countr_zero(lanes));
  remove_lanes(warp, index, lanes);
}

// Whether each of `to` gets all of its bytes from `from`. Registers are extended.
bool fills(const std::vector<CallValue>& from, const std::vector<CallValue>& to) {
  return from.size() >= to.size() &&
         std::ranges::equal(to, std::span(from).first(to.size()), [](const auto& a, const auto& b) {
           return a.in_register || b.in_register || b.size_bytes >= a.size_bytes;
         });
}
bool fits(const CallSite& call, const FunctionImage& function) {
  return fills(call.arguments, function.parameters) && fills(function.results, call.results);
}

void refresh_clock(Warp& warp) {
  const uint64_t steps = warp.cta->statistics.warp_instructions + warp.turn_steps;
  auto fill32 = [&](SpecialSlot slot, uint64_t value) {
    std::fill_n(reinterpret_cast<uint32_t*>(at<uint8_t>(warp, special_ref(slot))), kLanes,
                static_cast<uint32_t>(value));
  };
  fill32(SpecialSlot::clock, steps);
  fill32(SpecialSlot::clock_hi, steps >> 32);
  fill32(SpecialSlot::globaltimer_lo, steps);
  fill32(SpecialSlot::globaltimer_hi, steps >> 32);
  std::fill_n(at<uint64_t>(warp, special_ref(SpecialSlot::clock64)), kLanes, steps);
  std::fill_n(at<uint64_t>(warp, special_ref(SpecialSlot::globaltimer)), kLanes, steps);
}

// Resumes fragments whose mbarrier or cluster barrier is complete; with `times_out`, all fragments at an mbarrier.
void wake(Warp& warp, bool times_out) {
  const Code* codes = warp.cta->launch->image->codes.data();
  warp.polls = false;
  for (Fragment& fragment : warp.fragments) {
    if (fragment.wait == Wait::cluster) {
      if (warp.cluster_arrived & fragment.mask) {
        warp.polls = true;
        continue;
      }
      warp.cluster_unwaited &= ~fragment.mask;
    } else if (fragment.wait == Wait::mbarrier) {
      bind(warp, fragment.frame);
      warp.pc = fragment.pc;
      if (!try_mbarrier(warp, codes[fragment.pc], fragment.mask, times_out)) {
        warp.polls = true;
        continue;
      }
    } else {
      continue;
    }
    fragment.wait = Wait::none;
    ++fragment.pc;
  }
}

// Executes one instruction that moves control or waits. The running fragment has been written back. Next::stop ends the
// turn.
enum class Next : uint8_t { go_on, choose_fragment, stop };

Next control(Warp& warp, size_t& index, const Code& code, uint32_t exec) {
  Cta& cta = *warp.cta;
  const ProgramImage& image = *cta.launch->image;
  const uint32_t pc = warp.fragments[index].pc;
  const uint32_t mask = warp.fragments[index].mask;
  if (exec == 0) {
    ++warp.fragments[index].pc;
    return Next::go_on;
  }
  // Lanes that the guard disables go past the instruction as a fragment of their own and wait there for the others.
  auto separate = [&] {
    if (exec != mask) index = split(warp, index, exec, pc);
  };
  auto pass_rest = [&](size_t rest) {
    if (exec != mask) ++warp.fragments[rest].pc;
  };
  const size_t whole = index;
  switch (code.kind) {
    case Kind::branch:
      if (exec != mask) {
        ++cta.statistics.divergent_branches;
        split(warp, index, exec, code.target);
        ++warp.fragments[index].pc;
        return Next::choose_fragment;
      }
      warp.fragments[index].pc = code.target;
      return Next::choose_fragment;
    case Kind::branch_table: {
      const auto& table = image.tables[code.target];
      separate();
      pass_rest(whole);
      uint32_t rest = exec;
      bool first_group = true;
      while (rest) {
        unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
        uint32_t entry = value_of(warp, code.a, lane), group = 0;
        for_lanes(rest, [&](unsigned i) { group |= uint32_t{value_of(warp, code.a, i) == entry} << i; });
        if (entry >= table.size()) {
          report(warp, {.kind = FaultKind::bad_branch_index,
                        .message = fmt::format("branch index {} is past the table of {} targets", entry, table.size()),
                        .lane = lane});
          return Next::stop;
        }
        rest &= ~group;
        if (rest == 0) {
          warp.fragments[index].pc = table[entry];
        } else {
          split(warp, index, group, table[entry]);
          if (first_group) ++cta.statistics.divergent_branches;
        }
        first_group = false;
      }
      return Next::choose_fragment;
    }
    case Kind::call:
    case Kind::call_indirect: {
      separate();
      pass_rest(whole);
      const CallSite& call = image.calls[code.target];
      if (code.kind == Kind::call) {
        if (!enter(warp, index, call, call.function)) return Next::stop;
        return Next::choose_fragment;
      }
      uint32_t rest = exec;
      while (rest) {
        unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
        auto value = [&](unsigned i) {
          // A 32-bit register holds the low half of a function's address.
          return code.wide_address ? at<uint64_t>(warp, code.a)[i] : kFunctionAddress + value_of(warp, code.a, i);
        };
        uint64_t target = value(lane);
        uint32_t group = 0;
        for_lanes(rest, [&](unsigned i) { group |= uint32_t{value(i) == target} << i; });
        const uint64_t callee = function_at(target);
        if (callee >= image.functions.size() || !image.functions[callee].has_body) {
          report(warp, {.kind = FaultKind::bad_branch_index,
                        .message = fmt::format("{:#x} is not the address of a function", target),
                        .lane = lane});
          return Next::stop;
        }
        if (!fits(call, image.functions[callee])) {
          report(warp, {.kind = FaultKind::bad_branch_index,
                        .message = fmt::format("'{}' is called through a prototype that is not its own",
                                               image.functions[callee].name),
                        .lane = lane});
          return Next::stop;
        }
        rest &= ~group;
        size_t part = rest ? split(warp, index, group, pc) : index;
        if (!enter(warp, part, call, static_cast<uint32_t>(callee))) return Next::stop;
      }
      return Next::choose_fragment;
    }
    case Kind::call_builtin: {
      const CallSite& call = image.calls[code.target];
      Frame& frame = *warp.frame;
      ++cta.stores;
      for_lanes(exec, [&](unsigned lane) {
        if (cta.stopped || is_interrupted(*cta.launch)) return;
        uint64_t values[8] = {};
        const size_t count = std::min<size_t>(call.arguments.size(), 8);
        for (size_t i = 0; i < count; ++i) {
          const CallValue& each = call.arguments[i];
          std::memcpy(&values[i], place_of(warp, frame, each, lane).bytes,
                      std::min<uint64_t>(8, each.in_register ? each.bytes : each.size_bytes));
        }
        const uint64_t result = run_builtin(warp, static_cast<Builtin>(code.sub), lane, {values, count});
        if (call.results.empty()) return;
        const Place place = place_of(warp, frame, call.results[0], lane);
        const CallValue& to = call.results[0];
        const uint64_t bytes = std::min<uint64_t>(8, to.in_register ? to.bytes : to.size_bytes);
        std::memcpy(place.bytes, &result, bytes);
        if (place.shadow) std::memset(place.shadow, place.marks ? 0 : 0xff, bytes);
        if (place.marks) *place.marks &= ~(1u << lane);
      });
      ++warp.fragments[index].pc;
      return cta.stopped ? Next::stop : Next::go_on;
    }
    case Kind::ret:
      if (warp.fragments[index].frame->caller) {
        separate();
        pass_rest(whole);
        return_lanes(warp, index);
        return Next::choose_fragment;
      }
      [[fallthrough]];
    case Kind::exit:
      pass_rest(index);
      exit_lanes(warp, index, exec, pc);
      complete_waits(warp);
      return cta.stopped ? Next::stop : Next::choose_fragment;
    case Kind::trap:
    case Kind::breakpoint:
      report(warp, {.kind = code.kind == Kind::trap ? FaultKind::trap : FaultKind::breakpoint,
                    .message = code.kind == Kind::trap ? "the kernel executed trap" : "the kernel executed brkpt",
                    .lane = static_cast<unsigned>(std::countr_zero(exec))});
      return Next::stop;
    case Kind::unsupported:
      report(warp, {.kind = FaultKind::unsupported,
                    .message = image.refusals[code.target],
                    .lane = static_cast<unsigned>(std::countr_zero(exec))});
      return Next::stop;
    case Kind::barrier: {
      if (warp.search) ++warp.search->barriers;
      separate();
      pass_rest(whole);
      if (!start_barrier(warp, code, warp.fragments[index])) return Next::stop;
      complete_waits(warp);
      return cta.stopped ? Next::stop : Next::choose_fragment;
    }
    case Kind::collective: {
      separate();
      pass_rest(whole);
      uint32_t rest = exec;
      bool waits = false;
      // One group for each member mask: the lanes of a fragment may name different masks.
      while (rest) {
        unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
        uint32_t members = code.aligned ? exec : value_of(warp, code.d, lane), group = 0;
        for_lanes(rest,
                  [&](unsigned i) { group |= uint32_t{code.aligned || value_of(warp, code.d, i) == members} << i; });
        rest &= ~group;
        if (group & ~members) {
          report(warp, {.kind = FaultKind::warp_mask,
                        .message = fmt::format("the executing lane is not in its own member mask {:#010x}", members),
                        .lane = static_cast<unsigned>(std::countr_zero(group & ~members))});
          return Next::stop;
        }
        if (uint32_t left = members & warp.exists & ~warp.live;
            left && checks(cta, kCheckBarriers) && !already_reported(warp, FaultKind::warp_exited))
          report(warp, {.kind = FaultKind::warp_exited,
                        .message = fmt::format("member mask {:#010x} names lane {}, which has left", members,
                                               std::countr_zero(left)),
                        .lane = lane,
                        .has_other = true,
                        .other_pc = warp.exit_pc,
                        .other_warp = warp.index,
                        .other_lane = static_cast<uint32_t>(std::countr_zero(left)),
                        .other_message = "left here"});
        if (cta.searched) note_collective(warp, code, members);
        if (group == (members & warp.live)) {
          Fragment part = warp.fragments[index];
          part.mask = group;
          run_collective(warp, code, {&part, 1}, members);
          continue;
        }
        waits = true;
        if (group == warp.fragments[index].mask) {
          warp.fragments[index].wait = Wait::collective;
          warp.fragments[index].members = members;
        } else {
          size_t part = split(warp, index, group, pc);
          warp.fragments[part].wait = Wait::collective;
          warp.fragments[part].members = members;
        }
      }
      if (warp.fragments[index].wait == Wait::none) ++warp.fragments[index].pc;
      if (cta.stopped) return Next::stop;
      if (!waits) return exec == mask ? Next::go_on : Next::choose_fragment;
      complete_waits(warp);
      return Next::choose_fragment;
    }
    case Kind::cluster_arrive:
    case Kind::cluster_wait: {
      const bool arrives = code.kind == Kind::cluster_arrive;
      if (const uint32_t wrong = exec & (arrives ? warp.cluster_unwaited : ~warp.cluster_unwaited)) {
        report(warp, {.kind = FaultKind::cluster_pairing,
                      .message = arrives ? "a thread arrives twice without barrier.cluster.wait"
                                         : "a thread waits that has not executed barrier.cluster.arrive",
                      .lane = static_cast<unsigned>(std::countr_zero(wrong))});
        return Next::stop;
      }
      if (arrives) {
        warp.cluster_unwaited |= exec;
        warp.cluster_arrived |= exec;
        complete_cluster_barrier(cta);
        ++warp.fragments[index].pc;
        return Next::go_on;
      }
      separate();
      pass_rest(whole);
      warp.fragments[index].wait = Wait::cluster;
      warp.polls = true;
      wake(warp, false);
      return Next::choose_fragment;
    }
    case Kind::mbarrier_wait:
      separate();
      pass_rest(whole);
      warp.fragments[index].wait = Wait::mbarrier;
      warp.polls = true;
      wake(warp, false);
      return cta.stopped ? Next::stop : Next::choose_fragment;
    case Kind::yield:
      ++cta.polls;
      ++warp.fragments[index].pc;
      warp.fragments[index].turn = ++warp.turn;
      return Next::stop;
    case Kind::clock:
      refresh_clock(warp);
      ++warp.fragments[index].pc;
      return Next::go_on;
    case Kind::simple:
      break;
  }
  PTXKIT_CHECK(false, "simple instruction in control()");
}

void check_guard(Warp& warp, const Code& code, uint32_t mask) {
  uint32_t lanes = undefined_lanes(warp, code.guard) & mask;
  if (lanes && checks(*warp.cta, kCheckUninitialised))
    report_undefined(warp, FaultKind::uninitialised_branch, code.guard, lanes);
}

// Runs the warp until it waits, ends, is stopped or has used `slice` steps. Returns the steps taken. While the warp is
// divergent, every kFragmentSlice steps the fragment that ran longest ago gets a slice of its own; otherwise lanes that
// spin at a low address would starve the lane that they wait for. kSearched: a search for hangs is active.
template <bool kChecked, bool kSearched>
uint64_t run_warp(Warp& warp, uint64_t slice) {
  Cta& cta = *warp.cta;
  const Code* codes = cta.launch->image->codes.data();
  const auto& visited = cta.launch->visited_lines;
  const uint8_t* const visited_lines = visited.empty() ? nullptr : visited.data();
  Executions* const executions = cta.executions.empty() ? nullptr : cta.executions.data();
  const bool is_recorded = visited_lines != nullptr || executions != nullptr;
  const bool random = cta.launch->options.schedule_seed != 0;
  uint64_t steps = 0, threads = 0;
  const FragmentChoice usual = cta.launch->options.adversarial ? FragmentChoice::last_place : FragmentChoice::place;
  FragmentChoice choice = usual;
  auto fragment_slice = [&] { return random ? 1 + cta.random() % 64 : kFragmentSlice; };
  uint64_t rotate_at = fragment_slice();
  const Effect* effects = nullptr;
  if constexpr (kSearched) {
    effects = cta.launch->hang.effects.data();
    if (!begin_searched_turn(warp)) return 0;
  }
  while (steps < slice && !cta.stopped && !is_interrupted(*cta.launch)) {
    if constexpr (kSearched) {
      if (cta.searched && steps >= kCycleSlice && !(warp.live & ~warp.search->cycling())) break;
    }
    if (steps >= rotate_at) {
      choice = choice == usual || random ? FragmentChoice::oldest : usual;
      rotate_at = steps + fragment_slice();
    }
    size_t index = choose_fragment(warp, choice);
    if (index == warp.fragments.size()) break;
    if (choice == FragmentChoice::oldest) choice = FragmentChoice::newest;
    index = merge_fragments(warp, index);
    warp.fragments[index].turn = ++warp.turn;
    const bool alone = warp.fragments.size() == 1;
    const uint64_t end = std::min(slice, alone ? steps + kDeadlineInterval : rotate_at);
    bind(warp, warp.fragments[index].frame);
    uint32_t pc = warp.fragments[index].pc;
    const uint32_t mask = warp.fragments[index].mask;
    warp.active = mask;
    Next next = Next::go_on;
    bool fresh = true;
    while (steps < end) {
      const Code& code = codes[pc];
      if (code.may_reconverge && !alone && !fresh) break;
      fresh = false;
      warp.pc = pc;
      if constexpr (kSearched) {
        if (cta.searched && code.may_reconverge) {
          note_label(warp, warp.fragments[index], pc);
          if (steps >= kCycleSlice && !(warp.live & ~warp.search->cycling())) break;
        }
      }
      uint32_t exec = mask;
      if (code.guard != kNoRef) {
        if constexpr (kChecked) check_guard(warp, code, mask);
        exec &= *at<const uint32_t>(warp, code.guard) ^ code.guard_flip;
      }
      if constexpr (kChecked) {
        if (is_recorded) {
          if (visited_lines && visited_lines[pc]) note_visits(warp, exec);
          if (executions && code.counts) {
            ++executions[pc].warps;
            executions[pc].threads += static_cast<unsigned>(std::popcount(exec));
          }
        }
      }
      if (code.counts) {
        ++steps;
        threads += static_cast<unsigned>(std::popcount(exec));
      }
      if constexpr (kSearched) {
        if (cta.searched && exec != 0 && effects[pc] >= Effect::unknown_memory)
          effects[pc] == Effect::unknown_memory ? note_change(cta) : note_private_change(warp);
      }
      if (code.kind == Kind::simple) {
        ++pc;
        if (exec == 0) continue;
        if constexpr (kChecked) {
          if (code.undefined != Undefined::handler) {
            uint32_t undefined = undefined_lanes(warp, code.a) | undefined_lanes(warp, code.b) |
                                 undefined_lanes(warp, code.c) | undefined_lanes(warp, code.d);
            if ((undefined & exec) && code.undefined != Undefined::none) {
              propagate_undefined(warp, code, exec);
            } else {
              undefined_lanes(warp, code.dst) &= ~exec;
              undefined_lanes(warp, code.dst2) &= ~exec;
            }
          }
          code.checked(warp, code, exec);
          if (cta.stopped) break;
        } else {
          code.run(warp, code, exec);
        }
        continue;
      }
      if (code.kind == Kind::branch && (exec == 0 || (exec == mask && alone))) {
        // The common cases stay in this loop.
        pc = exec == 0 ? pc + 1 : code.target;
        continue;
      }
      warp.fragments[index].pc = pc;
      warp.turn_steps = steps;
      next = control(warp, index, code, exec);
      if (next != Next::go_on) break;
      pc = warp.fragments[index].pc;
    }
    if (next == Next::go_on) warp.fragments[index].pc = pc;
    if (next == Next::stop) break;
  }
  cta.statistics.warp_instructions += steps;
  cta.statistics.thread_instructions += threads;
  return steps;
}

}  // namespace

void add_clock_refresh(Code& code) {
  code.kind = Kind::clock;
  code.counts = false;
}

bool time_out_cluster(std::vector<std::unique_ptr<Cta>>& ctas) {
  bool any = false;
  for (auto& cta : ctas) {
    if (cta->stopped || ++cta->timeouts > kMaxTimeouts) continue;
    for (auto& warp : cta->warps)
      for (const Fragment& fragment : warp->fragments) any |= fragment.wait == Wait::mbarrier;
    for (auto& warp : cta->warps)
      if (warp->polls) wake(*warp, true);
  }
  return any;
}

bool time_out_waits(Cta& cta) {
  if (cta.timeouts >= kMaxTimeouts) return false;
  ++cta.timeouts;
  for (auto& warp : cta.warps)
    if (warp->polls) wake(*warp, true);
  return true;
}

Progress run(Cta& cta, uint64_t budget) {
  Launch& launch = *cta.launch;
  const bool random = launch.options.schedule_seed != 0;
  const uint64_t polls_before = cta.polls;
  uint64_t used = 0;
  while (!cta.stopped && !launch.stop) {
    bool progress = false, alive = false;
    const size_t count = cta.warps.size();
    const bool adversarial = random && launch.options.adversarial;
    const size_t first = adversarial ? 0 : random ? cta.random() % count : cta.next_warp;
    for (size_t i = 0; i < count && !cta.stopped; ++i) {
      const size_t place = (first + i) % count;
      Warp& warp = *cta.warps[adversarial ? cta.priority[place] : place];
      if (!warp.live) continue;
      alive = true;
      if (warp.polls) wake(warp, false);
      if (stop_at_limit(warp) || is_idle(launch, warp)) return Progress::done;
      uint64_t slice = random ? 1 + cta.random() % 512 : kWarpSlice;
      if (adversarial && cta.random() % 4) slice = kFragmentSlice;
      const uint32_t live = warp.live;
      const uint64_t stores = cta.stores;
      uint64_t steps;
      if (launch.hang.active.load(std::memory_order_relaxed)) {
        cta.searched = true;
        steps = launch.checked ? run_warp<true, true>(warp, slice) : run_warp<false, true>(warp, slice);
        cta.searched = false;
        if (launch.stop) return Progress::done;
      } else {
        steps = launch.checked ? run_warp<true, false>(warp, slice) : run_warp<false, false>(warp, slice);
        // Another worker has begun a search since, and this turn did not note its changes.
        if (launch.hang.active.load(std::memory_order_relaxed)) ++launch.hang.version;
      }
      if (cta.stores != stores)
        launch.hang.idle_steps.store(0, std::memory_order_relaxed);
      else
        launch.hang.idle_steps.fetch_add(steps, std::memory_order_relaxed);
      progress |= steps != 0 || warp.live != live;  // falling off the end of the kernel takes no step
      used += steps;
      schedule_search(launch, launch.steps.fetch_add(steps, std::memory_order_relaxed) + steps);
      if (adversarial && steps != 0) {
        // A warp that has used up its slice moves to the last priority; a warp that waits keeps its place.
        if (steps >= slice)
          std::rotate(cta.priority.begin() + place, cta.priority.begin() + place + 1, cta.priority.end());
        if (used < kPollBudget) break;
      }
      if (used >= (cta.polls != polls_before ? std::min(budget, kPollBudget) : budget)) {
        cta.next_warp = (first + i + 1) % count;
        return Progress::yielded;
      }
    }
    if (progress && launch.hang.active && is_stuck(cta, time_out_waits)) return Progress::yielded;
    if (!alive) return Progress::done;
    if (progress || cta.stopped) continue;
    // No warp can run. Waits for an mbarrier may time out and test again, as try_wait does on hardware.
    bool polls = false;
    for (auto& warp : cta.warps) polls |= warp->polls;
    if (cta.cluster && cta.cluster->ctas.size() > 1 && polls) return Progress::blocked;
    if (polls && time_out_waits(cta)) continue;
    report_deadlock(cta);
    cta.stopped = true;
  }
  return Progress::done;
}

}  // namespace ptxkit::emulator
