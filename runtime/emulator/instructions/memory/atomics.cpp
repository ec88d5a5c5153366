// atom and red. Lanes run in order, lowest first, so results are the same in every run. Between CTAs on several
// threads, each update of an element is one atomic exchange of the host.
#include <algorithm>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/update.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/sanitizer/hang.hpp"
#include "runtime/emulator/sanitizer/undefined_update.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;

constexpr unsigned kMaxElements = 8;  // .v8.f16

bool in_global(const Warp& warp, const uint8_t* place) {
  const Memory& memory = *warp.cta->launch->memory;
  return place >= memory.bytes && place < memory.bytes + memory.limit;
}

// The operands of element `element`; if there are several, ProgramImage::refs holds the sources, then the destinations.
Ref source_of(const Code& code, const Ref* list, unsigned element) { return code.count == 1 ? code.b : list[element]; }
Ref destination_of(const Code& code, const Ref* list, unsigned element) {
  return code.count == 1 ? code.dst : list[code.count + element];
}

UpdatedElement element_at(const Places& places, unsigned lane, unsigned offset) {
  if (places.owner[lane]) return {lane, ptx::Space::shared, places.offset[lane] + offset};
  return {lane, ptx::Space::global, places.address[lane] + offset};
}

// Undefined bits of an operand in one lane.
uint64_t undefined_operand(Warp& warp, const Code& code, unsigned lane, Ref ref) {
  if (!(undefined_lanes(warp, ref) >> lane & 1)) return 0;
  const unsigned register_bytes = std::max<unsigned>(2, code.element_bytes);
  uint64_t bits = 0;
  std::memcpy(&bits, shadow_at<const uint8_t>(warp, ref) + size_t{lane} * register_bytes,
              std::min<unsigned>(code.element_bytes, 8));
  return bits;
}

// Elements of 16 bytes: exch and cas of whole values. Returns whether the old value is undefined.
bool check_16_bytes(Warp& warp, const Code& code, unsigned lane, uint8_t* shadow, bool overwrites,
                    const UpdatedElement& where) {
  const bool undefined = undefined_bits(shadow, 8) || undefined_bits(shadow + 8, 8);
  const bool operand = (undefined_lanes(warp, code.b) | undefined_lanes(warp, code.c)) >> lane & 1;
  if (undefined && !overwrites) report_undefined_update(warp, where, 16);
  std::memset(shadow, operand ? 0 : 0xff, 16);
  return undefined && overwrites;
}

void mark_destination(Warp& warp, const Code& code, Ref dst, uint32_t mask, std::span<const uint64_t, kLanes> bits,
                      const Places& places, unsigned offset) {
  uint32_t undefined = 0;
  for_lanes(mask, [&](unsigned i) { undefined |= uint32_t{bits[i] != 0} << i; });
  undefined_lanes(warp, dst) = (undefined_lanes(warp, dst) & ~mask) | undefined;
  if (!undefined) return;
  const unsigned register_bytes = std::max<unsigned>(2, code.element_bytes);
  for_lanes(undefined, [&](unsigned i) {
    uint8_t* shadow = shadow_at<uint8_t>(warp, dst) + size_t{i} * register_bytes;
    if (register_bytes > 8)
      std::memset(shadow, 0xff, register_bytes);
    else
      std::memcpy(shadow, &bits[i], register_bytes);
  });
  const auto first = static_cast<unsigned>(std::countr_zero(undefined));
  const UpdatedElement where = element_at(places, first, offset);
  origin_of(warp, dst) = add_origin(
      *warp.cta, {warp.pc, static_cast<uint8_t>(first), static_cast<uint16_t>(warp.index), where.space, where.address});
}

void exchange_16_bytes(Warp& warp, const Code& code, unsigned lane, uint8_t* place) {
  const std::lock_guard lock(warp.cta->launch->mutex);  // not all hosts have an atomic of this width
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
  ++warp.cta->stores;
  if constexpr (kChecked) {
    if (!locate_checked(warp, code, mask, size_bytes, AccessKind::atomic, places)) return;
  } else {
    locate_unchecked(warp, code, mask, size_bytes, places);
  }
  if (warp.cta->searched) note_polled_read(warp, code, mask, places.address);
  const ProgramImage& image = *warp.cta->launch->image;
  const Ref* list = image.refs.data() + code.list;
  const auto& updates = image.updates[code.target];
  const bool alone = warp.cta->launch->options.threads <= 1;
  const unsigned register_bytes = std::max<unsigned>(2, code.element_bytes);
  // Reads all operands before the first destination is written, which may be a source too.
  uint64_t operands[kMaxElements][kLanes], undefined_operands[kMaxElements][kLanes];
  for (unsigned element = 0; element < code.count && code.element_bytes <= 8; ++element) {
    const Ref source = source_of(code, list, element);
    for_lanes(mask, [&](unsigned i) {
      operands[element][i] = 0;
      std::memcpy(&operands[element][i], at<const uint8_t>(warp, source) + size_t{i} * register_bytes,
                  code.element_bytes);
      if constexpr (kChecked) undefined_operands[element][i] = undefined_operand(warp, code, i, source);
    });
  }
  for (unsigned element = 0; element < code.count; ++element) {
    const Ref dst = destination_of(code, list, element);
    const unsigned offset = element * code.element_bytes;
    std::array<uint64_t, kLanes> undefined{};
    for_lanes(mask, [&](unsigned i) {
      uint8_t* place = places.bytes[i] + offset;
      uint8_t* shadow = kChecked && places.shadow[i] ? places.shadow[i] + offset : nullptr;
      if constexpr (kChecked) {
        if (element == 0) note_update(warp, code, i, places, size_bytes);
      }
      if (code.element_bytes == 16) {
        if (shadow) undefined[i] = check_16_bytes(warp, code, i, shadow, code.sub == 0, element_at(places, i, offset));
        note_change(*warp.cta);
        return exchange_16_bytes(warp, code, i, place);
      }
      const uint64_t b = operands[element][i];
      uint64_t c = 0;
      std::memcpy(&c, at<const uint8_t>(warp, code.c) + size_t{i} * register_bytes, code.element_bytes);
      const uint64_t old = apply_update(updates[in_global(warp, place)], place, b, c, alone);
      if (warp.cta->searched && std::memcmp(&old, place, code.element_bytes) != 0) note_change(*warp.cta);
      if (shadow)
        undefined[i] =
            note_undefined_update(warp, updates[0], {old, b, c},
                                  {.b = undefined_operands[element][i], .c = undefined_operand(warp, code, i, code.c)},
                                  shadow, element_at(places, i, offset));
      std::memcpy(at<uint8_t>(warp, dst) + size_t{i} * register_bytes, &old, code.element_bytes);
    });
    if constexpr (kChecked) mark_destination(warp, code, dst, mask, undefined, places, offset);
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
    image.updates.push_back({});
    return true;
  }
  image.updates.push_back(
      {find_update(operation, type, Adder::of_threads), find_update(operation, type, Adder::of_memory_flushing)});
  return image.updates.back()[0].apply != nullptr;
}

}  // namespace ptxkit::emulator
