// Device memory of the emulator: one reserved range of host address space mapped at a fixed device address, so that
// translating an address is one subtraction. A shadow memory of equal size has one bit for each bit of memory, which is
// set if that bit has a defined value. A table of 256-byte granules finds the object of an address in one load. Objects
// never share a granule, so the object found is the only candidate and its exact bounds decide.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/texture.hpp"
#include "support/result.hpp"

namespace ptxkit::emulator {

// Windows of the generic address space. A generic address whose bits from 40 up equal one of these lies in that space,
// at the offset in the low 40 bits; every other address is global. Global memory begins above 2^32, so that a pointer
// truncated to 32 bits is detected.
inline constexpr unsigned kWindowShift = 40;
inline constexpr Address kWindowMask = (Address{1} << kWindowShift) - 1;
inline constexpr Address kSharedWindow = Address{0x7f} << kWindowShift;
inline constexpr Address kLocalWindow = Address{0x7e} << kWindowShift;
inline constexpr Address kConstWindow = Address{0x7d} << kWindowShift;
inline constexpr Address kParamWindow = Address{0x7c} << kWindowShift;
inline constexpr Address kGlobalBase = Address{0x0a} << kWindowShift;

// Handles of textures, surfaces and samplers: this plus the number of the image.
inline constexpr uint64_t kImageHandles = uint64_t{0x7a} << kWindowShift;

inline constexpr uint8_t kPoison = 0xcb;

// One allocation or variable. `begin` is an offset in its segment.
struct Object {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
  std::string name;
  bool live = true;
  bool read_only = false;
  uint32_t declared_align = 0;  // 0: only the alignment of its place
};

// Objects in a range of bytes: global memory, a CTA's shared memory, or the constant bank. An object is found by the
// granule table, then by exact bounds. Objects that may share a granule (`is_packed`) are kept in ascending order of
// `begin`.
struct ObjectTable {
  unsigned granule_shift = 4;
  bool is_packed = false;
  std::vector<uint32_t> granules;  // object index + 1, 0 for none
  std::vector<Object> objects;

  // Adds an object and returns its number. Objects must not share granules; packed ones must not overlap. The number of
  // a packed object is valid until the next add().
  uint32_t add(Object object);
  // The one object that may hold `offset`, or null.
  const Object* find(uint64_t offset) const {
    if (is_packed) return find_packed(offset);
    uint64_t granule = offset >> granule_shift;
    if (granule >= granules.size() || granules[granule] == 0) return nullptr;
    return &objects[granules[granule] - 1];
  }
  // The object nearest to `offset`, for messages: the last one that begins at or before it, otherwise the first.
  const Object* nearest(uint64_t offset) const;

 private:
  const Object* find_packed(uint64_t offset) const;
};

class Memory {
 public:
  explicit Memory(const DeviceOptions& device_options);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Result<Address> allocate(uint64_t size_bytes, std::string name, uint64_t align_bytes);
  Result<void> release(Address address);
  // Blocks of malloc, at most `limit_bytes` in use, each rounded up to 16 bytes. Returns 0 if there is no room. Freed
  // blocks are kept apart for a while, then reused.
  Address allocate_heap(uint64_t size_bytes, uint64_t limit_bytes);
  void release_heap(Address address);  // requires: the start of a block in use
  bool holds(const uint8_t* place) const { return place >= bytes && place < bytes + limit; }
  // Offset in `bytes` of the range. Error: no live allocation holds all of it.
  Result<uint64_t> locate(Address address, uint64_t size_bytes) const;

  const DeviceOptions options;
  uint8_t* bytes = nullptr;   // device memory from kGlobalBase on
  uint8_t* shadow = nullptr;  // 0xff where defined
  uint64_t limit = 0;         // bytes reserved
  ObjectTable table;
  std::map<uint64_t, uint32_t> live;  // begin -> object
  std::set<Address> heap;             // the allocations of `live` that kernels made
  uint64_t heap_bytes = 0;            // in use
  uint64_t used_bytes = 0;
  std::vector<Image> images;  // by number of the handle

  uint64_t add_image(Image image);
  const Image* image(uint64_t handle) const;  // null: no image has this handle

 private:
  Result<uint64_t> reserve(uint64_t size_bytes, uint64_t align_bytes);
  void recycle();

  uint64_t next_ = 0;                           // first offset never allocated
  std::multimap<uint64_t, uint64_t> recycled_;  // size -> begin: ranges of freed memory, used when the rest is full
  std::vector<uint32_t> freed_;                 // objects freed and not yet recycled, oldest first
  std::deque<uint32_t> freed_blocks_;           // freed blocks of malloc, oldest first
  uint64_t freed_block_bytes_ = 0;              // of address space
  std::map<uint64_t, std::vector<uint32_t>> free_blocks_;  // reusable blocks, by number of granules
};

}  // namespace ptxkit::emulator
