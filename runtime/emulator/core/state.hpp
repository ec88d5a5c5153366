// Execution state: launch, CTA, warp, fragment, frame.
//
// Every lane has its own program counter; lanes with the same program counter and frame form a fragment. A warp runs
// one fragment at a time: the deepest call first, then the lowest address, so that lanes reconverge where their paths
// meet. A fragment that has run for long while others wait yields, so that a lane may spin on a value that another lane
// writes.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/async.hpp"
#include "runtime/emulator/core/hang_search.hpp"
#include "runtime/emulator/core/image.hpp"
#include "runtime/emulator/core/memory.hpp"
#include "runtime/emulator/core/order.hpp"
#include "runtime/emulator/core/races.hpp"
#include "runtime/emulator/core/tensor_memory.hpp"
#include "runtime/emulator/core/warpgroup_order.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/watch.hpp"
#include "support/result.hpp"

namespace ptxkit::emulator {

struct Cta;

// An allocation of alloca in one lane; the offset counts from the frame's base.
struct DynamicLocal {
  uint32_t lane = 0;
  uint64_t begin = 0, size_bytes = 0;
};

// Registers of one activation of a function, shared by the lanes that entered it together.
struct Frame {
  const FunctionImage* function = nullptr;
  Frame* caller = nullptr;
  uint32_t return_pc = 0;
  const CallSite* call = nullptr;
  uint32_t lanes = 0;  // that have not returned yet
  uint32_t depth = 0;
  uint64_t local_base = 0;  // offset of its variables in each lane's local memory
  std::vector<DynamicLocal> dynamic;
  std::vector<uint64_t> dynamic_top;  // end of each lane's stack, from the frame's base; empty without alloca
  std::vector<uint64_t> storage;      // backs all the arrays below
  uint8_t* values = nullptr;
  uint32_t* undefined = nullptr;  // by unit: lanes with any undefined bit
  // By unit, the origin of undefined bits: 0 never written, otherwise index in Cta::origins + 1
  uint32_t* origin = nullptr;
  uint8_t* shadow = nullptr;  // undefined bits (1 = undefined), laid out like values
};

enum class Wait : uint8_t { none, barrier, collective, mbarrier, cluster };

struct Fragment {
  uint32_t pc = 0;
  uint32_t mask = 0;
  Frame* frame = nullptr;
  Wait wait = Wait::none;
  bool arrived = false;  // at a barrier, and counted there
  uint32_t barrier_id = 0;
  uint32_t barrier_threads = 0;  // expected; 0 for all threads
  uint32_t members = 0;          // lanes of a collective
  uint64_t turn = 0;             // the turn in which it last ran
};

struct CachedRange {
  uint64_t begin = 1, last = 0;  // offsets of the first and the last byte; empty at first
  bool read_only = false;
  uint32_t declared_align = 0;  // Object::declared_align
};

struct Origin {
  uint32_t pc = 0;
  uint8_t lane = 0;
  uint16_t warp = 0;
  ptx::Space space = ptx::Space::global;
  Address address = 0;
  bool computed = false;  // the value was computed from undefined bits; false for a copy, as of padding
};

inline constexpr unsigned kRangeCache = 64;

struct Warp {
  // Indexed by the base bits of a Ref.
  uint8_t* base[4] = {};
  uint32_t* undefined[4] = {};
  uint8_t* shadow[4] = {};
  uint32_t* origin[4] = {};

  Cta* cta = nullptr;
  uint32_t index = 0;
  uint32_t pc = 0;       // the running instruction, for faults
  uint32_t active = 0;   // lanes of the running fragment
  uint32_t exists = 0;   // lanes that are threads
  uint32_t live = 0;     // lanes that have not exited
  uint32_t exit_pc = 0;  // where the last lanes exited
  uint32_t exit_lane = 0;
  uint64_t turn = 0;
  uint64_t turn_steps = 0;              // instructions in the current turn of this warp, valid where control() runs
  uint32_t carry = 0;                   // CC.CF, by lane
  uint32_t cluster_arrived = 0;         // lanes that arrived at the cluster's barrier in this phase
  uint32_t cluster_unwaited = 0;        // lanes that arrived and have not waited yet
  bool polls = false;                   // a fragment waits for an mbarrier or the cluster's barrier
  WarpgroupOrder warpgroup;             // used with the sanitizer only
  std::vector<LaneCopies> copies;       // by lane; empty until there are asynchronous copies
  std::unique_ptr<CycleSearch> search;  // null until a search for hangs begins
  std::vector<Fragment> fragments;
  Frame* frame = nullptr;    // frame of the running fragment
  uint64_t local_bytes = 0;  // allocated for each lane
  std::vector<uint8_t> local, local_shadow;
  alignas(64) uint8_t specials[kSpecialUnits * kUnitBytes * static_cast<unsigned>(SpecialSlot::count)];
  CachedRange ranges[kRangeCache];
  std::vector<std::unique_ptr<Frame>> frame_pool;
  std::vector<Frame*> free_frames;
};

// Makes frame Refs refer to the registers of `frame`.
inline void bind(Warp& warp, Frame* frame) {
  warp.frame = frame;
  warp.base[0] = frame->values;
  warp.undefined[0] = frame->undefined;
  warp.origin[0] = frame->origin;
  warp.shadow[0] = frame->shadow;
}

template <class T>
inline T* at(Warp& warp, Ref ref) {
  return reinterpret_cast<T*>(warp.base[ref >> 30] + (size_t{ref & kRefIndex} * kUnitBytes));
}
inline uint32_t& undefined_lanes(Warp& warp, Ref ref) { return warp.undefined[ref >> 30][ref & kRefIndex]; }
inline uint32_t& origin_of(Warp& warp, Ref ref) { return warp.origin[ref >> 30][ref & kRefIndex]; }
template <class T>
inline T* shadow_at(Warp& warp, Ref ref) {
  return reinterpret_cast<T*>(warp.shadow[ref >> 30] + (size_t{ref & kRefIndex} * kUnitBytes));
}

// Calls `f` for each lane of the mask, lowest first.
template <class F>
inline void for_lanes(uint32_t mask, F&& f) {
  for (; mask; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

struct BarrierState {
  uint32_t arrived_threads = 0;
  uint32_t expected = 0;         // 0: all threads of the CTA
  uint32_t predicate_count = 0;  // bar.red: number of lanes with a true predicate
  uint32_t reduced_lanes = 0;
  std::vector<uint32_t> arrived;  // lanes, by warp
  std::vector<Epoch> arrivals;    // epochs of warps that only arrive
  uint32_t first_pc = 0, first_warp = 0;
  bool in_use = false;
};

// A block that malloc gave to a thread.
struct HeapBlock {
  uint64_t cta_turn = 0;
  uint32_t pc = 0, warp = 0, lane = 0;
  uint64_t size_bytes = 0;
};

// Order and time slices of seeded schedules: splitmix64, all of whose bits are equally good.
class Random {
 public:
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  explicit Random(uint64_t seed = 0) : state_(seed) {}
  uint64_t operator()() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }

 private:
  uint64_t state_;
};

// Printed text: the newest calls that fit. Like a device, it overwrites the oldest.
struct PrintFifo {
  std::deque<std::string> calls;
  uint64_t size_bytes = 0;
  uint64_t lost_calls = 0, lost_bytes = 0;

  void put(std::string text, uint64_t limit_bytes);
};

struct Launch;
struct Cta;

// CTAs that run together and can access each other's shared memory, by rank.
struct Cluster {
  std::vector<Cta*> ctas;
};

// How often an instruction was executed: by warps, and by threads whose guard held.
struct Executions {
  uint64_t warps = 0, threads = 0;
};

struct Cta {
  Launch* launch = nullptr;
  Cluster* cluster = nullptr;
  uint32_t rank = 0;    // in its cluster
  uint64_t turn = 0;    // position in the launch: clusters in order, the CTAs of each by rank
  uint64_t number = 0;  // in the grid, x first
  std::array<uint32_t, 3> id{};
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint8_t> shared_storage;
  uint8_t* shared = nullptr;  // aligned to 1024
  std::vector<uint8_t> shared_shadow;
  uint64_t shared_bytes = 0;
  std::array<BarrierState, 16> barriers;
  std::unique_ptr<CtaOrder> order;         // with the check for races only
  std::unique_ptr<AccessHistory> history;  // of shared memory
  std::map<uint64_t, Mbarrier> mbarriers;  // by offset
  // By byte of shared memory: 0, or 2 * (instruction + 1) of the copy that will write it, plus 1 if it only reads.
  // Empty until there is a copy.
  std::vector<uint32_t> pending;
  // Global memory that copies out of this CTA will write, by its first byte; and the size of the largest such range.
  std::multimap<uint64_t, AsyncRange> pending_global;
  uint32_t largest_pending_global = 0;
  std::unique_ptr<TensorMemory> tensor_memory;  // made by the first allocation
  uint64_t polls = 0;     // reads of values that other CTAs may write: strong loads, atomics, nanosleep
  unsigned timeouts = 0;  // of mbarrier waits since one completed a phase
  uint64_t stores = 0;    // instructions that may have changed values that other threads see
  bool searched = false;  // for hangs, in this turn
  std::vector<Origin> origins;
  std::set<std::pair<uint64_t, unsigned>> noted;  // see Launch::noted
  // The last origin of each instruction, used when there are too many
  std::unordered_map<uint64_t, uint32_t> origin_of_place;
  size_t next_warp = 0;
  std::vector<uint32_t> priority;  // of the adversarial schedule: warps, highest priority first
  bool stopped = false;            // by a fault
  Statistics statistics;
  std::vector<Executions> executions;  // by pc, in a launch that counts; empty otherwise
  Random random;
};

// Turn of the CTA, thread, pc, then whether there is an address, and the address.
using VisitKey = std::tuple<uint64_t, uint32_t, uint32_t, bool, Address>;

class ReadOnlyUses;
class UndefinedOutputs;

// State shared by all CTAs of a launch.
struct Launch {
  const ProgramImage* image = nullptr;
  const EntryImage* entry = nullptr;
  Memory* memory = nullptr;
  SharedLayout shared;  // including the dynamic part
  LaunchShape shape;
  LaunchOptions options;
  std::vector<uint8_t> parameters;
  bool checked = false;
  std::vector<uint8_t> checked_places;  // by pc: whether it is in LaunchOptions::only_checked_line; empty if that is 0
  std::vector<uint8_t> visited_lines;   // by pc: 1 + index in `visitable`, or 0; empty in a launch that is not watched
  std::span<const uint32_t> visitable;
  bool counts = false;                           // how often each instruction is executed
  std::unique_ptr<LaunchOrder> order;            // with the check for races only
  std::unique_ptr<AccessHistory> history;        // of global memory
  std::unique_ptr<ReadOnlyUses> read_only_uses;  // with the check for races, if the module has ld.global.nc
  std::unique_ptr<UndefinedOutputs> outputs;     // with kCheckOutputs only
  bool explicit_cluster = false;
  Address grid_workspace = 0;                          // of a module that uses it
  uint64_t reserved_shared = 0;                        // offset, of a module that uses it
  uint64_t shared_bytes = 0;                           // of a CTA, including the bytes that the system reserves
  uint32_t total_shared_bytes = 0;                     // %total_smem_size
  const AllowedObjectSets* allowed_objects = nullptr;  // with the check for bounds only
  std::vector<std::vector<uint8_t>> constants;         // by rank, if they contain addresses of shared variables

  std::atomic<uint64_t> next_cluster = 0;  // first cluster that has neither begun nor been cancelled
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> steps = 0;
  std::atomic<uint64_t> weight = 0;  // steps beyond one of instructions that take longer (core/limits.hpp)
  HangSearch hang;
  std::mutex hang_mutex;
  std::mutex mutex;                                  // guards the members below
  std::vector<std::pair<uint64_t, Fault>> faults;    // by CTA
  std::vector<std::pair<uint64_t, Fault>> notes;     // by CTA
  std::set<std::pair<uint64_t, unsigned>> noted;     // shared objects, and the alignment that they need
  std::set<std::pair<uint32_t, uint32_t>> reported;  // kind, pc
  std::optional<Error> failure;                      // the host ran out of memory
  PrintFifo printed;
  Statistics statistics;
  std::vector<Executions> executions;  // by pc, of the CTAs that have ended
  std::map<Address, HeapBlock> heap;   // allocated by this launch and not freed
  std::map<VisitKey, Visit> visits;
};

inline constexpr uint64_t kGridWorkspaceBytes = 64;

// Whether the caller has asked to stop the launch (Ctrl-C, a deadline).
inline bool is_interrupted(const Launch& launch) {
  return launch.options.stop != nullptr && launch.options.stop->load(std::memory_order_relaxed);
}

inline bool checks(const Cta& cta, uint32_t check) { return (cta.launch->options.checks & check) != 0; }

// Faults. report() and note() return early if the kind has already been reported for this instruction.
inline constexpr uint64_t kSameCta = ~uint64_t{0};
struct FaultDetail {
  FaultKind kind = FaultKind::trap;
  std::string message = {};
  unsigned lane = 0;
  bool has_address = false;
  // Of `address`, which is an offset in that space unless it is global or generic
  ptx::Space space = ptx::Space::generic;
  Address address = 0;
  uint32_t access_bytes = 0;
  bool has_other = false;
  uint64_t other_cta = kSameCta;  // its Cta::turn
  uint32_t other_pc = 0xffffffff;
  uint32_t other_warp = 0, other_lane = 0;
  std::string other_message = {};
  const Object* object = nullptr;  // in shared memory: named instead of the nearest one
};
bool already_reported(const Warp& warp, FaultKind kind);

// Stores the origin of undefined bits and returns its number for `origin_of`. When too many are stored, returns the
// last one of the same instruction, or 0.
uint32_t add_origin(Cta& cta, const Origin& origin);
// The origin with this number; null for 0.
inline const Origin* find_origin(const Cta& cta, uint32_t number) {
  return number != 0 && number <= cta.origins.size() ? &cta.origins[number - 1] : nullptr;
}
void report(Warp& warp, FaultDetail detail);
void note(Warp& warp, FaultDetail detail);  // adds to Outcome::notes
Site site_of(const ProgramImage& image, uint32_t pc);
uint32_t line_of(const ProgramImage& image, uint32_t pc);                   // in the PTX; 0 if it has none
std::array<uint32_t, 3> block_of(const LaunchShape& shape, uint64_t turn);  // %ctaid
ThreadId thread_of(const Launch& launch, uint64_t cta_turn, uint32_t warp, uint32_t lane);
std::string where_text(const Launch& launch, uint32_t pc);  // "line 17 (bar.sync 0)"

std::string register_name(const Warp& warp, Ref ref);  // of the running instruction
std::string register_name(const Warp& warp, uint32_t pc, Ref ref);

// Names the object nearest to `address`, which is an offset in `space` unless the space is global or generic.
void name_object(const Warp& warp, ptx::Space space, Address address, Fault& fault);

// Reports that a value with undefined bits decides something. `ref` is its slot.
void report_undefined(Warp& warp, FaultKind kind, Ref ref, uint32_t lanes);

// Resolves `offset`, an address of shared memory in `space`, to a CTA and sets `offset` to the offset there. Returns
// null if the cluster has no such CTA. Without a rank it is the CTA itself in .shared::cta, otherwise the first CTA.
inline Cta* owner_of(Cta& cta, ptx::Space space, uint64_t& offset) {
  const uint64_t rank = offset >> kRankShift;
  if (rank == 0 && (space == ptx::Space::shared || cta.rank == 0)) return &cta;
  if (!cta.cluster || rank >= cta.cluster->ctas.size()) return nullptr;
  offset &= kRankOffsetMask;
  return cta.cluster->ctas[rank];
}

// The address of the same offset in the CTA of `rank`.
inline uint64_t address_in(uint64_t address, uint64_t rank) {
  return (address & ~kWindowMask) | rank << kRankShift | (address & kRankOffsetMask);
}

}  // namespace ptxkit::emulator
