// What the handlers of tcgen05 share.
#pragma once

#include <string>

#include "runtime/backend/emulator/async_work.hpp"

namespace ptxkit::emulator {

// An address of tensor memory: the lane above, the column below.
struct TensorPlace {
  unsigned lane = 0, column = 0;
};
TensorPlace tensor_place(Warp& warp, const AddressOperand& operand, unsigned lane);

bool tensor_fault(Warp& warp, unsigned lane, std::string message);  // false

// Whether `columns` from `column` on lie within one allocation, and nobody has to be waited for; false after a fault.
// `in_pipeline`: of mma and cp, which follow each other without a wait.
bool reach_columns(Warp& warp, unsigned lane, unsigned column, unsigned columns, bool in_pipeline);

// Columns that mma or cp of this instruction write from now on.
void open_columns(Warp& warp, unsigned column, unsigned columns);

}  // namespace ptxkit::emulator
