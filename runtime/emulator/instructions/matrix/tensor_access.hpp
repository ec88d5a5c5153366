// Functions shared by the handlers of tcgen05.
#pragma once

#include <string>

#include "runtime/emulator/instructions/memory/async_work.hpp"

namespace ptxkit::emulator {

// An address of tensor memory: the lane in the upper half, the column in the lower.
struct TensorPlace {
  unsigned lane = 0, column = 0;
};
TensorPlace tensor_place(Warp& warp, const AddressOperand& operand, unsigned lane);

bool tensor_fault(Warp& warp, unsigned lane, std::string message);  // returns false

// The CTAs whose tensor memory an instruction accesses: the warp's own, or with `of_pair` both of the pair, by rank.
// Empty after a fault: there is no pair, or the other CTA has exited.
std::vector<Cta*> ctas_of(Warp& warp, unsigned lane, bool of_pair);

// Checks that `columns` columns of `cta` from `column` on lie within one allocation and have no pending writer. Returns
// false after a fault. `in_pipeline`: for mma and cp, which may follow each other without a wait.
bool check_columns(Warp& warp, Cta& cta, unsigned lane, unsigned column, unsigned columns, bool in_pipeline);

// Marks columns of `cta` as written by this mma or cp until its commit completes.
void mark_pending_columns(Warp& warp, Cta& cta, unsigned column, unsigned columns);

// In each group of 32 of the `lanes` lanes from `first` on, every lane gets the eight cells from `column` on of the
// next lane; the last lane keeps its own.
void shift_lanes(Warp& warp, Cta& cta, unsigned first, unsigned lanes, unsigned column);

// Reads a word or less of shared memory of `cta`, at an offset that a matrix descriptor gives. Returns false after a
// fault. Clears `defined` if a bit of it is undefined.
bool fetch_shared(Warp& warp, const Code& code, Cta& cta, unsigned lane, uint64_t offset, unsigned bytes,
                  uint32_t& word, bool& defined);

}  // namespace ptxkit::emulator
