// See warpgroup_order.hpp.
#include "runtime/emulator/core/warpgroup_order.hpp"

#include <algorithm>

namespace ptxkit::emulator {

void WarpgroupOrder::fence() {
  fenced = true;
  written.clear();
}

void WarpgroupOrder::wait(uint64_t groups_left) {
  std::erase_if(pending, [&](const Pending& each) { return !each.is_load && each.group + groups_left < commits; });
}

void WarpgroupOrder::wait_loads() {
  std::erase_if(pending, [](const Pending& each) { return each.is_load; });
}

void WarpgroupOrder::forget_moved(const Frame* frame, uint32_t ref) {
  std::erase_if(pending, [&](const Pending& each) { return each.is_moved && each.frame == frame && each.ref == ref; });
}

}  // namespace ptxkit::emulator
