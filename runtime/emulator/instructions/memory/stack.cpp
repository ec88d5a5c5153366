// alloca, stacksave, stackrestore: local memory that grows while a function runs, separately for each lane.
// PTX ISA 9.0, 9.7.15.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/emulator/core/frames.hpp"
#include "runtime/emulator/core/handlers.hpp"

namespace ptxkit::emulator {

namespace {

uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

template <class T>
void allocate(Warp& warp, const Code& code, uint32_t mask) {
  Frame& frame = *warp.frame;
  if (frame.dynamic_top.empty()) frame.dynamic_top.assign(kLanes, frame.function->local_bytes);
  const T* sizes = at<const T>(warp, code.a);
  T* d = at<T>(warp, code.dst);
  const uint64_t align = code.immediate;
  for_lanes(mask, [&](unsigned lane) {
    if (warp.cta->stopped) return;
    // A gap of 16 bytes, so that an overrun of one allocation is detected.
    const uint64_t begin = align_up(frame.local_base + frame.dynamic_top[lane] + 16, align) - frame.local_base;
    const uint64_t size_bytes = sizes[lane], end = begin + size_bytes;
    if (size_bytes > kMaxLocalBytes || frame.local_base + end > kMaxLocalBytes) {
      report(warp, {.kind = FaultKind::stack_overflow,
                    .message = fmt::format("alloca of {} bytes exceeds the {} bytes of local memory", size_bytes,
                                           kMaxLocalBytes),
                    .lane = lane});
      return;
    }
    grow_local(warp, frame.local_base + end + 16);
    frame.dynamic.push_back({lane, begin, size_bytes});
    frame.dynamic_top[lane] = end;
    if (!warp.local_shadow.empty())
      std::memset(warp.local_shadow.data() + lane * warp.local_bytes + frame.local_base + begin, 0, size_bytes);
    d[lane] = static_cast<T>(frame.local_base + begin);
  });
}

template <class T>
void save(Warp& warp, const Code& code, uint32_t mask) {
  const Frame& frame = *warp.frame;
  T* d = at<T>(warp, code.dst);
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t top = frame.dynamic_top.empty() ? frame.function->local_bytes : frame.dynamic_top[lane];
    d[lane] = static_cast<T>(frame.local_base + top);
  });
}

template <class T>
void restore(Warp& warp, const Code& code, uint32_t mask) {
  Frame& frame = *warp.frame;
  if (frame.dynamic_top.empty()) return;
  const T* a = at<const T>(warp, code.a);
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t top = a[lane] - frame.local_base;
    if (top >= frame.dynamic_top[lane]) return;
    frame.dynamic_top[lane] = std::max<uint64_t>(top, frame.function->local_bytes);
    std::erase_if(frame.dynamic, [&](const DynamicLocal& each) { return each.lane == lane && each.begin >= top; });
  });
}

}  // namespace

bool select_stack(Code& code, ptx::Op op, bool wide) {
  switch (op) {
    case ptx::Op::alloca:
      code.run = wide ? allocate<uint64_t> : allocate<uint32_t>;
      return true;
    case ptx::Op::stacksave:
      code.run = wide ? save<uint64_t> : save<uint32_t>;
      return true;
    case ptx::Op::stackrestore:
      code.run = wide ? restore<uint64_t> : restore<uint32_t>;
      return true;
    default:
      return false;
  }
}

}  // namespace ptxkit::emulator
