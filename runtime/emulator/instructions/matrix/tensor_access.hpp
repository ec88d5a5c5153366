// What the handlers of tcgen05 share.
#pragma once

#include <string>

#include "runtime/emulator/instructions/memory/async_work.hpp"

namespace ptxkit::emulator {

// An address of tensor memory: the lane above, the column below.
struct TensorPlace {
  unsigned lane = 0, column = 0;
};
TensorPlace tensor_place(Warp& warp, const AddressOperand& operand, unsigned lane);

bool tensor_fault(Warp& warp, unsigned lane, std::string message);  // false

// The CTAs whose tensor memory an instruction reaches: the warp's, or with `of_pair` the pair by rank. Empty after a
// fault: there is no pair, or the other one has left.
std::vector<Cta*> ctas_of(Warp& warp, unsigned lane, bool of_pair);

// Whether `columns` from `column` on of `cta` lie within one allocation, and nobody has to be waited for; false after a
// fault. `in_pipeline`: of mma and cp, which follow each other without a wait.
bool reach_columns(Warp& warp, Cta& cta, unsigned lane, unsigned column, unsigned columns, bool in_pipeline);

// Columns of `cta` that mma or cp of this instruction write from now on.
void open_columns(Warp& warp, Cta& cta, unsigned column, unsigned columns);

// In each 32 of `lanes` lanes from `first` on every one gets the eight cells from `column` on of the next; the last
// keeps its own.
void shift_lanes(Warp& warp, Cta& cta, unsigned first, unsigned lanes, unsigned column);

// A word or less of shared memory of `cta` at a matrix descriptor's offset; false after a fault. Clears `defined` where
// nobody has written it.
bool fetch_shared(Warp& warp, const Code& code, Cta& cta, unsigned lane, uint64_t offset, unsigned bytes,
                  uint32_t& word, bool& defined);

}  // namespace ptxkit::emulator
