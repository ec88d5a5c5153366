// See visits.hpp.
#include "runtime/emulator/sanitizer/visits.hpp"

#include <algorithm>

namespace ptxkit::emulator {
namespace {

// The visit of `lane`, made if it does not exist; null if there are too many.
Visit* visit_of(Warp& warp, unsigned lane, bool has_address, Address address) {
  Launch& launch = *warp.cta->launch;
  const VisitKey key{warp.cta->turn, warp.index * kLanes + lane, warp.pc, has_address, address};
  const auto found = launch.visits.find(key);
  if (found != launch.visits.end()) return &found->second;
  if (launch.visits.size() >= kMaxVisits) return nullptr;
  Visit& visit = launch.visits[key];
  visit.line = launch.visitable[launch.visited_lines[warp.pc] - 1];
  visit.thread = thread_of(launch, warp.cta->turn, warp.index, lane);
  visit.has_address = has_address;
  return &visit;
}

}  // namespace

void watch(Launch& launch, std::span<const uint32_t> lines) {
  const ProgramImage& image = *launch.image;
  launch.visitable = lines;
  launch.visited_lines.resize(image.sites.size());
  for (uint32_t pc = 0; pc < launch.visited_lines.size(); ++pc) {
    const auto found = std::ranges::find(lines, line_of(image, pc));
    if (found != lines.end()) launch.visited_lines[pc] = static_cast<uint8_t>(1 + found - lines.begin());
  }
}

void note_visits(Warp& warp, uint32_t lanes) {
  const std::lock_guard lock(warp.cta->launch->mutex);
  for_lanes(lanes, [&](unsigned lane) {
    if (Visit* visit = visit_of(warp, lane, false, 0)) ++visit->times;
  });
}

void note_accesses(Warp& warp, uint32_t lanes, ptx::Space space, const uint64_t* addresses, uint64_t size_bytes) {
  const std::lock_guard lock(warp.cta->launch->mutex);
  for_lanes(lanes, [&](unsigned lane) {
    Visit* const visit = visit_of(warp, lane, true, addresses[lane]);
    if (visit == nullptr || visit->times++ != 0) return;
    Fault place;
    name_object(warp, space, addresses[lane], place);
    visit->object = std::move(place.object);
    visit->object_offset = place.object_offset;
    visit->access_bytes = size_bytes;
  });
}

}  // namespace ptxkit::emulator
