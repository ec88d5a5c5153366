// The emulated device of one or more modules, and its lock.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/c_api/ptxkit.h"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::c_api {

// A launch, a load and each access to memory hold the lock.
struct Machine {
  explicit Machine(const emulator::DeviceOptions& options) : device(options) {}
  emulator::Device device;
  std::mutex mutex;
};

}  // namespace ptxkit::c_api

// Opaque to callers. Modules keep the machine when the handle is destroyed.
struct ptxkit_emulator {
  std::shared_ptr<ptxkit::c_api::Machine> machine;
};
