// See hang.hpp.
#include "runtime/emulator/sanitizer/hang.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/ptx/facts.hpp"
#include "runtime/emulator/sanitizer/counting.hpp"

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kFirstSearch = 1u << 20;     // steps of the launch before the first search
constexpr uint64_t kSearchInterval = 1u << 22;  // steps after a search that found a change
constexpr uint64_t kSearchFraction = 8;         // a search without a result takes 1 / this of the steps so far
constexpr size_t kMaxAnchors = 32, kMaxPolledReads = 8;
constexpr std::string_view kHigherLimit =
    "an endless loop, or a long computation that needs a higher limit (max_idle_steps, --max-idle-steps)";
constexpr uint32_t kFirstAnchorLabels = 16;  // labels after which registers that come back have done so, as a rule
constexpr uint8_t kReachesExit = 1, kReachesReturn = 2;

Effect effect_of(const ptx::Function& function, const ptx::Instruction& instruction, const Code& code) {
  using ptx::Family;
  switch (code.kind) {
    case Kind::clock:
      return Effect::unrepeatable;
    case Kind::call_builtin:
      return Effect::unknown_memory;
    case Kind::cluster_arrive:
    case Kind::cluster_wait:
      return Effect::unrepeatable;
    default:
      break;
  }
  const ptx::Facts facts = ptx::facts_of(function, instruction);
  const bool writes_elsewhere = facts.writes_global_elsewhere || facts.writes_shared_elsewhere;
  const bool is_asynchronous = facts.asynchronous.step != ptx::Asynchronous::Step::none;
  switch (ptx::family(instruction.op)) {
    case Family::arithmetic:
    case Family::conversion:
    case Family::comparison:
    case Family::video:
    case Family::address:
    case Family::fence:
    case Family::policy:
    case Family::control:
      return Effect::none;
    case Family::move:
      return instruction.op == ptx::Op::activemask ? Effect::unrepeatable : Effect::none;
    case Family::memory:
      if (instruction.op != ptx::Op::st) return Effect::none;
      return is_asynchronous || writes_elsewhere ? Effect::unknown_memory : Effect::memory;
    case Family::atomic:
      return is_asynchronous ? Effect::unknown_memory : Effect::memory;
    case Family::texture:
      return instruction.op == ptx::Op::sust || instruction.op == ptx::Op::sured ? Effect::unknown_memory
                                                                                 : Effect::none;
    case Family::matrix:
      switch (instruction.op) {
        case ptx::Op::mma:
        case ptx::Op::ldmatrix:
        case ptx::Op::movmatrix:
          return Effect::none;
        case ptx::Op::wmma:
          return writes_elsewhere ? Effect::unknown_memory : Effect::none;
        default:
          return Effect::unknown_memory;
      }
    case Family::warp:
      return code.kind == Kind::collective && !code.aligned ? Effect::none : Effect::unrepeatable;
    case Family::barrier:
      return code.kind == Kind::collective || static_cast<Barrier>(code.sub) < Barrier::reduce_and
                 ? Effect::none
                 : Effect::unrepeatable;
    case Family::mbarrier:
      return writes_elsewhere ? Effect::unknown_memory : Effect::none;
    case Family::cluster:
      return instruction.op == ptx::Op::mapa || instruction.op == ptx::Op::getctarank ? Effect::none
                                                                                      : Effect::unknown_memory;
    default:
      return Effect::unknown_memory;
  }
}

// Marks the instructions from which an exit, or the end of the function, can be reached.
void find_reachable_ends(const ProgramImage& image, std::vector<uint8_t>& reachable_ends) {
  const auto count = static_cast<uint32_t>(image.codes.size());
  reachable_ends.assign(count, 0);
  const auto at = [&](uint32_t pc) { return pc < count ? reachable_ends[pc] : uint8_t{kReachesExit | kReachesReturn}; };
  for (bool changes = true; changes;) {
    changes = false;
    for (uint32_t pc = count; pc-- > 0;) {
      const Code& code = image.codes[pc];
      uint8_t reached = 0;
      bool goes_on = code.guard != kNoRef;
      switch (code.kind) {
        case Kind::branch:
          reached |= at(code.target);
          break;
        case Kind::branch_table:
          for (const uint32_t target : image.tables[code.target]) reached |= at(target);
          if (image.tables[code.target].empty()) reached |= kReachesExit;
          break;
        case Kind::ret:
          reached |= kReachesReturn;
          break;
        case Kind::exit:
        case Kind::trap:
        case Kind::breakpoint:
        case Kind::unsupported:
          reached |= kReachesExit;
          break;
        case Kind::call: {
          const FunctionImage& callee = image.functions[image.calls[code.target].function];
          reached |= callee.has_body ? uint8_t(at(callee.first_code) & kReachesExit) : kReachesExit;
          goes_on = true;
          break;
        }
        case Kind::call_indirect:
          reached |= kReachesExit;
          goes_on = true;
          break;
        default:
          goes_on = true;
      }
      if (goes_on) reached |= at(pc + 1);
      changes |= (reached & ~reachable_ends[pc]) != 0;
      reachable_ends[pc] |= reached;
    }
  }
}

void prepare(Launch& launch) {
  launch.hang.prepared.run([&] {
    const ProgramImage& image = *launch.image;
    launch.hang.effects.clear();
    launch.hang.effects.reserve(image.codes.size());
    for (size_t pc = 0; pc < image.codes.size(); ++pc) {
      const CodeSite& site = image.sites[pc];
      const ptx::Function& function = image.module->functions[site.function];
      launch.hang.effects.push_back(site.instruction < function.instructions.size()
                                        ? effect_of(function, function.instructions[site.instruction], image.codes[pc])
                                        : Effect::none);
    }
    find_reachable_ends(image, launch.hang.reachable_ends);
  });
}

bool can_end(const Launch& launch, const Fragment& fragment) {
  uint8_t reachable_ends = launch.hang.reachable_ends[fragment.pc];
  for (const Frame* frame = fragment.frame; frame; frame = frame->caller) {
    if (reachable_ends & kReachesExit) return true;
    if (!(reachable_ends & kReachesReturn)) return false;
    if (!frame->caller) return true;
    reachable_ends = launch.hang.reachable_ends[frame->return_pc];
  }
  return true;
}

// Everything but memory that determines the next steps of a fragment's lanes.
std::vector<uint8_t> state_of(const Warp& warp, const Fragment& fragment) {
  std::vector<uint8_t> state;
  const auto put = [&](const void* data, size_t size_bytes) {
    const size_t begin = state.size();
    state.resize(begin + size_bytes);
    std::memcpy(state.data() + begin, data, size_bytes);
  };
  const uint32_t mask = fragment.mask, carry = warp.carry & mask;
  put(&carry, sizeof carry);
  for (const Frame* frame = fragment.frame; frame; frame = frame->caller) {
    put(static_cast<const void*>(&frame->function), sizeof(void*));
    put(&frame->return_pc, sizeof frame->return_pc);
    put(&frame->local_base, sizeof frame->local_base);
    const auto& registers =
        warp.cta->launch->image->module
            ->functions[static_cast<size_t>(frame->function - warp.cta->launch->image->functions.data())]
            .registers;
    for (const auto& [slot, id] : frame->function->slots) {
      const uint8_t* const values = frame->values + size_t{slot} * kUnitBytes;
      if (registers[id].type == ptx::Type::pred) {
        uint32_t lanes;
        std::memcpy(&lanes, values, sizeof lanes);
        lanes &= mask;
        put(&lanes, sizeof lanes);
        continue;
      }
      const size_t bytes = std::max<size_t>(2, ptx::byte_width(registers[id].type));
      if (mask == kAllLanes)
        put(values, bytes * kLanes);
      else
        for_lanes(mask, [&](unsigned lane) { put(values + lane * bytes, bytes); });
    }
  }
  return state;
}

uint32_t waiting_lanes(const Warp& warp) {
  uint32_t lanes = 0;
  for (const Fragment& each : warp.fragments)
    if (each.wait != Wait::none) lanes |= each.mask;
  return lanes;
}

std::string polled_read_text(Warp& warp, const PolledRead& read) {
  Fault place;
  name_object(warp, read.space, read.address, place);
  return fmt::format("{} (line {})",
                     place.object.empty() ? fmt::format("{:#x}", read.address)
                                          : fmt::format("'{}' + {}", place.object, place.object_offset),
                     line_of(*warp.cta->launch->image, read.pc));
}

// "reads 'flag' + 0 (line 12)"; empty if the cycle reads no memory.
std::string polled_reads_text(Warp& warp) {
  std::string text;
  for (const PolledRead& read : warp.search->cycle_reads)
    text += (text.empty() ? "" : ", ") + polled_read_text(warp, read);
  return text;
}

// Where lanes of the fragment were found in a loop that counts: note_label keeps no state of them then.
const Anchor* counting_anchor(const Warp& warp, const Fragment& fragment) {
  for (const Anchor& each : warp.search->anchors)
    if (each.state.empty() && (each.mask & fragment.mask)) return &each;
  return nullptr;
}

enum class LoopEnd : uint8_t { never, after_limit, unknown };

// Of what loops. That the limit will be met is known only where nothing but loops that count, which store nothing,
// runs.
LoopEnd loop_end_of(const std::vector<Cta*>& running) {
  bool ends_late = false, repeats = false;
  for (Cta* cta : running)
    for (auto& warp : cta->warps) {
      if (!warp->live || !warp->search) continue;
      for (const Fragment& each : warp->fragments) {
        if (each.wait != Wait::none) continue;
        const Anchor* const anchor = counting_anchor(*warp, each);
        if (!anchor) {
          repeats = true;
          continue;
        }
        const auto loop = find_counted_loop(*warp, each, each.pc, anchor->pc);
        if (!loop) return LoopEnd::unknown;
        ends_late |= loop->rounds != CountedLoop::kEndless;
      }
    }
  if (!ends_late) return LoopEnd::never;
  return repeats ? LoopEnd::unknown : LoopEnd::after_limit;
}

// What the lanes do, which do not wait.
std::string loop_text(Warp& warp, uint32_t lanes) {
  const ProgramImage& image = *warp.cta->launch->image;
  const std::string who = fmt::format("lanes {:#010x} of warp {}", lanes, warp.index);
  const auto fragment = std::ranges::find_if(warp.fragments, [&](const Fragment& each) { return each.mask & lanes; });
  const Anchor* const anchor = fragment == warp.fragments.end() ? nullptr : counting_anchor(warp, *fragment);
  const auto loop = anchor ? find_counted_loop(warp, *fragment, fragment->pc, anchor->pc) : std::nullopt;
  const uint32_t line = line_of(image, warp.search->pc);
  if (!loop)
    return fmt::format("{} return to line {} with the same registers, and no thread changes memory", who, line);
  if (loop->rounds == CountedLoop::kEndless)
    return fmt::format(
        "{} never leave the loop at line {}: no iteration changes the outcome of a branch in it, and no thread changes "
        "memory",
        who, line);
  return fmt::format("{} run the loop at line {} at least {} more times", who, line, loop->rounds);
}

struct Stuck {
  Warp* warp = nullptr;
  bool waits = false;
  uint32_t pc = 0, lanes = 0;
};

std::vector<Stuck> stuck_lanes(const std::vector<Cta*>& running) {
  std::vector<Stuck> all;
  for (Cta* cta : running)
    for (auto& warp : cta->warps) {
      if (!warp->live) continue;
      const uint32_t cycling = warp->search ? warp->search->cycling() & warp->live & ~waiting_lanes(*warp) : 0;
      if (cycling) {
        const auto& polled_reads = warp->search->cycle_reads;
        all.push_back({warp.get(), false, polled_reads.empty() ? warp->search->pc : polled_reads.front().pc, cycling});
      }
      for (const Fragment& each : warp->fragments)
        if (each.wait != Wait::none) all.push_back({warp.get(), true, each.pc, each.mask});
    }
  std::stable_sort(all.begin(), all.end(), [](const Stuck& x, const Stuck& y) { return x.waits < y.waits; });
  return all;
}

bool report_hang(Launch& launch, const std::vector<Cta*>& running) {
  constexpr size_t kMaxListed = 6;
  const std::vector<Stuck> all = stuck_lanes(running);
  if (all.empty() || all.front().waits) return false;  // no lane is running: report_deadlock says more
  const Stuck& first = all.front();
  Warp& warp = *first.warp;
  const LoopEnd ending = loop_end_of(running);
  if (ending == LoopEnd::unknown) return false;
  const bool ends_late = ending == LoopEnd::after_limit;
  std::string message = loop_text(warp, first.lanes);
  if (ends_late)
    message +=
        fmt::format("; for more than {} warp instructions nothing is stored to memory that other threads see, {}",
                    launch.options.max_idle_steps, kHigherLimit);
  if (const std::string polled_reads = polled_reads_text(warp); !polled_reads.empty())
    message += "; they wait for " + polled_reads;
  std::string others;
  for (size_t i = 1; i < all.size() && i <= kMaxListed; ++i) {
    const auto& id = all[i].warp->cta->id;
    others += fmt::format("{}block ({},{},{}) warp {} lanes {:#010x} {} {}", others.empty() ? "" : "; ", id[0], id[1],
                          id[2], all[i].warp->index, all[i].lanes, all[i].waits ? "wait at" : "loop at",
                          where_text(launch, all[i].pc));
  }
  if (all.size() > kMaxListed + 1) others += fmt::format("; and {} more", all.size() - kMaxListed - 1);
  if (!others.empty()) message += "; elsewhere: " + others;
  FaultDetail detail{.kind = ends_late ? FaultKind::no_progress : FaultKind::endless_loop,
                     .message = std::move(message),
                     .lane = static_cast<unsigned>(std::countr_zero(first.lanes))};
  if (!warp.search->cycle_reads.empty()) {
    const PolledRead& read = warp.search->cycle_reads.front();
    detail.has_address = true;
    detail.space = read.space;
    detail.address = read.address;
  }
  // The other side of the wait: lanes in another loop, before lanes that only wait.
  if (all.size() > 1) {
    const auto elsewhere =
        std::find_if(all.begin() + 1, all.end(), [&](const Stuck& each) { return each.pc != first.pc; });
    const Stuck& other = elsewhere != all.end() ? *elsewhere : all[1];
    detail.has_other = true;
    detail.other_cta = other.warp->cta->turn;
    detail.other_pc = other.pc;
    detail.other_warp = other.warp->index;
    detail.other_lane = static_cast<uint32_t>(std::countr_zero(other.lanes));
    detail.other_message = other.waits ? "waits here" : "loops here";
  }
  warp.pc = first.pc;
  report(warp, std::move(detail));
  return true;
}

}  // namespace

void CycleSearch::forget() {
  anchors.clear();
  in_cycle = in_barrier_cycle = 0;
  polled_reads.clear();
  cycle_reads.clear();
  pc = 0xffffffff;
}

void HangSearch::start(unsigned worker_count) {
  next = kFirstSearch;
  gap = kFirstSearch;
  workers = worker_count;
  stuck_at = std::make_unique<std::atomic<uint64_t>[]>(worker_count);
}

void schedule_search(Launch& launch, uint64_t total) {
  HangSearch& hang = launch.hang;
  if (total < hang.next.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(launch.mutex);
  if (total < hang.next) return;
  if (hang.active) {
    hang.active = false;
    hang.gap = 2 * hang.gap;
    hang.next = total + hang.gap;
    return;
  }
  prepare(launch);
  ++hang.version;
  hang.next = total + std::max(kFirstSearch, total) / kSearchFraction;
  hang.active = true;
}

void note_change(Cta& cta) {
  HangSearch& hang = cta.launch->hang;
  if (!cta.searched) return;
  cta.searched = false;
  hang.idle_steps.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(cta.launch->mutex);
  ++hang.version;
  if (!hang.active) return;
  hang.active = false;
  hang.gap = kFirstSearch;
  hang.next = cta.launch->steps + kSearchInterval;
}

void note_private_change(Warp& warp) {
  if (warp.search) warp.search->forget();
}

void note_polled_read(Warp& warp, const Code& code, uint32_t mask, const uint64_t* addresses) {
  if (!warp.search) return;
  auto& polled_reads = warp.search->polled_reads;
  if (polled_reads.size() >= kMaxPolledReads || code.space == ptx::Space::local || code.space == ptx::Space::param ||
      code.space == ptx::Space::constant)
    return;
  const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
  if (std::ranges::find(polled_reads, warp.pc, &PolledRead::pc) == polled_reads.end())
    polled_reads.push_back(
        {warp.pc, lane, code.space == ptx::Space::shared_cluster ? ptx::Space::shared : code.space, addresses[lane]});
}

void note_label(Warp& warp, const Fragment& fragment, uint32_t pc) {
  CycleSearch& search = *warp.search;
  if ((fragment.mask & ~search.cycling()) == 0) return;
  auto anchor = std::ranges::find(search.anchors, fragment.mask, &Anchor::mask);
  if (anchor == search.anchors.end()) {
    if (search.anchors.size() >= kMaxAnchors) search.anchors.erase(search.anchors.begin());
    anchor = search.anchors.emplace(search.anchors.end());
    anchor->mask = fragment.mask;
  } else if (anchor->pc == pc && anchor->state == state_of(warp, fragment)) {
    (anchor->barriers == search.barriers ? search.in_cycle : search.in_barrier_cycle) |= fragment.mask;
    if (search.pc == 0xffffffff) {
      search.pc = pc;
      search.cycle_reads = search.polled_reads;
    }
    return;
  }
  if (anchor->pc != 0xffffffff && ++anchor->labels < anchor->limit) return;
  // Of several workers none sees what the lanes of the others do in the meantime.
  const Launch& launch = *warp.cta->launch;
  const uint64_t most_steps = launch.hang.workers > 1 ? 0 : launch.options.max_idle_steps;
  const bool tries_to_count = anchor->limit >= kFirstAnchorLabels;
  if (const auto loop = tries_to_count ? find_counted_loop(warp, fragment, pc, pc) : std::nullopt;
      loop && (most_steps == 0 ? loop->rounds == CountedLoop::kEndless : loop->lasts(most_steps))) {
    search.in_cycle |= fragment.mask;
    if (search.pc == 0xffffffff) {
      search.pc = pc;
      search.cycle_reads = search.polled_reads;
    }
    anchor->pc = pc;
    anchor->state.clear();
    return;
  }
  anchor->pc = pc;
  anchor->labels = 0;
  anchor->limit *= 2;
  anchor->barriers = search.barriers;
  anchor->state = state_of(warp, fragment);
  search.polled_reads.clear();
}

void note_collective(Warp& warp, const Code&, uint32_t members) {
  // Lanes whose values come from lanes that may be elsewhere the next time prove nothing on their own.
  std::erase_if(warp.search->anchors,
                [&](const Anchor& each) { return (each.mask & members) && (members & warp.live & ~each.mask); });
}

bool begin_searched_turn(Warp& warp) {
  Launch& launch = *warp.cta->launch;
  if (!warp.search) warp.search = std::make_unique<CycleSearch>();
  const uint64_t version = launch.hang.version;
  if (warp.search->version != version) {
    warp.search->forget();
    warp.search->version = version;
  }
  for (const Fragment& each : warp.fragments) {
    if (can_end(launch, each)) continue;
    warp.pc = each.pc;
    report(warp, {.kind = FaultKind::endless_loop,
                  .message = "the kernel never ends: no path leads from here to an exit",
                  .lane = static_cast<unsigned>(std::countr_zero(each.mask))});
    launch.stop = true;
    return false;
  }
  return true;
}

bool is_stuck(Cta& cta, TimeOutWaits time_out_waits) {
  const uint64_t version = cta.launch->hang.version;
  bool passes_barriers = false, polls = false;
  for (auto& warp : cta.warps)
    if (warp->live && warp->search) passes_barriers |= (warp->search->in_barrier_cycle & warp->live) != 0;
  for (auto& warp : cta.warps) {
    if (!warp->live) continue;
    const bool is_current = warp->search && warp->search->version == version;
    const uint32_t cycling = is_current ? warp->search->cycling() : 0;
    if (warp->live & ~cycling & ~(passes_barriers ? 0 : waiting_lanes(*warp))) return false;
    for (const Fragment& each : warp->fragments) polls |= each.wait == Wait::mbarrier;
  }
  return !polls || !time_out_waits(cta);
}

void check_for_hang(Launch& launch, unsigned worker, const std::vector<Cta*>& running, TimeOutWaits time_out_waits) {
  HangSearch& hang = launch.hang;
  const uint64_t version = hang.version;
  if (!std::ranges::all_of(running, [&](Cta* cta) { return is_stuck(*cta, time_out_waits); })) return;
  const std::lock_guard lock(launch.hang_mutex);
  if (!hang.active || hang.version != version || launch.stop) return;
  hang.stuck_at[worker] = version + 1;
  for (unsigned i = 0; i < hang.workers; ++i)
    if (hang.stuck_at[i] != version + 1 && hang.stuck_at[i] != ~uint64_t{0}) return;
  if (report_hang(launch, running)) launch.stop = true;
}

bool is_idle(Launch& launch, Warp& warp) {
  const uint64_t idle = launch.hang.idle_steps.load(std::memory_order_relaxed);
  if (launch.options.max_idle_steps == 0 || idle < launch.options.max_idle_steps) return false;
  if (!launch.stop.exchange(true) && !warp.fragments.empty())
    report(warp,
           {.kind = FaultKind::no_progress,
            .message = fmt::format("{} warp instructions in a row stored nothing to memory that other threads see: {}",
                                   launch.options.max_idle_steps, kHigherLimit),
            .lane = static_cast<unsigned>(std::countr_zero(warp.fragments.front().mask))});
  return true;
}

}  // namespace ptxkit::emulator
