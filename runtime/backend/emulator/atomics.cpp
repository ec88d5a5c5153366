// atom and red. Lanes go one after the other, lowest first, so results are the same on every run; between CTAs on
// several threads each operation on one element is one atomic exchange of the host.
#include "runtime/backend/emulator/access.hpp"
#include "runtime/backend/emulator/handlers.hpp"
#include "runtime/backend/emulator/update.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;

bool in_global(const Warp& warp, const uint8_t* place) {
  const Memory& memory = *warp.cta->launch->memory;
  return place >= memory.bytes && place < memory.bytes + memory.limit;
}

// The elements of one instruction: sources first, then destinations, in ProgramImage::refs where there are several.
Ref source_of(const Code& code, const Ref* list, unsigned element) { return code.count == 1 ? code.b : list[element]; }
Ref destination_of(const Code& code, const Ref* list, unsigned element) {
  return code.count == 1 ? code.dst : list[code.count + element];
}

// What one element of one lane makes of the shadow: whether the old value was undefined.
bool check_element(Warp& warp, const Code& code, unsigned lane, uint8_t* shadow, Ref source, bool overwrites) {
  if (!shadow) return false;
  bool undefined = false;
  for (unsigned byte = 0; byte < code.element_bytes; ++byte) undefined |= shadow[byte] != 0xff;
  const bool operand = (undefined_lanes(warp, source) | undefined_lanes(warp, code.c)) >> lane & 1;
  std::memset(shadow, operand || (undefined && !overwrites) ? 0 : 0xff, code.element_bytes);
  return undefined;
}

void mark_destination(Warp& warp, const Code& code, Ref dst, uint32_t mask, uint32_t undefined, uint64_t address) {
  undefined_lanes(warp, dst) = (undefined_lanes(warp, dst) & ~mask) | undefined;
  if (!undefined) return;
  const unsigned bytes = std::max<unsigned>(2, code.element_bytes);
  for_lanes(undefined,
            [&](unsigned i) { std::memset(shadow_at<uint8_t>(warp, dst) + size_t{i} * bytes, 0xff, bytes); });
  warp.cta->origins.push_back({warp.pc, static_cast<uint8_t>(std::countr_zero(undefined)),
                               static_cast<uint16_t>(warp.index), code.space, address});
  origin_of(warp, dst) = static_cast<uint32_t>(warp.cta->origins.size());
}

void exchange_16_bytes(Warp& warp, const Code& code, unsigned lane, uint8_t* place) {
  const std::lock_guard lock(warp.cta->launch->mutex);  // the host has no atomic of this width everywhere
  uint8_t old[16];
  std::memcpy(old, place, 16);
  const uint8_t* b = at<const uint8_t>(warp, code.b) + size_t{lane} * 16;
  const uint8_t* c = at<const uint8_t>(warp, code.c) + size_t{lane} * 16;
  const bool cas = code.sub != 0;
  if (!cas)
    std::memcpy(place, b, 16);
  else if (std::memcmp(old, b, 16) == 0)
    std::memcpy(place, c, 16);
  std::memcpy(at<uint8_t>(warp, code.dst) + size_t{lane} * 16, old, 16);
}

template <bool kChecked>
void atomic(Warp& warp, const Code& code, uint32_t mask) {
  Places places;
  const unsigned size_bytes = code.element_bytes * code.count;
  ++warp.cta->polls;
  if constexpr (kChecked) {
    if (!locate_checked(warp, code, mask, size_bytes, AccessKind::atomic, places)) return;
  } else {
    locate_unchecked(warp, code, mask, size_bytes, places);
  }
  const ProgramImage& image = *warp.cta->launch->image;
  const Ref* list = image.refs.data() + code.list;
  const auto& updates = image.updates[code.target];
  const bool alone = warp.cta->launch->options.threads <= 1;
  for (unsigned element = 0; element < code.count; ++element) {
    const Ref source = source_of(code, list, element), dst = destination_of(code, list, element);
    const unsigned offset = element * code.element_bytes, register_bytes = std::max<unsigned>(2, code.element_bytes);
    uint32_t undefined = 0;
    for_lanes(mask, [&](unsigned i) {
      uint8_t* place = places.bytes[i] + offset;
      if constexpr (kChecked) {
        uint8_t* shadow = places.shadow[i] ? places.shadow[i] + offset : nullptr;
        if (check_element(warp, code, i, shadow, source, updates[0].overwrites)) undefined |= 1u << i;
        if (element == 0) note_update(warp, code, i, places, size_bytes);
      }
      if (code.element_bytes == 16) return exchange_16_bytes(warp, code, i, place);
      uint64_t b = 0, c = 0;
      std::memcpy(&b, at<const uint8_t>(warp, source) + size_t{i} * register_bytes, code.element_bytes);
      std::memcpy(&c, at<const uint8_t>(warp, code.c) + size_t{i} * register_bytes, code.element_bytes);
      const uint64_t old = apply_update(updates[in_global(warp, place)], place, b, c, alone);
      std::memcpy(at<uint8_t>(warp, dst) + size_t{i} * register_bytes, &old, code.element_bytes);
    });
    if constexpr (kChecked)
      mark_destination(warp, code, dst, mask, undefined,
                       undefined ? places.address[std::countr_zero(undefined)] + offset : 0);
  }
}

}  // namespace

bool select_atomic(Code& code, ProgramImage& image, Mod operation, Type type) {
  code.run = atomic<false>;
  code.checked = atomic<true>;
  code.target = static_cast<uint32_t>(image.updates.size());
  const bool wide = type == Type::b128;
  if (wide) {
    if (operation != Mod::exch && operation != Mod::cas) return false;
    code.sub = operation == Mod::cas;
    image.updates.push_back({Update{.overwrites = operation == Mod::exch}, Update{}});
    return true;
  }
  image.updates.push_back({find_update(operation, type, false), find_update(operation, type, true)});
  return image.updates.back()[0].apply != nullptr;
}

}  // namespace ptxkit::emulator
