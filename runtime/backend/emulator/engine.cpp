// The engine: fetches Codes for fragments, moves control, makes lanes wait for each other.
//
// A warp runs its fragments one at a time; see state.hpp for the order. Lanes meet only at labels, after calls and after
// waits, so the loop looks for a meeting only there, and only while the warp is divergent.
#include "runtime/backend/emulator/engine.hpp"

#include "runtime/backend/emulator/builtins.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/check.hpp"

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kFragmentSlice = 2048;   // steps before another fragment of the warp may go on
constexpr uint64_t kWarpSlice = 65536;      // and another warp
constexpr uint32_t kMaxDepth = 4096;
constexpr uint64_t kMaxLocalBytes = 512 * 1024;  // per thread, as hardware has it

void bind(Warp& warp, Frame* frame) {
  warp.frame = frame;
  warp.base[0] = frame->values;
  warp.undefined[0] = frame->undefined;
  warp.origin[0] = frame->origin;
  warp.shadow[0] = frame->shadow;
}

Frame* take_frame(Warp& warp, const FunctionImage& function) {
  if (warp.free_frames.empty()) {
    warp.frame_pool.push_back(std::make_unique<Frame>());
    warp.free_frames.push_back(warp.frame_pool.back().get());
  }
  Frame* frame = warp.free_frames.back();
  warp.free_frames.pop_back();
  const bool checked = warp.cta->launch->checked;
  const size_t units = function.frame_units;
  const size_t words = units * (kUnitBytes / 8);
  // Values, and when checked: shadow plane, undefined lanes, origins.
  const size_t needed = checked ? 2 * words + units : words;
  if (frame->storage.size() < needed + 8) frame->storage.resize(needed + 8);
  auto begin = (reinterpret_cast<uintptr_t>(frame->storage.data()) + kUnitBytes - 1) & ~uintptr_t{kUnitBytes - 1};
  frame->values = reinterpret_cast<uint8_t*>(begin);
  std::memset(frame->values, 0, words * 8);
  if (checked) {
    frame->shadow = frame->values + words * 8;
    std::memset(frame->shadow, 0xff, words * 8);
    frame->undefined = reinterpret_cast<uint32_t*>(frame->shadow + words * 8);
    frame->origin = frame->undefined + units;
    std::memset(frame->undefined, 0, kFirstRegister * sizeof(uint32_t));
    std::memset(frame->undefined + kFirstRegister, 0xff, (units - kFirstRegister) * sizeof(uint32_t));
    std::memset(frame->origin, 0, units * sizeof(uint32_t));
  } else {
    frame->shadow = nullptr;
    frame->undefined = frame->origin = nullptr;
  }
  frame->function = &function;
  frame->caller = nullptr;
  frame->call = nullptr;
  frame->depth = 0;
  frame->local_base = 0;
  return frame;
}

void set_frame_base(Frame& frame) {
  auto* wide = reinterpret_cast<uint64_t*>(frame.values + size_t{kFrameBase64Ref} * kUnitBytes);
  auto* narrow = reinterpret_cast<uint32_t*>(frame.values + size_t{kFrameBase32Ref} * kUnitBytes);
  std::fill_n(wide, kLanes, frame.local_base);
  std::fill_n(narrow, kLanes, static_cast<uint32_t>(frame.local_base));
}

void leave_frame(Warp& warp, Frame* frame, uint32_t lanes) {
  frame->lanes &= ~lanes;
  if (frame->lanes == 0) warp.free_frames.push_back(frame);
}

// Room for `bytes` of local memory in every lane; growing keeps what is there.
void grow_local(Warp& warp, uint64_t bytes) {
  if (bytes <= warp.local_bytes) return;
  uint64_t old = warp.local_bytes, grown = std::max(bytes, old * 2);
  auto widen = [&](std::vector<uint8_t>& lanes, uint8_t fill) {
    std::vector<uint8_t> wider(grown * kLanes, fill);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::copy_n(lanes.begin() + static_cast<ptrdiff_t>(lane * old), old, wider.begin() + static_cast<ptrdiff_t>(lane * grown));
    lanes = std::move(wider);
  };
  widen(warp.local, kPoison);
  if (warp.cta->launch->checked) widen(warp.local_shadow, 0);
  warp.local_bytes = grown;
}

// Fresh variables of a frame are undefined again.
void forget_locals(Warp& warp, const Frame& frame, uint32_t lanes) {
  if (!warp.cta->launch->checked || frame.function->local_bytes == 0) return;
  for_lanes(lanes, [&](unsigned lane) {
    std::memset(warp.local_shadow.data() + lane * warp.local_bytes + frame.local_base, 0, frame.function->local_bytes);
  });
}

struct Place {
  uint8_t* bytes;
  uint8_t* shadow;  // memory: set where defined; register: set where undefined; null when nothing is tracked
  uint32_t* marks;  // registers: lanes with undefined bits
};

Place place_of(Warp& warp, Frame& frame, const CallValue& value, unsigned lane) {
  if (!value.in_register) {
    uint64_t offset = lane * warp.local_bytes + frame.local_base + value.offset;
    return {warp.local.data() + offset, warp.local_shadow.empty() ? nullptr : warp.local_shadow.data() + offset, nullptr};
  }
  if (value.ref >> 30) return {at<uint8_t>(warp, value.ref) + size_t{lane} * value.bytes, nullptr, nullptr};
  size_t offset = size_t{value.ref & kRefIndex} * kUnitBytes + size_t{lane} * value.bytes;
  return {frame.values + offset, frame.shadow ? frame.shadow + offset : nullptr,
          frame.undefined ? frame.undefined + (value.ref & kRefIndex) : nullptr};
}

// Copies one argument or result of one lane between frames, undefinedness included.
void copy_value(Warp& warp, Frame& from_frame, const CallValue& from, Frame& to_frame, const CallValue& to, unsigned lane) {
  Place source = place_of(warp, from_frame, from, lane), target = place_of(warp, to_frame, to, lane);
  uint64_t size_bytes = std::min(from.in_register ? from.bytes : from.size_bytes, to.in_register ? to.bytes : to.size_bytes);
  if (to.in_register && to.bytes > size_bytes) std::memset(target.bytes, 0, to.bytes);
  std::memcpy(target.bytes, source.bytes, size_bytes);
  if (!warp.cta->launch->checked) return;
  auto undefined_byte = [&](uint64_t i) -> uint8_t {
    if (!source.shadow) return 0;
    if (!from.in_register) return static_cast<uint8_t>(~source.shadow[i]);
    return source.marks && (*source.marks >> lane & 1) ? source.shadow[i] : uint8_t{0};
  };
  bool any = false;
  for (uint64_t i = 0; i < size_bytes; ++i) {
    uint8_t bits = undefined_byte(i);
    any |= bits != 0;
    if (target.shadow) target.shadow[i] = to.in_register ? bits : static_cast<uint8_t>(~bits);
  }
  if (target.marks) *target.marks = (*target.marks & ~(1u << lane)) | uint32_t{any} << lane;
}

bool deeper_first(const Fragment& x, const Fragment& y) {
  if (x.frame->depth != y.frame->depth) return x.frame->depth > y.frame->depth;
  return x.pc < y.pc;
}

enum class Pick : uint8_t {
  place,   // deepest call, then lowest address
  oldest,  // the one that has waited longest
  newest,  // the one that ran last
};

size_t choose(const Warp& warp, Pick pick) {
  size_t best = warp.fragments.size();
  for (size_t i = 0; i < warp.fragments.size(); ++i) {
    const Fragment& each = warp.fragments[i];
    if (each.wait != Wait::none) continue;
    if (best == warp.fragments.size()) best = i;
    else if (pick == Pick::oldest ? each.turn < warp.fragments[best].turn
             : pick == Pick::newest ? each.turn > warp.fragments[best].turn
                                    : deeper_first(each, warp.fragments[best]))
      best = i;
  }
  return best;
}

// Joins running fragments that stand at the same place in the same frame with `index`; returns its new index.
size_t meet(Warp& warp, size_t index) {
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

bool same_collective(const Code& x, const Code& y) {
  return x.sub == y.sub && x.element_bytes == y.element_bytes && x.is_signed == y.is_signed;
}

// Runs every waiting collective whose lanes are all there now.
void settle_collectives(Warp& warp) {
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
        if (each.wait == Wait::collective && each.members == first.members && same_collective(code, image.codes[each.pc])) {
          there |= each.mask;
          parts.push_back(each);
        }
      if (there != (first.members & warp.live)) continue;
      const uint32_t members = first.members;
      warp.pc = first.pc;
      run_collective(warp, code, parts, members);
      for (Fragment& each : warp.fragments)
        if (each.wait == Wait::collective && each.members == members && (each.mask & there) && same_collective(code, image.codes[each.pc])) {
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
  if (cta.races) {
    if (whole_cta(barrier)) cta.races->barrier_all();
    else cta.races->barrier_some(barrier.arrived);
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
          bool value = kind == Barrier::reduce_and ? barrier.predicate_count == barrier.reduced_lanes : barrier.predicate_count != 0;
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
}

// Called when lanes arrived or left.
void settle_barriers(Cta& cta) {
  for (unsigned id = 0; id < cta.barriers.size(); ++id)
    if (cta.barriers[id].in_use && barrier_complete(cta, cta.barriers[id])) complete_barrier(cta, id);
}

// Counts a fragment in at its barrier.
void arrive(Warp& warp, Fragment& fragment) {
  Cta& cta = *warp.cta;
  BarrierState& barrier = cta.barriers[fragment.barrier_id];
  const Code& code = cta.launch->image->codes[fragment.pc];
  const auto kind = static_cast<Barrier>(code.sub);
  warp.pc = fragment.pc;
  if (barrier.in_use && barrier.expected != fragment.barrier_threads) {
    report(warp, {.kind = FaultKind::barrier_count,
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
    std::memcpy(&predicate, code.c >> 30 ? at<uint8_t>(warp, code.c) : fragment.frame->values + size_t{code.c & kRefIndex} * kUnitBytes, 4);
    predicate ^= static_cast<uint32_t>(code.immediate);
    barrier.predicate_count += static_cast<uint32_t>(std::popcount(predicate & fragment.mask));
    barrier.reduced_lanes += static_cast<uint32_t>(std::popcount(fragment.mask));
  }
  if (kind == Barrier::arrive) {
    fragment.wait = Wait::none;
    fragment.arrived = false;
    ++fragment.pc;
  }
}

// .aligned barriers: a warp arrives as a whole, when all its live lanes stand at one instruction.
void settle_aligned(Warp& warp) {
  for (size_t i = 0; i < warp.fragments.size(); ++i) {
    Fragment& first = warp.fragments[i];
    if (first.wait != Wait::barrier || first.arrived) continue;
    for (size_t j = warp.fragments.size(); j-- > i + 1;) {
      Fragment& other = warp.fragments[j];
      if (other.wait == Wait::barrier && !other.arrived && other.pc == first.pc && other.frame == first.frame) {
        first.mask |= other.mask;
        warp.fragments.erase(warp.fragments.begin() + static_cast<ptrdiff_t>(j));
      }
    }
    if (warp.fragments[i].mask == warp.live) arrive(warp, warp.fragments[i]);
  }
}

void settle(Warp& warp) {
  settle_collectives(warp);
  settle_aligned(warp);
  settle_barriers(*warp.cta);
}

uint32_t value_of(Warp& warp, Ref ref, unsigned lane) { return at<uint32_t>(warp, ref)[lane]; }

// A barrier instruction of the running fragment, for the lanes `exec`; fills in what the fragment waits for.
bool start_barrier(Warp& warp, const Code& code, Fragment& fragment) {
  const unsigned lane = static_cast<unsigned>(std::countr_zero(fragment.mask));
  const uint32_t id = value_of(warp, code.a, lane), threads = code.b == kZeroRef ? 0 : value_of(warp, code.b, lane);
  bool same = true;
  for_lanes(fragment.mask, [&](unsigned i) {
    same &= value_of(warp, code.a, i) == id && (code.b == kZeroRef || value_of(warp, code.b, i) == threads);
  });
  std::string why;
  if (id > 15) why = fmt::format("barrier {} does not exist: there are 0 to 15", id);
  else if (!same) why = "lanes of a warp name different barriers or thread counts";
  else if (threads % kLanes) why = fmt::format("thread count {} is not a multiple of the warp size", threads);
  else if (code.b != kZeroRef && threads == 0) why = "thread count is zero";
  else if (threads > warp.cta->warps.size() * kLanes) why = fmt::format("thread count {} exceeds the CTA's threads", threads);
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

// Splits the running fragment: `lanes` of it go on as a fragment of their own at `pc`. Returns its index.
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

void exit_lanes(Warp& warp, size_t index, uint32_t lanes, uint32_t pc) {
  Frame* frame = warp.fragments[index].frame;
  for (Frame* each = frame; each;) {
    Frame* caller = each->caller;
    leave_frame(warp, each, lanes);
    each = caller;
  }
  warp.live &= ~lanes;
  warp.exit_pc = pc;
  warp.exit_lane = static_cast<unsigned>(std::countr_zero(lanes));
  remove_lanes(warp, index, lanes);
}

// Enters `callee` with `lanes` of fragment `index`, which becomes that call. False on stack overflow.
bool enter(Warp& warp, size_t index, const CallSite& call, uint32_t callee) {
  Fragment& fragment = warp.fragments[index];
  const FunctionImage& function = warp.cta->launch->image->functions[callee];
  Frame* caller = fragment.frame;
  uint64_t base = (caller->local_base + caller->function->local_bytes + 15) & ~uint64_t{15};
  if (caller->depth + 1 > kMaxDepth || base + function.local_bytes > kMaxLocalBytes) {
    report(warp, {.kind = FaultKind::stack_overflow,
                  .message = fmt::format("call of '{}' at depth {} needs {} bytes of local memory", function.name, caller->depth + 1,
                                         base + function.local_bytes),
                  .lane = static_cast<unsigned>(std::countr_zero(fragment.mask))});
    return false;
  }
  Frame* frame = take_frame(warp, function);
  frame->caller = caller;
  frame->return_pc = fragment.pc + 1;
  frame->call = &call;
  frame->lanes = fragment.mask;
  frame->depth = caller->depth + 1;
  frame->local_base = base;
  set_frame_base(*frame);
  grow_local(warp, base + function.local_bytes);
  forget_locals(warp, *frame, fragment.mask);
  for (size_t i = 0; i < std::min(call.arguments.size(), function.parameters.size()); ++i)
    for_lanes(fragment.mask, [&](unsigned lane) { copy_value(warp, *caller, call.arguments[i], *frame, function.parameters[i], lane); });
  fragment.frame = frame;
  fragment.pc = function.first_code;
  return true;
}

void return_lanes(Warp& warp, size_t index) {
  Fragment& fragment = warp.fragments[index];
  Frame* frame = fragment.frame;
  const CallSite& call = *frame->call;
  for (size_t i = 0; i < std::min(call.results.size(), frame->function->results.size()); ++i)
    for_lanes(fragment.mask, [&](unsigned lane) { copy_value(warp, *frame, frame->function->results[i], *frame->caller, call.results[i], lane); });
  fragment.frame = frame->caller;
  fragment.pc = frame->return_pc;
  leave_frame(warp, frame, fragment.mask);
}

void refresh_clock(Warp& warp) {
  uint64_t steps = warp.cta->statistics.warp_instructions;
  auto fill32 = [&](SpecialSlot slot, uint64_t value) {
    std::fill_n(reinterpret_cast<uint32_t*>(at<uint8_t>(warp, special_ref(slot))), kLanes, static_cast<uint32_t>(value));
  };
  fill32(SpecialSlot::clock, steps);
  fill32(SpecialSlot::clock_hi, steps >> 32);
  fill32(SpecialSlot::globaltimer_lo, steps);
  fill32(SpecialSlot::globaltimer_hi, steps >> 32);
  std::fill_n(at<uint64_t>(warp, special_ref(SpecialSlot::clock64)), kLanes, steps);
  std::fill_n(at<uint64_t>(warp, special_ref(SpecialSlot::globaltimer)), kLanes, steps);
}

// One instruction that moves control or waits. The running fragment has been written back. False: stop this turn.
enum class Next : uint8_t { go_on, choose, stop };

Next control(Warp& warp, size_t& index, const Code& code, uint32_t exec) {
  Cta& cta = *warp.cta;
  const ProgramImage& image = *cta.launch->image;
  const uint32_t pc = warp.fragments[index].pc;
  const uint32_t mask = warp.fragments[index].mask;
  if (exec == 0) {
    ++warp.fragments[index].pc;
    return Next::go_on;
  }
  // Lanes that the guard leaves out go past the instruction on their own, and wait for the others behind it.
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
        return Next::choose;
      }
      warp.fragments[index].pc = code.target;
      return Next::choose;
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
      return Next::choose;
    }
    case Kind::call:
    case Kind::call_indirect: {
      separate();
      pass_rest(whole);
      const CallSite& call = image.calls[code.target];
      if (code.kind == Kind::call) {
        if (!enter(warp, index, call, call.function)) return Next::stop;
        return Next::choose;
      }
      uint32_t rest = exec;
      while (rest) {
        unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
        auto value = [&](unsigned i) { return code.wide_address ? at<uint64_t>(warp, code.a)[i] : value_of(warp, code.a, i); };
        uint64_t target = value(lane);
        uint32_t group = 0;
        for_lanes(rest, [&](unsigned i) { group |= uint32_t{value(i) == target} << i; });
        uint64_t callee = target - kFunctionAddress;
        if (callee >= image.functions.size() || !image.functions[callee].has_body) {
          report(warp, {.kind = FaultKind::bad_branch_index,
                        .message = fmt::format("{:#x} is not the address of a function", target),
                        .lane = lane});
          return Next::stop;
        }
        rest &= ~group;
        size_t part = rest ? split(warp, index, group, pc) : index;
        if (!enter(warp, part, call, static_cast<uint32_t>(callee))) return Next::stop;
      }
      return Next::choose;
    }
    case Kind::call_builtin: {
      const CallSite& call = image.calls[code.target];
      Frame& frame = *warp.frame;
      for_lanes(exec, [&](unsigned lane) {
        uint64_t values[8] = {};
        const size_t count = std::min<size_t>(call.arguments.size(), 8);
        for (size_t i = 0; i < count; ++i) {
          const CallValue& each = call.arguments[i];
          std::memcpy(&values[i], place_of(warp, frame, each, lane).bytes, std::min<uint64_t>(8, each.in_register ? each.bytes : each.size_bytes));
        }
        const uint32_t result = run_builtin(warp, static_cast<Builtin>(code.sub), lane, {values, count});
        if (call.results.empty()) return;
        const Place place = place_of(warp, frame, call.results[0], lane);
        std::memcpy(place.bytes, &result, 4);
        if (place.shadow) std::memset(place.shadow, place.marks ? 0 : 0xff, 4);
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
        return Next::choose;
      }
      [[fallthrough]];
    case Kind::exit:
      pass_rest(index);
      exit_lanes(warp, index, exec, pc);
      settle(warp);
      return cta.stopped ? Next::stop : Next::choose;
    case Kind::trap:
    case Kind::breakpoint:
      report(warp, {.kind = code.kind == Kind::trap ? FaultKind::trap : FaultKind::breakpoint,
                    .message = code.kind == Kind::trap ? "the kernel executed trap" : "the kernel executed brkpt",
                    .lane = static_cast<unsigned>(std::countr_zero(exec))});
      return Next::stop;
    case Kind::barrier: {
      separate();
      pass_rest(whole);
      if (!start_barrier(warp, code, warp.fragments[index])) return Next::stop;
      settle(warp);
      return cta.stopped ? Next::stop : Next::choose;
    }
    case Kind::collective: {
      separate();
      pass_rest(whole);
      uint32_t rest = exec;
      bool waits = false;
      // One group for each member mask: lanes of a fragment may name different ones.
      while (rest) {
        unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
        uint32_t members = code.aligned ? exec : value_of(warp, code.d, lane), group = 0;
        for_lanes(rest, [&](unsigned i) { group |= uint32_t{code.aligned || value_of(warp, code.d, i) == members} << i; });
        rest &= ~group;
        if (group & ~members) {
          report(warp, {.kind = FaultKind::warp_mask,
                        .message = fmt::format("the executing lane is not in its own member mask {:#010x}", members),
                        .lane = static_cast<unsigned>(std::countr_zero(group & ~members))});
          return Next::stop;
        }
        if (uint32_t left = members & warp.exists & ~warp.live; left && checks(cta, kCheckBarriers) && !already_reported(warp, FaultKind::warp_exited))
          report(warp, {.kind = FaultKind::warp_exited,
                        .message = fmt::format("member mask {:#010x} names lane {}, which has left", members, std::countr_zero(left)),
                        .lane = lane,
                        .has_other = true,
                        .other_pc = warp.exit_pc,
                        .other_warp = warp.index,
                        .other_lane = static_cast<uint32_t>(std::countr_zero(left)),
                        .other_message = "left here"});
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
      if (!waits) return exec == mask ? Next::go_on : Next::choose;
      settle(warp);
      return Next::choose;
    }
    case Kind::yield:
      ++warp.fragments[index].pc;
      warp.fragments[index].turn = ++warp.turn;
      return Next::stop;
    case Kind::simple: break;
  }
  PTXKIT_CHECK(false, "simple instruction in control()");
}

void check_guard(Warp& warp, const Code& code, uint32_t mask) {
  uint32_t lanes = undefined_lanes(warp, code.guard) & mask;
  if (lanes && checks(*warp.cta, kCheckUninitialised)) report_undefined(warp, FaultKind::uninitialised_branch, code.guard, lanes);
}

// Runs the warp until it waits, ends, is stopped or has used `slice` steps. Returns the steps taken.
// While it is divergent, every kFragmentSlice steps the fragment that has waited longest gets a slice for itself: lanes
// that spin at a low address would keep the lane that they wait for from ever running.
template <bool kChecked>
uint64_t run_warp(Warp& warp, uint64_t slice) {
  Cta& cta = *warp.cta;
  const Code* codes = cta.launch->image->codes.data();
  const bool random = cta.launch->options.schedule_seed != 0;
  uint64_t steps = 0, threads = 0;
  Pick pick = Pick::place;
  auto fragment_slice = [&] { return random ? 1 + cta.random() % 64 : kFragmentSlice; };
  uint64_t rotate_at = fragment_slice();
  while (steps < slice && !cta.stopped) {
    if (steps >= rotate_at) {
      pick = pick == Pick::place || random ? Pick::oldest : Pick::place;
      rotate_at = steps + fragment_slice();
    }
    size_t index = choose(warp, pick);
    if (index == warp.fragments.size()) break;
    if (pick == Pick::oldest) pick = Pick::newest;
    index = meet(warp, index);
    warp.fragments[index].turn = ++warp.turn;
    const bool alone = warp.fragments.size() == 1;
    const uint64_t end = alone ? slice : std::min(slice, rotate_at);
    bind(warp, warp.fragments[index].frame);
    uint32_t pc = warp.fragments[index].pc;
    const uint32_t mask = warp.fragments[index].mask;
    warp.active = mask;
    Next next = Next::go_on;
    bool fresh = true;
    while (steps < end) {
      const Code& code = codes[pc];
      if (code.meeting && !alone && !fresh) break;
      fresh = false;
      warp.pc = pc;
      uint32_t exec = mask;
      if (code.guard != kNoRef) {
        if constexpr (kChecked) check_guard(warp, code, mask);
        exec &= *at<const uint32_t>(warp, code.guard) ^ code.guard_flip;
      }
      if (code.counts) {
        ++steps;
        threads += static_cast<unsigned>(std::popcount(exec));
      }
      if (code.kind == Kind::simple) {
        ++pc;
        if (exec == 0) continue;
        if constexpr (kChecked) {
          if (code.undefined != Undefined::handler) {
            uint32_t undefined = undefined_lanes(warp, code.a) | undefined_lanes(warp, code.b) | undefined_lanes(warp, code.c) |
                                 undefined_lanes(warp, code.d);
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
        // The common cases, without leaving the loop.
        pc = exec == 0 ? pc + 1 : code.target;
        continue;
      }
      warp.fragments[index].pc = pc;
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

// Nobody can go on: says who waits where. What is wrong within a warp comes first, for that is the cause of the rest.
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
    return fmt::format("warp {} lanes {:#010x} at {}", waiter.warp->index, fragment.mask, where_text(launch, fragment.pc));
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
    FaultDetail detail{.kind = kind, .message = message, .lane = static_cast<unsigned>(std::countr_zero(waiter.fragment->mask))};
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
      if (other.warp == each.warp && other.fragment->wait == Wait::collective && other.fragment->members == each.fragment->members)
        there |= other.fragment->mask;
    return emit(FaultKind::warp_mask, each,
                fmt::format("member mask {:#010x} names lanes {:#010x}, which never arrive", each.fragment->members,
                            each.fragment->members & each.warp->live & ~there));
  }
  for (const Waiter& each : waiters) {
    if (each.fragment->wait != Wait::barrier || each.fragment->arrived) continue;
    return emit(FaultKind::barrier_divergence, each,
                fmt::format("only lanes {:#010x} of {:#010x} of the warp reach this aligned barrier", each.fragment->mask, each.warp->live));
  }
  const Waiter& first = waiters.front();
  const BarrierState& barrier = cta.barriers[first.fragment->barrier_id];
  uint32_t arrived = barrier.arrived_threads;
  for (uint32_t lanes : barrier.arrived) arrived += static_cast<uint32_t>(std::popcount(lanes));
  emit(FaultKind::barrier_deadlock, first,
       fmt::format("barrier {} waits for {} threads and {} have arrived", first.fragment->barrier_id,
                   barrier.expected ? std::to_string(barrier.expected) : "all", arrived));
}

void set_specials(Warp& warp) {
  const Cta& cta = *warp.cta;
  const Launch& launch = *cta.launch;
  const Dim3 block = launch.shape.block, grid = launch.shape.grid;
  auto each = [&](SpecialSlot slot, auto value_of_lane) {
    auto* values = at<uint32_t>(warp, special_ref(slot));
    for (unsigned lane = 0; lane < kLanes; ++lane) values[lane] = value_of_lane(lane);
  };
  auto uniform = [&](SpecialSlot slot, uint32_t value) { each(slot, [&](unsigned) { return value; }); };
  auto linear = [&](unsigned lane) { return warp.index * kLanes + lane; };
  each(SpecialSlot::tid_x, [&](unsigned lane) { return linear(lane) % block.x; });
  each(SpecialSlot::tid_y, [&](unsigned lane) { return linear(lane) / block.x % block.y; });
  each(SpecialSlot::tid_z, [&](unsigned lane) { return linear(lane) / block.x / block.y; });
  uniform(SpecialSlot::ntid_x, block.x);
  uniform(SpecialSlot::ntid_y, block.y);
  uniform(SpecialSlot::ntid_z, block.z);
  uniform(SpecialSlot::ctaid_x, cta.id[0]);
  uniform(SpecialSlot::ctaid_y, cta.id[1]);
  uniform(SpecialSlot::ctaid_z, cta.id[2]);
  uniform(SpecialSlot::nctaid_x, grid.x);
  uniform(SpecialSlot::nctaid_y, grid.y);
  uniform(SpecialSlot::nctaid_z, grid.z);
  each(SpecialSlot::laneid, [](unsigned lane) { return lane; });
  uniform(SpecialSlot::warpid, warp.index);
  uniform(SpecialSlot::nwarpid, static_cast<uint32_t>(cta.warps.size()));
  uniform(SpecialSlot::smid, static_cast<uint32_t>(cta.number % launch.memory->options.multiprocessor_count));
  uniform(SpecialSlot::nsmid, launch.memory->options.multiprocessor_count);
  each(SpecialSlot::lanemask_eq, [](unsigned lane) { return 1u << lane; });
  each(SpecialSlot::lanemask_lt, [](unsigned lane) { return (1u << lane) - 1; });
  each(SpecialSlot::lanemask_le, [](unsigned lane) { return ((1u << lane) - 1) | 1u << lane; });
  each(SpecialSlot::lanemask_gt, [](unsigned lane) { return ~(((1u << lane) - 1) | 1u << lane); });
  each(SpecialSlot::lanemask_ge, [](unsigned lane) { return ~((1u << lane) - 1); });
  uniform(SpecialSlot::zero, 0);
  std::fill_n(at<uint32_t>(warp, special_ref(SpecialSlot::zero)), 2 * kLanes, 0u);
  uniform(SpecialSlot::one, 1);
  uniform(SpecialSlot::total_smem, static_cast<uint32_t>(cta.shared_bytes));
  uniform(SpecialSlot::dynamic_smem, launch.shape.dynamic_shared_bytes);
  std::fill_n(at<uint64_t>(warp, special_ref(SpecialSlot::gridid)), kLanes, uint64_t{1});
}

}  // namespace

void add_clock_refresh(Code& code) {
  code.run = code.checked = [](Warp& warp, const Code&, uint32_t) { refresh_clock(warp); };
  code.undefined = Undefined::none;
  code.counts = false;
}

std::unique_ptr<Cta> make_cta(Launch& launch, uint64_t number) {
  auto cta = std::make_unique<Cta>();
  cta->launch = &launch;
  const uint64_t threads = launch.shape.block.count();
  const auto warp_count = static_cast<uint32_t>((threads + kLanes - 1) / kLanes);
  for (const Object& object : launch.shared.objects.objects)
    cta->shared_bytes = std::max(cta->shared_bytes, object.begin + object.size_bytes);
  constexpr uint64_t kSharedAlign = 1024;
  cta->shared_storage.resize(cta->shared_bytes + kSharedAlign);
  auto begin = (reinterpret_cast<uintptr_t>(cta->shared_storage.data()) + kSharedAlign - 1) & ~uintptr_t{kSharedAlign - 1};
  cta->shared = reinterpret_cast<uint8_t*>(begin);
  cta->shared_shadow.resize(cta->shared_bytes);
  if (checks(*cta, kCheckRaces) && cta->shared_bytes) cta->races = std::make_unique<SharedRaces>(cta->shared_bytes, warp_count);
  for (uint32_t index = 0; index < warp_count; ++index) {
    auto warp = std::make_unique<Warp>();
    warp->cta = cta.get();
    warp->index = index;
    uint64_t first = uint64_t{index} * kLanes, lanes = std::min<uint64_t>(kLanes, threads - first);
    warp->exists = lanes == kLanes ? kFull : (1u << lanes) - 1;
    const ProgramImage& image = *launch.image;
    warp->base[1] = const_cast<uint8_t*>(image.constants.data());
    warp->base[2] = warp->specials;
    warp->undefined[1] = warp->undefined[2] = const_cast<uint32_t*>(image.zeros.data());
    warp->origin[1] = warp->origin[2] = const_cast<uint32_t*>(image.zeros.data());
    cta->warps.push_back(std::move(warp));
  }
  restart(*cta, number);
  return cta;
}

void restart(Cta& cta, uint64_t number) {
  Launch& launch = *cta.launch;
  const Dim3 grid = launch.shape.grid;
  cta.number = number;
  cta.id = {static_cast<uint32_t>(number % grid.x), static_cast<uint32_t>(number / grid.x % grid.y),
            static_cast<uint32_t>(number / grid.x / grid.y)};
  cta.stopped = false;
  cta.next_warp = 0;
  cta.statistics = {};
  cta.origins.clear();
  cta.random.seed(static_cast<uint32_t>(launch.options.schedule_seed * 0x9e3779b97f4a7c15ull + number + 1));
  std::memset(cta.shared, kPoison, cta.shared_bytes);
  std::fill(cta.shared_shadow.begin(), cta.shared_shadow.end(), uint8_t{0});
  if (cta.races) cta.races->restart();
  for (BarrierState& barrier : cta.barriers) {
    barrier = {};
    barrier.arrived.assign(cta.warps.size(), 0);
  }
  const FunctionImage& function = launch.image->functions[launch.entry->function];
  for (auto& warp : cta.warps) {
    warp->live = warp->exists;
    warp->carry = 0;
    warp->turn = 0;
    warp->fragments.clear();
    warp->free_frames.clear();
    for (auto& frame : warp->frame_pool) warp->free_frames.push_back(frame.get());
    for (CachedRange& range : warp->ranges) range = {};
    std::fill(warp->local.begin(), warp->local.end(), kPoison);
    std::fill(warp->local_shadow.begin(), warp->local_shadow.end(), uint8_t{0});
    grow_local(*warp, function.local_bytes);
    Frame* frame = take_frame(*warp, function);
    frame->lanes = warp->exists;
    set_frame_base(*frame);
    Fragment fragment;
    fragment.pc = function.first_code;
    fragment.mask = warp->exists;
    fragment.frame = frame;
    warp->fragments.push_back(fragment);
    set_specials(*warp);
  }
}

Progress run(Cta& cta, uint64_t budget) {
  Launch& launch = *cta.launch;
  const bool random = launch.options.schedule_seed != 0;
  uint64_t used = 0;
  while (!cta.stopped && !launch.stop) {
    bool progress = false, alive = false;
    const size_t count = cta.warps.size();
    const size_t first = random ? cta.random() % count : cta.next_warp;
    for (size_t i = 0; i < count && !cta.stopped; ++i) {
      Warp& warp = *cta.warps[(first + i) % count];
      if (!warp.live) continue;
      alive = true;
      uint64_t slice = random ? 1 + cta.random() % 512 : kWarpSlice;
      uint64_t steps = launch.checked ? run_warp<true>(warp, slice) : run_warp<false>(warp, slice);
      progress |= steps != 0;
      used += steps;
      uint64_t total = launch.steps.fetch_add(steps, std::memory_order_relaxed) + steps;
      if (launch.options.max_steps && total >= launch.options.max_steps && warp.live) {
        if (!warp.fragments.empty())
          report(warp, {.kind = FaultKind::out_of_steps,
                        .message = fmt::format("the launch has not ended after {} warp instructions", launch.options.max_steps),
                        .lane = static_cast<unsigned>(std::countr_zero(warp.fragments.front().mask))});
        launch.stop = true;
        return Progress::done;
      }
      if (used >= budget) {
        cta.next_warp = (first + i + 1) % count;
        return Progress::yielded;
      }
    }
    if (!alive) return Progress::done;
    if (!progress && !cta.stopped) {
      report_deadlock(cta);
      cta.stopped = true;
    }
  }
  return Progress::done;
}

}  // namespace ptxkit::emulator
