// See undefined_output.hpp.
#include "runtime/emulator/sanitizer/undefined_output.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kCopyWordBytes = 8;
constexpr size_t kMaxRanges = 32, kRangesInText = 3;

// Returns "'tile' + 4 of .shared" and sets `object` to the object's name.
std::string place_text(const Warp& warp, const Origin& origin, std::string& object) {
  if (origin.space == ptx::Space::reg)
    return fmt::format("register {}", register_name(warp, origin.pc, static_cast<Ref>(origin.address)));
  Fault place;
  name_object(warp, origin.space, origin.address, place);
  object = place.object;
  const std::string_view space = origin.space == ptx::Space::shared_cluster ? "shared" : ptx::text(origin.space);
  return place.object.empty() ? fmt::format("{:#x} of .{}", origin.address, space)
                              : fmt::format("'{}' + {} of .{}", place.object, place.object_offset, space);
}

}  // namespace

void note_output(Warp& warp, unsigned lane, const uint8_t* shadow, size_t size_bytes, const Origin* origin) {
  Launch& launch = *warp.cta->launch;
  const Memory& memory = *launch.memory;
  if (!launch.outputs || shadow < memory.shadow || shadow >= memory.shadow + memory.limit) return;
  launch.outputs->note(warp, {lane, static_cast<uint64_t>(shadow - memory.shadow), {shadow, size_bytes}, origin});
}

uint16_t UndefinedOutputs::cause_of(Warp& warp, const OutputStore& store, bool partial) {
  const Origin* const origin = store.origin;
  const bool computed = origin && origin->computed;
  const auto [it, is_new] =
      number_of_.try_emplace(Key{warp.pc, origin ? origin->pc : 0xffffffff, computed, partial && !computed}, 0);
  if (!is_new) return it->second;
  if (causes_.size() == kMaxCauses) return 0;
  Cause cause;
  cause.pc = warp.pc;
  cause.cta_turn = warp.cta->turn;
  cause.warp = warp.index;
  cause.lane = store.lane;
  cause.computed = computed;
  cause.partial = partial && !computed;
  if (origin) {
    cause.has_origin = true;
    cause.origin_pc = origin->pc;
    cause.origin_warp = origin->warp;
    cause.origin_lane = origin->lane;
    cause.space = origin->space;
    cause.place = place_text(warp, *origin, cause.object);
  }
  causes_.push_back(std::move(cause));
  return it->second = static_cast<uint16_t>(causes_.size());
}

void UndefinedOutputs::note(Warp& warp, const OutputStore& store) {
  uint64_t pattern = 0;
  for (size_t i = 0; i < store.shadow.size(); ++i)
    if (store.shadow[i] != 0xff) pattern |= uint64_t{1} << (i % 64);
  if (pattern == 0) return note_defined(warp.pc);
  const size_t undefined_count =
      static_cast<size_t>(std::count_if(store.shadow.begin(), store.shadow.end(), [](uint8_t x) { return x != 0xff; }));
  const std::lock_guard lock(mutex_);
  const uint16_t number = cause_of(warp, store, undefined_count != store.shadow.size());
  if (number == 0) return;
  Cause& cause = causes_[number - 1];
  if (cause.pattern == 0) cause.pattern = pattern;
  cause.varies |= cause.pattern != pattern;
  std::array<uint16_t, kPageBytes>* page = nullptr;
  for (size_t i = 0; i < store.shadow.size(); ++i) {
    const uint64_t at_byte = store.offset + i;
    if (!page || at_byte % kPageBytes == 0) {
      auto& found = cause_at_[at_byte / kPageBytes];
      if (!found) found = std::make_unique<std::array<uint16_t, kPageBytes>>();
      page = found.get();
    }
    if (store.shadow[i] != 0xff) (*page)[at_byte % kPageBytes] = number;
  }
}

void UndefinedOutputs::note_copy(Warp& warp, const OutputStore& store) {
  for (uint64_t at_byte = 0; at_byte < store.shadow.size();) {
    const uint64_t size_bytes =
        std::min<uint64_t>(kCopyWordBytes - (store.offset + at_byte) % kCopyWordBytes, store.shadow.size() - at_byte);
    const auto word = store.shadow.subspan(at_byte, size_bytes);
    const bool whole = std::all_of(word.begin(), word.end(), [](uint8_t x) { return x != 0xff; });
    if (whole) note(warp, {store.lane, store.offset + at_byte, word, store.origin});
    at_byte += size_bytes;
  }
}

bool UndefinedOutputs::counts(const Cause& cause) const {
  return !cause.partial || cause.varies || defined_at_[cause.pc] != 0;
}

Fault UndefinedOutputs::fault_of(const Launch& launch, uint32_t object, std::span<const Range> ranges,
                                 size_t store_count) const {
  const Cause& cause = causes_[ranges.front().cause - 1];
  const Object& buffer = launch.memory->table.objects[object];
  Fault fault;
  fault.kind = FaultKind::undefined_output;
  fault.site = site_of(*launch.image, cause.pc);
  fault.thread = thread_of(launch, cause.cta_turn, cause.warp, cause.lane);
  fault.has_address = true;
  fault.address = kGlobalBase + ranges.front().begin;
  fault.access_bytes = static_cast<uint32_t>(std::min<uint64_t>(ranges.front().size_bytes, 0xffffffff));
  fault.object = buffer.name;
  fault.object_offset = static_cast<int64_t>(ranges.front().begin - buffer.begin);
  fault.object_bytes = buffer.size_bytes;
  std::string where;
  for (const Range& range : ranges) {
    fault.undefined.bytes += range.size_bytes;
    if (++fault.undefined.range_count > kMaxRanges) continue;
    const uint64_t first = range.begin - buffer.begin;
    fault.undefined.ranges.push_back({first, range.size_bytes});
    if (fault.undefined.range_count > kRangesInText) continue;
    where += fmt::format("{}{} to {}", where.empty() ? "" : ", ", first, first + range.size_bytes - 1);
  }
  if (ranges.size() > kRangesInText) where += fmt::format(" and {} more ranges", ranges.size() - kRangesInText);
  fault.message = fmt::format("when the launch ends {} bytes of '{}' hold bits that no thread wrote: bytes {}",
                              fault.undefined.bytes, buffer.name, where);
  if (store_count > 1) fault.message += fmt::format(", stored by {} instructions", store_count);
  if (!cause.has_origin) return fault;
  const bool is_register = cause.space == ptx::Space::reg;
  fault.undefined.space = is_register ? "register" : std::string(ptx::text(cause.space));
  fault.message += fmt::format("; they {} {}", cause.computed ? "were computed from" : "come from", cause.place);
  if (cause.origin_pc == cause.pc && !is_register) return fault;  // a copy: the origin is the store itself
  fault.has_other = true;
  fault.other_site = site_of(*launch.image, cause.origin_pc);
  fault.other_thread = thread_of(launch, cause.cta_turn, cause.origin_warp, cause.origin_lane);
  fault.other_message = is_register ? "used here first" : "loaded here";
  return fault;
}

std::vector<Fault> UndefinedOutputs::faults(const Launch& launch) const {
  const Memory& memory = *launch.memory;
  struct Found {
    std::vector<Range> ranges;
    std::set<uint32_t> stores;
  };
  std::map<Group, Found> found;
  Found* last = nullptr;
  uint16_t last_number = 0;
  const Object* last_object = nullptr;
  for (const auto& [page, causes] : cause_at_)
    for (uint64_t i = 0; i < kPageBytes; ++i) {
      const uint64_t offset = page * kPageBytes + i;
      const uint16_t number = (*causes)[i];
      if (number == 0 || memory.shadow[offset] == 0xff || !counts(causes_[number - 1])) continue;
      const Object* const object = memory.table.find(offset);
      // A block of malloc is no output, since the host does not see it.
      if (!object || !object->live || memory.heap.contains(kGlobalBase + object->begin)) continue;
      const Cause& cause = causes_[number - 1];
      if (number != last_number || object != last_object) {
        last = &found[{static_cast<uint32_t>(object - memory.table.objects.data()), cause.space, cause.object,
                       cause.computed}];
        last->stores.insert(cause.pc);
        last_number = number;
        last_object = object;
      }
      auto& list = last->ranges;
      if (!list.empty() && list.back().begin + list.back().size_bytes == offset)
        ++list.back().size_bytes;
      else
        list.push_back({offset, 1, number});
    }
  std::vector<Fault> faults;
  for (const auto& [group, each] : found)
    faults.push_back(fault_of(launch, group.object, each.ranges, each.stores.size()));
  return faults;
}

}  // namespace ptxkit::emulator
