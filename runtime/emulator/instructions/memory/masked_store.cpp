// st of a vector with `_`: such an element is not stored; its memory stays unchanged and may belong to another thread.
// PTX ISA 9.0, 9.7.9.12.
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"

namespace ptxkit::emulator {

namespace {

template <bool kChecked>
void store_selected(Warp& warp, const Code& code, uint32_t mask) {
  if constexpr (kChecked) {
    uint64_t address[kLanes];  // of the whole vector
    compute_addresses(warp, code, address);
    if (!check_alignment(warp, code, mask, address, code.element_bytes * code.count, AccessKind::store)) return;
  }
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
  code.run = store_selected<false>;
  code.checked = store_selected<true>;
}

}  // namespace ptxkit::emulator
