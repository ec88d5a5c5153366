// The decoded form of a module, which the engine runs.
//
// A register is a slot: 32 lanes side by side, in the register's own width, so that an instruction is one plain loop
// over arrays. Slots are counted in units of 64 bytes. Constants and special registers are slots too (32 copies). An
// operand is therefore only a base (frame, constants, specials) and an index, and handlers need not distinguish them. A
// Code is one instruction; its handler is a function for exactly its opcode, types and modifiers. Instructions that
// move control or wait for other lanes have a Kind of their own, which the engine executes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/core/async.hpp"
#include "runtime/emulator/core/matrix.hpp"
#include "runtime/emulator/core/memory.hpp"
#include "runtime/emulator/core/order.hpp"
#include "runtime/emulator/core/tensor_memory.hpp"
#include "runtime/emulator/core/texture_form.hpp"
#include "runtime/emulator/core/warpgroup_order.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/once.hpp"

namespace ptxkit::emulator {

struct Warp;
struct Code;
using Handler = void (*)(Warp&, const Code&, uint32_t mask);

inline constexpr unsigned kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;

// A reference to a slot: the base in the two top bits, the index in units of 64 bytes below.
using Ref = uint32_t;
inline constexpr uint32_t kUnitBytes = 64;
inline constexpr uint32_t kRefIndex = 0x3fffffff;
inline constexpr Ref kFrameRef = 0;
inline constexpr Ref kConstantRef = 1u << 30;
inline constexpr Ref kSpecialRef = 2u << 30;
inline constexpr Ref kNoRef = 0xffffffff;
inline constexpr Ref kZeroRef = kConstantRef;  // constant 0 of every width, always defined; stands for absent operands

// The first slots of every frame: the sink for discarded results (`_`), and the base of the frame in local memory.
inline constexpr Ref kSinkRef = 0;          // 8 units: up to 128 bits
inline constexpr Ref kFrameBase64Ref = 8;   // u64
inline constexpr Ref kFrameBase32Ref = 12;  // u32
inline constexpr uint32_t kFirstRegister = 14;

inline uint32_t units(unsigned lane_bytes) { return (lane_bytes * kLanes + kUnitBytes - 1) / kUnitBytes; }

enum class Kind : uint8_t {
  simple,  // handler, then the next instruction
  branch,
  branch_table,
  call,
  call_indirect,
  call_builtin,  // a function of the CUDA runtime; `sub` is a Builtin
  ret,
  exit,
  trap,
  breakpoint,
  barrier,
  cluster_arrive,
  cluster_wait,
  mbarrier_wait,  // mbarrier.try_wait
  collective,     // .sync among lanes of a warp
  yield,          // nanosleep: lets other lanes and warps run first
  clock,          // before an instruction that reads a clock
  unsupported,    // cannot be executed; `target` is its index in ProgramImage::refusals
};

// How undefined bits propagate through an instruction; `any`: one undefined bit makes the whole result undefined.
enum class Undefined : uint8_t {
  any,
  none,
  handler,
  copy,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  carry,
  select,
  byte_permute,
  funnel_left,
  funnel_right,
  extract,
  insert,
  convert,
  predicate,
  compare,
};

enum class Barrier : uint8_t { sync, arrive, reduce_and, reduce_or, reduce_popc };

enum class Collective : uint8_t {
  bar_warp,
  shuffle_up,
  shuffle_down,
  shuffle_butterfly,
  shuffle_index,
  vote_all,
  vote_any,
  vote_uni,
  vote_ballot,
  match_any,
  match_all,
  redux_add,
  redux_min,
  redux_max,
  redux_and,
  redux_or,
  redux_xor,
  redux_min_f32,  // Code::immediate: kReduxAbs, kReduxNan
  redux_max_f32,
  elect,
  matrix,  // Code::run executes it for the whole warp
};

inline constexpr uint64_t kReduxAbs = 1, kReduxNan = 2;

struct Code {
  Handler run = nullptr;
  Handler checked = nullptr;  // with the sanitizer; equal to `run` if there is nothing to check
  Ref dst = kSinkRef, dst2 = kSinkRef;
  Ref a = kZeroRef, b = kZeroRef, c = kZeroRef, d = kZeroRef;
  Ref guard = kNoRef;
  uint32_t guard_flip = 0;  // ~0 for @!p
  Kind kind = Kind::simple;
  Undefined undefined = Undefined::any;
  uint8_t sub = 0;             // Barrier, Collective or specific to the handler
  uint8_t element_bytes = 0;   // memory: width of one element; otherwise width of the result, in bytes
  uint8_t register_bytes = 0;  // memory and cvt: width of an element's destination or source register
  uint8_t source_bytes = 0;    // cvt: width of the source register
  uint8_t count = 1;           // vector elements
  bool is_signed = false;
  bool wide_address = false;    // the address register has 64 bits
  bool narrow = false;          // module with 32-bit addresses: generic and global addresses are 32 bits wide
  bool aligned = false;         // barriers: .aligned
  bool read_only = false;       // ld.global.nc
  bool counts = true;           // false for instructions that the decoder added
  bool may_reconverge = false;  // lanes may reconverge here: a label, or the instruction after a call or a wait
  Order order = Order::weak;
  Scope scope = Scope::none;
  ptx::Space space = ptx::Space::generic;
  uint32_t list = 0;       // ProgramImage::refs: vector elements, call arguments
  uint32_t target = 0;     // branch target, callee, table
  uint32_t address = 0;    // number of its address operand; 0: it has none
  uint64_t immediate = 0;  // offset of an address, constants of lop3, prmt, ...
};

struct CodeSite {
  uint32_t function = 0;
  uint32_t instruction = 0;
};

// A value in a frame: a .local variable, a parameter or an argument buffer of a call. Offsets count from the frame.
struct CallValue {
  bool in_register = false;
  bool is_predicate = false;
  Ref ref = kSinkRef;
  uint8_t bytes = 0;    // width, if in_register
  uint64_t offset = 0;  // otherwise its place in the frame's local memory
  uint64_t size_bytes = 0;
};

struct FunctionImage {
  std::string name;
  uint32_t first_code = 0, end_code = 0;
  uint32_t frame_units = 0;
  uint64_t local_bytes = 0;   // .local and .param variables
  ObjectTable local_objects;  // granules of 16 bytes
  std::vector<CallValue> parameters, results;
  bool is_entry = false;
  bool has_body = false;
  std::vector<std::pair<uint32_t, uint32_t>> slots;  // first slot and RegId, ascending; for messages
};

struct CallSite {
  uint32_t function = 0;  // callee of a direct call
  std::vector<CallValue> arguments, results;
};

struct SharedLayout {
  ObjectTable objects;
  std::map<ptx::VariableId, uint32_t> places;  // variables that the entry and its callees name
  uint32_t end = 0;  // end of static shared memory; dynamic shared memory is counted from here
  bool has_dynamic = false;
  std::string dynamic_name;
  uint32_t dynamic_begin = 0;
  uint32_t dynamic_align = 0;  // as placed
  uint32_t dynamic_slack = 0;  // from the first dynamic array to the last, which may have a larger alignment
};

// A constant slot that holds the address of a shared variable, which depends on the entry and on the CTA's rank.
struct SharedConstant {
  Ref slot = kNoRef;
  uint8_t bytes = 0;
  ptx::VariableId variable = 0;
  uint64_t addend = 0;
};

// The shared objects that each address operand may be derived from (address_origins.hpp), given by their first offsets.
struct AllowedObjectSets {
  std::vector<uint32_t> sets;                 // by number of the operand: index in `begins`, 0 for any object
  std::vector<std::vector<uint64_t>> begins;  // ascending
};

struct EntryImage {
  EntryInfo info;
  uint32_t function = 0;
  SharedLayout shared;
  // Computed when the first checked launch needs it.
  struct LazyObjectSets {
    Once once;
    AllowedObjectSets sets;
  };
  std::unique_ptr<LazyObjectSets> allowed_objects = std::make_unique<LazyObjectSets>();
};

enum class SpecialSlot : uint32_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  zero,
  one,
  total_smem,
  aggregate_smem,
  dynamic_smem,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctarank,
  cluster_nctarank,
  explicit_cluster,
  gridid,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  grid_workspace_hi,  // %envreg1, %envreg2: of a cooperative grid
  grid_workspace_lo,
  reserved_shared,  // %reserved_smem_offset_1
  count
};
// Four units each, the size of a 64-bit slot; 32-bit ones use half.
inline constexpr uint32_t kSpecialUnits = 4;
inline Ref special_ref(SpecialSlot slot) { return kSpecialRef | (static_cast<uint32_t>(slot) * kSpecialUnits); }

enum class VideoAction : uint8_t {
  add,
  sub,
  absolute_difference,
  min,
  max,
  shift_left,
  shift_right,
  average,
  multiply,
  set
};
enum class VideoCompare : uint8_t { eq, ne, lt, le, gt, ge };
enum class SecondaryOperation : uint8_t { none, add, min, max };

// A video instruction; see video.cpp. A scalar form selects a part of a word: 0-3 are bytes, 4-5 halves, kWholeWord
// all.
inline constexpr uint8_t kWholeWord = 6;
struct VideoForm {
  VideoAction action = VideoAction::add;
  VideoCompare compare = VideoCompare::eq;
  SecondaryOperation secondary = SecondaryOperation::none;
  uint8_t parts = 1;             // 1, or 2 halves or 4 bytes at once
  uint8_t a[4] = {}, b[4] = {};  // the part of each source that is used
  uint8_t destination = 0;       // the part that is written; with several parts, a mask
  bool d_signed = false, a_signed = false, b_signed = false;
  bool saturates = false, wrap = false, plus_one = false;
  bool product_negated = false, c_negated = false;  // of vmad
  uint8_t shift = 0;
};

struct ProgramImage {
  std::shared_ptr<const ptx::Module> module;
  Memory* memory = nullptr;
  std::vector<Code> codes;
  std::vector<CodeSite> sites;  // parallel to codes
  std::vector<Ref> refs;
  std::vector<ptx::Offset> addresses{0};  // by number of the address operand: its place in the text
  std::vector<std::string> refusals;      // instructions that cannot be executed, each with its place
  std::vector<CallSite> calls;
  std::vector<VideoForm> videos;
  std::vector<MatrixForm> matrices;
  std::vector<AsyncForm> asyncs;
  std::vector<TensorForm> tensors;
  std::vector<TextureForm> textures;
  std::vector<WatchedRegister> watched;
  std::vector<MovedRegister> moved;
  std::vector<MbarrierForm> mbarriers;
  std::vector<std::array<Update, 2>> updates;  // of atomics: in shared memory, in global memory
  std::vector<std::vector<uint32_t>> tables;   // branch targets
  std::vector<FunctionImage> functions;        // by ptx::FunctionId
  std::vector<EntryImage> entries;
  std::vector<EntryInfo> infos;
  std::vector<uint8_t> constants;                // slots
  std::vector<SharedConstant> shared_constants;  // the entries of `constants` that a launch fills in
  std::vector<uint32_t> zeros;                   // "nothing undefined" for constants and special registers
  ObjectTable constant_objects;                  // the .const bank
  mutable std::vector<uint8_t> constant_bytes;   // the host may write them between launches
  bool uses_grid_workspace = false, uses_reserved_shared = false, uses_heap = false;
  bool has_read_only_loads = false;  // ld.global.nc
  std::unordered_map<std::string, Variable> globals;
  std::map<Address, ImageUse> opaque_variables;  // variables of type .texref, .surfref and .samplerref
};

// Shared memory of a cluster: the CTA's rank lies above the offset, also in the addresses that a CTA uses for its own
// variables. Devices do the same, and kernels clear bits of the rank to reach another CTA.
inline constexpr unsigned kRankShift = 24;
inline constexpr uint64_t kRankOffsetMask = (uint64_t{1} << kRankShift) - 1;

// Bytes that the system reserves at the start of shared memory, from compute capability 9.0 on.
inline constexpr uint64_t kReservedSharedBytes = 1024;

// Code addresses of functions: the result of `mov.u64 %rd, f` and the operand of an indirect call. They lie apart as on
// a device: an address that a kernel has changed is that of no function, and neither is 0.
inline constexpr uint64_t kFunctionAddress = uint64_t{0x7b} << kWindowShift;
inline constexpr uint64_t kFunctionStride = 128;
constexpr uint64_t function_address(uint64_t function) { return kFunctionAddress + (function + 1) * kFunctionStride; }
// The function at an address; a number that no module has where there is none.
constexpr uint64_t function_at(uint64_t address) {
  const uint64_t offset = address - kFunctionAddress;
  return offset % kFunctionStride == 0 ? offset / kFunctionStride - 1 : ~uint64_t{0};
}

// In a module with 32-bit addresses the windows are the top 16 MiB each. Everything below is global memory, whose
// 32-bit addresses are the low halves of the device's. Addresses are widened to 64 bits before use.
inline constexpr unsigned kNarrowWindowShift = 24;
constexpr uint32_t narrow_window(uint64_t window) {
  return static_cast<uint32_t>((window >> kWindowShift) + 0x80) << kNarrowWindowShift;  // 0x7f becomes 0xff
}
inline uint64_t widen_address(uint32_t address) {
  const uint32_t top = address >> kNarrowWindowShift;
  if (top < (kParamWindow >> kWindowShift) + 0x80) return kGlobalBase + address;
  return (uint64_t{top - 0x80} << kWindowShift) + (address & ((1u << kNarrowWindowShift) - 1));
}

}  // namespace ptxkit::emulator
