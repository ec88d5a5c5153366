// See access.hpp. The checked path caches, for each instruction, the object that the last lane accessed. Nearly all
// lanes of an instruction access one object, so the bounds check costs two comparisons for each lane.
#include "runtime/emulator/instructions/memory/access.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/emulator/core/async.hpp"
#include "runtime/emulator/core/order.hpp"
#include "runtime/emulator/core/races.hpp"
#include "runtime/emulator/sanitizer/hang.hpp"
#include "runtime/emulator/sanitizer/read_only_uses.hpp"
#include "runtime/emulator/sanitizer/undefined_output.hpp"
#include "runtime/emulator/sanitizer/visits.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Space;

// Target of accesses outside of all memory: cleared before each use, so that reads see zeros and writes are dropped.
alignas(64) thread_local uint8_t scratch[64];

// The space that a generic address points into; sets the address to the offset there.
Space space_of(uint64_t& address) {
  switch (address >> kWindowShift) {
    case kSharedWindow >> kWindowShift:
      address &= kWindowMask;
      return Space::shared;
    case kLocalWindow >> kWindowShift:
      address &= kWindowMask;
      return Space::local;
    case kConstWindow >> kWindowShift:
      address &= kWindowMask;
      return Space::constant;
    case kParamWindow >> kWindowShift:
      address &= kWindowMask;
      return Space::param;
    default:
      return Space::global;
  }
}

struct Access {
  Warp& warp;
  const Code& code;
  AccessKind kind;
  uint64_t size_bytes;

  void fail(FaultKind fault, unsigned lane, Space space, uint64_t address, std::string_view why,
            const Object* object = nullptr) const {
    report(warp,
           {.kind = fault,
            .message = fmt::format("{}-byte {} at {:#x}{}{} {}", size_bytes, text(kind), address,
                                   space == Space::global || space == Space::generic ? "" : " of .",
                                   space == Space::global || space == Space::generic ? "" : ptx::text(space), why),
            .lane = lane,
            .has_address = true,
            .space = space,
            .address = address,
            .access_bytes = static_cast<uint32_t>(size_bytes),
            .object = object});
  }

  // Returns false after a fault.
  bool is_aligned(uint32_t mask, const uint64_t* addresses, unsigned align_bytes) const {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if ((addresses[lane] & (align_bytes - 1)) == 0) continue;
      fail(FaultKind::misaligned, lane, code.space, addresses[lane], fmt::format("is not aligned to {}", align_bytes));
      return false;
    }
    return true;
  }
};

// Sets `range` to the bytes of the live object at `offset` of a table; otherwise reports the fault and returns false.
bool find_range(const Access& access, unsigned lane, Space space, uint64_t offset, uint64_t shown,
                const ObjectTable& table, CachedRange& range) {
  const Object* object = table.find(offset);
  const bool is_inside = object && offset >= object->begin && offset < object->begin + object->size_bytes;
  if (space == Space::shared) {
    const AllowedObjects allowed = allowed_objects(*access.warp.cta->launch, access.code);
    if (is_inside && !allowed.contains(*object)) {
      access.fail(FaultKind::out_of_bounds, lane, space, shown,
                  allowed.object ? fmt::format("is in '{}', but its address is derived from '{}'", object->name,
                                               allowed.object->name)
                                 : fmt::format("is in '{}', from which its address is not derived", object->name),
                  allowed.object);
      return false;
    }
    if (!is_inside && allowed.object && shown >> kWindowShift == 0) {
      access.fail(FaultKind::out_of_bounds, lane, space, shown, "is outside of every object", allowed.object);
      return false;
    }
  }
  if (!is_inside) {
    if (space == Space::global && shown < 4096)
      access.fail(FaultKind::null_address, lane, space, shown, "goes through a null pointer");
    else if (access.code.space == Space::shared && shown >> kWindowShift != 0)
      access.fail(FaultKind::out_of_bounds, lane, space, shown,
                  "is outside of shared memory: a generic address needs cvta.to.shared first");
    else
      access.fail(FaultKind::out_of_bounds, lane, space, shown, "is outside of every object");
    return false;
  }
  if (!object->live) {
    access.fail(FaultKind::use_after_free, lane, space, shown, "touches freed memory");
    return false;
  }
  range = {object->begin, object->begin + object->size_bytes - 1, object->read_only, object->declared_align};
  if (offset + access.size_bytes - 1 > range.last) {
    access.fail(FaultKind::out_of_bounds, lane, space, shown, "runs over the end of its object");
    return false;
  }
  return true;
}

// Reports an access to bytes of a pending asynchronous copy: no access to its destination, no write to its source.
void check_pending(const Access& access, unsigned lane, Cta& owner, uint64_t offset) {
  for (uint64_t at_byte = offset; at_byte < offset + access.size_bytes; ++at_byte) {
    const uint32_t mark = owner.pending[at_byte];
    if (mark == 0 || ((mark & 1) && access.kind == AccessKind::load)) continue;
    if (already_reported(access.warp, FaultKind::async_pending)) return;
    report(access.warp,
           {.kind = FaultKind::async_pending,
            .message = fmt::format("{}-byte {} of .shared {:#x} that {}", access.size_bytes, text(access.kind), offset,
                                   mark & 1 ? "an asynchronous copy still reads" : "an asynchronous copy still writes"),
            .lane = lane,
            .has_address = true,
            .space = Space::shared,
            .address = at_byte,
            .access_bytes = static_cast<uint32_t>(access.size_bytes),
            .has_other = true,
            .other_pc = mark / 2 - 1,
            .other_warp = access.warp.index,
            .other_lane = lane,
            .other_message = "started here"});
    return;
  }
}

// The same for the global memory that bulk copies of this CTA write. Reductions on the same bytes are allowed.
void check_pending_global(const Access& access, unsigned lane, Cta& cta, uint64_t offset) {
  const uint64_t reach = cta.largest_pending_global;
  for (auto it = cta.pending_global.lower_bound(offset > reach ? offset - reach : 0); it != cta.pending_global.end();
       ++it) {
    const AsyncRange& range = it->second;
    if (range.begin >= offset + access.size_bytes) return;
    if (range.begin + range.size_bytes <= offset) continue;
    if (access.kind == AccessKind::atomic && range.use == AsyncUse::combined_global) continue;
    if (already_reported(access.warp, FaultKind::async_pending)) return;
    report(access.warp, {.kind = FaultKind::async_pending,
                         .message = fmt::format("{}-byte {} of .global {:#x} that a bulk copy still writes: "
                                                "cp.async.bulk.wait_group without .read has not been executed",
                                                access.size_bytes, text(access.kind), offset + kGlobalBase),
                         .lane = lane,
                         .has_address = true,
                         .address = offset + kGlobalBase,
                         .access_bytes = static_cast<uint32_t>(access.size_bytes),
                         .has_other = true,
                         .other_pc = range.pc,
                         .other_warp = access.warp.index,
                         .other_lane = lane,
                         .other_message = "started here"});
    return;
  }
}

bool check_local(const Access& access, unsigned lane, uint64_t offset) {
  for (const Frame* frame = access.warp.frame; frame; frame = frame->caller) {
    if (offset < frame->local_base) continue;
    const uint64_t inside = offset - frame->local_base;
    for (const DynamicLocal& each : frame->dynamic)
      if (each.lane == lane && inside >= each.begin && inside - each.begin + access.size_bytes <= each.size_bytes)
        return true;
    const Object* object = frame->function->local_objects.find(inside);
    if (!object || inside < object->begin) break;
    if (inside + access.size_bytes > object->begin + object->size_bytes) break;
    return true;
  }
  access.fail(FaultKind::local_bounds, lane, Space::local, offset, "is outside of every local object");
  return false;
}

}  // namespace

AllowedObjects allowed_objects(const Launch& launch, const Code& code) {
  if (launch.allowed_objects == nullptr) return {};
  const uint32_t set = launch.allowed_objects->sets[code.address];
  if (set == 0) return {};
  const std::vector<uint64_t>& begins = launch.allowed_objects->begins[set];
  const Object* only = begins.size() == 1 ? launch.shared.objects.find(begins.front()) : nullptr;
  return {&begins, only && only->begin == begins.front() ? only : nullptr};
}

void note_undeclared_alignment(Warp& warp, const Code& code, unsigned lane, uint64_t address, uint64_t size_bytes,
                               unsigned align_bytes, const DeclaredAlignment& declared, AccessKind kind) {
  if (declared.align_bytes == 0 || align_bytes <= declared.align_bytes) return;
  const std::pair key{declared.begin, align_bytes};
  if (!warp.cta->noted.insert(key).second) return;
  Launch& launch = *warp.cta->launch;
  {
    std::lock_guard lock(launch.mutex);
    if (!launch.noted.insert(key).second) return;
  }
  note(warp, {.kind = FaultKind::layout_alignment,
              .message = fmt::format("{}-byte {} at {:#x} of .shared needs a multiple of {}; its object declares {}: "
                                     "declare it with alignas({})",
                                     size_bytes, text(kind), address, align_bytes, declared.align_bytes, align_bytes),
              .lane = lane,
              .has_address = true,
              .space = code.space == Space::generic ? Space::generic : Space::shared,
              .address = address,
              .access_bytes = static_cast<uint32_t>(size_bytes)});
}

void locate_unchecked(Warp& warp, const Code& code, uint32_t mask, unsigned size_bytes, Places& places) {
  compute_addresses(warp, code, places.address);
  locate_at_unchecked(warp, code, mask, size_bytes, places);
}

void locate_at_unchecked(Warp& warp, const Code& code, uint32_t mask, uint64_t size_bytes, Places& places) {
  Cta& cta = *warp.cta;
  const Launch& launch = *cta.launch;
  const Memory& memory = *launch.memory;
  const uint64_t* address = places.address;
  places.lanes = mask;
  auto inside = [&](uint64_t offset, uint64_t limit) { return offset < limit && size_bytes <= limit - offset; };
  if (code.space == Space::global) {
    for_lanes(mask, [&](unsigned i) {
      uint64_t offset = address[i] - kGlobalBase;
      places.bytes[i] = inside(offset, memory.limit) ? memory.bytes + offset : nullptr;
    });
  } else {
    for_lanes(mask, [&](unsigned i) {
      uint64_t offset = address[i];
      uint8_t* place = nullptr;
      switch (code.space == Space::generic ? space_of(offset) : code.space) {
        case Space::shared:
        case Space::shared_cluster:
          if (Cta* owner = owner_of(cta, code.space, offset); owner && inside(offset, cta.shared_bytes))
            place = owner->shared + offset;
          break;
        case Space::local:
          if (inside(offset, warp.local_bytes)) place = warp.local.data() + i * warp.local_bytes + offset;
          break;
        case Space::constant:
          if (inside(offset, launch.image->constant_bytes.size()))
            place = const_cast<uint8_t*>(launch.image->constant_bytes.data()) + offset;
          break;
        case Space::param:
          if (inside(offset, launch.parameters.size())) place = const_cast<uint8_t*>(launch.parameters.data()) + offset;
          break;
        default:
          offset -= kGlobalBase;
          if (inside(offset, memory.limit)) place = memory.bytes + offset;
      }
      places.bytes[i] = place;
    });
  }
  for_lanes(mask, [&](unsigned i) {
    if (places.bytes[i] || size_bytes > sizeof scratch) return;
    std::memset(scratch, 0, sizeof scratch);
    places.bytes[i] = scratch;
  });
}

bool locate_checked(Warp& warp, const Code& code, uint32_t mask, unsigned size_bytes, AccessKind kind, Places& places) {
  compute_addresses(warp, code, places.address);
  return locate_at_checked(warp, code, mask, size_bytes, size_bytes, kind, places);
}

bool check_alignment(Warp& warp, const Code& code, uint32_t mask, const uint64_t* addresses, unsigned size_bytes,
                     AccessKind kind) {
  return !checks(*warp.cta, kCheckAlignment) ||
         Access{warp, code, kind, size_bytes}.is_aligned(mask, addresses, size_bytes);
}

bool locate_at_checked(Warp& warp, const Code& code, uint32_t mask, uint64_t size_bytes, unsigned align_bytes,
                       AccessKind kind, Places& places) {
  Cta& cta = *warp.cta;
  Launch& launch = *cta.launch;
  Memory& memory = *launch.memory;
  uint32_t wanted = launch.options.checks;
  if (!launch.checked_places.empty() && !launch.checked_places[warp.pc]) wanted &= ~(kCheckBounds | kCheckAlignment);
  if (!launch.visited_lines.empty() && launch.visited_lines[warp.pc])
    note_accesses(warp, mask, code.space, places.address, size_bytes);
  if (uint32_t lanes = undefined_lanes(warp, code.a) & mask; lanes && (wanted & kCheckUninitialised))
    report_undefined(warp, FaultKind::uninitialised_address, code.a, lanes);
  if (!(wanted & kCheckBounds)) locate_at_unchecked(warp, code, mask, size_bytes, places);

  places.lanes = mask;
  const Access access{warp, code, kind, size_bytes};
  if ((wanted & kCheckAlignment) && !access.is_aligned(mask, places.address, align_bytes)) return false;
  CachedRange& range = warp.ranges[warp.pc % kRangeCache];
  Space range_space = Space::reg;  // none yet in this instruction
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned i = static_cast<unsigned>(std::countr_zero(rest));
    uint64_t offset = places.address[i];
    Space space = code.space == Space::generic ? space_of(offset) : code.space;
    if (space == Space::global) offset -= kGlobalBase;
    if (space == Space::shared_cluster) space = Space::shared;
    Cta* owner = &cta;
    if (space == Space::shared && offset >> kWindowShift == 0) {
      owner = owner_of(cta, code.space, offset);
      if (!owner) {
        access.fail(FaultKind::out_of_bounds, i, space, places.address[i], "is in no CTA of the cluster");
        return false;
      }
    }
    places.history[i] = nullptr;
    uint64_t shown = places.address[i];
    if (wanted & kCheckBounds) {
      bool cached = space == range_space && offset >= range.begin && offset + size_bytes - 1 <= range.last &&
                    offset + size_bytes - 1 >= offset;
      if (!cached && space != Space::local) {
        const ObjectTable* table = space == Space::global   ? &memory.table
                                   : space == Space::shared ? &launch.shared.objects
                                                            : &launch.image->constant_objects;
        if (space == Space::param) {
          if (offset >= launch.parameters.size() || size_bytes > launch.parameters.size() - offset) {
            access.fail(FaultKind::out_of_bounds, i, space, shown, "is outside of the kernel's parameters");
            return false;
          }
          range = {0, launch.parameters.size() - 1, true};
        } else if (!find_range(access, i, space, offset, shown, *table, range)) {
          return false;
        }
        range_space = space;
        if (space == Space::shared && (wanted & kCheckAlignment))
          note_undeclared_alignment(warp, code, i, shown, size_bytes, align_bytes, {range.begin, range.declared_align},
                                    kind);
      }
      if (space == Space::local && !check_local(access, i, offset)) return false;
      if (kind != AccessKind::load && space != Space::local && (range.read_only || space == Space::constant)) {
        access.fail(space == Space::param ? FaultKind::param_write : FaultKind::const_write, i, space, shown,
                    "writes to read-only memory");
        return false;
      }
    }
    uint8_t* place = nullptr;
    uint8_t* shadow = nullptr;
    switch (space) {
      case Space::shared:
        if (offset < cta.shared_bytes && size_bytes <= cta.shared_bytes - offset) {
          place = owner->shared + offset;
          shadow = owner->shared_shadow.data() + offset;
          places.history[i] = owner->history.get();
          places.owner[i] = owner;
          places.offset[i] = offset;
          if (!owner->pending.empty()) check_pending(access, i, *owner, offset);
        }
        break;
      case Space::local:
        if (offset < warp.local_bytes && size_bytes <= warp.local_bytes - offset) {
          place = warp.local.data() + i * warp.local_bytes + offset;
          shadow = warp.local_shadow.data() + i * warp.local_bytes + offset;
        }
        break;
      case Space::constant:
        if (wanted & kCheckBounds) place = const_cast<uint8_t*>(launch.image->constant_bytes.data()) + offset;
        break;
      case Space::param:
        if (wanted & kCheckBounds) place = const_cast<uint8_t*>(launch.parameters.data()) + offset;
        break;
      default:
        if (offset < memory.limit && size_bytes <= memory.limit - offset) {
          place = memory.bytes + offset;
          shadow = memory.shadow + offset;
          places.history[i] = launch.history.get();
          places.owner[i] = nullptr;
          if (!cta.pending_global.empty()) check_pending_global(access, i, cta, offset);
          places.offset[i] = offset;
        }
    }
    // Without the bounds check the place of locate_at_unchecked stays.
    if (place) places.bytes[i] = place;
    places.shadow[i] = shadow;
  }
  return true;
}

uint64_t location_of(const Cta* owner, uint64_t offset) {
  constexpr uint64_t kShared = uint64_t{1} << 63;
  return owner ? kShared | owner->turn << kRankShift | offset >> 2 : offset >> 2;
}

namespace {

// One access of one lane to memory that other threads see.
struct RecordedAccess {
  Warp& warp;
  const Code& code;
  unsigned lane;
  AccessHistory& history;
  Cta* owner;
  uint64_t offset, size_bytes;

  CurrentAccess current() const {
    return {warp.cta->order.get(), warp.index * kLanes + lane, warp.pc,
            code.order == Order::weak ? Scope::none : code.scope};
  }
  // Accesses of an earlier CTA in the same storage do not count.
  Epoch oldest() const {
    if (!owner) return 0;
    return (owner->cluster ? owner->cluster->ctas.front() : owner)->order->first() - 1;
  }

  void observe() const {
    if (code.order == Order::weak) return;
    for (uint64_t word = offset & ~uint64_t{3}; word < offset + size_bytes; word += 4)
      warp.cta->order->read(current().thread, location_of(owner, word), code.order, code.scope);
  }

  void read() const {
    observe();
    if (code.read_only && uses() != nullptr)
      if (const uint32_t pc = uses()->read(offset, size_bytes, warp.pc); pc != ReadOnlyUses::kNone)
        report_stale(pc, "this load takes memory for constant, which the launch writes");
    if (const Conflict conflict = history.read(current(), offset, size_bytes, oldest()); conflict.found)
      report_conflict(conflict, false);
  }

  void write(bool unchanged = false) const {
    if (uses() != nullptr && !unchanged)
      if (const uint32_t pc = uses()->write(offset, size_bytes, warp.pc); pc != ReadOnlyUses::kNone)
        report_stale(pc, "this writes memory that a load of the launch takes for constant");
    if (const Conflict conflict = history.write(current(), offset, size_bytes, oldest(), unchanged); conflict.found)
      report_conflict(conflict, true);
    if (code.order != Order::weak)
      for (uint64_t word = offset & ~uint64_t{3}; word < offset + size_bytes; word += 4)
        warp.cta->order->write(current().thread, location_of(owner, word), code.order, code.scope);
  }

  // Null for shared memory.
  ReadOnlyUses* uses() const { return owner == nullptr ? warp.cta->launch->read_only_uses.get() : nullptr; }

  void report_stale(uint32_t other_pc, std::string_view message) const {
    if (already_reported(warp, FaultKind::stale_read)) return;
    report(warp, {.kind = FaultKind::stale_read,
                  .message = std::string(message),
                  .lane = lane,
                  .has_address = true,
                  .space = Space::global,
                  .address = kGlobalBase + offset,
                  .access_bytes = static_cast<uint32_t>(size_bytes),
                  .has_other = true,
                  .other_pc = other_pc,
                  .other_warp = warp.index,
                  .other_lane = lane,
                  .other_message = code.read_only ? "written here" : "read here"});
  }

  void report_conflict(const Conflict& conflict, bool writes) const {
    const uint32_t other_warp = conflict.other_thread / kLanes;
    const bool same_cta = conflict.other_cta == static_cast<uint32_t>(warp.cta->turn);
    const bool same_warp = same_cta && other_warp == warp.index;
    const bool other_place = conflict.other_pc != warp.pc % AccessHistory::kMaxCodes;
    FaultKind kind = owner ? FaultKind::shared_race : FaultKind::global_race;
    std::string_view missing = "a barrier or a release and an acquire";
    if (!same_cta) {
      kind = FaultKind::grid_race;
      missing = "a release and an acquire whose scopes reach the other block";
    } else if (same_warp && other_place) {
      kind = FaultKind::warp_race;
      missing = "bar.warp.sync";
    }
    if (conflict.scopes_too_narrow) missing = "their scopes, which do not reach the other block";
    if (already_reported(warp, kind)) return;
    report(warp, {.kind = kind,
                  .message = fmt::format(
                      "{}-byte {} at {:#x}{} and an earlier {} by another thread are not ordered by {}", size_bytes,
                      writes ? "write" : "read", owner ? conflict.offset : kGlobalBase + conflict.offset,
                      owner ? " of .shared" : "", conflict.other_writes ? "write" : "read", missing),
                  .lane = lane,
                  .has_address = true,
                  .space = owner ? Space::shared : Space::global,
                  .address = owner ? conflict.offset : kGlobalBase + conflict.offset,
                  .access_bytes = static_cast<uint32_t>(size_bytes),
                  .has_other = true,
                  .other_cta = conflict.other_cta,
                  .other_pc = conflict.other_pc,
                  .other_warp = other_warp,
                  .other_lane = conflict.other_thread % kLanes,
                  .other_message = conflict.other_writes ? "earlier write" : "earlier read"});
  }
};

}  // namespace

void note_read(Warp& warp, const Code& code, unsigned lane, const Places& places, uint64_t size_bytes) {
  if (AccessHistory* history = places.history[lane])
    RecordedAccess{warp, code, lane, *history, places.owner[lane], places.offset[lane], size_bytes}.read();
}

void note_write(Warp& warp, const Code& code, unsigned lane, const Places& places, uint64_t size_bytes,
                bool unchanged) {
  if (AccessHistory* history = places.history[lane])
    RecordedAccess{warp, code, lane, *history, places.owner[lane], places.offset[lane], size_bytes}.write(
        unchanged && code.order == Order::weak);
}

void note_update(Warp& warp, const Code& code, unsigned lane, const Places& places, uint64_t size_bytes) {
  AccessHistory* history = places.history[lane];
  if (!history) return;
  const RecordedAccess note{warp, code, lane, *history, places.owner[lane], places.offset[lane], size_bytes};
  note.observe();
  note.write();
}

void note_shared_read(Warp& warp, const Code& code, unsigned lane, Cta& owner, uint64_t offset, uint64_t size_bytes) {
  if (owner.history) RecordedAccess{warp, code, lane, *owner.history, &owner, offset, size_bytes}.read();
}

void note_shared_write(Warp& warp, const Code& code, unsigned lane, Cta& owner, uint64_t offset, uint64_t size_bytes) {
  if (owner.history) RecordedAccess{warp, code, lane, *owner.history, &owner, offset, size_bytes}.write();
}

void note_fence(Warp& warp, const Code& code, uint32_t mask) {
  if (warp.cta->order) warp.cta->order->fence(warp.index, mask, code.order, code.scope);
}

namespace {

// Widens a loaded element to its register, and narrows a register to memory; both little-endian.
template <class Memory_, class Register>
void move_in(const Places& places, unsigned element_offset, Register* out, bool is_signed) {
  if (places.lanes == kAllLanes) {
    for (unsigned i = 0; i < kLanes; ++i) {
      Memory_ value;
      std::memcpy(&value, places.bytes[i] + element_offset, sizeof value);
      out[i] = is_signed ? static_cast<Register>(static_cast<std::make_signed_t<Memory_>>(value))
                         : static_cast<Register>(value);
    }
    return;
  }
  for_lanes(places.lanes, [&](unsigned i) {
    Memory_ value;
    std::memcpy(&value, places.bytes[i] + element_offset, sizeof value);
    out[i] = is_signed ? static_cast<Register>(static_cast<std::make_signed_t<Memory_>>(value))
                       : static_cast<Register>(value);
  });
}

template <class Memory_>
void load_element(Warp& warp, const Code& code, const Places& places, unsigned element_offset, Ref dst) {
  switch (code.register_bytes) {
    case 2:
      move_in<Memory_>(places, element_offset, at<uint16_t>(warp, dst), code.is_signed);
      break;
    case 4:
      move_in<Memory_>(places, element_offset, at<uint32_t>(warp, dst), code.is_signed);
      break;
    default:
      move_in<Memory_>(places, element_offset, at<uint64_t>(warp, dst), code.is_signed);
      break;
  }
}

// Propagates the undefined bits of loaded memory to the register.
void load_shadow(Warp& warp, const Code& code, const Places& places, unsigned element_offset, Ref dst) {
  uint32_t undefined = 0;
  for_lanes(places.lanes, [&](unsigned i) {
    if (!places.shadow[i]) return;
    for (unsigned byte = 0; byte < code.element_bytes; ++byte)
      if (places.shadow[i][element_offset + byte] != 0xff) undefined |= 1u << i;
  });
  undefined_lanes(warp, dst) = (undefined_lanes(warp, dst) & ~places.lanes) | undefined;
  if (!undefined) return;
  for_lanes(undefined, [&](unsigned i) {
    uint8_t bits[16] = {};
    for (unsigned byte = 0; byte < code.element_bytes; ++byte)
      bits[byte] = static_cast<uint8_t>(~places.shadow[i][element_offset + byte]);
    if (code.is_signed && bits[code.element_bytes - 1] & 0x80)
      for (unsigned byte = code.element_bytes; byte < code.register_bytes; ++byte) bits[byte] = 0xff;
    std::memcpy(shadow_at<uint8_t>(warp, dst) + size_t{i} * code.register_bytes, bits, code.register_bytes);
  });
  Cta& cta = *warp.cta;
  unsigned lane = static_cast<unsigned>(std::countr_zero(undefined));
  uint64_t address = places.address[lane];
  Space space = code.space == Space::generic ? space_of(address) : code.space;
  origin_of(warp, dst) = add_origin(
      cta, {warp.pc, static_cast<uint8_t>(lane), static_cast<uint16_t>(warp.index), space, address + element_offset});
}

template <bool kChecked>
void load(Warp& warp, const Code& code, uint32_t mask) {
  Places places;
  const unsigned size_bytes = code.element_bytes * code.count;
  warp.cta->polls += code.order != Order::weak;
  if (warp.cta->searched) {
    compute_addresses(warp, code, places.address);
    note_polled_read(warp, code, mask, places.address);
  }
  if constexpr (kChecked) {
    if (!locate_checked(warp, code, mask, size_bytes, AccessKind::load, places)) return;
    if (warp.cta->order) for_lanes(mask, [&](unsigned i) { note_read(warp, code, i, places, size_bytes); });
  } else {
    locate_unchecked(warp, code, mask, size_bytes, places);
  }
  const Ref* list = warp.cta->launch->image->refs.data() + code.list;
  for (unsigned element = 0; element < code.count; ++element) {
    Ref dst = code.count == 1 ? code.dst : list[element];
    unsigned offset = element * code.element_bytes;
    switch (code.element_bytes) {
      case 1:
        load_element<uint8_t>(warp, code, places, offset, dst);
        break;
      case 2:
        load_element<uint16_t>(warp, code, places, offset, dst);
        break;
      case 4:
        load_element<uint32_t>(warp, code, places, offset, dst);
        break;
      case 8:
        load_element<uint64_t>(warp, code, places, offset, dst);
        break;
      default:
        for_lanes(mask, [&](unsigned i) {
          std::memcpy(at<uint8_t>(warp, dst) + size_t{i} * 16, places.bytes[i] + offset, 16);
        });
    }
    if constexpr (kChecked) load_shadow(warp, code, places, offset, dst);
  }
}

// With kCheckUninitialisedStores: reports a value that was never written, or computed from such a value, when it is
// stored to global memory. A copy of memory is exempt, because padding is copied too.
void check_stored(Warp& warp, Ref source, uint32_t lanes) {
  if (!lanes) return;
  const Origin* const origin = find_origin(*warp.cta, origin_of(warp, source));
  const bool copied = origin && !origin->computed && origin->space != Space::reg;
  if (!copied) report_undefined(warp, FaultKind::uninitialised_store, source, lanes);
}

// Notes what a store left in global memory, for the check of outputs at the end of the launch.
void note_output(Warp& warp, const Code& code, const Ref* list, const Places& places, uint32_t mask) {
  UndefinedOutputs& outputs = *warp.cta->launch->outputs;
  const Memory& memory = *warp.cta->launch->memory;
  uint32_t undefined = 0;
  for (unsigned element = 0; element < code.count; ++element)
    undefined |= undefined_lanes(warp, code.count == 1 ? code.b : list[element]);
  undefined &= mask;
  if (undefined != mask) outputs.note_defined(warp.pc);
  for_lanes(undefined, [&](unsigned i) {
    if (!memory.holds(places.bytes[i]) || !places.shadow[i]) return;
    uint32_t origin = 0;
    for (unsigned element = 0; element < code.count && origin == 0; ++element) {
      const Ref source = code.count == 1 ? code.b : list[element];
      if (!(undefined_lanes(warp, source) >> i & 1)) continue;
      origin = origin_of(warp, source);
      if (origin == 0)
        origin = add_origin(*warp.cta,
                            {warp.pc, static_cast<uint8_t>(i), static_cast<uint16_t>(warp.index), Space::reg, source});
    }
    const size_t size_bytes = size_t{code.element_bytes} * code.count;
    outputs.note(warp, {i, places.offset[i], {places.shadow[i], size_bytes}, find_origin(*warp.cta, origin)});
  });
}

// Stores an element of one lane with its undefined bits; `undefined` is null if there are none. Returns whether it
// changes memory.
template <class T>
bool store_element(uint8_t* place, uint8_t* shadow, const uint8_t* value, const uint8_t* undefined) {
  T bits, defined;
  std::memcpy(&bits, value, sizeof bits);
  std::memset(&defined, 0xff, sizeof defined);
  if (undefined)
    for (size_t byte = 0; byte < sizeof defined; ++byte)
      reinterpret_cast<uint8_t*>(&defined)[byte] = static_cast<uint8_t>(~undefined[byte]);
  bool changes = false;
  if (shadow) {
    T bits_before, defined_before;
    std::memcpy(&bits_before, place, sizeof bits_before);
    std::memcpy(&defined_before, shadow, sizeof defined_before);
    changes = bits_before != bits || defined_before != defined;
    std::memcpy(shadow, &defined, sizeof defined);
  }
  std::memcpy(place, &bits, sizeof bits);
  return changes;
}

// During a search for hangs, before the store: notes whether it changes memory.
void note_stored(Warp& warp, const Code& code, const Ref* list, const Places& places, uint32_t mask) {
  for_lanes(mask, [&](unsigned i) {
    for (unsigned element = 0; element < code.count; ++element) {
      const Ref source = code.count == 1 ? code.b : list[element];
      const uint8_t* const place = places.bytes[i] + size_t{element} * code.element_bytes;
      if (std::memcmp(place, at<const uint8_t>(warp, source) + size_t{i} * code.register_bytes, code.element_bytes) ==
          0)
        continue;
      const bool is_local =
          !warp.local.empty() && place >= warp.local.data() && place < warp.local.data() + warp.local.size();
      is_local ? note_private_change(warp) : note_change(*warp.cta);
    }
  });
}

template <bool kChecked>
void store(Warp& warp, const Code& code, uint32_t mask) {
  Places places;
  const unsigned size_bytes = code.element_bytes * code.count;
  const Ref* list = warp.cta->launch->image->refs.data() + code.list;
  if constexpr (kChecked) {
    if (!locate_checked(warp, code, mask, size_bytes, AccessKind::store, places)) return;
    if (checks(*warp.cta, kCheckUninitialisedStores)) {
      const Memory& memory = *warp.cta->launch->memory;
      uint32_t global = 0;
      for_lanes(mask, [&](unsigned i) { global |= uint32_t{memory.holds(places.bytes[i])} << i; });
      for (unsigned element = 0; element < code.count; ++element) {
        const Ref source = code.count == 1 ? code.b : list[element];
        check_stored(warp, source, undefined_lanes(warp, source) & global);
      }
    }
  } else {
    locate_unchecked(warp, code, mask, size_bytes, places);
  }
  Cta& cta = *warp.cta;
  cta.stores += code.space != Space::local && code.space != Space::param;
  if (cta.searched) note_stored(warp, code, list, places, mask);
  // In the order of lanes: if two lanes store to one address the highest wins, in every run.
  auto put = [&](auto element_type) {
    using T = decltype(element_type);
    if constexpr (kChecked) {
      for_lanes(mask, [&](unsigned i) {
        const size_t in_register = size_t{i} * code.register_bytes;
        bool changes = false;
        for (unsigned element = 0; element < code.count; ++element) {
          const Ref source = code.count == 1 ? code.b : list[element];
          const bool is_undefined = undefined_lanes(warp, source) >> i & 1;
          changes |= store_element<T>(places.bytes[i] + element * sizeof(T),
                                      places.shadow[i] ? places.shadow[i] + element * sizeof(T) : nullptr,
                                      at<const uint8_t>(warp, source) + in_register,
                                      is_undefined ? shadow_at<const uint8_t>(warp, source) + in_register : nullptr);
        }
        note_write(warp, code, i, places, size_bytes, !changes);
      });
    } else {
      for (unsigned element = 0; element < code.count; ++element) {
        const uint8_t* values = at<const uint8_t>(warp, code.count == 1 ? code.b : list[element]);
        for_lanes(mask, [&](unsigned i) {
          std::memcpy(places.bytes[i] + element * sizeof(T), values + size_t{i} * code.register_bytes, sizeof(T));
        });
      }
    }
  };
  switch (code.element_bytes) {
    case 1:
      put(uint8_t{});
      break;
    case 2:
      put(uint16_t{});
      break;
    case 4:
      put(uint32_t{});
      break;
    case 8:
      put(uint64_t{});
      break;
    default:
      put(std::array<uint64_t, 2>{});
  }
  if constexpr (kChecked) {
    if (warp.cta->launch->outputs) note_output(warp, code, list, places, mask);
  }
}

}  // namespace

Handler load_handler(bool checked) { return checked ? load<true> : load<false>; }
Handler store_handler(bool checked) { return checked ? store<true> : store<false>; }

}  // namespace ptxkit::emulator
