// tcgen05 but its products: allocation, loads, stores, copies, commits. PTX ISA 9.0, 9.7.16.
//
// Everything happens when the instruction runs; that columns may not be used yet is a mark on each, taken away by
// wait::st, or by a wait for the mbarrier of a commit. Where a register of tcgen05.ld and .st lies is what CUTLASS has
// (cute/atom/copy_traits_sm100.hpp); the ISA has figures.
#include "runtime/backend/emulator/tensor_memory.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "runtime/backend/emulator/access.hpp"
#include "runtime/backend/emulator/float_math.hpp"
#include "runtime/backend/emulator/handlers.hpp"
#include "runtime/backend/emulator/shared_matrix.hpp"
#include "runtime/backend/emulator/tensor_access.hpp"

namespace ptxkit::emulator {

namespace {

const TensorForm& form_of(const Warp& warp, const Code& code) { return warp.cta->launch->image->tensors[code.target]; }

unsigned first_lane(uint32_t mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

uint64_t shared_address(Warp& warp, const AddressOperand& operand, unsigned lane) {
  if (operand.wide) return at<const uint64_t>(warp, operand.ref)[lane] + operand.immediate;
  return static_cast<uint32_t>(at<const uint32_t>(warp, operand.ref)[lane] + static_cast<uint32_t>(operand.immediate));
}

void allocate(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  Cta& cta = *warp.cta;
  const unsigned lane = first_lane(mask);
  const uint32_t count = at<const uint32_t>(warp, form.columns)[lane];
  if (!cta.tensor_memory) cta.tensor_memory = std::make_unique<TensorMemory>();
  TensorMemory& memory = *cta.tensor_memory;
  if (memory.relinquished) {
    tensor_fault(warp, lane, "tcgen05.alloc after tcgen05.relinquish_alloc_permit");
    return;
  }
  if (!std::has_single_bit(count) || count < 32 || count > kTensorColumns) {
    tensor_fault(warp, lane, fmt::format("{} columns are no power of two within 32 to 512", count));
    return;
  }
  if (count > memory.most_columns) {
    tensor_fault(
        warp, lane,
        fmt::format("{} columns after an allocation of {}: they may not become more", count, memory.most_columns));
    return;
  }
  unsigned begin = 0;
  const auto taken = [&](unsigned column) {
    return std::any_of(memory.allocations.begin(), memory.allocations.end(), [&](const TensorColumns& each) {
      return column < each.begin + each.count && each.begin < column + count;
    });
  };
  while (begin < kTensorColumns && taken(begin)) begin += count;
  if (begin >= kTensorColumns) {
    tensor_fault(warp, lane, fmt::format("tcgen05.alloc waits for {} columns, which this block itself holds", count));
    return;
  }
  Code part = code;
  part.space = form.place.space;
  SharedPlace place;
  if (!find_shared(warp, part, lane, shared_address(warp, form.place, lane), 4, 4, place)) return;
  memory.most_columns = count;
  memory.allocations.push_back({begin, count, warp.pc, warp.index});
  for (unsigned row = 0; row < kTensorLanes; ++row)
    std::fill_n(memory.defined.begin() + static_cast<ptrdiff_t>(TensorMemory::cell(row, begin)), count, uint8_t{0});
  const uint32_t address = begin;
  std::memcpy(place.cta->shared + place.offset, &address, 4);
  if (!cta.launch->checked) return;
  std::memset(place.cta->shared_shadow.data() + place.offset, 0xff, 4);
  note_shared_write(warp, code, lane, *place.cta, place.offset, 4);
}

void release(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  const unsigned lane = first_lane(mask);
  const uint32_t count = at<const uint32_t>(warp, form.columns)[lane];
  const TensorPlace place = tensor_place(warp, form.d, lane);
  auto* memory = warp.cta->tensor_memory.get();
  const auto is_it = [&](const TensorColumns& each) {
    return place.lane == 0 && each.begin == place.column && each.count == count;
  };
  if (memory == nullptr || std::erase_if(memory->allocations, is_it) == 0)
    tensor_fault(warp, lane,
                 fmt::format("no allocation of {} columns is at column {}, lane {}", count, place.column, place.lane));
}

void relinquish(Warp& warp, const Code&, uint32_t) {
  Cta& cta = *warp.cta;
  if (!cta.tensor_memory) cta.tensor_memory = std::make_unique<TensorMemory>();
  cta.tensor_memory->relinquished = true;
}

struct Cell {
  unsigned row, column;  // from the address on
};

// The cell of register `reg` in a thread.
Cell cell_of(const TensorForm& form, unsigned thread, unsigned reg) {
  switch (form.shape) {
    case TensorShape::rows_16_by_64:
      return {8 * (thread % 2) + thread / 4, thread / 2 % 2 + 2 * reg};
    case TensorShape::rows_16_by_128:
      return {thread / 4 + 8 * (reg % 2), thread % 4 + 4 * (reg / 2)};
    case TensorShape::rows_16_by_256:
      return {thread / 4 + 8 * (reg / 2 % 2), 2 * (thread % 4) + reg % 2 + 8 * (reg / 4)};
    case TensorShape::halves:
      return {thread % 16, reg};  // of the second half `split` columns on
    default:
      return {thread, reg};
  }
}

// Registers of one thread that make up one line of columns.
unsigned columns_of(const TensorForm& form) {
  const unsigned count = form.data.count;
  const unsigned columns = form.shape == TensorShape::rows_16_by_64 || form.shape == TensorShape::rows_16_by_128 ||
                                   form.shape == TensorShape::rows_16_by_256
                               ? 2 * count
                               : count;
  return form.packs ? 2 * columns : columns;
}

uint32_t larger_or_smaller(const TensorForm& form, uint32_t a, uint32_t b) {
  switch (form.reduction) {
    case TensorReduction::of_unsigned:
      return form.to_largest ? std::max(a, b) : std::min(a, b);
    case TensorReduction::of_signed: {
      const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
      return static_cast<uint32_t>(form.to_largest ? std::max(x, y) : std::min(x, y));
    }
    default: {
      const float x = scalar::to_f32(a), y = scalar::to_f32(b);
      return scalar::to_bits(form.to_largest ? extremum<float, true>(x, y, form.keeps_nan)
                                             : extremum<float, false>(x, y, form.keeps_nan));
    }
  }
}

// ld.red: of the registers of each thread, which are the columns of its lane.
void reduce_columns(Warp& warp, const Code& code, const TensorForm& form) {
  const Ref* refs = warp.cta->launch->image->refs.data() + form.data.first;
  uint32_t undefined = 0;
  const bool tracked = warp.undefined[0] != nullptr;
  for (unsigned reg = 0; tracked && reg < form.data.count; ++reg) undefined |= undefined_lanes(warp, refs[reg]);
  for (unsigned thread = 0; thread < kLanes; ++thread) {
    const auto value = [&](unsigned reg) {
      const uint32_t word = at<const uint32_t>(warp, refs[reg])[thread];
      return form.of_magnitudes ? word & 0x7fffffff : word;
    };
    uint32_t all = value(0);
    for (unsigned reg = 1; reg < form.data.count; ++reg) all = larger_or_smaller(form, all, value(reg));
    at<uint32_t>(warp, code.dst)[thread] = all;
  }
  if (!tracked) return;
  undefined_lanes(warp, code.dst) = undefined;
  origin_of(warp, code.dst) = 0;
  if (undefined) std::memset(shadow_at<uint8_t>(warp, code.dst), 0xff, size_t{kLanes} * 4);
}

template <bool kStore>
void move(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  const Ref* refs = warp.cta->launch->image->refs.data() + form.data.first;
  const unsigned lane = first_lane(mask);
  const TensorPlace place = tensor_place(warp, form.d, lane);
  const unsigned own = warp.index % 4 * 32, rows = form.shape == TensorShape::rows_32 ? 32 : 16;
  if (place.lane < own || place.lane + rows > own + 32) {
    tensor_fault(warp, lane,
                 fmt::format("warp {} reaches lanes {} to {} of tensor memory, its own are {} to {}", warp.index,
                             place.lane, place.lane + rows - 1, own, own + 31));
    return;
  }
  const unsigned columns = columns_of(form);
  if (!reach_columns(warp, lane, place.column, columns, false)) return;
  if (form.shape == TensorShape::halves &&
      !reach_columns(warp, lane, place.column + static_cast<unsigned>(form.split), columns, false))
    return;
  TensorMemory& memory = *warp.cta->tensor_memory;
  const bool tracked = warp.undefined[0] != nullptr;
  const unsigned parts = form.packs ? 2 : 1;
  for (unsigned reg = 0; reg < form.data.count; ++reg) {
    uint32_t undefined = 0;
    for (unsigned thread = 0; thread < kLanes; ++thread) {
      const Cell cell = cell_of(form, thread, reg);
      const unsigned split = form.shape == TensorShape::halves && thread >= 16 ? static_cast<unsigned>(form.split) : 0;
      uint32_t& word = at<uint32_t>(warp, refs[reg])[thread];
      uint32_t value = kStore ? word : 0;
      for (unsigned part = 0; part < parts; ++part) {
        const size_t index =
            TensorMemory::cell(place.lane + cell.row, place.column + split + cell.column * parts + part);
        if constexpr (kStore) {
          memory.cells[index] = parts == 1 ? value : value >> 16 * part & 0xffff;
          memory.defined[index] = !(tracked && undefined_lanes(warp, refs[reg]) >> thread & 1);
        } else {
          value |= parts == 1 ? memory.cells[index] : (memory.cells[index] & 0xffff) << 16 * part;
          if (!memory.defined[index]) undefined |= 1u << thread;
        }
      }
      if constexpr (!kStore) word = value;
    }
    if constexpr (!kStore) {
      if (!tracked) continue;
      undefined_lanes(warp, refs[reg]) = undefined;
      origin_of(warp, refs[reg]) = 0;
      if (undefined) std::memset(shadow_at<uint8_t>(warp, refs[reg]), 0xff, size_t{kLanes} * 4);
    }
  }
  if constexpr (!kStore) {
    if (form.reduction != TensorReduction::none) reduce_columns(warp, code, form);
  } else {
    auto& open = memory.stores[warp.index];
    const auto add = [&](uint64_t column) {
      open.push_back({column, columns, warp.pc, AsyncUse::tensor_memory});
      memory.mark(open.back(), true);
    };
    add(place.column);
    if (form.shape == TensorShape::halves) add(place.column + form.split);
  }
}

void wait_store(Warp& warp, const Code&, uint32_t) {
  if (!warp.cta->tensor_memory) return;
  TensorMemory& memory = *warp.cta->tensor_memory;
  for (const AsyncRange& range : memory.stores[warp.index]) memory.finish(range);
  memory.stores[warp.index].clear();
}

// tcgen05.cp: rows of 32 or 16 bytes out of shared memory.
void copy(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  for_lanes(mask, [&](unsigned lane) {
    Cta& cta = *warp.cta;
    if (cta.stopped) return;
    const TensorPlace place = tensor_place(warp, form.d, lane);
    if (place.lane != 0) {
      tensor_fault(warp, lane, fmt::format("tcgen05.cp to lane {}: all lanes are written, from 0 on", place.lane));
      return;
    }
    if (!reach_columns(warp, lane, place.column, form.copy_columns, true)) return;
    const SharedMatrix source(at<const uint64_t>(warp, form.a_descriptor)[lane]);
    TensorMemory& memory = *cta.tensor_memory;
    for (unsigned row = 0; row < kTensorLanes; ++row)
      for (unsigned column = 0; column < form.copy_columns; ++column) {
        const unsigned from_row = form.rows_of_warp[row / 32] * 32u + row % 32;
        const uint64_t offset = source.rows_along_k(from_row, 4 * column);
        if (offset + 4 > cta.shared_bytes) {
          report(warp, {.kind = FaultKind::out_of_bounds,
                        .message = fmt::format("a matrix descriptor reaches {:#x} of .shared, which has {} bytes",
                                               offset, cta.shared_bytes),
                        .lane = lane,
                        .has_address = true,
                        .space = ptx::Space::shared,
                        .address = offset,
                        .access_bytes = 4});
          return;
        }
        const size_t index = TensorMemory::cell(row, place.column + column);
        std::memcpy(&memory.cells[index], cta.shared + offset, 4);
        memory.defined[index] = 1;
        if (!cta.launch->checked) continue;
        for (unsigned i = 0; i < 4; ++i)
          if (cta.shared_shadow[offset + i] != 0xff) memory.defined[index] = 0;
        note_shared_read(warp, code, lane, cta, offset, 4);
      }
    open_columns(warp, place.column, form.copy_columns);
  });
}

// The mbarrier's phase ends after what mma and cp have begun.
void commit(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t address = shared_address(warp, form.place, lane);
    const uint32_t ctas = form.multicasts ? at<const uint16_t>(warp, form.ctas)[lane] : 1;
    for_lanes(ctas, [&](unsigned rank) {
      if (warp.cta->stopped) return;
      Code part = code;
      part.space = form.place.space;
      SharedPlace place;
      const uint64_t target =
          form.multicasts ? (address & ~kWindowMask) | uint64_t{rank + 1} << kRankShift | (address & kRankOffsetMask)
                          : address;
      if (!find_shared(warp, part, lane, target, 8, 8, place)) return;
      Mbarrier* barrier = find_mbarrier(warp, lane, place);
      if (!barrier) return;
      if (place.cta == warp.cta && warp.cta->tensor_memory) {
        auto& open = warp.cta->tensor_memory->open;
        barrier->ranges.insert(barrier->ranges.end(), open.begin(), open.end());
        open.clear();
      }
      arrive_at(warp, lane, place, *barrier, 1, false);
    });
  });
}

}  // namespace

TensorPlace tensor_place(Warp& warp, const AddressOperand& operand, unsigned lane) {
  const auto address = static_cast<uint32_t>(shared_address(warp, operand, lane));
  return {address >> 16, address & 0xffff};
}

bool tensor_fault(Warp& warp, unsigned lane, std::string message) {
  report(warp, {.kind = FaultKind::tensor_memory, .message = std::move(message), .lane = lane});
  return false;
}

bool reach_columns(Warp& warp, unsigned lane, unsigned column, unsigned columns, bool in_pipeline) {
  const auto* memory = warp.cta->tensor_memory.get();
  const auto holds = [&](const TensorColumns& each) {
    return column >= each.begin && column + columns <= each.begin + each.count;
  };
  if (memory == nullptr || std::none_of(memory->allocations.begin(), memory->allocations.end(), holds))
    return tensor_fault(warp, lane,
                        fmt::format("columns {} to {} of tensor memory are in no allocation of the block", column,
                                    column + columns - 1));
  if (!checks(*warp.cta, kCheckRaces)) return true;
  for (unsigned i = column; i < column + columns; ++i) {
    const PendingColumn& pending = memory->pending[i];
    if (pending.writer == 0 || (in_pipeline && !pending.is_store)) continue;
    // A warp's own stores are in order.
    if (pending.is_store && pending.writer == warp.pc + 1) continue;
    if (already_reported(warp, FaultKind::async_pending)) return true;
    report(warp, {.kind = FaultKind::async_pending,
                  .message = fmt::format("column {} of tensor memory is used before {}", i,
                                         pending.is_store ? "the wait::st of a store into it"
                                                          : "a commit of what writes it has been waited for"),
                  .lane = lane,
                  .has_other = true,
                  .other_pc = pending.writer - 1,
                  .other_warp = warp.index,
                  .other_lane = lane,
                  .other_message = "still writes"});
    return true;
  }
  return true;
}

void open_columns(Warp& warp, unsigned column, unsigned columns) {
  TensorMemory& memory = *warp.cta->tensor_memory;
  memory.open.push_back({column, columns, warp.pc, AsyncUse::tensor_memory});
  memory.mark(memory.open.back(), false);
}

void select_tensor(Code& code, TensorAction action) {
  switch (action) {
    case TensorAction::allocate:
      code.run = allocate;
      break;
    case TensorAction::release:
      code.run = release;
      break;
    case TensorAction::relinquish:
      code.run = relinquish;
      break;
    case TensorAction::load:
      code.run = move<false>;
      break;
    case TensorAction::store:
      code.run = move<true>;
      break;
    case TensorAction::wait_store:
      code.run = wait_store;
      break;
    case TensorAction::copy:
      code.run = copy;
      break;
    default:
      code.run = commit;
  }
}

}  // namespace ptxkit::emulator
