// Inlines calls: replaces calls in a kernel by the bodies of the called functions.
//
// Facts then flow into callees and back. Every analysis works on a single function, each call has its own copy of the
// callee, and the caller's facts (an alignment, a bound, a uniform value) are known there. Parameters become registers;
// `ret` becomes a branch to the code after the call. Every instruction keeps its place in the text, and `origins` gives
// its function and its chain of calls.
//
// A call is kept, and analyses assume the worst of it, if it goes through a register or to a function without a body,
// if it is recursive, if its parameters are not plain words that are stored and loaded alike, or if the kernel would
// grow beyond kMaxInstructions.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

// An inlined call. `from` is the call that entered the caller; kNone in the kernel.
struct FollowedCall {
  ptx::FunctionId caller = ptx::kNone;
  ptx::InstructionId instruction = ptx::kNone;  // of the caller
  ptx::FunctionId callee = ptx::kNone;
  uint32_t from = ptx::kNone;  // index into Inlined::calls
};

struct Inlined {
  struct Origin {
    ptx::FunctionId function = ptx::kNone;
    ptx::InstructionId instruction = ptx::kNone;  // in that function; the call, where `is_made`
    uint32_t call = ptx::kNone;                   // index into `calls`; kNone in the kernel's own text
    bool is_made = false;                         // not in the text: passes a parameter, or skips a guarded call
  };
  ptx::Function function;
  std::vector<Origin> origins;  // of the instructions of `function`
  std::vector<FollowedCall> calls;

  static constexpr size_t kMaxInstructions = 16384;  // limit on the instructions added to the kernel
};

// Returns nothing where no call can be inlined.
std::optional<Inlined> inline_calls(const ptx::Module& module, ptx::FunctionId kernel);

}  // namespace ptxkit::flow
