// The PTX emulator as a Machine: the same images, the same launch code as the GPU, every access checked. One queue;
// every call is done when it returns. Each region is an allocation of its own, of exactly its size, new for every
// arrangement, so that an access past a region or to memory nobody wrote is a fault that names instruction, thread and
// source line.
#pragma once

#include <memory>

#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

// `thread_count` host threads run CTAs in parallel.
std::unique_ptr<Machine> make_emulator_machine(FindImage find_image, unsigned thread_count);

}  // namespace ptxkit::codec
