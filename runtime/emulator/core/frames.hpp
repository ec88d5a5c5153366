// Activations of functions: registers and local memory of a call, arguments and results between two frames.
#pragma once

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

inline constexpr uint64_t kMaxLocalBytes = 512 * 1024;  // per thread, as on hardware

// A frame of `function` with every register undefined. A frame is reused once its lanes have left it.
Frame* acquire_frame(Warp& warp, const FunctionImage& function);
void leave_frame(Warp& warp, Frame* frame, uint32_t lanes);
void set_frame_base(Frame& frame);  // writes local_base to the slots that instructions read

// Provides `bytes` of local memory in every lane and keeps its contents.
void grow_local(Warp& warp, uint64_t bytes);

// Enters `callee` with the lanes of fragment `index`, which becomes that call. Returns false on stack overflow.
bool enter(Warp& warp, size_t index, const CallSite& call, uint32_t callee);
// Returns fragment `index` to its caller, with its results.
void return_lanes(Warp& warp, size_t index);

// The place of one lane's argument or result.
struct Place {
  uint8_t* bytes;
  uint8_t* shadow;  // memory: set if defined; register: set if undefined; null if not tracked
  uint32_t* marks;  // registers: lanes with undefined bits
};
Place place_of(Warp& warp, Frame& frame, const CallValue& value, unsigned lane);

}  // namespace ptxkit::emulator
