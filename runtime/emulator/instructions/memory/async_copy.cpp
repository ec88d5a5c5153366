// cp.async, bulk copies and reductions, st.async and red.async. PTX ISA 9.0, 9.7.9.25 and 9.7.13.
//
// The bytes move when the instruction runs. A mark on each byte of shared memory records that it may not be used yet. A
// wait of the lane that copied, or the completion of the mbarrier's phase, removes it. An access to a marked byte is a
// fault. A race with a copy is a race with the lane that waited for it.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/limits.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/instructions/memory/async_work.hpp"
#include "runtime/emulator/sanitizer/undefined_output.hpp"
#include "runtime/emulator/sanitizer/undefined_update.hpp"
#include "runtime/emulator/tensor_map.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Space;

uint64_t address_of(Warp& warp, const AddressOperand& operand, unsigned lane) {
  if (operand.narrow && (operand.space == Space::generic || operand.space == Space::global))
    return widen_address(at<const uint32_t>(warp, operand.ref)[lane] + static_cast<uint32_t>(operand.immediate));
  if (operand.wide) return at<const uint64_t>(warp, operand.ref)[lane] + operand.immediate;
  return static_cast<uint32_t>(at<const uint32_t>(warp, operand.ref)[lane] + static_cast<uint32_t>(operand.immediate));
}

// One side of a copy, for one lane; bytes and shadow are null if it must not be accessed.
struct CopySide {
  uint8_t* bytes = nullptr;
  uint8_t* shadow = nullptr;
  SharedPlace shared;  // cta is null if not in shared memory
};

bool is_shared(Space space, uint64_t address) {
  return space == Space::shared || space == Space::shared_cluster ||
         (space == Space::generic && address >> kWindowShift == kSharedWindow >> kWindowShift);
}

bool resolve_side(Warp& warp, const Code& code, const AddressOperand& operand, unsigned lane, uint64_t address,
                  uint64_t size_bytes, unsigned align_bytes, AccessKind kind, CopySide& side) {
  if (is_shared(operand.space, address)) {
    Code part = code;
    part.space = operand.space;
    part.address = operand.number;
    if (!find_shared(warp, part, lane, address, size_bytes, align_bytes, side.shared)) return false;
    side.bytes = side.shared.cta->shared + side.shared.offset;
    side.shadow = side.shared.cta->shared_shadow.data() + side.shared.offset;
    return true;
  }
  Code part = code;
  part.a = operand.ref;
  part.space = operand.space;
  part.address = operand.number;
  Places places;
  places.address[lane] = address;
  if (warp.cta->launch->checked) {
    if (!locate_at_checked(warp, part, 1u << lane, size_bytes, align_bytes, kind, places)) return false;
    side.shadow = places.shadow[lane];
    kind == AccessKind::load ? note_read(warp, code, lane, places, size_bytes)
                             : note_write(warp, code, lane, places, size_bytes);
  } else {
    locate_at_unchecked(warp, part, 1u << lane, size_bytes, places);
  }
  side.bytes = places.bytes[lane];
  return side.bytes != nullptr;
}

void mark(Cta& cta, const AsyncRange& range) {
  if (!cta.launch->checked || !(cta.launch->options.checks & kCheckRaces)) return;
  if (range.in_global()) {
    cta.pending_global.emplace(range.begin, range);
    cta.largest_pending_global = std::max(cta.largest_pending_global, range.size_bytes);
    return;
  }
  if (cta.pending.empty()) cta.pending.resize(cta.shared_bytes);
  std::fill_n(cta.pending.begin() + static_cast<ptrdiff_t>(range.begin), range.size_bytes,
              2 * (range.pc + 1) + (range.use == AsyncUse::read ? 1 : 0));
}

LaneCopies& copies_of(Warp& warp, unsigned lane) {
  if (warp.copies.empty()) warp.copies.resize(kLanes);
  return warp.copies[lane];
}

// Notes undefined bits that a copy from shared memory leaves in global memory.
void note_copied(Warp& warp, unsigned lane, const CopySide& to, const CopySide& from, uint64_t size_bytes) {
  const Cta& cta = *warp.cta;
  const Memory& memory = *cta.launch->memory;
  if (!cta.launch->outputs || !memory.holds(to.bytes)) return;
  Origin origin{warp.pc, static_cast<uint8_t>(lane), static_cast<uint16_t>(warp.index), Space::shared, 0};
  const bool is_own = from.bytes >= cta.shared && from.bytes < cta.shared + cta.shared_bytes;
  if (is_own) origin.address = static_cast<uint64_t>(from.bytes - cta.shared);
  cta.launch->outputs->note_copy(warp, {lane,
                                        static_cast<uint64_t>(to.bytes - memory.bytes),
                                        {to.shadow, static_cast<size_t>(size_bytes)},
                                        is_own ? &origin : nullptr});
}

void copy_bytes(Warp& warp, unsigned lane, const CopySide& to, const CopySide& from, uint64_t size_bytes) {
  std::memcpy(to.bytes, from.bytes, size_bytes);
  if (!to.shadow) return;
  if (from.shadow)
    std::memcpy(to.shadow, from.shadow, size_bytes);
  else
    std::memset(to.shadow, 0xff, size_bytes);
  note_copied(warp, lane, to, from, size_bytes);
}

// Copies those of every 16 bytes whose bit in `mask` is set.
void copy_masked_bytes(Warp& warp, unsigned lane, const CopySide& to, const CopySide& from, uint64_t size_bytes,
                       uint32_t mask) {
  for (uint64_t i = 0; i < size_bytes; ++i) {
    if (!(mask >> i % 16 & 1)) continue;
    to.bytes[i] = from.bytes[i];
    if (to.shadow) to.shadow[i] = from.shadow ? from.shadow[i] : 0xff;
  }
  if (to.shadow) note_copied(warp, lane, to, from, size_bytes);
}

// Reduces from shared memory into the memory at `where`.
void reduce_bytes(Warp& warp, const Update& update, const CopySide& to, const CopySide& from, uint64_t size_bytes,
                  UpdatedElement where) {
  const bool alone = warp.cta->launch->options.threads <= 1;
  for (uint64_t at_byte = 0; at_byte < size_bytes; at_byte += update.element_bytes) {
    uint64_t operand = 0;
    std::memcpy(&operand, from.bytes + at_byte, update.element_bytes);
    const uint64_t old = apply_update(update, to.bytes + at_byte, operand, 0, alone);
    if (!to.shadow) continue;
    note_undefined_update(warp, update, {old, operand},
                          {.b = from.shadow ? undefined_bits(from.shadow + at_byte, update.element_bytes) : 0},
                          to.shadow + at_byte, where);
    where.address += update.element_bytes;
  }
}

// The element at `address` on this side of a copy.
UpdatedElement element_at(unsigned lane, const CopySide& side, uint64_t address) {
  if (side.shared.cta) return {lane, Space::shared, side.shared.offset};
  return {lane, Space::global, address};
}

// cp.async: copies 4, 8 or 16 bytes of one lane; zeros may replace the last of them.
void copy(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    uint32_t source_bytes = form.bytes;
    if (form.has_ignore) {
      const uint32_t ignore = *at<const uint32_t>(warp, form.source_size) ^ form.ignore_flip;
      if (ignore >> lane & 1) source_bytes = 0;
    } else if (form.has_source_size) {
      source_bytes = at<const uint32_t>(warp, form.source_size)[lane];
      if (source_bytes > form.bytes) {
        report(warp,
               {.kind = FaultKind::async_size,
                .message = fmt::format("{} bytes of source for {} bytes of destination", source_bytes, form.bytes),
                .lane = lane});
        return;
      }
    }
    CopySide to, from;
    if (!resolve_side(warp, code, form.to, lane, address_of(warp, form.to, lane), form.bytes, form.bytes,
                      AccessKind::store, to))
      return;
    if (source_bytes && !resolve_side(warp, code, form.from, lane, address_of(warp, form.from, lane), source_bytes,
                                      form.bytes, AccessKind::load, from))
      return;
    if (source_bytes) copy_bytes(warp, lane, to, from, source_bytes);
    std::memset(to.bytes + source_bytes, 0, form.bytes - source_bytes);
    if (to.shadow) std::memset(to.shadow + source_bytes, 0xff, form.bytes - source_bytes);
    const AsyncRange range{to.shared.offset, form.bytes, warp.pc};
    mark(*to.shared.cta, range);
    add_pending(*warp.cta, copies_of(warp, lane).plain.open, range);
  });
}

// A completed copy counts as a write by the waiting lane at this point.
void finish_own(Warp& warp, const Code& code, unsigned lane, const AsyncRange& range) {
  Cta& cta = *warp.cta;
  finish_range(cta, range);
  if (!cta.history || range.use != AsyncUse::written) return;
  const uint32_t pc = warp.pc;
  warp.pc = range.pc;
  note_shared_write(warp, code, lane, cta, range.begin, range.size_bytes);
  warp.pc = pc;
}

// The oldest `count` groups.
void finish_groups(Warp& warp, const Code& code, unsigned lane, CopyGroups& copies, size_t count) {
  const auto end = copies.groups.begin() + static_cast<ptrdiff_t>(count);
  for (auto group = copies.groups.begin(); group != end; ++group)
    for (const AsyncRange& range : *group) finish_own(warp, code, lane, range);
  copies.groups.erase(copies.groups.begin(), end);
}

void commit(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    CopyGroups& copies = form.is_bulk ? copies_of(warp, lane).bulk : copies_of(warp, lane).plain;
    copies.groups.push_back(std::move(copies.open));
    copies.open.clear();
    size_t pending = 0;
    for (const auto& group : copies.groups) pending += group.size();
    if (copies.groups.size() > kMostPendingGroups || pending > kMostPendingCopies)
      finish_groups(warp, code, lane, copies, copies.groups.size() / 2);
  });
}

void wait(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  if (warp.copies.empty()) return;
  for_lanes(mask, [&](unsigned lane) {
    CopyGroups& copies = form.is_bulk ? warp.copies[lane].bulk : warp.copies[lane].plain;
    if (form.groups == UINT32_MAX) {  // wait_all: also the copies not yet committed
      for (const AsyncRange& range : copies.open) finish_own(warp, code, lane, range);
      copies.open.clear();
    }
    const size_t left = form.groups == UINT32_MAX ? 0 : form.groups;
    if (form.reads_only) {
      // The sources may be reused, the destinations are not complete: the groups stay, without their reads.
      for (size_t i = 0; i + left < copies.groups.size(); ++i)
        std::erase_if(copies.groups[i], [&](const AsyncRange& range) {
          if (range.in_global()) return false;
          finish_own(warp, code, lane, range);
          return true;
        });
      return;
    }
    if (copies.groups.size() > left) finish_groups(warp, code, lane, copies, copies.groups.size() - left);
  });
}

// cp.async.mbarrier.arrive: makes the mbarrier's phase wait for the lane's copies so far.
void track(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    SharedPlace place;
    Code part = code;
    part.space = form.barrier.space;
    part.address = form.barrier.number;
    if (warp.cta->stopped || !find_shared(warp, part, lane, address_of(warp, form.barrier, lane), 8, 8, place)) return;
    Mbarrier* barrier = find_mbarrier(warp, lane, place);
    if (!barrier) return;
    CopyGroups& copies = copies_of(warp, lane).plain;
    auto hand_over = [&](std::vector<AsyncRange>& ranges) {
      for (const AsyncRange& range : ranges) {
        add_pending(*place.cta, barrier->ranges, range);
        note_shared_write(warp, code, lane, *warp.cta, range.begin, range.size_bytes);
      }
      ranges.clear();
    };
    for (auto& group : copies.groups) hand_over(group);
    hand_over(copies.open);
    if (form.increments) ++barrier->pending;
    arrive_at(warp, lane, place, *barrier, 1, false, 1u << lane);
  });
}

// Each thread once or a few times.
void add_writer(Mbarrier& barrier, const std::pair<uint32_t, uint32_t>& writer) {
  constexpr size_t kMost = 1u << 16;  // four for each thread of the largest cluster
  if (barrier.writers.size() == kMost) {
    std::ranges::sort(barrier.writers);
    const auto [first, last] = std::ranges::unique(barrier.writers);
    barrier.writers.erase(first, last);
  }
  barrier.writers.push_back(writer);
}

// Completes a copy into `to` at its mbarrier: subtracts the bytes that count there, and adds the range that becomes
// usable with the phase.
bool complete_at_mbarrier(Warp& warp, const Code& code, unsigned lane, const SharedPlace& place, const CopySide& to,
                          uint64_t size_bytes, uint64_t counted_bytes) {
  Mbarrier* barrier = find_mbarrier(warp, lane, place);
  if (!barrier) return false;
  if (to.shared.cta) {
    const AsyncRange range{to.shared.offset, static_cast<uint32_t>(size_bytes), warp.pc};
    mark(*to.shared.cta, range);
    note_shared_write(warp, code, lane, *to.shared.cta, range.begin, range.size_bytes);
    add_pending(*place.cta, barrier->ranges, range);
    add_writer(*barrier, {warp.cta->rank, warp.index * kLanes + lane});
  }
  expect_bytes(warp, lane, place, *barrier, -static_cast<int64_t>(counted_bytes));
  advance_phase(place, *barrier);
  return true;
}

void count_at_barrier(Warp& warp, const Code& code, const AsyncForm& form, unsigned lane, uint64_t address,
                      const CopySide& to, uint64_t size_bytes, uint64_t counted_bytes) {
  SharedPlace place;
  Code part = code;
  part.space = form.barrier.space;
  part.address = form.barrier.number;
  if (find_shared(warp, part, lane, address, 8, 8, place))
    complete_at_mbarrier(warp, code, lane, place, to, size_bytes, counted_bytes);
}

// Calls visit(in_cta) once; in_cta maps an address operand to the target CTA. A multicast writes to the same offset in
// every CTA of its mask and counts at each one's mbarrier: visit is then called once for each.
template <class Visit>
void for_each_target(Warp& warp, const AsyncForm& form, unsigned lane, Visit&& visit) {
  const uint32_t ctas = form.multicasts ? at<const uint16_t>(warp, form.ctas)[lane] : 1;
  for_lanes(ctas, [&](unsigned rank) {
    visit([&](const AddressOperand& operand) {
      const uint64_t address = address_of(warp, operand, lane);
      return form.multicasts ? address_in(address, rank) : address;
    });
  });
}

// Marks the destination of a copy from shared memory: it may not be accessed before the lane has waited for the writes,
// not only for the reads.
void mark_pending_global(Warp& warp, unsigned lane, const CopySide& to, uint64_t size_bytes, bool combines) {
  const AsyncRange range{static_cast<uint64_t>(to.bytes - warp.cta->launch->memory->bytes),
                         static_cast<uint32_t>(size_bytes), warp.pc,
                         combines ? AsyncUse::combined_global : AsyncUse::written_global};
  mark(*warp.cta, range);
  add_pending(*warp.cta, copies_of(warp, lane).bulk.open, range);
}

void bulk(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    const uint32_t size_bytes = at<const uint32_t>(warp, form.size)[lane];
    if (size_bytes % 16) {
      report(warp, {.kind = FaultKind::async_size,
                    .message = fmt::format("{} bytes are no multiple of 16", size_bytes),
                    .lane = lane});
      return;
    }
    if (size_bytes == 0) return;
    CopySide from;
    if (!resolve_side(warp, code, form.from, lane, address_of(warp, form.from, lane), size_bytes, 16, AccessKind::load,
                      from))
      return;
    for_each_target(warp, form, lane, [&](auto&& in_cta) {
      CopySide to;
      if (warp.cta->stopped || !resolve_side(warp, code, form.to, lane, in_cta(form.to), size_bytes, 16,
                                             form.update.apply ? AccessKind::atomic : AccessKind::store, to))
        return;
      spend_on_bytes(warp, size_bytes);
      if (form.update.apply)
        reduce_bytes(warp, form.update, to, from, size_bytes, element_at(lane, to, in_cta(form.to)));
      else if (form.has_byte_mask)
        copy_masked_bytes(warp, lane, to, from, size_bytes, at<const uint16_t>(warp, form.byte_mask)[lane]);
      else
        copy_bytes(warp, lane, to, from, size_bytes);
      if (form.has_barrier) {
        count_at_barrier(warp, code, form, lane, in_cta(form.barrier), to, size_bytes, size_bytes);
      } else if (from.shared.cta) {
        const AsyncRange range{from.shared.offset, size_bytes, warp.pc, AsyncUse::read};
        mark(*from.shared.cta, range);
        add_pending(*warp.cta, copies_of(warp, lane).bulk.open, range);
        mark_pending_global(warp, lane, to, size_bytes, form.update.apply != nullptr);
      }
    });
  });
}

// The bytes of a box in shared memory. The number of their 128-byte line permutes the chunks.
struct BoxPlace {
  CopySide side;
  uint64_t mask;
  unsigned shift;
  uint64_t halves;  // 8: the halves of 16 bytes are swapped in each second line

  BoxPlace(const CopySide& shared, const TensorMap& map) : side(shared) {
    constexpr uint64_t kMasks[] = {0, 0x10, 0x30, 0x70};
    mask = map.chunk_bytes == 64 ? 0x40 : map.chunk_bytes == 32 ? 0x60 : kMasks[static_cast<size_t>(map.swizzle)];
    shift = map.chunk_bytes == 64 ? 1 : map.chunk_bytes == 32 ? 2 : 3;
    halves = map.swaps_halves ? 8 : 0;
  }
  uint64_t offset_of(uint64_t linear_bytes) const {
    const uint64_t place = side.shared.offset + linear_bytes;
    return (place ^ (place >> shift & mask) ^ (place >> 4 & halves)) - side.shared.offset;
  }
};

// The update of a reduction; tf32 is summed as f32.
Update update_of(const AsyncForm& form, const TensorMap& map) {
  if (form.operation == ptx::Mod::unknown) return {};
  return find_update(form.operation, map.element == ptx::Type::tf32 ? ptx::Type::f32 : map.element,
                     map.flushes ? Adder::of_memory_flushing : Adder::of_memory);
}

// Rounds words of f32 that are copied to shared memory to tf32: to nearest with 10 bits, ties to even; one NaN.
void round_to_tf32(uint8_t* bytes, unsigned size_bytes) {
  for (unsigned i = 0; i < size_bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    const bool is_nan = (word & 0x7fffffff) > 0x7f800000;
    word = is_nan ? 0x7fffe000 : (word + 0xfff + (word >> 13 & 1)) & ~0x1fffu;
    std::memcpy(bytes + i, &word, sizeof word);
  }
}

// Packs 16 elements of 6 bits, each in a byte.
void pack_6_bits(const uint8_t* from, uint8_t* to) {
  std::memset(to, 0, 12);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned bit = 0; bit < 6; ++bit)
      to[(6 * i + bit) / 8] |= static_cast<uint8_t>((from[i] >> bit & 1) << (6 * i + bit) % 8);
}

// Moves rows between global and shared memory, one element at a time. Elements outside of the tensor read as zero or
// NaN and are not written. Returns false after a fault.
bool move_rows(Warp& warp, const Code& code, const AsyncForm& form, unsigned lane, const TensorMap& map,
               std::span<const TensorPoint> rows, const BoxPlace& box) {
  const bool loads = form.has_barrier;
  const Update update = update_of(form, map);
  const AddressOperand global{.ref = kZeroRef, .wide = true, .space = Space::global};
  const unsigned unit = unit_bytes(map), room = unit_pitch_bytes(map);
  const unsigned bytes = std::min(unit, map.swaps_halves ? 8u : 16u);  // the swizzle keeps these together
  const uint64_t units = units_per_row(map), pieces = unit / bytes;
  const auto per = static_cast<int64_t>(elements_per_unit(map));
  std::array<uint8_t, 16> fill{};
  for (unsigned i = 0; i < fill.size() && map.fills_with_nan; i += 2) {
    const auto half = static_cast<uint16_t>(fill_nan(map.element));
    std::memcpy(&fill[i], &half, sizeof half);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    const TensorPoint& corner = rows[row];
    bool inside = true;
    uint64_t address = map.address;
    for (unsigned i = 1; i < map.rank; ++i) {
      inside &= corner[i] >= 0 && corner[i] < static_cast<int64_t>(map.size[i]);
      address += static_cast<uint64_t>(corner[i]) * map.stride_bytes[i - 1];
    }
    const auto most = static_cast<int64_t>(units);
    const int64_t at = corner[0] / per, size = static_cast<int64_t>(map.size[0]) / per;
    const int64_t first = inside ? std::clamp<int64_t>(-at, 0, most) : 0;
    const int64_t last = inside ? std::clamp<int64_t>(size - at, first, most) : 0;
    const uint64_t segment_bytes = static_cast<uint64_t>(last - first) * unit;
    const uint64_t begin = address + static_cast<uint64_t>(at + first) * unit;
    CopySide segment;
    if (last > first && !resolve_side(warp, code, global, lane, begin, segment_bytes, bytes,
                                      loads          ? AccessKind::load
                                      : update.apply ? AccessKind::atomic
                                                     : AccessKind::store,
                                      segment))
      return false;
    if (last > first && !loads) mark_pending_global(warp, lane, segment, segment_bytes, update.apply != nullptr);
    for (uint64_t i = 0; i < units * pieces; ++i) {
      const uint64_t there = box.offset_of(row * row_pitch_bytes(map) + i / pieces * room + i % pieces * bytes);
      CopySide in_box{box.side.bytes + there, box.side.shadow + there, {}};
      const auto at_unit = static_cast<int64_t>(i / pieces);
      if (at_unit < first || at_unit >= last) {
        if (!loads) continue;
        std::memcpy(in_box.bytes, fill.data(), bytes);
        std::memset(in_box.shadow, 0xff, bytes);
        std::memset(in_box.shadow + bytes, 0, room - unit);
        continue;
      }
      const uint64_t along = (i - static_cast<uint64_t>(first) * pieces) * bytes;
      CopySide in_tensor{segment.bytes + along, segment.shadow ? segment.shadow + along : nullptr, {}};
      std::array<uint8_t, 12> packed, packed_shadow;
      if (!loads && map.element == ptx::Type::b6x16_p32) {
        pack_6_bits(in_box.bytes, packed.data());
        pack_6_bits(in_box.shadow, packed_shadow.data());
        in_box = {packed.data(), packed_shadow.data(), {}};
      }
      if (update.apply)
        reduce_bytes(warp, update, in_tensor, in_box, bytes, {lane, Space::global, begin + along});
      else
        loads ? copy_bytes(warp, lane, in_box, in_tensor, bytes) : copy_bytes(warp, lane, in_tensor, in_box, bytes);
      if (loads) std::memset(in_box.shadow + bytes, 0, room - unit);  // gaps between elements stay undefined
      if (loads && map.element == ptx::Type::tf32) round_to_tf32(in_box.bytes, bytes);
    }
  }
  return true;
}

// The map of a lane and the rows of it that the lane moves; empty after a fault.
struct TensorPart {
  TensorMap map;
  std::vector<TensorPoint> rows;
};
std::optional<TensorPart> tensor_part(Warp& warp, const Code& code, const AsyncForm& form, unsigned lane) {
  const Ref* refs = warp.cta->launch->image->refs.data();
  const auto refuse = [&](std::string why) {
    report(warp, {.kind = FaultKind::async_size, .message = std::move(why), .lane = lane});
    return std::nullopt;
  };
  CopySide place;
  if (!resolve_side(warp, code, form.map, lane, address_of(warp, form.map, lane), kTensorMapBytes, 64, AccessKind::load,
                    place))
    return std::nullopt;
  const auto map = decode_tensor_map(std::span<const uint8_t, kTensorMapBytes>(place.bytes, kTensorMapBytes));
  if (!map) return refuse(map.error().message());
  if (const auto checked = check_tensor_map(*map); !checked) return refuse(checked.error().message());
  if (form.operation != ptx::Mod::unknown && !update_of(form, *map).apply)
    return refuse(fmt::format("elements of type {} do not have this reduction", ptx::text(map->element)));
  if (!form.has_barrier && (map->element == ptx::Type::b4x16_p64 || map->swaps_halves))
    return refuse(fmt::format("{} cannot be stored", map->swaps_halves ? "boxes whose halves of 16 bytes change places"
                                                                       : "elements of type b4x16_p64"));
  std::array<int32_t, 5> coordinates{};
  std::array<uint16_t, 5> offsets{};
  for (unsigned i = 0; i < form.coordinates.count; ++i)
    coordinates[i] = at<const int32_t>(warp, refs[form.coordinates.first + i])[lane];
  for (unsigned i = 0; i < form.offsets.count; ++i)
    offsets[i] = at<const uint16_t>(warp, refs[form.offsets.first + i])[lane];
  auto rows = tensor_rows(*map, form.mode, std::span(coordinates).first(form.coordinates.count),
                          std::span(offsets).first(form.offsets.count));
  if (!rows) return refuse(rows.error().message());
  // An H200 reports both with error 715.
  const auto per = static_cast<int32_t>(elements_per_unit(*map));
  if (per == 16 && coordinates[0] % 128)
    return refuse(fmt::format("coordinate {} of the innermost dimension is no multiple of 128", coordinates[0]));
  if (const int64_t byte = int64_t{coordinates[0]} * unit_bytes(*map) / per; byte % 16) {
    report(warp, {.kind = FaultKind::misaligned,
                  .message = fmt::format("coordinate {} of the innermost dimension is byte {}, no multiple of 16",
                                         coordinates[0], byte),
                  .lane = lane});
    return std::nullopt;
  }
  for (const TensorPoint& corner : *rows)
    for (unsigned i = 0; i < map->rank && !form.has_barrier && form.mode != TensorMode::rows; ++i)
      if (corner[i] < 0) {
        report(warp, {.kind = FaultKind::out_of_bounds,
                      .message = fmt::format("a tensor store reaches coordinate {} of dimension {}", corner[i], i),
                      .lane = lane});
        return std::nullopt;
      }
  return TensorPart{*map, std::move(*rows)};
}

// cp.async.bulk.tensor.
void tensor(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    const auto part = tensor_part(warp, code, form, lane);
    if (!part) return;
    const auto& [map, rows] = *part;
    const uint64_t units = rows.size() * units_per_row(map), size_bytes = units * unit_pitch_bytes(map);
    // A swizzled box takes whole lines of 128 bytes.
    const uint64_t box_bytes = rows.size() * row_pitch_bytes(map);
    spend_on_bytes(warp, size_bytes);
    const uint64_t room_bytes = map.swizzle == TensorSwizzle::none ? size_bytes : (box_bytes + 127) / 128 * 128;
    if (!form.has_barrier) {
      CopySide from;
      if (!resolve_side(warp, code, form.from, lane, address_of(warp, form.from, lane), room_bytes, 128,
                        AccessKind::load, from) ||
          !move_rows(warp, code, form, lane, map, rows, {from, map}))
        return;
      const AsyncRange range{from.shared.offset, static_cast<uint32_t>(size_bytes), warp.pc, AsyncUse::read};
      note_shared_read(warp, code, lane, *from.shared.cta, range.begin, range.size_bytes);
      mark(*from.shared.cta, range);
      add_pending(*warp.cta, copies_of(warp, lane).bulk.open, range);
      return;
    }
    for_each_target(warp, form, lane, [&](auto&& in_cta) {
      CopySide to;
      if (warp.cta->stopped ||
          !resolve_side(warp, code, form.to, lane, in_cta(form.to), room_bytes, 128, AccessKind::store, to) ||
          !move_rows(warp, code, form, lane, map, rows, {to, map}))
        return;
      // The bytes of the tensor are counted, without gaps (CUTLASS, TensorMap.global_tx_bytes).
      count_at_barrier(warp, code, form, lane, in_cta(form.barrier), to, size_bytes, units * unit_bytes(map));
    });
  });
}

// tensormap.replace: a weak read and write of the whole map.
void replace(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    CopySide place;
    if (warp.cta->stopped || !resolve_side(warp, code, form.map, lane, address_of(warp, form.map, lane),
                                           kTensorMapBytes, 64, AccessKind::store, place))
      return;
    if (place.shared.cta) note_shared_write(warp, code, lane, *place.shared.cta, place.shared.offset, kTensorMapBytes);
    const std::span<uint8_t, kTensorMapBytes> bytes(place.bytes, kTensorMapBytes);
    const bool is_written =
        !checks(*warp.cta, kCheckUninitialised) || !place.shadow ||
        std::all_of(place.shadow, place.shadow + kTensorMapBytes, [](uint8_t b) { return b == 0xff; });
    auto map = is_written ? decode_tensor_map_for_replace(bytes) : decode_tensor_map(bytes);
    const uint64_t value = form.wide_field ? at<const uint64_t>(warp, form.size)[lane]
                                           : uint64_t{at<const uint32_t>(warp, form.size)[lane]};
    const auto replaced = map ? replace_field(*map, form.field, form.ordinal, value) : tl::unexpected(map.error());
    if (!replaced) {
      report(warp, {.kind = FaultKind::async_size, .message = replaced.error().message(), .lane = lane});
      return;
    }
    store_tensor_map(*map, bytes);
    if (place.shadow) std::memset(place.shadow, 0xff, kTensorMapBytes);
  });
}

// tensormap.cp_fenceproxy: the warp copies one map to global memory and releases it.
void publish(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  const auto lane = static_cast<unsigned>(std::countr_zero(mask));
  CopySide to, from;
  if (!resolve_side(warp, code, form.from, lane, address_of(warp, form.from, lane), kTensorMapBytes, 64,
                    AccessKind::load, from) ||
      !resolve_side(warp, code, form.to, lane, address_of(warp, form.to, lane), kTensorMapBytes, 64, AccessKind::store,
                    to))
    return;
  note_shared_read(warp, code, lane, *from.shared.cta, from.shared.offset, kTensorMapBytes);
  copy_bytes(warp, lane, to, from, kTensorMapBytes);
  if (!warp.cta->order) return;
  warp.cta->order->barrier_lanes(warp.index, mask, warp.live);
  note_fence(warp, code, mask);
}

// clusterlaunchcontrol.try_cancel: removes a cluster that has not begun from the launch. The answer is written like an
// asynchronous copy of 16 bytes; with .multicast::cluster::all in every CTA of the cluster.
void cancel(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  for_lanes(mask, [&](unsigned lane) {
    Launch& launch = *warp.cta->launch;
    const uint64_t size = launch.shape.cluster.count(), count = launch.shape.grid.count() / size;
    uint64_t number = launch.next_cluster.load();
    while (number < count && !launch.next_cluster.compare_exchange_weak(number, number + 1)) {
    }
    std::array<uint32_t, 4> answer{};
    if (number < count) {
      if (launch.options.adversarial) number = count - 1 - number;
      const std::array<uint32_t, 3> first = block_of(launch.shape, number * size);
      answer = {first[0], first[1], first[2], 1};
    }
    const uint64_t ranks = form.multicasts ? warp.cta->cluster->ctas.size() : 1;
    for (uint64_t rank = 0; rank < ranks && !warp.cta->stopped; ++rank) {
      const auto address = [&](const AddressOperand& operand) {
        const uint64_t own = address_of(warp, operand, lane);
        return form.multicasts ? address_in(own, rank) : own;
      };
      CopySide to;
      if (!resolve_side(warp, code, form.to, lane, address(form.to), sizeof answer, 16, AccessKind::store, to)) return;
      if (!to.shared.cta) {
        report(warp, {.kind = FaultKind::out_of_bounds,
                      .message = "the answer of try_cancel is outside of shared memory",
                      .lane = lane});
        return;
      }
      std::memcpy(to.bytes, answer.data(), sizeof answer);
      std::memset(to.shadow, 0xff, sizeof answer);
      count_at_barrier(warp, code, form, lane, address(form.barrier), to, sizeof answer, sizeof answer);
    }
  });
}

// st.async and red.async: a store or an update in a CTA of the cluster, counted at an mbarrier there.
void store_elements(Warp& warp, const Code& code, const AsyncForm& form, uint32_t mask) {
  const Ref* list = warp.cta->launch->image->refs.data() + code.list;
  const uint32_t size_bytes = uint32_t{code.element_bytes} * code.count;
  for_lanes(mask, [&](unsigned lane) {
    CopySide to;
    if (warp.cta->stopped || !resolve_side(warp, code, form.to, lane, address_of(warp, form.to, lane), size_bytes,
                                           size_bytes, AccessKind::store, to))
      return;
    for (unsigned element = 0; element < code.count; ++element) {
      uint8_t* place = to.bytes + element * code.element_bytes;
      const uint8_t* value = at<const uint8_t>(warp, list[element]) + size_t{lane} * code.element_bytes;
      uint64_t operand = 0;
      std::memcpy(&operand, value, code.element_bytes);
      if (form.action == AsyncAction::reduce) {
        const uint64_t old = apply_update(form.update, place, operand, 0, warp.cta->launch->options.threads <= 1);
        if (to.shadow)
          note_undefined_update(warp, form.update, {old, operand}, {}, to.shadow + element * code.element_bytes,
                                element_at(lane, to, address_of(warp, form.to, lane)));
      } else {
        std::memcpy(place, value, code.element_bytes);
        if (to.shadow) std::memset(to.shadow + element * code.element_bytes, 0xff, code.element_bytes);
      }
    }
    SharedPlace place;
    Code part = code;
    part.space = form.barrier.space;
    part.address = form.barrier.number;
    if (find_shared(warp, part, lane, address_of(warp, form.barrier, lane), 8, 8, place))
      complete_at_mbarrier(warp, code, lane, place, to, size_bytes, size_bytes);
  });
}

void run(Warp& warp, const Code& code, uint32_t mask) {
  const AsyncForm& form = warp.cta->launch->image->asyncs[code.target];
  switch (form.action) {
    case AsyncAction::copy:
      return copy(warp, code, form, mask);
    case AsyncAction::commit:
      return commit(warp, code, form, mask);
    case AsyncAction::wait:
      return wait(warp, code, form, mask);
    case AsyncAction::track:
      return track(warp, code, form, mask);
    case AsyncAction::bulk:
      return bulk(warp, code, form, mask);
    case AsyncAction::tensor:
      return tensor(warp, code, form, mask);
    case AsyncAction::store:
    case AsyncAction::reduce:
      return store_elements(warp, code, form, mask);
    case AsyncAction::replace_field:
      return replace(warp, code, form, mask);
    case AsyncAction::publish_map:
      return publish(warp, code, form, mask);
    case AsyncAction::cancel:
      return cancel(warp, code, form, mask);
  }
}

}  // namespace

bool find_shared(Warp& warp, const Code& code, unsigned lane, uint64_t address, uint64_t size_bytes,
                 unsigned align_bytes, SharedPlace& place) {
  auto fail = [&](FaultKind kind, std::string why) {
    report(warp, {.kind = kind,
                  .message = fmt::format("{} bytes at {:#x} of .shared {}", size_bytes, address, why),
                  .lane = lane,
                  .has_address = true,
                  .space = ptx::Space::shared,
                  .address = place.offset,
                  .access_bytes = static_cast<uint32_t>(size_bytes)});
    return false;
  };
  place.offset = address;
  if (code.space == Space::generic) {
    if (address >> kWindowShift != kSharedWindow >> kWindowShift)
      return fail(FaultKind::out_of_bounds, "are outside of shared memory");
    place.offset &= kWindowMask;
  }
  place.cta = owner_of(*warp.cta, code.space, place.offset);
  if (!place.cta) return fail(FaultKind::out_of_bounds, "are in no CTA of the cluster");
  if (checks(*warp.cta, kCheckAlignment) && place.offset % align_bytes)
    return fail(FaultKind::misaligned, fmt::format("are not aligned to {}", align_bytes));
  if (place.offset > warp.cta->shared_bytes || size_bytes > warp.cta->shared_bytes - place.offset)
    return fail(FaultKind::out_of_bounds, "are outside of the CTA's shared memory");
  if (!checks(*warp.cta, kCheckBounds)) return true;
  const Launch& launch = *warp.cta->launch;
  const Object* object = launch.shared.objects.find(place.offset);
  if (!object || place.offset < object->begin || place.offset - object->begin + size_bytes > object->size_bytes)
    return fail(FaultKind::out_of_bounds, "are not within one object");
  if (const AllowedObjects allowed = allowed_objects(launch, code); !allowed.contains(*object))
    return fail(FaultKind::out_of_bounds,
                fmt::format("are in '{}', from which their address is not derived", object->name));
  if (checks(*warp.cta, kCheckAlignment))
    note_undeclared_alignment(warp, code, lane, place.offset, size_bytes, align_bytes,
                              {object->begin, object->declared_align}, AccessKind::store);
  return true;
}

void add_pending(Cta& cta, std::vector<AsyncRange>& ranges, const AsyncRange& range) {
  if (ranges.size() >= kMostPendingCopies) {
    const auto half = ranges.begin() + static_cast<ptrdiff_t>(ranges.size() / 2);
    for (auto each = ranges.begin(); each != half; ++each) finish_range(cta, *each);
    ranges.erase(ranges.begin(), half);
  }
  ranges.push_back(range);
}

void finish_range(Cta& cta, const AsyncRange& range) {
  if (range.use == AsyncUse::tensor_memory) {
    if (const auto& memory = cta.cluster->ctas[range.rank]->tensor_memory) memory->finish(range);
    return;
  }
  if (range.in_global()) {
    const auto [first, last] = cta.pending_global.equal_range(range.begin);
    const auto it = std::find_if(first, last, [&](const auto& each) { return each.second.pc == range.pc; });
    if (it != last) cta.pending_global.erase(it);
    return;
  }
  if (cta.pending.empty()) return;
  const uint32_t own = 2 * (range.pc + 1) + (range.use == AsyncUse::read ? 1 : 0);
  for (uint64_t i = range.begin; i < range.begin + range.size_bytes; ++i)
    if (cta.pending[i] == own) cta.pending[i] = 0;
}

void select_async(Code& code) {
  code.undefined = Undefined::handler;
  code.run = run;
}

}  // namespace ptxkit::emulator
