#include "runtime/emulator/core/limits.hpp"

#include <bit>

#include <fmt/format.h>

namespace ptxkit::emulator {

namespace {

// What takes about as long as a warp instruction.
constexpr uint64_t kBytes = 512, kCheckedBytes = 64, kProducts = 512;

void spend(Warp& warp, uint64_t steps) {
  warp.cta->launch->weight.fetch_add(steps, std::memory_order_relaxed);
  if (stop_at_limit(warp)) warp.cta->stopped = true;
}

}  // namespace

bool stop_at_limit(Warp& warp) {
  Launch& launch = *warp.cta->launch;
  const uint64_t most = launch.options.max_steps, total = launch.steps.load(std::memory_order_relaxed);
  const bool out_of_steps = most != 0 && total + launch.weight.load(std::memory_order_relaxed) >= most;
  if (!out_of_steps && !is_interrupted(launch)) return false;
  if (!launch.stop.exchange(true) && !warp.fragments.empty())
    report(warp,
           {.kind = out_of_steps ? FaultKind::out_of_steps : FaultKind::interrupted,
            .message = fmt::format("the launch has not ended after {} warp instructions", out_of_steps ? most : total),
            .lane = static_cast<unsigned>(std::countr_zero(warp.fragments.front().mask))});
  return true;
}

void spend_on_bytes(Warp& warp, uint64_t bytes) {
  spend(warp, bytes / (warp.cta->launch->checked ? kCheckedBytes : kBytes));
}

void spend_on_products(Warp& warp, uint64_t products) { spend(warp, products / kProducts); }

}  // namespace ptxkit::emulator
