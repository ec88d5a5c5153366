// st of a list with `_`: its elements are stored but for those, whose memory is left as it is and may belong to another
// thread. PTX ISA 9.0, 9.7.9.12.
#include <fmt/format.h>

#include "runtime/backend/emulator/access.hpp"
#include "runtime/backend/emulator/handlers.hpp"

namespace ptxkit::emulator {

namespace {

// The address is that of the whole list, stored or not.
bool is_aligned(Warp& warp, const Code& code, uint32_t mask) {
  uint64_t address[kLanes];
  compute_addresses(warp, code, address);
  const unsigned size_bytes = code.element_bytes * code.count;
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped || address[lane] % size_bytes == 0) return;
    report(warp, {.kind = FaultKind::misaligned,
                  .message =
                      fmt::format("{}-byte store at {:#x} is not aligned to {}", size_bytes, address[lane], size_bytes),
                  .lane = lane,
                  .has_address = true,
                  .space = code.space,
                  .address = address[lane]});
  });
  return !warp.cta->stopped;
}

template <bool kChecked>
void store_some(Warp& warp, const Code& code, uint32_t mask) {
  if (kChecked && checks(*warp.cta, kCheckAlignment) && !is_aligned(warp, code, mask)) return;
  const Handler store = store_handler(kChecked);
  Code one = code;
  one.count = 1;
  for (unsigned element = 0; element < code.count && !warp.cta->stopped; ++element) {
    one.b = warp.cta->launch->image->refs[code.list + element];
    if (one.b != kSinkRef) store(warp, one, mask);
    one.immediate += code.element_bytes;
  }
}

}  // namespace

void select_masked_store(Code& code) {
  code.run = store_some<false>;
  code.checked = store_some<true>;
}

}  // namespace ptxkit::emulator
