// Resolves addresses to host memory, with or without the sanitizer. Shared by loads, stores and atomics.
#pragma once

#include <algorithm>
#include <ranges>
#include <vector>

#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/image.hpp"
#include "runtime/emulator/core/memory.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

using ptx::AccessKind;

// The place of each lane's access; valid for the lanes of `lanes`.
struct Places {
  uint32_t lanes = 0;
  uint8_t* bytes[kLanes];
  uint8_t* shadow[kLanes];   // checked only; null if the space has none (parameters, constants: always defined)
  uint64_t address[kLanes];  // as computed: offset in its space, or generic
  // Checked only: the history for race detection; null if races are not detected there.
  AccessHistory* history[kLanes];
  Cta* owner[kLanes];       // of shared memory; null for global
  uint64_t offset[kLanes];  // in shared memory of `owner`, or in global memory
};

inline void compute_addresses(Warp& warp, const Code& code, uint64_t* out) {
  if (code.narrow && (code.space == ptx::Space::generic || code.space == ptx::Space::global)) {
    const uint32_t* a = at<const uint32_t>(warp, code.a);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = widen_address(a[i] + static_cast<uint32_t>(code.immediate));
  } else if (code.wide_address) {
    const uint64_t* a = at<const uint64_t>(warp, code.a);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = a[i] + code.immediate;
  } else {
    const uint32_t* a = at<const uint32_t>(warp, code.a);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = static_cast<uint32_t>(a[i] + static_cast<uint32_t>(code.immediate));
  }
}

// Unchecked: an address outside of all memory resolves to a scratch area of zeros.
void locate_unchecked(Warp& warp, const Code& code, uint32_t mask, unsigned size_bytes, Places& places);
// Checked: returns false if a fault stopped the CTA.
bool locate_checked(Warp& warp, const Code& code, uint32_t mask, unsigned size_bytes, AccessKind kind, Places& places);

// The same for addresses that the caller has put into places.address: offsets in code.space, or generic ones.
// `size_bytes` may be large; unchecked places of more than 64 bytes outside of all memory are null.
void locate_at_unchecked(Warp& warp, const Code& code, uint32_t mask, uint64_t size_bytes, Places& places);
bool locate_at_checked(Warp& warp, const Code& code, uint32_t mask, uint64_t size_bytes, unsigned align_bytes,
                       AccessKind kind, Places& places);

// Checks that the lanes' addresses are multiples of `size_bytes`, a power of two. Returns false after a fault.
bool check_alignment(Warp& warp, const Code& code, uint32_t mask, const uint64_t* addresses, unsigned size_bytes,
                     AccessKind kind);

// The objects that an address in shared memory may point into.
struct AllowedObjects {
  const std::vector<uint64_t>* begins = nullptr;  // first bytes of objects; null: any object
  const Object* object = nullptr;                 // the object, if there is only one

  bool contains(const Object& found) const {
    return begins == nullptr || std::ranges::find(*begins, found.begin) != begins->end();
  }
};
AllowedObjects allowed_objects(const Launch& launch, const Code& code);
// The first byte of an object in shared memory, and its declared alignment.
struct DeclaredAlignment {
  uint64_t begin = 0;
  uint32_t align_bytes = 0;
};
// Notes that an access needs a multiple of `align_bytes` but the object declares less; once for each object.
void note_undeclared_alignment(Warp& warp, const Code& code, unsigned lane, uint64_t address, uint64_t size_bytes,
                               unsigned align_bytes, const DeclaredAlignment& declared, AccessKind kind);

// Race detection for one lane, after locate_checked. Does nothing if `places` has no history.
void note_read(Warp& warp, const Code& code, unsigned lane, const Places& places, uint64_t size_bytes);
void note_write(Warp& warp, const Code& code, unsigned lane, const Places& places, uint64_t size_bytes,
                bool unchanged = false);  // the bytes keep their values
void note_update(Warp& warp, const Code& code, unsigned lane, const Places& places,
                 uint64_t size_bytes);  // read and write
// The same for shared memory of `owner`.
void note_shared_read(Warp& warp, const Code& code, unsigned lane, Cta& owner, uint64_t offset, uint64_t size_bytes);
void note_shared_write(Warp& warp, const Code& code, unsigned lane, Cta& owner, uint64_t offset, uint64_t size_bytes);
// Identifies a place for CtaOrder.
uint64_t location_of(const Cta* owner, uint64_t offset);
// fence and membar; only with the check for races.
void note_fence(Warp& warp, const Code& code, uint32_t mask);

Handler load_handler(bool checked);
Handler store_handler(bool checked);

}  // namespace ptxkit::emulator
