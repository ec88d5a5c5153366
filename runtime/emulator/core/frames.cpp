// See frames.hpp.
#include "runtime/emulator/core/frames.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ptxkit::emulator {

namespace {

constexpr uint32_t kMaxDepth = 4096;

}  // namespace

Frame* acquire_frame(Warp& warp, const FunctionImage& function) {
  if (warp.free_frames.empty()) {
    warp.frame_pool.push_back(std::make_unique<Frame>());
    warp.free_frames.push_back(warp.frame_pool.back().get());
  }
  Frame* frame = warp.free_frames.back();
  warp.free_frames.pop_back();
  const bool checked = warp.cta->launch->checked;
  const size_t units = function.frame_units;
  const size_t words = units * (kUnitBytes / 8);
  // Values, and when checked: shadow plane, undefined lanes, origins.
  const size_t needed = checked ? 2 * words + units : words;
  if (frame->storage.size() < needed + 8) frame->storage.resize(needed + 8);
  auto begin = (reinterpret_cast<uintptr_t>(frame->storage.data()) + kUnitBytes - 1) & ~uintptr_t{kUnitBytes - 1};
  frame->values = reinterpret_cast<uint8_t*>(begin);
  std::memset(frame->values, 0, words * 8);
  if (checked) {
    frame->shadow = frame->values + words * 8;
    std::memset(frame->shadow, 0xff, words * 8);
    frame->undefined = reinterpret_cast<uint32_t*>(frame->shadow + words * 8);
    frame->origin = frame->undefined + units;
    std::memset(frame->undefined, 0, kFirstRegister * sizeof(uint32_t));
    std::memset(frame->undefined + kFirstRegister, 0xff, (units - kFirstRegister) * sizeof(uint32_t));
    std::memset(frame->origin, 0, units * sizeof(uint32_t));
  } else {
    frame->shadow = nullptr;
    frame->undefined = frame->origin = nullptr;
  }
  frame->function = &function;
  frame->caller = nullptr;
  frame->call = nullptr;
  frame->depth = 0;
  frame->local_base = 0;
  frame->dynamic.clear();
  frame->dynamic_top.clear();
  return frame;
}

void set_frame_base(Frame& frame) {
  auto* wide = reinterpret_cast<uint64_t*>(frame.values + size_t{kFrameBase64Ref} * kUnitBytes);
  auto* narrow = reinterpret_cast<uint32_t*>(frame.values + size_t{kFrameBase32Ref} * kUnitBytes);
  std::fill_n(wide, kLanes, frame.local_base);
  std::fill_n(narrow, kLanes, static_cast<uint32_t>(frame.local_base));
}

void leave_frame(Warp& warp, Frame* frame, uint32_t lanes) {
  frame->lanes &= ~lanes;
  if (frame->lanes == 0) warp.free_frames.push_back(frame);
}

void grow_local(Warp& warp, uint64_t bytes) {
  if (bytes <= warp.local_bytes) return;
  uint64_t old = warp.local_bytes, grown = std::max(bytes, old * 2);
  auto widen = [&](std::vector<uint8_t>& lanes, uint8_t fill) {
    std::vector<uint8_t> wider(grown * kLanes, fill);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::copy_n(lanes.begin() + static_cast<ptrdiff_t>(lane * old), old,
                  wider.begin() + static_cast<ptrdiff_t>(lane * grown));
    lanes = std::move(wider);
  };
  widen(warp.local, kPoison);
  if (warp.cta->launch->checked) widen(warp.local_shadow, 0);
  warp.local_bytes = grown;
}

// Marks new variables of a frame as undefined.
void forget_locals(Warp& warp, const Frame& frame, uint32_t lanes) {
  if (!warp.cta->launch->checked || frame.function->local_bytes == 0) return;
  for_lanes(lanes, [&](unsigned lane) {
    std::memset(warp.local_shadow.data() + lane * warp.local_bytes + frame.local_base, 0, frame.function->local_bytes);
  });
}

Place place_of(Warp& warp, Frame& frame, const CallValue& value, unsigned lane) {
  if (!value.in_register) {
    uint64_t offset = lane * warp.local_bytes + frame.local_base + value.offset;
    return {warp.local.data() + offset, warp.local_shadow.empty() ? nullptr : warp.local_shadow.data() + offset,
            nullptr};
  }
  if (value.ref >> 30) return {at<uint8_t>(warp, value.ref) + size_t{lane} * value.bytes, nullptr, nullptr};
  size_t offset = size_t{value.ref & kRefIndex} * kUnitBytes + size_t{lane} * value.bytes;
  return {frame.values + offset, frame.shadow ? frame.shadow + offset : nullptr,
          frame.undefined ? frame.undefined + (value.ref & kRefIndex) : nullptr};
}

// Copies one argument or result of one lane between frames, with its undefined bits.
void copy_value(Warp& warp, Frame& from_frame, const CallValue& from, Frame& to_frame, const CallValue& to,
                unsigned lane) {
  if (from.is_predicate != to.is_predicate) return;
  if (from.is_predicate) {
    auto word = [&](Frame& frame, Ref ref) {
      return ref >> 30 ? at<uint32_t>(warp, ref) : reinterpret_cast<uint32_t*>(frame.values + size_t{ref} * kUnitBytes);
    };
    const uint32_t bit = 1u << lane;
    uint32_t* out = word(to_frame, to.ref);
    *out = (*out & ~bit) | (*word(from_frame, from.ref) & bit);
    if (from_frame.undefined && !(from.ref >> 30))
      to_frame.undefined[to.ref] = (to_frame.undefined[to.ref] & ~bit) | (from_frame.undefined[from.ref] & bit);
    return;
  }
  Place source = place_of(warp, from_frame, from, lane), target = place_of(warp, to_frame, to, lane);
  uint64_t size_bytes =
      std::min(from.in_register ? from.bytes : from.size_bytes, to.in_register ? to.bytes : to.size_bytes);
  if (to.in_register && to.bytes > size_bytes) std::memset(target.bytes, 0, to.bytes);
  std::memcpy(target.bytes, source.bytes, size_bytes);
  if (!warp.cta->launch->checked) return;
  auto undefined_byte = [&](uint64_t i) -> uint8_t {
    if (!source.shadow) return 0;
    if (!from.in_register) return static_cast<uint8_t>(~source.shadow[i]);
    return source.marks && (*source.marks >> lane & 1) ? source.shadow[i] : uint8_t{0};
  };
  bool any = false;
  for (uint64_t i = 0; i < size_bytes; ++i) {
    uint8_t bits = undefined_byte(i);
    any |= bits != 0;
    if (target.shadow) target.shadow[i] = to.in_register ? bits : static_cast<uint8_t>(~bits);
  }
  if (target.marks) *target.marks = (*target.marks & ~(1u << lane)) | uint32_t{any} << lane;
}

bool enter(Warp& warp, size_t index, const CallSite& call, uint32_t callee) {
  Fragment& fragment = warp.fragments[index];
  const FunctionImage& function = warp.cta->launch->image->functions[callee];
  Frame* caller = fragment.frame;
  uint64_t top = caller->function->local_bytes;
  for (uint64_t each : caller->dynamic_top) top = std::max(top, each);
  uint64_t base = (caller->local_base + top + 15) & ~uint64_t{15};
  if (caller->depth + 1 > kMaxDepth || base + function.local_bytes > kMaxLocalBytes) {
    report(warp, {.kind = FaultKind::stack_overflow,
                  .message = fmt::format("call of '{}' at depth {} needs {} bytes of local memory", function.name,
                                         caller->depth + 1, base + function.local_bytes),
                  .lane = static_cast<unsigned>(std::countr_zero(fragment.mask))});
    return false;
  }
  Frame* frame = acquire_frame(warp, function);
  frame->caller = caller;
  frame->return_pc = fragment.pc + 1;
  frame->call = &call;
  frame->lanes = fragment.mask;
  frame->depth = caller->depth + 1;
  frame->local_base = base;
  set_frame_base(*frame);
  grow_local(warp, base + function.local_bytes);
  forget_locals(warp, *frame, fragment.mask);
  for (size_t i = 0; i < std::min(call.arguments.size(), function.parameters.size()); ++i)
    for_lanes(fragment.mask, [&](unsigned lane) {
      copy_value(warp, *caller, call.arguments[i], *frame, function.parameters[i], lane);
    });
  fragment.frame = frame;
  fragment.pc = function.first_code;
  return true;
}

void return_lanes(Warp& warp, size_t index) {
  Fragment& fragment = warp.fragments[index];
  Frame* frame = fragment.frame;
  const CallSite& call = *frame->call;
  for (size_t i = 0; i < std::min(call.results.size(), frame->function->results.size()); ++i)
    for_lanes(fragment.mask, [&](unsigned lane) {
      copy_value(warp, *frame, frame->function->results[i], *frame->caller, call.results[i], lane);
    });
  fragment.frame = frame->caller;
  fragment.pc = frame->return_pc;
  leave_frame(warp, frame, fragment.mask);
}

}  // namespace ptxkit::emulator
