// Starts threads on systems that may refuse them. A limit (RLIMIT_NPROC, RLIMIT_AS, a container's pids) may leave none;
// callers then do the work themselves or use fewer threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

namespace ptxkit {

// Starts a thread that runs `work`. Nothing if the system refuses, or if the thread's stack would take more than a
// quarter of the remaining address space, because the work itself needs memory, too. The thread blocks all signals but
// those that its own faults raise: signals sent to the process go to the program's own threads. The destructor waits
// for the thread.
std::optional<std::jthread> try_thread(std::function<void()> work) noexcept;

// The bytes that RLIMIT_AS still allows this process; nothing without such a limit.
std::optional<uint64_t> address_space_left() noexcept;

// The default stack size of a thread, in bytes; 0 if it is unknown.
uint64_t stack_bytes() noexcept;

}  // namespace ptxkit
