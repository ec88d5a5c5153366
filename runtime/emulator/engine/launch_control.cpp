// clusterlaunchcontrol.query_cancel. PTX ISA 9.0, 9.7.13.17. The answer of try_cancel is opaque to programs. Here its
// first three words hold the first %ctaid of the cancelled cluster, and the last word whether there is one.
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

uint32_t word_of(Warp& warp, const Code& code, unsigned lane, unsigned word) {
  return at<const uint32_t>(warp, code.a)[4 * lane + word];
}

void is_canceled(Warp& warp, const Code& code, uint32_t mask) {
  uint32_t holds = 0;
  for_lanes(mask, [&](unsigned lane) { holds |= uint32_t{word_of(warp, code, lane, 3) != 0} << lane; });
  uint32_t& d = *at<uint32_t>(warp, code.dst);
  d = (d & ~mask) | holds;
  if (warp.undefined[0]) undefined_lanes(warp, code.dst) &= ~mask;
}

void first_ctaid(Warp& warp, const Code& code, uint32_t mask) {
  const Ref* refs = warp.cta->launch->image->refs.data() + code.list;
  uint32_t words[4][kLanes] = {};
  for_lanes(mask, [&](unsigned lane) {
    for (unsigned i = 0; i < code.count; ++i)
      words[i][lane] = word_of(warp, code, lane, static_cast<unsigned>(code.immediate) + i);
  });
  for (unsigned i = 0; i < code.count; ++i) {
    for_lanes(mask, [&](unsigned lane) { at<uint32_t>(warp, refs[i])[lane] = words[i][lane]; });
    if (warp.undefined[0]) undefined_lanes(warp, refs[i]) &= ~mask;
  }
}

}  // namespace

void select_query_cancel(Code& code, bool asks_whether) {
  code.undefined = Undefined::handler;
  code.run = asks_whether ? is_canceled : first_ctaid;
}

}  // namespace ptxkit::emulator
