// Calls followed: a kernel with the bodies of the functions that it calls put in their place.
//
// This is how facts flow into callees and back. Every analysis is then one of a single function, each call has its own
// copy of the callee, and what a caller passes (an alignment, a bound, a uniform value) is known there. Parameters
// become registers; `ret` becomes a branch to what follows the call. Every instruction keeps its place in the text, and
// `origins` says which function it is of and by which calls control came there.
//
// A call stays a call, of which analyses assume the worst, where it goes through a register or to a function without a
// body, where it recurs, where parameters are not plain words that are stored and loaded alike, and where the kernel
// would grow beyond kMaxInstructions.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

// A call that was followed. `from` is the call by which its own function was entered; kNone in the kernel.
struct FollowedCall {
  ptx::FunctionId caller = ptx::kNone;
  ptx::InstructionId instruction = ptx::kNone;  // of the caller
  ptx::FunctionId callee = ptx::kNone;
  uint32_t from = ptx::kNone;  // index into Inlined::calls
};

struct Inlined {
  struct Origin {
    ptx::FunctionId function = ptx::kNone;
    ptx::InstructionId instruction = ptx::kNone;  // of that function; the call, where `is_made`
    uint32_t call = ptx::kNone;                   // index into `calls`; kNone in the kernel's own text
    bool is_made = false;                         // not in the text: passes a parameter, or goes around a guarded call
  };
  ptx::Function function;
  std::vector<Origin> origins;  // of its instructions
  std::vector<FollowedCall> calls;

  static constexpr size_t kMaxInstructions = 16384;  // added to the kernel's own
};

// Nothing where the kernel makes no call that can be followed.
std::optional<Inlined> inline_calls(const ptx::Module& module, ptx::FunctionId kernel);

}  // namespace ptxkit::flow
