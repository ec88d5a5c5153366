// Sets up a CTA at its first instruction: warps, special registers, shared memory. The storage is reused for the next
// CTA.
#include <algorithm>
#include <numeric>

#include "runtime/emulator/core/frames.hpp"
#include "runtime/emulator/engine/engine.hpp"

namespace ptxkit::emulator {

namespace {

void set_specials(Warp& warp) {
  const Cta& cta = *warp.cta;
  const Launch& launch = *cta.launch;
  const Dim3 block = launch.shape.block, grid = launch.shape.grid;
  auto each = [&](SpecialSlot slot, auto value_of_lane) {
    auto* values = at<uint32_t>(warp, special_ref(slot));
    for (unsigned lane = 0; lane < kLanes; ++lane) values[lane] = value_of_lane(lane);
  };
  auto uniform = [&](SpecialSlot slot, uint32_t value) { each(slot, [&](unsigned) { return value; }); };
  auto linear = [&](unsigned lane) { return warp.index * kLanes + lane; };
  each(SpecialSlot::tid_x, [&](unsigned lane) { return linear(lane) % block.x; });
  each(SpecialSlot::tid_y, [&](unsigned lane) { return linear(lane) / block.x % block.y; });
  each(SpecialSlot::tid_z, [&](unsigned lane) { return linear(lane) / block.x / block.y; });
  uniform(SpecialSlot::ntid_x, block.x);
  uniform(SpecialSlot::ntid_y, block.y);
  uniform(SpecialSlot::ntid_z, block.z);
  uniform(SpecialSlot::ctaid_x, cta.id[0]);
  uniform(SpecialSlot::ctaid_y, cta.id[1]);
  uniform(SpecialSlot::ctaid_z, cta.id[2]);
  uniform(SpecialSlot::nctaid_x, grid.x);
  uniform(SpecialSlot::nctaid_y, grid.y);
  uniform(SpecialSlot::nctaid_z, grid.z);
  each(SpecialSlot::laneid, [](unsigned lane) { return lane; });
  uniform(SpecialSlot::warpid, warp.index);
  uniform(SpecialSlot::nwarpid, static_cast<uint32_t>(cta.warps.size()));
  uniform(SpecialSlot::smid, static_cast<uint32_t>(cta.number % launch.memory->options.multiprocessor_count));
  uniform(SpecialSlot::nsmid, launch.memory->options.multiprocessor_count);
  each(SpecialSlot::lanemask_eq, [](unsigned lane) { return 1u << lane; });
  each(SpecialSlot::lanemask_lt, [](unsigned lane) { return (1u << lane) - 1; });
  each(SpecialSlot::lanemask_le, [](unsigned lane) { return ((1u << lane) - 1) | 1u << lane; });
  each(SpecialSlot::lanemask_gt, [](unsigned lane) { return ~(((1u << lane) - 1) | 1u << lane); });
  each(SpecialSlot::lanemask_ge, [](unsigned lane) { return ~((1u << lane) - 1); });
  const Dim3 cluster = launch.shape.cluster;
  const uint32_t cluster_size[] = {cluster.x, cluster.y, cluster.z}, ctas[] = {grid.x, grid.y, grid.z};
  for (unsigned axis = 0; axis < 3; ++axis) {
    auto slot = [&](SpecialSlot x) { return static_cast<SpecialSlot>(static_cast<unsigned>(x) + axis); };
    uniform(slot(SpecialSlot::cluster_ctaid_x), cta.id[axis] % cluster_size[axis]);
    uniform(slot(SpecialSlot::cluster_nctaid_x), cluster_size[axis]);
    uniform(slot(SpecialSlot::clusterid_x), cta.id[axis] / cluster_size[axis]);
    uniform(slot(SpecialSlot::nclusterid_x), ctas[axis] / cluster_size[axis]);
  }
  uniform(SpecialSlot::cluster_ctarank, cta.rank);
  uniform(SpecialSlot::cluster_nctarank, static_cast<uint32_t>(cluster.count()));
  uniform(SpecialSlot::explicit_cluster, launch.explicit_cluster ? kAllLanes : 0);
  uniform(SpecialSlot::grid_workspace_hi, static_cast<uint32_t>(launch.grid_workspace >> 32));
  uniform(SpecialSlot::grid_workspace_lo, static_cast<uint32_t>(launch.grid_workspace));
  uniform(SpecialSlot::reserved_shared, static_cast<uint32_t>(launch.reserved_shared | cta.rank << kRankShift));
  uniform(SpecialSlot::zero, 0);
  std::fill_n(at<uint32_t>(warp, special_ref(SpecialSlot::zero)), 2 * kLanes, 0u);
  uniform(SpecialSlot::one, 1);
  uniform(SpecialSlot::total_smem, launch.total_shared_bytes);
  uniform(SpecialSlot::aggregate_smem, static_cast<uint32_t>(launch.shared_bytes));
  uniform(SpecialSlot::dynamic_smem, launch.shape.dynamic_shared_bytes);
  std::fill_n(at<uint64_t>(warp, special_ref(SpecialSlot::gridid)), kLanes, uint64_t{1});
}

}  // namespace

std::unique_ptr<Cta> make_cta(Launch& launch, uint64_t turn) {
  auto cta = std::make_unique<Cta>();
  cta->launch = &launch;
  const uint64_t threads = launch.shape.block.count();
  const auto warp_count = static_cast<uint32_t>((threads + kLanes - 1) / kLanes);
  cta->shared_bytes = launch.shared_bytes;
  if (launch.counts) cta->executions.resize(launch.image->codes.size());
  constexpr uint64_t kSharedAlign = 1024;
  cta->shared_storage.resize(cta->shared_bytes + kSharedAlign);
  auto begin =
      (reinterpret_cast<uintptr_t>(cta->shared_storage.data()) + kSharedAlign - 1) & ~uintptr_t{kSharedAlign - 1};
  cta->shared = reinterpret_cast<uint8_t*>(begin);
  cta->shared_shadow.resize(cta->shared_bytes);
  if (launch.order) {
    cta->order = std::make_unique<CtaOrder>(*launch.order, static_cast<uint32_t>(threads));
    cta->history = std::make_unique<AccessHistory>(cta->shared_bytes, false);
  }
  for (uint32_t index = 0; index < warp_count; ++index) {
    auto warp = std::make_unique<Warp>();
    warp->cta = cta.get();
    warp->index = index;
    uint64_t first = uint64_t{index} * kLanes, lanes = std::min<uint64_t>(kLanes, threads - first);
    warp->exists = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    const ProgramImage& image = *launch.image;
    const auto& constants =
        launch.constants.empty() ? image.constants : launch.constants[turn % launch.constants.size()];
    warp->base[1] = const_cast<uint8_t*>(constants.data());
    warp->base[2] = warp->specials;
    warp->undefined[1] = warp->undefined[2] = const_cast<uint32_t*>(image.zeros.data());
    warp->origin[1] = warp->origin[2] = const_cast<uint32_t*>(image.zeros.data());
    cta->warps.push_back(std::move(warp));
  }
  restart(*cta, turn);
  return cta;
}

std::array<uint32_t, 3> block_of(const LaunchShape& shape, uint64_t turn) {
  const Dim3 grid = shape.grid, cluster = shape.cluster;
  const uint64_t in_cluster = turn % cluster.count(), of_clusters = turn / cluster.count();
  const uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
  return {static_cast<uint32_t>(of_clusters % across * cluster.x + in_cluster % cluster.x),
          static_cast<uint32_t>(of_clusters / across % down * cluster.y + in_cluster / cluster.x % cluster.y),
          static_cast<uint32_t>(of_clusters / across / down * cluster.z + in_cluster / cluster.x / cluster.y)};
}

void restart(Cta& cta, uint64_t turn) {
  Launch& launch = *cta.launch;
  const Dim3 grid = launch.shape.grid;
  cta.turn = turn;
  cta.rank = static_cast<uint32_t>(turn % launch.shape.cluster.count());
  cta.id = block_of(launch.shape, turn);
  cta.number = cta.id[0] + uint64_t{grid.x} * (cta.id[1] + uint64_t{grid.y} * cta.id[2]);
  cta.mbarriers.clear();
  cta.tensor_memory.reset();
  cta.pending.clear();
  cta.pending_global.clear();
  cta.timeouts = 0;
  cta.searched = false;
  cta.stopped = false;
  cta.next_warp = 0;
  cta.statistics = {};
  std::ranges::fill(cta.executions, Executions{});
  cta.origins.clear();
  cta.origin_of_place.clear();
  cta.random = Random(Random(launch.options.schedule_seed)() + turn);
  std::memset(cta.shared, kPoison, cta.shared_bytes);
  std::fill(cta.shared_shadow.begin(), cta.shared_shadow.end(), uint8_t{0});
  if (launch.image->uses_reserved_shared) {
    std::memset(cta.shared + launch.reserved_shared, 0, kReservedSharedBytes);
    std::memset(cta.shared_shadow.data() + launch.reserved_shared, 0xff, kReservedSharedBytes);
  }
  cta.priority.resize(cta.warps.size());
  std::iota(cta.priority.begin(), cta.priority.end(), 0u);
  std::shuffle(cta.priority.begin(), cta.priority.end(), cta.random);
  if (cta.order) cta.order->restart(static_cast<uint32_t>(turn));
  for (BarrierState& barrier : cta.barriers) {
    barrier = {};
    barrier.arrived.assign(cta.warps.size(), 0);
    barrier.arrivals.assign(cta.warps.size(), 0);
  }
  const FunctionImage& function = launch.image->functions[launch.entry->function];
  for (auto& warp : cta.warps) {
    warp->live = warp->exists;
    warp->carry = 0;
    warp->warpgroup = {};
    warp->cluster_arrived = warp->cluster_unwaited = 0;
    warp->polls = false;
    warp->copies.clear();
    warp->search.reset();
    warp->turn = 0;
    warp->fragments.clear();
    warp->free_frames.clear();
    for (auto& frame : warp->frame_pool) warp->free_frames.push_back(frame.get());
    for (CachedRange& range : warp->ranges) range = {};
    std::fill(warp->local.begin(), warp->local.end(), kPoison);
    std::fill(warp->local_shadow.begin(), warp->local_shadow.end(), uint8_t{0});
    grow_local(*warp, function.local_bytes);
    Frame* frame = acquire_frame(*warp, function);
    frame->lanes = warp->exists;
    set_frame_base(*frame);
    Fragment fragment;
    fragment.pc = function.first_code;
    fragment.mask = warp->exists;
    fragment.frame = frame;
    warp->fragments.push_back(fragment);
    set_specials(*warp);
  }
}

}  // namespace ptxkit::emulator
