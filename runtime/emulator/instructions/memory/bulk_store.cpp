// st.bulk: zeros a range of shared memory, whose size is in a register. PTX ISA 9.0, 9.7.9.13.
#include <cstring>

#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/limits.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/instructions/memory/async_work.hpp"

namespace ptxkit::emulator {

namespace {

void store_zeros(Warp& warp, const Code& code, uint32_t mask) {
  uint64_t address[kLanes];
  compute_addresses(warp, code, address);
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t size_bytes = at<const uint64_t>(warp, code.b)[lane];
    if (warp.cta->stopped || size_bytes == 0) return;
    if (size_bytes % 8) {
      report(warp, {.kind = FaultKind::async_size,
                    .message = fmt::format("{} bytes of st.bulk are no multiple of 8", size_bytes),
                    .lane = lane});
      return;
    }
    SharedPlace place;
    if (!find_shared(warp, code, lane, address[lane], size_bytes, 8, place)) return;
    if (place.cta != warp.cta) {
      report(warp, {.kind = FaultKind::out_of_bounds,
                    .message = "st.bulk writes only to shared memory of its own CTA",
                    .lane = lane,
                    .has_address = true,
                    .space = ptx::Space::shared,
                    .address = place.offset});
      return;
    }
    spend_on_bytes(warp, size_bytes);
    std::memset(place.cta->shared + place.offset, 0, size_bytes);
    if (!warp.cta->launch->checked) return;
    std::memset(place.cta->shared_shadow.data() + place.offset, 0xff, size_bytes);
    note_shared_write(warp, code, lane, *place.cta, place.offset, size_bytes);
  });
}

}  // namespace

void select_bulk_store(Code& code) {
  code.undefined = Undefined::handler;
  code.run = store_zeros;
}

}  // namespace ptxkit::emulator
