// The PTX emulator as a Machine: the same images and the same launch code as on the GPU, with every access checked. It
// has one queue, and every call is complete when it returns. Each region is a separate allocation of its exact size,
// made anew for every arrangement, so an access beyond a region or a read of uninitialised memory is a fault that names
// instruction, thread and source line.
#pragma once

#include <memory>

#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

// `thread_count`: host threads that run CTAs in parallel.
std::unique_ptr<Machine> make_emulator_machine(FindImage find_image, unsigned thread_count);

}  // namespace ptxkit::codec
