// Launches: validation of the host's arguments, and execution of the CTAs in turn or on threads.
//
// A worker starts CTAs in order and runs each to its end. A CTA that does not end within its budget is set aside for
// the next one, so that CTAs that wait for each other (grid barriers, decoupled look-back) all make progress.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/core/frames.hpp"
#include "runtime/emulator/core/image.hpp"
#include "runtime/emulator/core/layout.hpp"
#include "runtime/emulator/core/memory.hpp"
#include "runtime/emulator/core/order.hpp"
#include "runtime/emulator/core/races.hpp"
#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/core/tensor_memory.hpp"
#include "runtime/emulator/engine/engine.hpp"
#include "runtime/emulator/engine/waiting.hpp"
#include "runtime/emulator/sanitizer/address_origins.hpp"
#include "runtime/emulator/sanitizer/hang.hpp"
#include "runtime/emulator/sanitizer/read_only_uses.hpp"
#include "runtime/emulator/sanitizer/undefined_output.hpp"
#include "runtime/emulator/sanitizer/visits.hpp"
#include "support/guarded.hpp"
#include "support/result.hpp"
#include "support/saturating.hpp"
#include "support/thread.hpp"

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kCtaBudget = 1u << 22;
constexpr unsigned kMaxThreads = 256;
constexpr size_t kMaxResident = 2112;  // clusters that have begun and not ended: 16 on each of 132 multiprocessors
constexpr uint64_t kHeapHistoryBytes = 64u << 20;  // bytes of malloc that races are detected in
constexpr uint64_t kClusterBudget = 1u << 16;      // of one CTA of a cluster, whose other CTAs may wait for it

// Reports columns of tensor memory that a CTA leaves allocated, or that it should have allocated or deallocated
// together with the other CTA of its pair; once for each instruction.
void note_columns(Launch& launch, const Cta& cta) {
  const auto note = [&](const auto& list, std::string_view what) {
    for (const TensorColumns& columns : list) {
      if (!launch.reported.insert({static_cast<uint32_t>(FaultKind::tensor_memory), columns.pc}).second) continue;
      Fault fault;
      fault.kind = FaultKind::tensor_memory;
      fault.message = fmt::format("{} columns of tensor memory {}", columns.count, what);
      fault.site = site_of(*launch.image, columns.pc);
      fault.thread = thread_of(launch, cta.turn, columns.warp, 0);
      launch.faults.emplace_back(cta.turn, std::move(fault));
    }
  };
  const TensorMemory& memory = *cta.tensor_memory;
  note(memory.allocated_by_peer, "are allocated by the other CTA of the pair and never by this one");
  note(memory.released_by_peer, "are deallocated by the other CTA of the pair and never by this one");
  note(memory.allocations, "are not deallocated when the block ends");
}

void finish(Launch& launch, const Cta& cta) {
  std::lock_guard lock(launch.mutex);
  if (cta.tensor_memory && !cta.stopped && checks(cta, kCheckBounds)) note_columns(launch, cta);
  Statistics& sum = launch.statistics;
  sum.warp_instructions += cta.statistics.warp_instructions;
  sum.thread_instructions += cta.statistics.thread_instructions;
  sum.divergent_branches += cta.statistics.divergent_branches;
  sum.barriers += cta.statistics.barriers;
  ++sum.cta_count;
  for (size_t pc = 0; pc < cta.executions.size(); ++pc) {
    launch.executions[pc].warps += cta.executions[pc].warps;
    launch.executions[pc].threads += cta.executions[pc].threads;
  }
}

// The CTAs of one cluster; without clusters, one CTA.
struct Group {
  Cluster cluster;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<bool> done;

  void start(Launch& launch, uint64_t number) {
    const uint64_t size = launch.shape.cluster.count();
    if (ctas.empty()) {
      for (uint64_t i = 0; i < size; ++i) ctas.push_back(make_cta(launch, number * size + i));
      for (auto& cta : ctas) {
        cluster.ctas.push_back(cta.get());
        cta->cluster = &cluster;
      }
    } else {
      for (uint64_t i = 0; i < size; ++i) restart(*ctas[i], number * size + i);
    }
    done.assign(size, false);
  }

  // Returns true when all CTAs have ended.
  bool run(Launch& launch) {
    const uint64_t budget = ctas.size() == 1 ? kCtaBudget : kClusterBudget;
    bool all = true, progress = false;
    for (size_t i = 0; i < ctas.size(); ++i) {
      if (done[i]) continue;
      const uint64_t before = ctas[i]->statistics.warp_instructions;
      done[i] = emulator::run(*ctas[i], budget) == Progress::done;
      if (done[i]) finish(launch, *ctas[i]);
      progress |= done[i] || ctas[i]->statistics.warp_instructions != before;
      all &= done[i];
      // A fault ends the cluster.
      if (ctas[i]->stopped)
        for (auto& other : ctas) other->stopped = true;
    }
    if (!all && !progress && !time_out_cluster(ctas)) {
      for (size_t i = 0; i < ctas.size(); ++i)
        if (!done[i] && !ctas[i]->stopped) {
          report_deadlock(*ctas[i]);
          for (auto& cta : ctas) cta->stopped = true;
        }
    }
    return all;
  }
};

void work(Launch& launch, unsigned worker) {
  const uint64_t count = launch.shape.grid.count() / launch.shape.cluster.count();
  std::vector<std::unique_ptr<Group>> resident, spare;
  for (;;) {
    uint64_t number = launch.stop || resident.size() >= kMaxResident ? count : launch.next_cluster.fetch_add(1);
    if (number < count) {
      if (spare.empty()) {
        resident.push_back(std::make_unique<Group>());
      } else {
        resident.push_back(std::move(spare.back()));
        spare.pop_back();
      }
      resident.back()->start(launch, launch.options.adversarial ? count - 1 - number : number);
    }
    if (resident.empty()) {
      launch.hang.stuck_at[worker] = ~uint64_t{0};
      return;
    }
    // The newest runs first, since it usually ends at once. Older ones run when no new one can start, and now and then.
    for (size_t i = resident.size(); i-- > 0;) {
      if (!resident[i]->run(launch)) continue;
      spare.push_back(std::move(resident[i]));
      resident.erase(resident.begin() + static_cast<ptrdiff_t>(i));
    }
    if (number < count || !launch.hang.active || resident.empty()) continue;
    std::vector<Cta*> running;
    for (const auto& group : resident)
      for (size_t i = 0; i < group->ctas.size(); ++i)
        if (!group->done[i]) running.push_back(group->ctas[i].get());
    check_for_hang(launch, worker, running, time_out_waits);
  }
}

// Reports blocks of malloc that were not freed, once for each call.
void note_leaks(Launch& launch) {
  std::map<uint32_t, std::pair<size_t, uint64_t>> by_place;
  for (const auto& [address, block] : launch.heap) {
    auto& [count, bytes] = by_place[block.pc];
    ++count;
    bytes += block.size_bytes;
  }
  for (const auto& [address, block] : launch.heap) {
    const auto place = by_place.find(block.pc);
    if (place == by_place.end()) continue;
    const auto [count, bytes] = place->second;
    by_place.erase(place);
    Fault fault;
    fault.kind = FaultKind::leak;
    fault.message = fmt::format("{} blocks of {} bytes in all are not freed when the kernel ends", count, bytes);
    fault.site = site_of(*launch.image, block.pc);
    fault.thread = thread_of(launch, block.cta_turn, block.warp, block.lane);
    fault.has_address = true;
    fault.address = address;
    fault.object = launch.memory->table.find(address - kGlobalBase)->name;
    fault.object_bytes = block.size_bytes;
    launch.faults.emplace_back(~uint64_t{0}, std::move(fault));
  }
}

// Only for a launch that ran to its end: one that was cut off might have overwritten the bits.
void note_undefined_outputs(Launch& launch) {
  if (launch.stop ||
      std::any_of(launch.faults.begin(), launch.faults.end(), [](const auto& each) { return stops(each.second.kind); }))
    return;
  for (Fault& fault : launch.outputs->faults(launch)) {
    if (launch.faults.size() >= launch.options.max_faults) return;
    launch.faults.emplace_back(~uint64_t{0}, std::move(fault));
  }
}

std::string shape_text(Dim3 shape) { return fmt::format("{} x {} x {}", shape.x, shape.y, shape.z); }

Result<void> check_shape(const EntryImage& entry, const LaunchShape& shape, const DeviceOptions& device) {
  const Dim3 &grid = shape.grid, &block = shape.block;
  const EntryInfo& info = entry.info;
  auto where = fmt::format("launch of '{}'", info.name);
  if (block.count() == 0 || block.count() > device.max_threads_per_block || block.x > 1024 || block.y > 1024 ||
      block.z > 64)
    return fail(fmt::format("block {} is not within 1 to {} threads", shape_text(block), device.max_threads_per_block),
                where);
  if (grid.count() == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return fail(fmt::format("grid {} is not within 1 x 1 x 1 to 2147483647 x 65535 x 65535", shape_text(grid)), where);
  const auto& required = info.required_block;
  if (required[0] && (block.x != required[0] || block.y != required[1] || block.z != required[2]))
    return fail(fmt::format("block {} is not the {} that .reqntid demands", shape_text(block),
                            shape_text({required[0], required[1], required[2]})),
                where);
  const auto& most = info.max_block;
  if (most[0] && block.count() > saturating_product(most[0], most[1], most[2]))
    return fail(fmt::format("block {} is larger than the {} of .maxntid", shape_text(block),
                            shape_text({most[0], most[1], most[2]})),
                where);
  const Dim3& cluster = shape.cluster;
  if (cluster.count() == 0 || cluster.count() > 16 || grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return fail(fmt::format("cluster {} does not divide the grid {} or has more than 16 CTAs", shape_text(cluster),
                            shape_text(grid)),
                where);
  uint64_t shared = uint64_t{info.static_shared_bytes} + shape.dynamic_shared_bytes;
  if (shared > device.max_shared_bytes_per_block)
    return fail(fmt::format("{} bytes of static and {} of dynamic shared memory exceed the device's {}",
                            info.static_shared_bytes, shape.dynamic_shared_bytes, device.max_shared_bytes_per_block),
                where);
  return {};
}

// The constants of a CTA of `rank`; addresses of shared variables contain the rank.
std::vector<uint8_t> constants_of(const ProgramImage& image, const EntryImage& entry, uint64_t rank) {
  std::vector<uint8_t> constants = image.constants;
  for (const SharedConstant& each : image.shared_constants) {
    const auto place = entry.shared.places.find(each.variable);
    if (place == entry.shared.places.end()) continue;  // no code that the entry reaches names it
    const uint64_t address = each.addend + place->second + (rank << kRankShift);
    uint8_t* slot = constants.data() + size_t{each.slot & kRefIndex} * kUnitBytes;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(slot + size_t{lane} * each.bytes, &address, std::min<size_t>(each.bytes, 8));
  }
  return constants;
}

// Lays out the shared memory of a CTA: the entry's variables, the dynamic part, and the bytes that the system reserves.
void lay_out_shared(Launch& launch) {
  const ProgramImage& image = *launch.image;
  const uint32_t sm = image.module->target_sm;
  const SharedLayout& shared = launch.entry->shared;
  const uint64_t base = reserved_shared_bytes(sm), dynamic_bytes = launch.shape.dynamic_shared_bytes;
  launch.shared = shared;
  if (shared.has_dynamic && dynamic_bytes)
    launch.shared.objects.add({shared.dynamic_begin, dynamic_bytes + shared.dynamic_slack, shared.dynamic_name, true,
                               false, shared.dynamic_align});
  launch.shared_bytes = shared.end + dynamic_bytes;
  const uint64_t unit = sm < 80 ? 256 : 128;  // granularity of allocation
  const uint64_t total = (launch.shared_bytes - base + unit - 1) / unit * unit;
  launch.total_shared_bytes = static_cast<uint32_t>(total);
  if (image.uses_reserved_shared) {
    // Before sm_90 the reserved bytes follow the rest.
    launch.reserved_shared = base ? 0 : total;
    launch.shared.objects.add({launch.reserved_shared, kReservedSharedBytes, "%reserved_smem", true, false});
    launch.shared_bytes = std::max(launch.shared_bytes, launch.reserved_shared + kReservedSharedBytes);
  }
  if (image.shared_constants.empty()) return;
  const uint64_t ranks = image.module->address_size == 64 ? launch.shape.cluster.count() : 1;
  for (uint64_t rank = 0; rank < ranks; ++rank) launch.constants.push_back(constants_of(image, *launch.entry, rank));
}

// The objects that each address operand may be derived from, for launches of `entry` with the check for bounds.
const AllowedObjectSets& allowed_object_sets(const ProgramImage& image, const EntryImage& entry) {
  entry.allowed_objects->once.run([&] {
    const AddressOrigins address_origins = find_address_origins(*image.module, entry.function);
    AllowedObjectSets allowed;
    allowed.sets.assign(image.addresses.size(), 0);
    allowed.begins.emplace_back();  // 0: any object
    for (uint32_t number = 1; number < image.addresses.size(); ++number) {
      const auto origin = address_origins.find(image.addresses[number]);
      if (origin == address_origins.end()) continue;
      std::vector<uint64_t> begins;
      for (ptx::VariableId id : origin->second) {
        const auto place = entry.shared.places.find(id);
        if (place == entry.shared.places.end()) continue;
        const bool is_dynamic = entry.shared.has_dynamic && place->second >= entry.shared.dynamic_begin;
        begins.push_back(is_dynamic ? entry.shared.dynamic_begin : place->second);
      }
      const auto known = std::ranges::find(allowed.begins, begins);
      allowed.sets[number] = static_cast<uint32_t>(known - allowed.begins.begin());
      if (known == allowed.begins.end()) allowed.begins.push_back(std::move(begins));
    }
    entry.allowed_objects->sets = std::move(allowed);
  });
  return entry.allowed_objects->sets;
}

// Runs work(), keeps the first exception of a worker, which may be on another thread, and stops the other workers.
void run_worker(Launch& launch, unsigned worker) {
  try {
    work(launch, worker);
  } catch (...) {
    launch.stop = true;
    launch.hang.stuck_at[worker] = ~uint64_t{0};
    std::lock_guard lock(launch.mutex);
    if (!launch.failure) launch.failure = error_of_exception();
  }
}

// What a launch yields. `visits`: of `lines`; `counts`: if asked for.
struct Recorded {
  Outcome outcome;
  std::vector<Visit> visits;
  std::vector<InstructionCount> counts;
};

// What run_launch() records besides the outcome.
struct Recording {
  std::span<const uint32_t> lines;
  bool counts = false;
};

// Throws std::bad_alloc.
Result<Recorded> unguarded_launch(const Program& program, std::string_view entry_name, const LaunchShape& wanted,
                                  std::span<const std::byte> parameters, const Recording& recording,
                                  const LaunchOptions& options) {
  const ProgramImage& image = *program.image();
  if (auto known = program.entry(entry_name); !known) return tl::unexpected(known.error());
  const EntryImage& entry = *std::find_if(image.entries.begin(), image.entries.end(),
                                          [&](const EntryImage& each) { return each.info.name == entry_name; });
  LaunchShape shape = wanted;
  const auto& required = entry.info.required_cluster;
  const Dim3 required_cluster{std::max(required[0], 1u), std::max(required[1], 1u), std::max(required[2], 1u)};
  if (required[0] && shape.cluster.count() == 1) shape.cluster = required_cluster;
  if (required[0] && (shape.cluster.x != required_cluster.x || shape.cluster.y != required_cluster.y ||
                      shape.cluster.z != required_cluster.z))
    return fail(fmt::format("cluster {} is not the {} that .reqnctapercluster demands", shape_text(shape.cluster),
                            shape_text(required_cluster)),
                fmt::format("launch of '{}'", entry_name));
  if (auto fits = check_shape(entry, shape, image.memory->options); !fits) return tl::unexpected(fits.error());
  if (const uint64_t local = image.functions[entry.function].local_bytes; local > kMaxLocalBytes)
    return fail(fmt::format("{} bytes of local memory a thread exceed the device's {}", local, kMaxLocalBytes),
                fmt::format("launch of '{}'", entry_name));
  if (parameters.size() != entry.info.parameter_bytes)
    return fail(fmt::format("{} bytes of parameters, expected {}", parameters.size(), entry.info.parameter_bytes),
                fmt::format("launch of '{}'", entry_name));

  Launch launch;
  launch.image = &image;
  launch.entry = &entry;
  launch.memory = image.memory;
  launch.shape = shape;
  launch.explicit_cluster = required[0] || shape.cluster.count() > 1;
  launch.options = options;
  launch.options.threads = static_cast<unsigned>(std::clamp<uint64_t>(
      options.threads, 1, std::min<uint64_t>(shape.grid.count() / shape.cluster.count(), kMaxThreads)));
  if (image.uses_heap) launch.options.threads = 1;  // a block of the heap may be freed while another thread accesses it
  launch.checked = options.checks != kCheckNone || !recording.lines.empty() || recording.counts;
  if (!recording.lines.empty()) watch(launch, recording.lines);
  launch.counts = recording.counts;
  if (launch.counts) launch.executions.resize(image.codes.size());
  if (options.only_checked_line) {
    launch.checked_places.resize(image.sites.size());
    for (uint32_t pc = 0; pc < launch.checked_places.size(); ++pc)
      launch.checked_places[pc] = line_of(image, pc) == options.only_checked_line;
  }
  launch.parameters.resize(parameters.size());
  if (!parameters.empty()) std::memcpy(launch.parameters.data(), parameters.data(), parameters.size());
  lay_out_shared(launch);
  if (options.checks & kCheckBounds) launch.allowed_objects = &allowed_object_sets(image, entry);
  if (image.uses_grid_workspace) {
    auto workspace = image.memory->allocate(kGridWorkspaceBytes, "workspace of the grid", 256);
    if (!workspace) return tl::unexpected(workspace.error());
    launch.grid_workspace = *workspace;
    std::memset(image.memory->bytes + (*workspace - kGlobalBase), 0, kGridWorkspaceBytes);
    std::memset(image.memory->shadow + (*workspace - kGlobalBase), 0xff, kGridWorkspaceBytes);
  }
  if (options.checks & kCheckOutputs) launch.outputs = std::make_unique<UndefinedOutputs>(image.codes.size());
  if (options.checks & kCheckRaces) {
    const ObjectTable& table = image.memory->table;
    const bool parallel = launch.options.threads > 1;
    launch.order = std::make_unique<LaunchOrder>(static_cast<uint32_t>(shape.cluster.count()), parallel);
    const uint64_t heap_bytes = image.uses_heap ? kHeapHistoryBytes : 0;
    launch.history =
        std::make_unique<AccessHistory>((table.granules.size() << table.granule_shift) + heap_bytes, parallel);
    if (image.has_read_only_loads) launch.read_only_uses = std::make_unique<ReadOnlyUses>();
  }

  launch.hang.start(launch.options.threads);
  std::vector<std::jthread> helpers;
  helpers.reserve(launch.options.threads);
  for (unsigned i = 1; i < launch.options.threads; ++i) {
    auto helper = try_thread([&, i] { run_worker(launch, i); });
    if (!helper) {  // the host limits threads or memory: continue with fewer workers
      for (unsigned missing = i; missing < launch.options.threads; ++missing)
        launch.hang.stuck_at[missing] = ~uint64_t{0};
      break;
    }
    helpers.push_back(std::move(*helper));
  }
  run_worker(launch, 0);
  for (std::jthread& helper : helpers) helper.join();
  if (launch.failure) {
    if (launch.grid_workspace) (void)image.memory->release(launch.grid_workspace);
    launch.failure->where = fmt::format("launch of '{}'", entry_name);
    return tl::unexpected(*launch.failure);
  }
  if (options.checks & kCheckLeaks) note_leaks(launch);
  if (launch.outputs) note_undefined_outputs(launch);
  if (launch.grid_workspace) (void)image.memory->release(launch.grid_workspace);

  Recorded recorded;
  Outcome& outcome = recorded.outcome;
  std::stable_sort(launch.faults.begin(), launch.faults.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  for (auto& [number, fault] : launch.faults) outcome.faults.push_back(std::move(fault));
  std::stable_sort(launch.notes.begin(), launch.notes.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  for (auto& [number, fault] : launch.notes) outcome.notes.push_back(std::move(fault));
  outcome.statistics = launch.statistics;
  for (const std::string& text : launch.printed.calls) outcome.output += text;
  outcome.lost_prints = launch.printed.lost_calls;
  outcome.lost_print_bytes = launch.printed.lost_bytes;
  for (auto& [key, visit] : launch.visits) recorded.visits.push_back(std::move(visit));
  for (uint32_t pc = 0; pc < launch.executions.size(); ++pc) {
    const auto& [warps, threads] = launch.executions[pc];
    if (warps != 0) recorded.counts.push_back({image.sites[pc].function, image.sites[pc].instruction, warps, threads});
  }
  return recorded;
}

Result<Recorded> run_launch(const Program& program, std::string_view entry_name, const LaunchShape& wanted,
                            std::span<const std::byte> parameters, const Recording& recording,
                            const LaunchOptions& options) {
  return guarded([&] { return unguarded_launch(program, entry_name, wanted, parameters, recording, options); });
}

// The parameters in one buffer.
Result<std::vector<std::byte>> packed(const Program& program, std::string_view entry_name,
                                      std::span<const Argument> arguments) {
  auto entry = program.entry(entry_name);
  if (!entry) return tl::unexpected(entry.error());
  auto where = fmt::format("launch of '{}'", entry_name);
  if (arguments.size() != entry->parameters.size())
    return fail(fmt::format("{} arguments, expected {}", arguments.size(), entry->parameters.size()), where);
  std::vector<std::byte> bytes(entry->parameter_bytes);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const EntryParameter& parameter = entry->parameters[i];
    if (arguments[i].bytes.size() != parameter.size_bytes)
      return fail(fmt::format("argument {} has {} bytes, parameter '{}' has {}", i, arguments[i].bytes.size(),
                              parameter.name, parameter.size_bytes),
                  where);
    std::copy(arguments[i].bytes.begin(), arguments[i].bytes.end(), bytes.begin() + parameter.offset_bytes);
  }
  return bytes;
}

}  // namespace

Result<Outcome> launch_raw(const Program& program, std::string_view entry_name, const LaunchShape& wanted,
                           std::span<const std::byte> parameters, const LaunchOptions& options) {
  auto run = run_launch(program, entry_name, wanted, parameters, {}, options);
  if (!run) return tl::unexpected(run.error());
  return std::move(run->outcome);
}

Result<Outcome> launch(const Program& program, std::string_view entry_name, const LaunchShape& shape,
                       std::span<const Argument> arguments, const LaunchOptions& options) {
  const auto bytes = packed(program, entry_name, arguments);
  if (!bytes) return tl::unexpected(bytes.error());
  return launch_raw(program, entry_name, shape, *bytes, options);
}

Result<WatchedOutcome> launch_watched(const Program& program, std::string_view entry_name, const LaunchShape& shape,
                                      std::span<const Argument> arguments, std::span<const uint32_t> lines,
                                      const LaunchOptions& options) {
  const auto bytes = packed(program, entry_name, arguments);
  if (!bytes) return tl::unexpected(bytes.error());
  auto run = run_launch(program, entry_name, shape, *bytes, {.lines = lines}, options);
  if (!run) return tl::unexpected(run.error());
  return WatchedOutcome{std::move(run->outcome), std::move(run->visits)};
}

Result<CountedOutcome> launch_counted(const Program& program, std::string_view entry_name, const LaunchShape& shape,
                                      std::span<const Argument> arguments, const LaunchOptions& options) {
  const auto bytes = packed(program, entry_name, arguments);
  if (!bytes) return tl::unexpected(bytes.error());
  auto run = run_launch(program, entry_name, shape, *bytes, {.lines = {}, .counts = true}, options);
  if (!run) return tl::unexpected(run.error());
  return CountedOutcome{std::move(run->outcome), std::move(run->counts)};
}

Result<uint32_t> parse_checks(std::string_view list) {
  uint32_t checks = 0;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    std::string_view word = list.substr(begin, end - begin);
    begin = end + 1;
    if (word == "all")
      checks |= kCheckAll;
    else if (word == "standard")
      checks |= kCheckStandard;
    else if (word == "none")
      checks |= kCheckNone;
    else if (word == "bounds")
      checks |= kCheckBounds;
    else if (word == "alignment")
      checks |= kCheckAlignment;
    else if (word == "uninitialised")
      checks |= kCheckUninitialised;
    else if (word == "races")
      checks |= kCheckRaces;
    else if (word == "outputs")
      checks |= kCheckOutputs;
    else if (word == "leaks")
      checks |= kCheckLeaks;
    else if (word == "stores")
      checks |= kCheckUninitialisedStores;
    else if (word == "division")
      checks |= kCheckDivision;
    else if (word == "barriers")
      checks |= kCheckBarriers;
    else
      return fail(fmt::format("unknown check '{}'", word), "",
                  "give standard, all, none, or a list of bounds, alignment, uninitialised, races, barriers, division, "
                  "outputs, "
                  "leaks, stores");
  }
  return checks;
}

}  // namespace ptxkit::emulator
