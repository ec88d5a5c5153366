// Allocation moves forward and reuses nothing until the reserved range is full; then the ranges of freed objects are
// reused, oldest first. A pointer to freed memory therefore finds the freed object, not a new one.
#include "runtime/emulator/core/memory.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "support/check.hpp"
#include "support/saturating.hpp"

namespace ptxkit::emulator {

namespace {

constexpr unsigned kGlobalGranuleShift = 8;
constexpr uint64_t kGuardBytes = 256;
constexpr uint64_t kPageBytes = 4096;

uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

uint8_t* reserve_pages(uint64_t size_bytes) {
  void* pages = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<uint8_t*>(pages);
}

// Returns the whole pages in a range to the system, so that freed device memory costs nothing.
void drop_pages(uint8_t* bytes, uint64_t size_bytes) {
  auto begin = align_up(reinterpret_cast<uint64_t>(bytes), kPageBytes);
  auto end = (reinterpret_cast<uint64_t>(bytes) + size_bytes) & ~(kPageBytes - 1);
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

uint32_t ObjectTable::add(Object object) {
  if (is_packed) {
    const auto at = std::ranges::upper_bound(objects, object.begin, {}, &Object::begin);
    return static_cast<uint32_t>(objects.insert(at, std::move(object)) - objects.begin());
  }
  uint64_t first = object.begin >> granule_shift;
  uint64_t last = (object.begin + (object.size_bytes ? object.size_bytes - 1 : 0)) >> granule_shift;
  if (granules.size() <= last) granules.resize(std::max<uint64_t>(last + 1, granules.size() * 3 / 2));
  auto id = static_cast<uint32_t>(objects.size());
  for (uint64_t granule = first; granule <= last; ++granule) granules[granule] = id + 1;
  objects.push_back(std::move(object));
  return id;
}

const Object* ObjectTable::find_packed(uint64_t offset) const {
  const auto behind = std::ranges::upper_bound(objects, offset, {}, &Object::begin);
  return behind == objects.begin() ? nullptr : &*std::prev(behind);
}

const Object* ObjectTable::nearest(uint64_t offset) const {
  if (is_packed) {
    const Object* object = find_packed(offset);
    return object || objects.empty() ? object : &objects.front();
  }
  if (objects.empty() || granules.empty()) return nullptr;
  uint64_t granule = std::min<uint64_t>(offset >> granule_shift, granules.size() - 1);
  for (uint64_t at = granule + 1; at-- > 0;)
    if (granules[at]) {
      const Object& object = objects[granules[at] - 1];
      if (object.begin <= offset || at == 0) return &object;
    }
  for (uint32_t id : granules)
    if (id) return &objects[id - 1];
  return nullptr;
}

Memory::Memory(const DeviceOptions& device_options) : options(device_options) {
  table.granule_shift = kGlobalGranuleShift;
  // Containers may forbid large reservations: halve the size until one succeeds.
  for (limit = align_up(options.memory_bytes, kPageBytes); limit >= (uint64_t{1} << 20); limit /= 2) {
    bytes = reserve_pages(limit);
    shadow = bytes ? reserve_pages(limit) : nullptr;
    if (shadow) break;
    if (bytes) munmap(bytes, limit);
    bytes = nullptr;
  }
  if (shadow == nullptr) throw std::bad_alloc();
}

Memory::~Memory() {
  munmap(bytes, limit);
  munmap(shadow, limit);
}

void Memory::recycle() {
  for (uint32_t id : freed_) {
    Object& object = table.objects[id];
    uint64_t begin = object.begin & ~((uint64_t{1} << kGlobalGranuleShift) - 1);
    uint64_t end =
        align_up(object.begin + std::max<uint64_t>(object.size_bytes, 1), uint64_t{1} << kGlobalGranuleShift);
    for (uint64_t at = begin >> kGlobalGranuleShift; at < end >> kGlobalGranuleShift; ++at) table.granules[at] = 0;
    recycled_.emplace(end - begin, begin);
  }
  if (freed_.empty()) return;
  freed_.clear();
  // Merges neighbours that only a guard separates.
  std::map<uint64_t, uint64_t> ends;  // by begin
  for (const auto& [room, begin] : recycled_) ends[begin] = begin + room;
  recycled_.clear();
  const auto is_empty = [&](uint64_t from, uint64_t to) {
    for (uint64_t at = from >> kGlobalGranuleShift; at < to >> kGlobalGranuleShift; ++at)
      if (at < table.granules.size() && table.granules[at] != 0) return false;
    return true;
  };
  for (auto it = ends.begin(); it != ends.end();) {
    auto [begin, end] = *it;
    for (++it; it != ends.end() && it->first - end <= 4 * kGuardBytes && is_empty(end, it->first); ++it)
      end = it->second;
    recycled_.emplace(end - begin, begin);
  }
}

Result<uint64_t> Memory::reserve(uint64_t size_bytes, uint64_t align_bytes) {
  // Aligned to exactly `align_bytes`: an odd multiple of it.
  auto place = [&](uint64_t from) {
    uint64_t begin = align_up(from, align_bytes);
    if ((begin & align_bytes) == 0) begin += align_bytes;
    return begin;
  };
  uint64_t begin = place(align_up(next_, uint64_t{1} << kGlobalGranuleShift) + kGuardBytes);
  if (begin <= limit && size_bytes <= limit - begin && limit - begin - size_bytes >= kGuardBytes) {
    next_ = begin + size_bytes;
    return begin;
  }
  recycle();
  for (auto it = recycled_.lower_bound(std::max<uint64_t>(size_bytes, 1)); it != recycled_.end(); ++it) {
    auto [room, start] = *it;
    begin = place(start);
    const uint64_t end = start + room;
    if (begin + size_bytes > end) continue;
    recycled_.erase(it);
    // The rest of the range behind the object and a guard.
    const uint64_t rest =
        align_up(begin + std::max<uint64_t>(size_bytes, 1), uint64_t{1} << kGlobalGranuleShift) + kGuardBytes;
    if (rest < end) recycled_.emplace(end - rest, rest);
    return begin;
  }
  return fail(fmt::format("out of device memory: {} bytes wanted, {} bytes in use, {} bytes in all", size_bytes,
                          used_bytes, limit),
              "", "free allocations or raise DeviceOptions::memory_bytes");
}

Result<Address> Memory::allocate(uint64_t size_bytes, std::string name, uint64_t align_bytes) {
  if (!std::has_single_bit(align_bytes) || align_bytes > (uint64_t{1} << 30))
    return fail(fmt::format("alignment {} of allocation '{}' is not a power of two up to 2^30", align_bytes, name));
  if (size_bytes > limit)
    return fail(fmt::format("allocation '{}' of {} bytes exceeds the device's {} bytes", name, size_bytes, limit));
  auto begin = reserve(size_bytes, align_bytes);
  if (!begin) return tl::unexpected(begin.error());
  // release() takes no memory: destructors call it.
  if (const size_t count = table.objects.size() + 1; freed_.capacity() < count) freed_.reserve(2 * count);
  std::memset(bytes + *begin, kPoison, size_bytes);
  std::memset(shadow + *begin, 0, size_bytes);
  live[*begin] = table.add({*begin, size_bytes, std::move(name), true, false});
  used_bytes += size_bytes;
  return kGlobalBase + *begin;
}

Result<void> Memory::release(Address address) {
  auto it = live.find(address - kGlobalBase);
  if (address < kGlobalBase || it == live.end()) {
    const Object* object = address >= kGlobalBase ? table.find(address - kGlobalBase) : nullptr;
    if (object && !object->live && object->begin == address - kGlobalBase)
      return fail(fmt::format("double free of '{}' at {:#x}", object->name, address));
    return fail(fmt::format("{:#x} is not the start of a live allocation", address), "",
                "free the address that allocate returned");
  }
  Object& object = table.objects[it->second];
  object.live = false;
  used_bytes -= object.size_bytes;
  drop_pages(bytes + object.begin, object.size_bytes);
  drop_pages(shadow + object.begin, object.size_bytes);
  freed_.push_back(it->second);
  live.erase(it);
  return {};
}

namespace {

constexpr uint64_t kHeapAlign = 16;
constexpr uint64_t kKeptApartBytes = 64u << 20;  // address space of freed blocks in which a use is recognised

uint64_t granules_of(uint64_t begin, uint64_t size_bytes) {
  const uint64_t last = begin + std::max<uint64_t>(size_bytes, 1) - 1;
  return (last >> kGlobalGranuleShift) - (begin >> kGlobalGranuleShift) + 1;
}
uint64_t heap_block_bytes(uint64_t size_bytes) {
  return saturating_sum(std::max<uint64_t>(size_bytes, 1), kHeapAlign - 1) & ~(kHeapAlign - 1);
}

}  // namespace

Address Memory::allocate_heap(uint64_t size_bytes, uint64_t limit_bytes) {
  if (saturating_sum(heap_bytes, heap_block_bytes(size_bytes)) > limit_bytes) return 0;
  std::string name = fmt::format("malloc({})", size_bytes);
  Address address = 0;
  // All blocks begin at the same offset in their first granule, so blocks of as many granules are interchangeable.
  const auto free = free_blocks_.find(granules_of(kHeapAlign, size_bytes));
  if (free != free_blocks_.end() && !free->second.empty()) {
    const uint32_t id = free->second.back();
    free->second.pop_back();
    Object& object = table.objects[id];
    object.size_bytes = size_bytes;
    object.name = std::move(name);
    object.live = true;
    std::memset(bytes + object.begin, kPoison, size_bytes);
    std::memset(shadow + object.begin, 0, size_bytes);
    live[object.begin] = id;
    used_bytes += size_bytes;
    address = kGlobalBase + object.begin;
  } else {
    auto made = allocate(size_bytes, name, kHeapAlign);
    if (!made) {  // retry without keeping freed blocks apart
      for (auto& [granules, ids] : free_blocks_) freed_.insert(freed_.end(), ids.begin(), ids.end());
      freed_.insert(freed_.end(), freed_blocks_.begin(), freed_blocks_.end());
      free_blocks_.clear();
      freed_blocks_.clear();
      freed_block_bytes_ = 0;
      made = allocate(size_bytes, name, kHeapAlign);
      if (!made) return 0;
    }
    address = *made;
  }
  heap.insert(address);
  heap_bytes += heap_block_bytes(size_bytes);
  return address;
}

void Memory::release_heap(Address address) {
  const auto it = live.find(address - kGlobalBase);
  PTXKIT_CHECK(it != live.end(), "a block of malloc is not among the live objects");
  const uint32_t id = it->second;
  heap.erase(address);
  heap_bytes -= heap_block_bytes(table.objects[id].size_bytes);
  (void)release(address);
  freed_.pop_back();
  const auto taken = [&](const Object& object) {
    return (granules_of(object.begin, object.size_bytes) << kGlobalGranuleShift) + kGuardBytes;
  };
  freed_blocks_.push_back(id);
  freed_block_bytes_ += taken(table.objects[id]);
  while (freed_block_bytes_ > kKeptApartBytes && freed_blocks_.size() > 1) {
    const uint32_t oldest = freed_blocks_.front();
    freed_blocks_.pop_front();
    const Object& object = table.objects[oldest];
    freed_block_bytes_ -= taken(object);
    if (object.begin % (uint64_t{1} << kGlobalGranuleShift) == kHeapAlign)
      free_blocks_[granules_of(object.begin, object.size_bytes)].push_back(oldest);
    else
      freed_.push_back(oldest);
  }
}

Result<uint64_t> Memory::locate(Address address, uint64_t size_bytes) const {
  uint64_t offset = address - kGlobalBase;
  if (size_bytes == 0 && address >= kGlobalBase && offset <= limit) return offset;
  const Object* object = address >= kGlobalBase ? table.find(offset) : nullptr;
  if (!object || offset < object->begin)
    return fail(fmt::format("{:#x} is not an address of device memory", address), "",
                "pass an address that allocate returned");
  if (!object->live) return fail(fmt::format("{:#x} lies in '{}', which has been freed", address, object->name));
  uint64_t inside = offset - object->begin;
  if (inside > object->size_bytes || size_bytes > object->size_bytes - inside)
    return fail(fmt::format("range of {} bytes at '{}' + {} leaves the allocation of {} bytes", size_bytes,
                            object->name, inside, object->size_bytes));
  return offset;
}

uint64_t Memory::add_image(Image image) {
  images.push_back(image);
  return kImageHandles + images.size();
}

const Image* Memory::image(uint64_t handle) const {
  return handle > kImageHandles && handle <= kImageHandles + images.size() ? &images[handle - kImageHandles - 1]
                                                                           : nullptr;
}

Result<void> check_image(ImageUse use, const ImageDescription& description) {
  if (use == ImageUse::surface && (description.shape == ImageShape::buffer || description.shape >= ImageShape::cube))
    return fail("a surface is 1D, 2D or 3D, or has 1D or 2D layers");
  const bool layered = description.shape >= ImageShape::one_dim_array;
  const bool line = description.shape <= ImageShape::one_dim || description.shape == ImageShape::one_dim_array;
  const bool cube = description.shape >= ImageShape::cube;
  if (description.width == 0 || description.height == 0 || description.depth == 0 || description.layers == 0 ||
      (line && description.height > 1) || (description.shape != ImageShape::three_dim && description.depth > 1) ||
      (!layered && description.layers > 1))
    return fail(fmt::format("{} x {} x {} texels in {} layers do not fit the shape of the image", description.width,
                            description.height, description.depth, description.layers));
  if (cube && (description.width != description.height || description.layers % 6 ||
               (description.shape == ImageShape::cube && description.layers != 6)))
    return fail(fmt::format("a cube has 6 square faces, found {} of {} x {}", description.layers, description.width,
                            description.height));
  if (description.channels != 1 && description.channels != 2 && description.channels != 4)
    return fail(fmt::format("{} channels, expected 1, 2 or 4", description.channels));
  const uint64_t rows = uint64_t{description.height} * description.depth;
  if (description.width > 1u << 27 || rows > 1u << 27 || description.layers > 2048 * 6)
    return fail(
        fmt::format("an image of {} x {} rows in {} layers is too large", description.width, rows, description.layers));
  return {};
}

namespace {

Result<uint64_t> make_image(Memory& memory, Address data, ImageUse use, const ImageDescription& description,
                            const Sampling& sampling) {
  if (auto fits = check_image(use, description); !fits) return tl::unexpected(fits.error());
  const auto offset = memory.locate(data, description.size_bytes());
  if (!offset) return tl::unexpected(offset.error());
  return memory.add_image({use, description, sampling, *offset});
}

}  // namespace

Result<uint64_t> Device::make_texture(Address data, const ImageDescription& description, const Sampling& sampling) {
  return make_image(*memory_, data, ImageUse::texture, description, sampling);
}
Result<uint64_t> Device::make_surface(Address data, const ImageDescription& description) {
  return make_image(*memory_, data, ImageUse::surface, description, {});
}
uint64_t Device::make_sampler(const Sampling& sampling) {
  return memory_->add_image({ImageUse::sampler, {}, sampling, 0});
}

Device::Device(const DeviceOptions& options) : memory_(std::make_unique<Memory>(options)) {}
Device::~Device() = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;

Result<Address> Device::allocate(uint64_t size_bytes, std::string name, uint64_t align_bytes) {
  return memory_->allocate(size_bytes, std::move(name), align_bytes);
}

Result<void> Device::release(Address address) { return memory_->release(address); }

void Device::rename(Address address, std::string name) {
  const auto after = memory_->live.upper_bound(address - kGlobalBase);
  if (address < kGlobalBase || after == memory_->live.begin()) return;
  Object& object = memory_->table.objects[std::prev(after)->second];
  if (address - kGlobalBase - object.begin <= object.size_bytes) object.name = std::move(name);
}

Result<void> Device::write(Address address, std::span<const std::byte> data) {
  auto offset = memory_->locate(address, data.size());
  if (!offset) return tl::unexpected(offset.error());
  if (data.empty()) return {};
  std::memcpy(memory_->bytes + *offset, data.data(), data.size());
  std::memset(memory_->shadow + *offset, 0xff, data.size());
  return {};
}

Result<void> Device::fill(Address address, std::byte value, uint64_t size_bytes) {
  auto offset = memory_->locate(address, size_bytes);
  if (!offset) return tl::unexpected(offset.error());
  std::memset(memory_->bytes + *offset, std::to_integer<int>(value), size_bytes);
  std::memset(memory_->shadow + *offset, 0xff, size_bytes);
  return {};
}

Result<void> Device::read(Address address, std::span<std::byte> data) const {
  auto offset = memory_->locate(address, data.size());
  if (!offset) return tl::unexpected(offset.error());
  if (!data.empty()) std::memcpy(data.data(), memory_->bytes + *offset, data.size());
  return {};
}

Result<void> Device::forget(Address address, uint64_t size_bytes) {
  auto offset = memory_->locate(address, size_bytes);
  if (!offset) return tl::unexpected(offset.error());
  std::memset(memory_->bytes + *offset, kPoison, size_bytes);
  std::memset(memory_->shadow + *offset, 0, size_bytes);
  return {};
}

Result<uint64_t> Device::uninitialised_bytes(Address address, uint64_t size_bytes) const {
  auto offset = memory_->locate(address, size_bytes);
  if (!offset) return tl::unexpected(offset.error());
  uint64_t count = 0;
  for (uint64_t at = 0; at < size_bytes; ++at) count += memory_->shadow[*offset + at] != 0xff;
  return count;
}

std::vector<Allocation> Device::live_allocations() const {
  std::vector<Allocation> list;
  for (auto [begin, id] : memory_->live)
    list.push_back({kGlobalBase + begin, memory_->table.objects[id].size_bytes, memory_->table.objects[id].name});
  return list;
}

uint64_t Device::used_bytes() const { return memory_->used_bytes; }
uint64_t Device::free_bytes() const { return memory_->limit - memory_->used_bytes; }
const DeviceOptions& Device::options() const { return memory_->options; }

}  // namespace ptxkit::emulator
