// Asynchronous copies and the mbarrier objects that signal their completion. See async_copy.cpp and mbarrier.cpp.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/matrix.hpp"
#include "runtime/emulator/core/update.hpp"
#include "runtime/emulator/tensor_map.hpp"

namespace ptxkit::emulator {

// One of several address operands of an instruction; `ref` as in Code::a.
struct AddressOperand {
  uint32_t ref = 0;
  uint64_t immediate = 0;
  bool wide = false, narrow = false;
  ptx::Space space = ptx::Space::generic;
  uint32_t number = 0;  // Code::address
};

enum class AsyncAction : uint8_t {
  copy,           // cp.async
  commit,         // cp.async.commit_group and cp.async.bulk.commit_group
  wait,           // cp.async.wait_group, wait_all
  track,          // cp.async.mbarrier.arrive
  bulk,           // cp.async.bulk and cp.reduce.async.bulk
  tensor,         // bulk copies and reductions of tensors
  store,          // st.async
  reduce,         // red.async
  replace_field,  // tensormap.replace
  publish_map,    // tensormap.cp_fenceproxy
  cancel,         // clusterlaunchcontrol.try_cancel
};

struct AsyncForm {
  AsyncAction action = AsyncAction::copy;
  AddressOperand to, from, barrier, map;
  TensorMode mode = TensorMode::tiled;
  TensorField field = TensorField::rank;
  uint32_t ordinal = 0;  // dimension of the field
  bool wide_field = false;
  RegisterList coordinates, offsets;  // offsets: of im2col
  bool has_barrier = false;
  bool is_bulk = false;     // commit and wait: for bulk groups
  bool reads_only = false;  // wait_group.read
  bool increments = false;  // cp.async.mbarrier.arrive without .noinc
  bool has_source_size = false, has_ignore = false, multicasts = false;
  bool has_byte_mask = false;
  uint32_t size = 0;         // Ref: bytes of a bulk copy
  uint32_t source_size = 0;  // Ref: bytes that cp.async reads; or the predicate of ignore-src
  uint32_t ignore_flip = 0;
  uint32_t ctas = 0;                       // Ref: CTA mask of .multicast::cluster
  uint32_t byte_mask = 0;                  // Ref: .cp_mask, the bytes of every 16 that are copied
  uint32_t bytes = 0;                      // of cp.async
  uint32_t groups = 0;                     // wait_group: groups that may remain
  ptx::Mod operation = ptx::Mod::unknown;  // reduction of a tensor, whose type is in the map
  Update update;                           // of a reduction
};

enum class MbarrierAction : uint8_t {
  init,
  invalidate,
  expect,
  complete,
  arrive,
  drop,
  test_wait,
  try_wait,
  pending_count,
};

struct MbarrierForm {
  MbarrierAction action = MbarrierAction::init;
  bool expects = false;  // arrive.expect_tx: `b` holds the bytes
  bool no_complete = false;
  bool by_parity = false;
  bool has_count = false;
};

enum class AsyncUse : uint8_t {
  written,          // of shared memory
  read,             // of shared memory
  written_global,   // of global memory
  combined_global,  // by a reduction: other reductions may be in flight on the same bytes
  tensor_memory,    // columns of tensor memory, by tcgen05.mma and tcgen05.cp
};

// A range of memory that a copy writes or reads, until its completion is waited for.
struct AsyncRange {
  uint64_t begin = 0;  // in its space
  uint32_t size_bytes = 0;
  uint32_t pc = 0;
  AsyncUse use = AsyncUse::written;
  uint8_t rank = 0;  // of tensor memory: rank of the CTA in its cluster

  bool in_global() const { return use == AsyncUse::written_global || use == AsyncUse::combined_global; }
};

// The copies of one lane: those not yet committed, and the groups, oldest first.
struct CopyGroups {
  std::vector<AsyncRange> open;
  std::vector<std::vector<AsyncRange>> groups;
};
struct LaneCopies {
  CopyGroups plain, bulk;
};

struct Mbarrier {
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0;  // expected and not yet complete (tx-count)
  uint64_t phase = 0;
  uint32_t init_pc = 0;
  std::vector<AsyncRange> ranges;  // that the phase waits for
  std::vector<AsyncRange> ended;   // of completed phases: usable once a wait observes the completion
  std::vector<std::pair<uint32_t, uint32_t>> writers;  // CTA rank and thread of the writers
};

}  // namespace ptxkit::emulator
