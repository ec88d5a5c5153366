// tcgen05 except its products: allocation, loads, stores, copies, shifts, commits. PTX ISA 9.0, 9.7.16.
//
// Every effect happens when the instruction runs. A mark on each column records that it may not be used yet; wait::st,
// or a wait for the mbarrier of a commit, removes it. The registers of tcgen05.ld and .st are laid out as in CUTLASS
// (cute/atom/copy_traits_sm100.hpp); the ISA only has figures.
//
// The ISA's text does not give the direction of a shift. NVIDIA has observed on a B200 that it is towards lane 0, for
// 31 rows of each warp's 32, and that .ashift shifts after the product (CUTLASS 7107b05,
// examples/python/CuTeDSL/experimental/primitives/tcgen05/1cta_mma_a_from_tmem.py). A .shift names the warp.
#include "runtime/emulator/core/tensor_memory.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "runtime/emulator/core/float_math.hpp"
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/instructions/matrix/shared_matrix.hpp"
#include "runtime/emulator/instructions/matrix/tensor_access.hpp"
#include "runtime/emulator/instructions/matrix/tensor_instruction.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/sanitizer/pending_registers.hpp"

namespace ptxkit::emulator {

namespace {

const TensorForm& form_of(const Warp& warp, const Code& code) { return warp.cta->launch->image->tensors[code.target]; }

unsigned first_lane(uint32_t mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

uint64_t shared_address(Warp& warp, const AddressOperand& operand, unsigned lane) {
  if (operand.wide) return at<const uint64_t>(warp, operand.ref)[lane] + operand.immediate;
  return static_cast<uint32_t>(at<const uint32_t>(warp, operand.ref)[lane] + static_cast<uint32_t>(operand.immediate));
}

TensorMemory& memory_of(Cta& cta) {
  if (!cta.tensor_memory) cta.tensor_memory = std::make_unique<TensorMemory>();
  return *cta.tensor_memory;
}

bool is_taken(const TensorMemory& memory, unsigned column, unsigned count) {
  return std::any_of(memory.allocations.begin(), memory.allocations.end(), [&](const TensorColumns& each) {
    return column < each.begin + each.count && each.begin < column + count;
  });
}

void hold(TensorMemory& memory, const TensorColumns& columns) {
  memory.most_columns = columns.count;
  memory.allocations.push_back(columns);
  for (unsigned row = 0; row < kTensorLanes; ++row)
    std::fill_n(memory.defined.begin() + static_cast<ptrdiff_t>(TensorMemory::cell(row, columns.begin)), columns.count,
                uint8_t{0});
}

// Finds columns that are free in all of `ctas` and allocates them. In a pair, the second CTA takes the columns that the
// first one has allocated for both. Returns false after a fault.
bool allocate_columns(Warp& warp, std::span<Cta* const> ctas, unsigned lane, uint32_t count, unsigned& begin) {
  TensorMemory& own = memory_of(*warp.cta);
  if (!own.allocated_by_peer.empty()) {
    const TensorColumns columns = own.allocated_by_peer.front();
    own.allocated_by_peer.pop_front();
    begin = columns.begin;
    return columns.count == count || tensor_fault(warp, lane,
                                                  fmt::format("{} columns, where the other CTA of the pair "
                                                              "allocates {}",
                                                              count, columns.count));
  }
  for (Cta* cta : ctas)
    if (const TensorMemory& memory = memory_of(*cta); count > memory.most_columns)
      return tensor_fault(warp, lane,
                          fmt::format("{} columns after an allocation of {}: a later allocation may not be larger",
                                      count, memory.most_columns));
  const auto taken = [&](unsigned column) {
    return std::any_of(ctas.begin(), ctas.end(), [&](Cta* cta) { return is_taken(memory_of(*cta), column, count); });
  };
  begin = 0;
  while (begin < kTensorColumns && taken(begin)) begin += count;
  if (begin >= kTensorColumns)
    return tensor_fault(warp, lane,
                        fmt::format("tcgen05.alloc waits for {} columns, which this block itself holds", count));
  const TensorColumns columns{begin, count, warp.pc, warp.index};
  for (Cta* cta : ctas) {
    hold(memory_of(*cta), columns);
    if (cta != warp.cta) memory_of(*cta).allocated_by_peer.push_back(columns);
  }
  return true;
}

void allocate(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  Cta& cta = *warp.cta;
  const unsigned lane = first_lane(mask);
  const uint32_t count = at<const uint32_t>(warp, form.columns)[lane];
  if (memory_of(cta).relinquished) {
    tensor_fault(warp, lane, "tcgen05.alloc after tcgen05.relinquish_alloc_permit");
    return;
  }
  if (!std::has_single_bit(count) || count < 32 || count > kTensorColumns) {
    tensor_fault(warp, lane, fmt::format("{} columns are no power of two within 32 to 512", count));
    return;
  }
  Code part = code;
  part.space = form.place.space;
  part.address = form.place.number;
  SharedPlace place;
  uint32_t address = 0;
  const std::vector<Cta*> ctas = ctas_of(warp, lane, form.of_pair);
  if (ctas.empty() || !find_shared(warp, part, lane, shared_address(warp, form.place, lane), 4, 4, place) ||
      !allocate_columns(warp, ctas, lane, count, address))
    return;
  std::memcpy(place.cta->shared + place.offset, &address, 4);
  if (!cta.launch->checked) return;
  std::memset(place.cta->shared_shadow.data() + place.offset, 0xff, 4);
  note_shared_write(warp, code, lane, *place.cta, place.offset, 4);
}

// In a pair, the first CTA deallocates for both.
void release(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  const unsigned lane = first_lane(mask);
  const uint32_t count = at<const uint32_t>(warp, form.columns)[lane];
  const TensorPlace place = tensor_place(warp, form.d, lane);
  const auto is_it = [&](const TensorColumns& each) {
    return place.lane == 0 && each.begin == place.column && each.count == count;
  };
  auto& done = memory_of(*warp.cta).released_by_peer;
  if (const auto it = std::find_if(done.begin(), done.end(), is_it); it != done.end()) {
    done.erase(it);
    return;
  }
  for (Cta* cta : ctas_of(warp, lane, form.of_pair)) {
    TensorMemory& memory = memory_of(*cta);
    if (std::erase_if(memory.allocations, is_it) == 0) {
      tensor_fault(
          warp, lane,
          fmt::format("no allocation of {} columns is at column {}, lane {}", count, place.column, place.lane));
      return;
    }
    if (cta != warp.cta) memory.released_by_peer.push_back({place.column, count, warp.pc, warp.index});
  }
}

void relinquish(Warp& warp, const Code&, uint32_t) { memory_of(*warp.cta).relinquished = true; }

struct Cell {
  unsigned row, column;  // relative to the address
};

// The cell of register `reg` of a thread.
Cell cell_of(const TensorForm& form, unsigned thread, unsigned reg) {
  switch (form.shape) {
    case TensorShape::rows_16_by_64:
      return {8 * (thread % 2) + thread / 4, thread / 2 % 2 + 2 * reg};
    case TensorShape::rows_16_by_128:
      return {thread / 4 + 8 * (reg % 2), thread % 4 + 4 * (reg / 2)};
    case TensorShape::rows_16_by_256:
      return {thread / 4 + 8 * (reg / 2 % 2), 2 * (thread % 4) + reg % 2 + 8 * (reg / 4)};
    case TensorShape::halves:
      return {thread % 16, reg};  // the second half begins `split` columns further
    default:
      return {thread, reg};
  }
}

// Registers of one thread for one line of columns.
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

// ld.red: reduces the registers of each thread, which are the columns of its lane.
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
  if (!check_columns(warp, *warp.cta, lane, place.column, columns, false)) return;
  if (form.shape == TensorShape::halves &&
      !check_columns(warp, *warp.cta, lane, place.column + static_cast<unsigned>(form.split), columns, false))
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
    if (checks(*warp.cta, kCheckRaces)) {
      start_load(warp, std::span(refs, form.data.count));
      if (form.reduction != TensorReduction::none) start_load(warp, std::span(&code.dst, 1));
    }
  } else {
    auto& open = memory.stores[warp.index];
    const auto add = [&](uint64_t column) {
      add_pending(*warp.cta, open,
                  {column, columns, warp.pc, AsyncUse::tensor_memory, static_cast<uint8_t>(warp.cta->rank)});
      memory.mark(open.back(), true);
    };
    add(place.column);
    if (form.shape == TensorShape::halves) add(place.column + form.split);
  }
}

void wait_load(Warp& warp, const Code&, uint32_t) { warp.warpgroup.wait_loads(); }

void wait_store(Warp& warp, const Code&, uint32_t) {
  if (!warp.cta->tensor_memory) return;
  TensorMemory& memory = *warp.cta->tensor_memory;
  for (const AsyncRange& range : memory.stores[warp.index]) memory.finish(range);
  memory.stores[warp.index].clear();
}

// Unpacks four elements to a byte each: 4-bit elements to its middle, 6-bit elements to its low bits, where mma reads
// them (PTX ISA 9.0, 9.7.16.9.1 and 9.7.16.10.4.3, figures).
uint32_t unpacked(uint32_t packed, unsigned bits) {
  uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) word |= (packed >> i * bits & ((1u << bits) - 1)) << (8 * i + (bits == 4 ? 2 : 0));
  return word;
}

// tcgen05.cp: copies rows of 32 or 16 bytes from shared memory; each CTA of a pair copies its own.
bool copy_rows(Warp& warp, const Code& code, const TensorForm& form, unsigned lane, Cta& cta) {
  const TensorPlace place = tensor_place(warp, form.d, lane);
  if (place.lane + form.rows_per_warp > 32)
    return tensor_fault(warp, lane,
                        form.rows_per_warp == 1
                            ? fmt::format("tcgen05.cp to lane {}: expected 0 to 31", place.lane)
                            : fmt::format("tcgen05.cp to lane {}: all lanes are written, from 0 on", place.lane));
  if (!check_columns(warp, cta, lane, place.column, form.copy_columns, true)) return false;
  const uint64_t descriptor = at<const uint64_t>(warp, form.a_descriptor)[lane];
  if (const std::string why = matrix_descriptor_error(descriptor, TensorKind::f16, false); !why.empty())
    return tensor_fault(warp, lane, fmt::format("matrix descriptor {:#018x}: {}", descriptor, why));
  const SharedMatrix source(descriptor);
  TensorMemory& memory = *cta.tensor_memory;
  for (unsigned to_warp = 0; to_warp < 4; ++to_warp)
    for (unsigned row = 0; row < form.rows_per_warp; ++row)
      for (unsigned column = 0; column < form.copy_columns; ++column) {
        const unsigned from_row = form.rows_of_warp[to_warp] * unsigned{form.rows_per_warp} + row;
        const size_t index = TensorMemory::cell(place.lane + 32 * to_warp + row, place.column + column);
        bool defined = true;
        // The first 8 or 12 of 16 bytes in shared memory hold 16 elements, which become 16 bytes.
        const unsigned bytes = form.packed_bits ? form.packed_bits / 2 : 4;
        uint32_t word = 0;
        if (!fetch_shared(warp, code, cta, lane, source.rows_along_k(from_row, column / 4 * 16 + column % 4 * bytes),
                          bytes, word, defined))
          return false;
        memory.cells[index] = form.packed_bits ? unpacked(word, form.packed_bits) : word;
        memory.defined[index] = defined;
      }
  mark_pending_columns(warp, cta, place.column, form.copy_columns);
  return true;
}

void copy(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    for (Cta* cta : ctas_of(warp, lane, form.of_pair))
      if (!copy_rows(warp, code, form, lane, *cta)) return;
  });
}

void shift(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    const TensorPlace place = tensor_place(warp, form.d, lane);
    if (place.lane % kLanes || place.lane >= kTensorLanes) {
      tensor_fault(warp, lane, fmt::format("tcgen05.shift at lane {}: expected 0, 32, 64 or 96", place.lane));
      return;
    }
    for (Cta* cta : ctas_of(warp, lane, form.of_pair)) {
      if (!check_columns(warp, *cta, lane, place.column, 8, true)) return;
      shift_lanes(warp, *cta, place.lane, kLanes, place.column);
    }
  });
}

// Makes the mbarrier's phase complete after the mma and cp begun so far. The columns of a CTA are waited for at its own
// mbarrier if it has one, otherwise at the first.
void commit(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = form_of(warp, code);
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t address = shared_address(warp, form.place, lane);
    const uint32_t ctas = form.multicasts ? at<const uint16_t>(warp, form.ctas)[lane] : 1;
    std::vector<AsyncRange> open;
    if (warp.cta->tensor_memory) open.swap(warp.cta->tensor_memory->open);
    std::vector<std::pair<SharedPlace, Mbarrier*>> reached;
    for_lanes(ctas, [&](unsigned rank) {
      if (warp.cta->stopped) return;
      Code part = code;
      part.space = form.place.space;
      part.address = form.place.number;
      SharedPlace place;
      const uint64_t target = form.multicasts ? address_in(address, rank) : address;
      if (!find_shared(warp, part, lane, target, 8, 8, place)) return;
      if (Mbarrier* barrier = find_mbarrier(warp, lane, place)) reached.emplace_back(place, barrier);
    });
    if (warp.cta->stopped || reached.empty()) return;
    for (const AsyncRange& range : open) {
      const auto own = std::find_if(reached.begin(), reached.end(),
                                    [&](const auto& each) { return each.first.cta->rank == range.rank; });
      const auto& [place, barrier] = own == reached.end() ? reached.front() : *own;
      add_pending(*place.cta, barrier->ranges, range);
    }
    for (const auto& [place, barrier] : reached) arrive_at(warp, lane, place, *barrier, 1, false, 1u << lane);
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

std::vector<Cta*> ctas_of(Warp& warp, unsigned lane, bool of_pair) {
  Cta& cta = *warp.cta;
  if (!of_pair) return {&cta};
  const std::vector<Cta*>& all = cta.cluster->ctas;
  const uint32_t even = cta.rank & ~1u;
  if (even + 1 >= all.size()) {
    tensor_fault(warp, lane, fmt::format("CTA {} of a cluster of {} is in no pair", cta.rank, all.size()));
    return {};
  }
  const Cta& peer = *all[cta.rank ^ 1];
  if (std::none_of(peer.warps.begin(), peer.warps.end(), [](const auto& each) { return each->live != 0; })) {
    tensor_fault(warp, lane, fmt::format("CTA {}, the other one of the pair, has left", peer.rank));
    return {};
  }
  return {all[even], all[even + 1]};
}

bool check_columns(Warp& warp, Cta& cta, unsigned lane, unsigned column, unsigned columns, bool in_pipeline) {
  const auto* memory = cta.tensor_memory.get();
  const auto holds = [&](const TensorColumns& each) {
    return column >= each.begin && column + columns <= each.begin + each.count;
  };
  if (memory == nullptr || std::none_of(memory->allocations.begin(), memory->allocations.end(), holds))
    return tensor_fault(
        warp, lane,
        fmt::format("columns {} to {} of tensor memory are in no allocation of {}", column, column + columns - 1,
                    &cta == warp.cta ? "the block" : fmt::format("CTA {} of the cluster", cta.rank)));
  if (!checks(*warp.cta, kCheckRaces)) return true;
  for (unsigned i = column; i < column + columns; ++i) {
    const PendingColumn& pending = memory->pending[i];
    if (pending.writer == 0 || (in_pipeline && !pending.is_store)) continue;
    // The stores of one warp are ordered.
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

void mark_pending_columns(Warp& warp, Cta& cta, unsigned column, unsigned columns) {
  auto& open = memory_of(*warp.cta).open;
  add_pending(*warp.cta, open, {column, columns, warp.pc, AsyncUse::tensor_memory, static_cast<uint8_t>(cta.rank)});
  memory_of(cta).mark(open.back(), false);
}

void shift_lanes(Warp& warp, Cta& cta, unsigned first, unsigned lanes, unsigned column) {
  TensorMemory& memory = memory_of(cta);
  for (unsigned to = first; to < first + lanes; ++to)
    for (unsigned i = column; i < column + 8 && to % kLanes != kLanes - 1; ++i) {
      memory.cells[TensorMemory::cell(to, i)] = memory.cells[TensorMemory::cell(to + 1, i)];
      memory.defined[TensorMemory::cell(to, i)] = memory.defined[TensorMemory::cell(to + 1, i)];
    }
  mark_pending_columns(warp, cta, column, 8);
}

bool fetch_shared(Warp& warp, const Code& code, Cta& cta, unsigned lane, uint64_t offset, unsigned bytes,
                  uint32_t& word, bool& defined) {
  if (offset + bytes > cta.shared_bytes) {
    report(warp, {.kind = FaultKind::out_of_bounds,
                  .message = fmt::format("a matrix descriptor reaches {:#x} of .shared, which has {} bytes", offset,
                                         cta.shared_bytes),
                  .lane = lane,
                  .has_address = true,
                  .space = ptx::Space::shared,
                  .address = offset,
                  .access_bytes = bytes});
    return false;
  }
  std::memcpy(&word, cta.shared + offset, bytes);
  if (!cta.launch->checked) return true;
  for (unsigned i = 0; i < bytes; ++i) defined &= cta.shared_shadow[offset + i] == 0xff;
  if (cta.history) note_shared_read(warp, code, lane, cta, offset, bytes);
  return true;
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
    case TensorAction::wait_load:
      code.run = wait_load;
      break;
    case TensorAction::wait_store:
      code.run = wait_store;
      break;
    case TensorAction::copy:
      code.run = copy;
      break;
    case TensorAction::shift:
      code.run = shift;
      break;
    default:
      code.run = commit;
  }
}

}  // namespace ptxkit::emulator
