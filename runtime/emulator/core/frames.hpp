// Function activations: registers and local memory of a call, arguments and results between two of them.
#pragma once

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

inline constexpr uint64_t kMaxLocalBytes = 512 * 1024;  // per thread, as hardware has it

// A frame of `function` with every register undefined. Frames are kept for the next call when their lanes have left.
Frame* take_frame(Warp& warp, const FunctionImage& function);
void leave_frame(Warp& warp, Frame* frame, uint32_t lanes);
void set_frame_base(Frame& frame);  // puts local_base where instructions find it

// Room for `bytes` of local memory in every lane; growing keeps what is there.
void grow_local(Warp& warp, uint64_t bytes);

// Enters `callee` with the lanes of fragment `index`, which becomes that call. False on stack overflow.
bool enter(Warp& warp, size_t index, const CallSite& call, uint32_t callee);
// Fragment `index` goes back to its caller, with its results.
void return_lanes(Warp& warp, size_t index);

// Where one lane's argument or result lies.
struct Place {
  uint8_t* bytes;
  uint8_t* shadow;  // memory: set where defined; register: set where undefined; null when nothing is tracked
  uint32_t* marks;  // registers: lanes with undefined bits
};
Place place_of(Warp& warp, Frame& frame, const CallValue& value, unsigned lane);

}  // namespace ptxkit::emulator
