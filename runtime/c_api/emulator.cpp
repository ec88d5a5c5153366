// Emulators of the caller's, whose memory stays between launches.
#include "runtime/emulator/emulator.hpp"

#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "runtime/c_api/json_options.hpp"
#include "runtime/c_api/machine.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "support/result.hpp"

namespace ptxkit::c_api {
namespace {

Answer<> create(const char* options, ptxkit_emulator** emulator) {
  if (auto given = require(emulator, "emulator"); !given) return given;
  *emulator = nullptr;
  const auto json = JsonOptions::read(options, {"sm"});
  if (!json) return tl::unexpected(json.error());
  emulator::DeviceOptions device;
  const auto sm = json->number("sm", device.sm, 999);
  if (!sm) return tl::unexpected(sm.error());
  device.sm = static_cast<uint32_t>(*sm);
  *emulator = new ptxkit_emulator{std::make_shared<Machine>(device)};
  return {};
}

Answer<> allocate(ptxkit_emulator* emulator, size_t bytes, uint32_t alignment, const char* name, uint64_t* address) {
  if (auto given = require(address, "address"); !given) return given;
  *address = 0;
  if (auto given = require(emulator, "emulator"); !given) return given;
  if (alignment != 0 && !std::has_single_bit(alignment))
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("alignment is {}, expected a power of two", alignment));
  const std::lock_guard lock(emulator->machine->mutex);
  const auto made =
      emulator->machine->device.allocate(bytes, name != nullptr ? name : "buffer", alignment != 0 ? alignment : 256);
  if (!made) return refuse(PTXKIT_NO_MEMORY, made.error());
  *address = *made;
  return {};
}

Answer<> done(const Result<void>& result) {
  if (!result) return refuse(PTXKIT_INVALID_VALUE, result.error());
  return {};
}

Answer<> release(ptxkit_emulator* emulator, uint64_t address) {
  if (auto given = require(emulator, "emulator"); !given) return given;
  const std::lock_guard lock(emulator->machine->mutex);
  return done(emulator->machine->device.release(address));
}

Answer<> write(ptxkit_emulator* emulator, uint64_t address, const void* from, size_t bytes) {
  if (auto given = require(emulator, "emulator"); !given) return given;
  if (from == nullptr && bytes != 0) return require(from, "from");
  const std::lock_guard lock(emulator->machine->mutex);
  return done(emulator->machine->device.write(address, {static_cast<const std::byte*>(from), bytes}));
}

Answer<> read(ptxkit_emulator* emulator, uint64_t address, void* into, size_t bytes) {
  if (auto given = require(emulator, "emulator"); !given) return given;
  if (into == nullptr && bytes != 0) return require(into, "into");
  const std::lock_guard lock(emulator->machine->mutex);
  return done(emulator->machine->device.read(address, {static_cast<std::byte*>(into), bytes}));
}

}  // namespace
}  // namespace ptxkit::c_api

using namespace ptxkit;

ptxkit_status ptxkit_emulator_create(const char* options, ptxkit_emulator** emulator) {
  return c_api::call(__func__, [&] { return c_api::create(options, emulator); });
}

void ptxkit_emulator_destroy(ptxkit_emulator* emulator) { delete emulator; }

ptxkit_status ptxkit_emulator_allocate(ptxkit_emulator* emulator, size_t bytes, uint32_t alignment, const char* name,
                                       uint64_t* address) {
  return c_api::call(__func__, [&] { return c_api::allocate(emulator, bytes, alignment, name, address); });
}

ptxkit_status ptxkit_emulator_release(ptxkit_emulator* emulator, uint64_t address) {
  return c_api::call(__func__, [&] { return c_api::release(emulator, address); });
}

ptxkit_status ptxkit_emulator_write(ptxkit_emulator* emulator, uint64_t address, const void* from, size_t bytes) {
  return c_api::call(__func__, [&] { return c_api::write(emulator, address, from, bytes); });
}

ptxkit_status ptxkit_emulator_read(ptxkit_emulator* emulator, uint64_t address, void* into, size_t bytes) {
  return c_api::call(__func__, [&] { return c_api::read(emulator, address, into, bytes); });
}
